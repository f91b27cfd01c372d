"""Generating: the functions that a program calls.

``generate`` and ``stream`` take any constraint and give a ``Result``; ``generate_json``, ``generate_regex`` and
``generate_choice`` give the value itself or raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast

from maskwright.engine.batch import decoder_for, run_groups
from maskwright.engine.beam import Beam, Contrastive, Search
from maskwright.engine.lookahead.settings import Lookahead
from maskwright.engine.outcome import Outcome, outcome, with_results
from maskwright.engine.progress import Chunker
from maskwright.engine.request import Grammar, Processor
from maskwright.engine.requests import (
    Prefix,
    Prompt,
    Rules,
    Seed,
    Stop,
    build_requests,
    compile_for,
    is_one_prompt,
    rules,
)
from maskwright.engine.result import Chunk, environment
from maskwright.engine.sampling import Sampling
from maskwright.engine.speculation.options import Speculative
from maskwright.errors import GenerationError
from maskwright.grammar.regions import Thinking

if TYPE_CHECKING:
    import re

    from typing_extensions import Unpack

    from maskwright.compiler import CompiledGrammar
    from maskwright.engine.decode import Decoder
    from maskwright.engine.model import LanguageModel
    from maskwright.grammar.lark import Lark
    from maskwright.grammar.plan import Cancel, Constraint

__all__ = [
    "Options",
    "generate",
    "generate_choice",
    "generate_json",
    "generate_lark",
    "generate_regex",
    "stream",
]

T = TypeVar("T")


class Options(TypedDict, total=False):
    """What every generating function takes by keyword; see :func:`generate`."""

    sampling: Sampling | None
    strategy: Literal["sample", "greedy"] | Search | Speculative | None
    n: int
    max_tokens: int | None
    stop: Stop
    include_stop: bool
    seed: Seed | None
    batch_size: int
    cancel: Cancel | None
    min_tokens: int
    prefix: Prefix
    processor: Processor | None
    logprobs: int | None
    drafts: bool
    thinking: Thinking | None
    lookahead: Lookahead | Literal["exact", "certified", "smc"] | None


def generate(
    model: LanguageModel,
    prompt: Prompt | Sequence[Prompt],
    constraint: Constraint | CompiledGrammar | Sequence[Constraint | CompiledGrammar | None] | None = None,
    **options: Unpack[Options],
) -> Any:
    """Generates text that obeys a constraint.

    Args:
        model: the language model.
        prompt: a text, taken as it stands; a chat (list of dicts with ``role`` and ``content``), put through the
            model's template; or a list of such.
        constraint: what the output must be; None for free text. A list gives each prompt its own.
        **options: by keyword:

            - ``sampling``: how tokens are drawn. Greedy unless this, ``seed`` or ``strategy="sample"`` is given.
            - ``strategy``: ``"greedy"`` or ``"sample"``, where the other arguments should not decide it; a search:
              ``Beam(width, ...)`` or ``Contrastive(k, alpha)``; or ``Speculative(...)``, which drafts tokens and
              verifies several in one forward.
            - ``n``: outputs per prompt, 1 by default; of a beam, the best ones.
            - ``max_tokens``: the most tokens of an output, EOS included; by default 512 or what the context leaves.
              With a constraint every output is complete within it, or the call raises before any forward.
            - ``stop``: a string or the id of a token, or some, that end an output; with a constraint, only where what
              is then left of the text is complete.
            - ``include_stop``: whether the text keeps the stop string; False by default.
            - ``seed``: makes draws repeatable, whatever else is in the batch: one int, or one per prompt, or a
              ``torch.Generator``, which gives one and moves on. Prompt ``i`` of a list draws from stream ``i`` of a
              single seed. Manifests record it, also where none is given.
            - ``batch_size``: the most rows that share a forward, 32 by default.
            - ``cancel``: asked before every step (a ``threading.Event``, say); outputs then end as they are.
            - ``min_tokens``: before so many tokens an output does not end where it can go on.
            - ``prefix``: what the output begins with: a text, or a Result that was cut, which is then continued as if
              it had not been; one for all prompts or one for each. It must obey the constraint and is part of the text.
            - ``processor``: a function of the tokens of an output so far and the logits of the next, shape ``(V,)``,
              that gives the logits to use, before anything else. What it raises ends its own output alone.
            - ``logprobs``: results tell about each token (``Result.logprobs``), with so many alternatives.
            - ``thinking``: reasoning before the output, ``Thinking(end=...)``; the value is that of what follows.
            - ``lookahead``: ``"exact"``, ``"certified"``, ``"smc"`` or ``Lookahead(...)``: draw from the model
              conditioned on the constraint, where masking step by step draws from another law. Outputs then end with
              EOS within ``max_tokens``, and results say how exact they are (``Result.lookahead``).
            - ``drafts``: False gives every token a decode step of its own. The output is the same.

    Returns:
        A :class:`Result` for one prompt; a list for a list; a list of ``n`` in its place where ``n > 1`` (of fewer,
        where a beam finds no more).

    Raises:
        ConstraintError: the constraint cannot be enforced.
        BudgetError: with ``lookahead``, no output was found within ``budget_calls``.
        GenerationError: prompt and max_tokens exceed the context, no output fits into max_tokens, or a row failed
            (the model's logits are not numbers, say): then ``.result`` is that row's and ``.results`` are all.
        ValueError: a parameter out of range.
        TypeError: a parameter of a wrong type.
    """
    how, one, groups = _outcomes(model, prompt, constraint, options)
    outcomes = [out for group in groups for out in group]
    for out in outcomes:
        if out.error is not None:
            raise with_results(out.error, out, outcomes)
    return _shaped([[out.result for out in group] for group in groups], one, how.n)


def _outcomes(
    model: LanguageModel, prompt: Any, constraint: Any, options: Options, retries: int = 0
) -> tuple[Rules, bool, list[list[Outcome]]]:
    """Runs a call: the outcomes of each prompt; also tells its rules and whether it had one prompt."""
    how, one = rules(**options), is_one_prompt(prompt)
    prompts = cast("Sequence[Prompt]", [prompt] if one else prompt)
    requests = build_requests(model, prompts, _compiled(model, constraint, one, len(prompts), how), how)
    return how, one, run_groups(model, requests, how, retries)


def _compiled(
    model: LanguageModel, constraint: Any, one: bool, count: int, how: Rules
) -> list[Grammar | None]:
    """A compiled constraint for each prompt."""
    thinking, judged = how.thinking, how.lookahead is not None and how.lookahead.method == "smc"
    if not isinstance(constraint, list | tuple):
        return [compile_for(model, constraint, thinking, judged)] * count
    if one:
        raise TypeError("a list of constraints needs a list of prompts")
    if len(constraint) != count:
        raise ValueError(f"got {len(constraint)} constraints for {count} prompts; pass one, or one per prompt")
    return [compile_for(model, each, thinking, judged) for each in constraint]


def _shaped(groups: list[list[T]], one: bool, n: int) -> T | list[T] | list[list[T]]:
    """One item for one prompt, a list for a list; ``n > 1`` adds a level."""
    if n > 1:
        return groups[0] if one else groups
    return groups[0][0] if one else [group[0] for group in groups]


def stream(
    model: LanguageModel,
    prompt: Prompt,
    constraint: Constraint | CompiledGrammar | None = None,
    *,
    partial_strings: bool = False,
    **options: Unpack[Options],
) -> Iterator[Chunk]:
    """Generates one output piece by piece.

    A piece holds whole characters that no stop string can take back, and the tokens that spell them. Arguments are
    checked when the function is called; closing the iterator cancels the generation. While JSON is written, pieces
    carry its value so far.

    Args:
        model: the language model.
        prompt: one text or chat.
        constraint: as in :func:`generate`.
        partial_strings: whether the value so far also holds the beginning of a string that is not closed yet.
        **options: as in :func:`generate`, with ``n`` 1.

    Returns:
        An iterator of :class:`Chunk`; the last one carries the value and the result.

    Raises:
        ConstraintError, GenerationError, ValueError, TypeError: as :func:`generate`; a row fails while iterating.
    """
    if not is_one_prompt(prompt):
        raise TypeError("stream takes one prompt; call it once for each")
    how = rules(**options)
    if how.n != 1:
        raise ValueError(f"n is {how.n}; stream gives one output")
    if isinstance(how.strategy, Beam | Contrastive):
        raise ValueError("a search knows its output at the end only: call generate, or leave strategy out")
    if how.lookahead is not None:
        raise ValueError("lookahead draws an output as a whole, stream gives it piece by piece; use generate")
    requests = build_requests(model, [prompt], [compile_for(model, constraint, how.thinking)], how)
    return _chunks(model, decoder_for(model, requests, how, how.sampling), how, partial_strings)


def _chunks(model: LanguageModel, decoder: Decoder, how: Rules, partial_strings: bool) -> Iterator[Chunk]:
    (row,) = decoder.rows
    chunker = Chunker(row, partial_strings, how.thinking is not None)
    for _ in decoder.steps():
        chunk = chunker.take()
        if chunk is not None:
            yield chunk
    out = outcome(row, environment(model, how.sampling), how)
    if out.error is not None:
        raise with_results(out.error, out, [out])
    yield chunker.last(out.result)


def generate_json(
    model: LanguageModel,
    prompt: Prompt | Sequence[Prompt],
    schema: Any,
    *,
    retries: int = 0,
    **options: Unpack[Options],
) -> Any:
    """Generates JSON that a schema accepts, and gives the value.

    Args:
        model: the language model.
        prompt: as in :func:`generate`.
        schema: a pydantic model or any type that pydantic's TypeAdapter takes (the value is of that type), a schema
            as dict, bool or JSON text (the value is plain data), or a ``JsonSchema``.
        retries: how often to draw again, from another seed, where a validator function refuses a value. Greedy calls
            draw at temperature 1 then.
        **options: as in :func:`generate`.

    Returns:
        The value; a list for a list of prompts; a list of ``n`` in its place where ``n > 1``.

    Raises:
        ConstraintError: the schema cannot be enforced; the location is a JSON pointer.
        GenerationError: as in :func:`generate`, and where an output is not finished or a validator refuses it.
    """
    from maskwright.grammar.json_schema import JsonSchema

    constraint = schema if isinstance(schema, JsonSchema) else JsonSchema(schema)
    return _values(model, prompt, constraint, options, retries)


def generate_regex(
    model: LanguageModel,
    prompt: Prompt | Sequence[Prompt],
    pattern: str | re.Pattern[str],
    **options: Unpack[Options],
) -> Any:
    r"""Generates text that a regular expression matches in full.

    Args:
        model: the language model.
        prompt: as in :func:`generate`.
        pattern: in Python's syntax, such as ``r"\d{4}-\d{2}-\d{2}"``; or a compiled pattern, or a ``Regex``.
        **options: as in :func:`generate`.

    Returns:
        The text; a list for a list of prompts; a list of ``n`` in its place where ``n > 1``.

    Raises:
        RegexError: the pattern cannot be enforced; the location is an offset.
        GenerationError: as in :func:`generate`, and where an output is not finished.
    """
    from maskwright.grammar.regex import Regex

    return _values(model, prompt, pattern if isinstance(pattern, Regex) else Regex(pattern), options)


def generate_choice(
    model: LanguageModel,
    prompt: Prompt | Sequence[Prompt],
    choices: Any,
    **options: Unpack[Options],
) -> Any:
    """Generates one of some choices.

    Args:
        model: the language model.
        prompt: as in :func:`generate`.
        choices: a list of texts, an ``Enum``, a ``Literal``, a dict of label to value, or a ``Choice``.
        **options: as in :func:`generate`.

    Returns:
        The chosen item; a list for a list of prompts; a list of ``n`` in its place where ``n > 1``.

    Raises:
        ConstraintError: the choices cannot be enforced.
        GenerationError: as in :func:`generate`, and where an output is not finished.
    """
    from maskwright.grammar.choice import Choice

    return _values(model, prompt, choices if isinstance(choices, Choice) else Choice(choices), options)


def generate_lark(
    model: LanguageModel,
    prompt: Prompt | Sequence[Prompt],
    grammar: str | Lark,
    *,
    parse: bool = False,
    **options: Unpack[Options],
) -> Any:
    """Generates text that a Lark grammar parses.

    Args:
        model: the language model.
        prompt: as in :func:`generate`.
        grammar: a ``Lark``, such as ``Lark.shipped("sql")``; or the text of a grammar, for Earley's dynamic lexer.
        parse: give trees instead of texts, as lark makes them.
        **options: as in :func:`generate`.

    Returns:
        The text or its tree; a list for a list of prompts; a list of ``n`` in its place where ``n > 1``.

    Raises:
        LarkError: the grammar cannot be enforced; the location is a line and column.
        UnsatisfiableError: it parses no text at all.
        GenerationError: as in :func:`generate`, and where an output is not finished.
    """
    from maskwright.grammar.lark import Lark

    constraint = grammar if isinstance(grammar, Lark) else Lark(grammar)
    made = _values(model, prompt, constraint, options)
    return _each(made, constraint.tree) if parse else made


def _each(made: Any, convert: Callable[[str], Any]) -> Any:
    return [_each(one, convert) for one in made] if isinstance(made, list) else convert(made)


def _values(model: LanguageModel, prompt: Any, constraint: Constraint, options: Options, retries: int = 0) -> Any:
    """The values of all outputs, in the shape of the results; raises the first failure once all are through."""
    how, one, groups = _outcomes(model, prompt, constraint, options, retries)
    outcomes = [out for group in groups for out in group]
    for at, out in enumerate(outcomes):
        if out.error is not None:
            raise with_results(out.error, out, outcomes)
        if not out.result.valid:
            which = "the output" if len(outcomes) == 1 else f"output {at} of {len(outcomes)}"
            error = GenerationError(
                f"a validator refuses {which}: {out.refusal}"
                if out.refusal is not None
                else f"{which} is not finished (finish_reason {out.result.finish_reason!r})",
                hint="The text is in .result; retries= draws again" if out.refusal is not None else None,
            )
            raise with_results(error, out, outcomes) from out.refusal
    return _shaped([[out.result.value for out in group] for group in groups], one, how.n)
