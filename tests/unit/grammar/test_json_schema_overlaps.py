"""Branches of `oneOf` that exclude each other, and those that do not: told plainly where it shows, proved elsewhere."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

import maskwright as mw
from laws.keyword_schemas import universe
from maskwright.grammar.json_schema import JsonSchema, disjoint, forms
from maskwright.grammar.plan import CompileLimits

BYTES = mw.Vocabulary([*(bytes([b]) for b in range(256)), b"<eos>"], eos_ids=[256], special_ids=[256])
TEXTS = {json.dumps(value, separators=(",", ":")): value for value in universe()}
CLOSED = {"type": "object", "additionalProperties": False}
TAGGED = {"type": "object", "required": ["a"]}

# Two branches, and what stands beside the oneOf.
APART: list[tuple[Any, Any, dict[str, Any]]] = [
    ({"type": "string"}, {"type": ["null", "array"]}, {}),
    ({"enum": ["a", 1]}, {"enum": ["b", 2]}, {}),
    ({"enum": ["a", "b"]}, {"type": "string", "pattern": "c"}, {}),
    ({"const": 1}, {"type": "number", "minimum": 2}, {}),
    ({"const": {"a": 0}}, {"const": {"a": 1}}, {}),
    ({**CLOSED, "properties": {"a": {}}}, {"type": "object", "required": ["b"]}, {}),
    ({"additionalProperties": False}, {"required": ["b"]}, {"type": "object"}),
    ({**TAGGED, "properties": {"a": {"const": "x"}}}, {"type": "object", "properties": {"a": {"const": "y"}}}, {}),
    ({"properties": {"a": {"enum": ["x"]}}}, {"properties": {"a": {"type": "null"}}}, TAGGED),
    ({**TAGGED, "properties": {"a": {"$ref": "#/$defs/s"}}}, {**TAGGED, "properties": {"a": {"type": "null"}}}, {}),
    ({**TAGGED, "properties": {"a": False}}, {"type": "object"}, {}),
]
OVERLAPPING: list[tuple[Any, Any, dict[str, Any]]] = [
    ({"type": "string"}, {"type": ["null", "string"]}, {}),
    ({"enum": ["a", 1]}, {"enum": ["b", 1.0]}, {}),
    ({"enum": ["a", "c"]}, {"type": "string", "pattern": "c"}, {}),
    ({"enum": [[]]}, {"type": "array"}, {}),
    ({**CLOSED, "properties": {"a": {}, "b": {}}}, {"type": "object", "required": ["b"]}, {}),
    ({"additionalProperties": False}, {"required": ["b"]}, {}),
    ({**CLOSED, "patternProperties": {"^b$": {}}}, {"type": "object", "required": ["b"]}, {}),
    ({"properties": {"a": {"const": "x"}}}, {"properties": {"a": {"const": "y"}}}, {"type": "object"}),
    ({**TAGGED, "properties": {"a": {"type": "integer"}}}, {**TAGGED, "properties": {"a": {"type": "number"}}}, {}),
    ({"properties": {"a": {"enum": ["x"]}}}, {"properties": {"a": {"type": "null"}}}, {"required": ["a"]}),
]


def verdicts(schema: Any) -> None:
    """Holds all texts against the validator."""
    validator = jsonschema.Draft202012Validator(schema)
    expected = [text for text, value in TEXTS.items() if validator.is_valid(value)]
    try:
        compiled = mw.compile(mw.JsonSchema(json.dumps(schema), key_order="any"), BYTES)
    except mw.UnsatisfiableError:
        assert expected == [], schema
        return
    found = []
    for text in TEXTS:
        matcher = compiled.matcher()
        if matcher.accept_text(text) and matcher.is_accepting:
            found.append(text)
    assert found == expected, schema


@pytest.mark.parametrize(("one", "other", "beside"), APART)
def test_branches_that_exclude_each_other_stay_a_union(one: Any, other: Any, beside: dict[str, Any]) -> None:
    schema = {"oneOf": [one, other], **beside, "$defs": {"s": {"type": "string"}}}
    plan = JsonSchema(schema).plan(CompileLimits())
    assert [group.kind for group in plan._forms.scan.groups[0]] == ["one"]
    verdicts(schema)


@pytest.mark.parametrize(("one", "other", "beside"), OVERLAPPING)
def test_branches_that_overlap_are_cut(one: Any, other: Any, beside: dict[str, Any]) -> None:
    schema = {"oneOf": [one, other], **beside}
    plan = JsonSchema(schema).plan(CompileLimits())
    assert [group.kind for group in plan._forms.scan.parts_of(0)] != ["one"] or 0 in plan._forms.scan.joint
    verdicts(schema)


FAULTS: list[tuple[Any, str, Any]] = [
    *((disjoint, name, lambda *_: True) for name in ("_are_apart", "_are_other_values", "_clash", "_exclude")),
    (disjoint, "_distinguished", lambda *_: True),
    (disjoint, "_meet", lambda *_: False),
    (forms.Forms, "beside", lambda self, changed: dict(self._memo)),
]


@pytest.mark.parametrize(("owner", "name", "fault"), FAULTS)
def test_planted_faults_are_noticed(owner: Any, name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, fault)
    for one, other, beside in OVERLAPPING:
        schema = {"oneOf": [one, other], **beside, "$comment": name}  # compiled ones are remembered
        try:
            verdicts(schema)
        except AssertionError:
            return
    pytest.fail("nothing was noticed")


def branch(rng: random.Random) -> dict[str, Any]:
    """An object with a tag, or a list of values, or a pattern: what discriminated unions are made of."""
    kind = rng.randrange(4)
    if kind == 0:
        return {"enum": rng.sample(["a", "b", "ab", 0, 1, None, {}, {"a": 0}], rng.randint(1, 3))}
    if kind == 1:
        return {"type": "string", "pattern": rng.choice(["^a", "b$", "^(a|b)$"])}
    out: dict[str, Any] = {"properties": {}}
    for name in rng.sample(["a", "b", "ab"], rng.randint(1, 2)):
        tag = [{"const": rng.choice([0, 1, "a", "b"])}, {"enum": [0, "a"]}, {"type": rng.choice(["integer", "string"])}]
        out["properties"][name] = rng.choice([*tag, {}, {"pattern": "b"}])
    if rng.random() < 0.7:
        out["required"] = rng.sample(["a", "b", "ab"], rng.randint(1, 2))
    if rng.random() < 0.4:
        out["additionalProperties"] = False
    if rng.random() < 0.6:
        out["type"] = "object"
    return out


@pytest.mark.parametrize("seed", range(60))
def test_random_unions(seed: int) -> None:
    """Beside other keywords too, and one inside the other."""
    rng = random.Random(seed)
    schema: dict[str, Any] = {"oneOf": [branch(rng) for _ in range(rng.randint(2, 4))]}
    if rng.random() < 0.3:
        schema["required"] = ["a"]
    if rng.random() < 0.3:
        schema["oneOf"][0] = {"oneOf": [branch(rng), branch(rng)]}
    if rng.random() < 0.3:
        schema = {"allOf": [schema, branch(rng)]}
    if rng.random() < 0.3:
        schema = {"anyOf": [schema, {"type": "object", "properties": {"a": schema}}]}
    verdicts(schema)
