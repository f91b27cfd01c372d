"""Random models, constraints and rules in continuous batches: every output is valid, by other judges (R20)."""

from __future__ import annotations

import json
import math
import random
import re
from typing import Any

import jsonschema
import pytest

import maskwright as mw
from engine.models import JoiningToy
from engine.test_acceptance import random_rules
from laws.regexes import pattern
from laws.schemas import schema_case

GRAMMARS = ("json", "csv", "arithmetic", "iso8601")
GROUP = 16


def random_constraint(random_: random.Random) -> tuple[Any, Any]:
    """A constraint, and what raises or says False where a text is not valid."""
    kind = random_.random()
    if kind < 0.6:
        case = schema_case(random_, 2)
        style = case.style
        constraint = mw.JsonSchema(
            case.schema,
            key_order=style.key_order,
            whitespace=style.whitespace,
            numbers=style.numbers,
            escapes=style.escapes,
        )
        return constraint, lambda text: valid_json(text, case.schema)
    if kind < 0.9:
        written = pattern(random_, 2)
        return mw.Regex(written.text, flags=written.flags), lambda text: re.fullmatch(written.text, text, written.flags)
    grammar = mw.Lark.shipped(random_.choice(GRAMMARS))
    return grammar, lambda text: grammar.tree(text) is not None


def valid_json(text: str, schema: Any) -> bool:
    jsonschema.validate(json.loads(text), schema, jsonschema.Draft202012Validator)
    return True


@pytest.mark.parametrize("count", [48, pytest.param(2000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_R20_outputs_of_random_models_are_valid(count: int) -> None:
    random_, reasons, done, refused = random.Random(1), set[str](), 0, 0
    while done < count:
        model = JoiningToy(seed=random_.randrange(1 << 30), scale=random_.choice([0.0, 0.5, 3.0, 20.0]))
        engine, asked = mw.Engine(model, token_budget=random_.choice([16, 64, 512]), max_rows=16), []
        while len(asked) < GROUP:
            constraint, judge = random_constraint(random_)
            try:
                least = mw.compile(constraint, model.vocabulary).matcher().min_tokens_to_accept() + 1
            except mw.ConstraintError:  # no text at all, or what is refused by name
                refused += 1
                continue
            budget = least + random_.choice([0, 1, 5, 40])
            options = {"sampling": random_rules(random_), "seed": len(asked), "drafts": random_.random() < 0.7}
            asked.append((engine.submit("p", constraint, max_tokens=budget, **options), judge, budget))
        engine.run()
        for handle, judge, budget in asked:
            result = handle.result()
            assert result.valid, result
            assert judge(result.text), result
            assert len(result.tokens) <= budget
            assert math.isfinite(result.log_weight)
            reasons.add(result.finish_reason)
        done += GROUP
    assert refused < done
    assert {"eos", "constraint", "length"} <= reasons
