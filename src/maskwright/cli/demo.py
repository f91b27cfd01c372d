"""What ``maskwright demo`` shows: one model fills a pydantic model, a date and a label."""

from __future__ import annotations

import datetime
import enum
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

import maskwright as mw

if TYPE_CHECKING:
    from maskwright.engine.model import LanguageModel
    from maskwright.grammar.plan import Constraint

__all__ = ["Person", "Sentiment", "run_demo"]


class Person(BaseModel):
    """The form."""

    name: str = Field(max_length=40)
    age: int = Field(ge=0, le=130)
    city: str = Field(max_length=40)


class Sentiment(enum.Enum):
    """The labels."""

    POSITIVE = "positive"
    NEUTRAL = "neutral"
    NEGATIVE = "negative"


_TASKS: list[tuple[str, str, Any]] = [
    (
        "a pydantic model",
        "Extract the name, age and city as JSON: John Smith is 42 years old and lives in Boston.",
        Person,
    ),
    (
        "a date",
        'The invoice is dated 15.03.2024. Write the date as a JSON string "YYYY-MM-DD".',
        datetime.date,
    ),
    (
        "a label",
        "Is this review positive, neutral or negative? Answer with one word. Review: I love this phone, it is great!",
        Sentiment,
    ),
]


def run_demo(model: LanguageModel) -> list[mw.Result]:
    """Runs the three tasks and prints typed objects, speed and the time of the masks.

    Args:
        model: the language model, one that follows instructions.

    Returns:
        The results, in order.
    """
    print(f"{model.name}, {model.vocabulary.size} tokens, on {model.device}\n")
    results = []
    for title, prompt, target in _TASKS:
        constraint: Constraint = mw.Choice(target) if target is Sentiment else mw.JsonSchema(target)
        result: mw.Result = mw.generate(model, [{"role": "user", "content": prompt}], constraint, max_tokens=100)
        print(f"{title}\n  prompt  {prompt}\n  text    {result.text}\n  value   {result.value!r}\n")
        results.append(result)
    tokens = sum(len(result.tokens) for result in results)
    calls = sum(result.stats.model_calls for result in results)
    seconds = sum(result.stats.seconds for result in results)
    masks = sum(result.stats.mask_seconds for result in results)
    print(f"{tokens} tokens in {seconds:.1f} s: {tokens / seconds:.1f} tokens/s, prompts included")
    print(f"{calls} model calls: a token that the constraint determines costs none of its own")
    print(f"masks: {masks * 1e6 / tokens:.0f} µs per token, {100 * masks / seconds:.2f} % of the time")
    return results
