"""What the report says of each keyword, and that constraints are immutable, equal by content, and pickle."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from maskwright.grammar.json_schema import JsonSchema
from maskwright.grammar.plan import CompileLimits, ReportEntry
from unit.grammar.recorder import Recorder, record


def report(schema: Any, **options: Any) -> dict[tuple[str, str], ReportEntry]:
    return {(e.pointer, e.keyword): e for e in record(schema, **options).plan.report}


def test_every_keyword_is_listed_with_its_pointer() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "T",
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "x", "description": "d"}, "b": {"$ref": "#/$defs/c"}},
        "required": ["a"],
        "$defs": {"c": {"enum": ["x"]}, "unused": {"not": {"items": {}}}},
    }
    found = report(schema, key_order="any", whitespace="any", numbers="full", escapes="any")
    status = {place: entry.status for place, entry in found.items()}
    assert status == {
        ("", "$schema"): "annotation",
        ("", "title"): "annotation",
        ("", "type"): "enforced",
        ("", "properties"): "enforced",
        ("", "required"): "enforced",
        ("", "$defs"): "annotation",
        ("/properties/a", "type"): "enforced",
        ("/properties/a", "pattern"): "enforced",
        ("/properties/a", "description"): "annotation",
        ("/properties/b", "$ref"): "enforced",
        ("/$defs/c", "enum"): "enforced",
    }


def test_unknown_keywords_are_annotations_and_slips_are_pointed_out() -> None:
    found = report({"anyof": [], "x-thing": 1, "_format": "y", "format": "phone"})
    assert found["", "anyof"].status == found["", "x-thing"].status == found["", "_format"].status == "annotation"
    assert "anyOf" in found["", "anyof"].detail
    assert found["", "format"].status == "annotation" and "phone" in found["", "format"].detail


def test_what_is_narrowed_is_told() -> None:
    found = report({"type": "object", "properties": {"n": {"type": "number", "minimum": 1}, "s": {"type": "string"}}})
    narrowed = {place for place, entry in found.items() if entry.status == "over-constrained"}
    assert narrowed == {
        ("", "key_order"),
        ("", "whitespace"),
        ("", "numbers"),
        ("", "escapes"),
        ("/properties/n", "type"),
    }
    assert "20" in found["/properties/n", "type"].detail
    found = report({"type": "integer", "maximum": 3}, key_order="any", whitespace="any", numbers="full", escapes="any")
    assert {place for place, entry in found.items() if entry.status == "over-constrained"} == {("", "type")}


def test_what_is_narrowed_of_multiples_and_host_names_is_told() -> None:
    def entry(schema: Any, **options: Any) -> tuple[str, str]:
        found = report(schema, **options)
        told = found.get(("", "multipleOf")) or found["", "format"]
        return told.status, told.detail

    assert entry({"type": "number", "multipleOf": 1.5}) == ("enforced", "")
    narrowed = ("over-constrained", "multiples are written without an exponent")
    assert entry({"type": "number", "multipleOf": 1.5}, numbers="full") == narrowed
    assert entry({"type": "integer", "multipleOf": 0.5}, numbers="full") == ("enforced", "")
    assert entry({"format": "hostname"}) == ("over-constrained", "no label begins with xn-- (Punycode)")
    assert entry({"format": "hostname"}, formats="annotate")[0] == "annotation"


def test_neighbours_of_a_reference_in_draft_7() -> None:
    found = report({"$ref": "#/definitions/x", "type": "null", "definitions": {"x": {}}}, default_draft="7")
    assert found["", "type"].status == "annotation"


def test_rewritten_keywords_are_listed_once() -> None:
    found = report({"type": "object", "dependentRequired": {"a": ["b"]}, "not": {"required": ["c"]}})
    assert found["", "dependentRequired"].status == found["", "not"].status == "enforced"
    assert {pointer for pointer, _ in found} == {"", "/not"}


def test_the_constraint_is_a_value() -> None:
    one, two = JsonSchema({"type": "null"}), JsonSchema('{"type":"null"}')
    assert one == two and hash(one) == hash(two) and one.fingerprint() == two.fingerprint()
    assert one != JsonSchema({"type": "null"}, key_order="any")
    again = pickle.loads(pickle.dumps(one))
    assert again == one and Recorder(again.plan(CompileLimits())).accepts("null")
    with pytest.raises(AttributeError):
        one.text = "{}"
    schema = {"enum": [1]}
    kept = JsonSchema(schema)
    schema["enum"].append(2)
    assert not Recorder(kept.plan(CompileLimits())).accepts("2")
    assert one.parse("null") is None and json.loads("[1]") == one.parse("[1]")


def test_a_plan_may_be_started_again() -> None:
    plan = JsonSchema({"type": "array", "items": {"$ref": "#"}}).plan(CompileLimits())
    for _ in range(2):
        assert Recorder(plan).accepts("[[],[[]]]")
