"""Valid texts without a model, and strategies that draw them."""

from __future__ import annotations

import datetime
import json
import pickle
import re
import subprocess
import sys
from typing import Any, Literal

import pydantic
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.integrations.hypothesis import from_constraint, texts_of
from maskwright.texts import walk_vocabulary

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["x", "y"]}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


class Node(pydantic.BaseModel):
    kind: Literal["a", "b"]
    day: datetime.date
    children: list[Node] = []


class Even(pydantic.BaseModel):
    n: int = pydantic.Field(ge=0, le=9)

    @pydantic.field_validator("n")
    @classmethod
    def _even(cls, n: int) -> int:
        if n % 2:
            raise ValueError(f"{n} is odd")
        return n


@pytest.mark.parametrize(
    "pattern", [r"[a-z]{3,9}", r"(ab|c)*", r".*", r"\d{4}-\d{2}", r"", r"x{40}", r"[é€😀]+", r"(?=.*a)[a-c]{2,5}"]
)
def test_texts_of_a_regex_match(pattern: str) -> None:
    texts = mw.sample(mw.Regex(pattern), 50, seed=1)
    assert len(texts) == 50
    assert all(re.fullmatch(pattern, text) for text in texts)


def test_texts_of_a_schema_are_accepted_and_vary() -> None:
    texts = mw.sample(mw.JsonSchema(SCHEMA), 200, seed=1)
    values = [json.loads(text) for text in texts]
    matcher = mw.compile(mw.JsonSchema(SCHEMA), walk_vocabulary()).matcher()
    for text in texts:
        matcher.reset()
        assert matcher.accept_text(text)
        assert matcher.is_accepting
    assert {key for value in values for key in value} == {"name", "age", "tags"}
    assert {"age" in value for value in values} == {True, False}
    assert len({len(value["name"]) for value in values}) > 10
    assert len({len(text) for text in texts}) > 30
    assert len(set(texts)) > 150


@pytest.mark.parametrize("schema", [True, {"type": "array", "items": {"type": "number"}, "minItems": 3}, Node])
def test_texts_of_wide_and_recursive_schemas_parse(schema: Any) -> None:
    constraint = mw.JsonSchema(schema)
    values = [constraint.parse(text) for text in mw.sample(constraint, 60, seed=2)]
    if schema is Node:
        assert any(value.children for value in values)
    if schema is True:
        assert {type(value) for value in values} >= {str, int, dict, list}


def test_every_choice_comes_up() -> None:
    choices = ["yes", "no", "yesterday", "", "nö"]
    texts = mw.sample(mw.Choice(choices), 300, seed=3)
    assert set(texts) == set(choices)
    assert all(isinstance(text, str) for text in mw.sample(mw.Choice({"one": 1}), 2, seed=0))


def test_a_seed_repeats_and_a_smaller_n_is_a_prefix() -> None:
    constraint = mw.JsonSchema(SCHEMA)
    assert mw.sample(constraint, 10, seed=5)[:4] == mw.sample(constraint, 4, seed=5)
    assert mw.sample(constraint, 10, seed=5) != mw.sample(constraint, 10, seed=6)
    wide = mw.Regex("[a-z]{20}")
    assert mw.sample(wide, 1) != mw.sample(wide, 1)
    code = "import maskwright as mw; print(mw.sample(mw.Regex('[a-z]{8}'), 3, 5))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(mw.sample(pickle.loads(pickle.dumps(mw.Regex("[a-z]{8}"))), 3, 5))


def test_wrong_arguments() -> None:
    assert mw.sample(mw.Regex("a"), 0) == []
    with pytest.raises(ValueError, match="n is -1"):
        mw.sample(mw.Regex("a"), -1)
    with pytest.raises(TypeError):
        mw.sample("a", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        mw.sample(mw.Regex("a"), 1, seed=0.5)  # type: ignore[arg-type]
    with pytest.raises(mw.ConstraintError):
        mw.sample(mw.Choice([]), 1)
    for schema in ("{", "[" * 100_000, '{"type": "strang"}', '{"properties": 3}'):
        with pytest.raises(mw.ConstraintError):
            mw.sample(mw.JsonSchema(schema), 1)
    with pytest.raises(ValueError, match="max_spare is -1"):
        texts_of(mw.Regex("a"), max_spare=-1)


QUICK = settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(texts_of(mw.Regex(r"([a-z]+ ){2,}[^\x00-\x1f]{0,5}")))
def test_drawn_texts_match(text: str) -> None:
    assert re.fullmatch(r"([a-z]+ ){2,}[^\x00-\x1f]{0,5}", text)


@QUICK
@given(from_constraint(mw.JsonSchema(Node)))
def test_drawn_values_have_the_type(node: Node) -> None:
    assert isinstance(node, Node)


@QUICK
@given(from_constraint(mw.JsonSchema(Even)))
def test_values_that_a_validator_refuses_are_not_drawn(value: Even) -> None:
    assert value.n % 2 == 0


@QUICK
@given(st.data())
def test_values_of_choices_are_the_items(data: st.DataObject) -> None:
    assert data.draw(from_constraint(mw.Choice({"one": 1, "two": 2}))) in (1, 2)
    assert data.draw(from_constraint(mw.Regex("x{200}[ab]{450}")))[:200] == "x" * 200  # more than it may choose


def smallest(strategy: st.SearchStrategy[Any], condition: Any) -> Any:
    quick = settings(max_examples=2000, database=None, derandomize=True, phases=[Phase.generate, Phase.shrink])
    return find(strategy, condition, settings=quick)


def test_examples_shrink() -> None:
    assert smallest(texts_of(mw.Regex("[a-z0-9é]*")), lambda text: True) == ""
    assert len(smallest(texts_of(mw.Regex("[a-z0-9é]*")), lambda text: len(text) >= 3)) <= 4
    value = smallest(from_constraint(mw.JsonSchema(SCHEMA)), lambda value: len(value.get("tags", ())) > 1)
    assert len(value["tags"]) == 2
    assert len(value["name"]) == 1


def test_outputs_of_several_parts_are_sampled_with_their_keys() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"wavelength": {"type": "integer"}}}
    schema["required"] = ["wavelength"]
    schema["additionalProperties"] = False
    whole = mw.Seq("<", mw.Capture("data", mw.JsonSchema(schema, whitespace="compact")), ">", mw.Free(until="\n"))
    for text in mw.sample(whole, 20, seed=3):
        found = re.fullmatch(r"<(\{[^}]*\})>[^\n]*\n", text)
        assert found
        assert isinstance(json.loads(found[1])["wavelength"], int)
    with pytest.raises(mw.ConstraintError, match=r"regions of tokens.*sample"):
        mw.sample(mw.Seq("a", mw.Special("<t>")))
