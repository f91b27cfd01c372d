"""What OpenAPI adds to JSON Schema: `nullable`, in 3.0 alone, and `discriminator`, which asserts nothing."""

from __future__ import annotations

from typing import Any

import pytest

from unit.grammar.recorder import record

STRING = {"type": "string", "nullable": True}


def accepts(schema: Any, text: str, **options: Any) -> bool:
    return bool(record(schema, **options).accepts(text))


def test_nullable_beside_a_type_adds_null() -> None:
    options = {"default_draft": "openapi-3.0"}
    assert accepts(STRING, "null", **options) and accepts(STRING, '"a"', **options)
    assert not accepts(STRING, "1", **options)
    assert not accepts({"type": "string", "nullable": False}, "null", **options)
    # Without a type it says nothing, and null still has to be one of the values of an enum.
    assert not accepts({"allOf": [{"type": "string"}], "nullable": True}, "null", **options)
    assert not accepts({**STRING, "enum": ["a"]}, "null", **options)
    assert accepts({**STRING, "enum": ["a", None]}, "null", **options)
    assert not accepts({"not": STRING}, "null", **options) and accepts({"not": STRING}, "1", **options)


@pytest.mark.parametrize("draft", ["2020-12", "7", "4"])
def test_json_schema_has_no_nullable(draft: Any) -> None:
    assert not accepts(STRING, "null", default_draft=draft)
    entry = {e.keyword: e for e in record(STRING, default_draft=draft).plan.report}["nullable"]
    assert entry.status == "annotation" and "openapi-3.0" in entry.detail


def test_a_named_draft_goes_before_openapi() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **STRING}
    assert not accepts(schema, "null", default_draft="openapi-3.0")


def test_openapi_3_0_is_draft_4_and_3_1_is_2020_12() -> None:
    bound = {"type": "integer", "minimum": 1, "exclusiveMinimum": True}
    assert accepts(bound, "2", default_draft="openapi-3.0") and not accepts(bound, "1", default_draft="openapi-3.0")
    dialect = "https://spec.openapis.org/oas/3.1/dialect/base"
    assert not accepts({"$schema": dialect, "prefixItems": [{"type": "null"}]}, "[1]", default_draft="7")
    entry = {e.keyword: e for e in record(STRING, default_draft="openapi-3.0").plan.report}["nullable"]
    assert entry.status == "enforced"


def test_a_discriminator_is_a_hint() -> None:
    def branch(kind: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]}

    schema = {"discriminator": {"propertyName": "kind"}, "oneOf": [branch("a"), branch("b")]}
    assert accepts(schema, '{"kind":"a"}') and not accepts(schema, '{"kind":"c"}')
    entry = {e.keyword: e for e in record(schema).plan.report if e.pointer == ""}["discriminator"]
    assert entry.status == "annotation" and "hint" in entry.detail
