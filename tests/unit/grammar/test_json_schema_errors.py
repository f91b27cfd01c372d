"""What is refused, by which error, at which JSON pointer."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from maskwright.errors import ConstraintError, LimitError, SchemaError, UnsatisfiableError
from maskwright.grammar.json_schema import JsonSchema
from maskwright.grammar.plan import CompileLimits
from unit.grammar.recorder import record

# schema, location, a word of the text
MALFORMED: list[tuple[Any, str, str]] = [
    ({"type": "float"}, "/type", "float"),
    ({"type": []}, "/type", "type"),
    ({"type": ["string", 3]}, "/type", "3"),
    ({"properties": []}, "/properties", "an array"),
    ({"properties": {"a": 5}}, "/properties/a", "5"),
    ({"properties": {"a": {"minLength": -1}}}, "/properties/a/minLength", "-1"),
    ({"maxLength": 2.5}, "/maxLength", "2.5"),
    ({"minItems": "1"}, "/minItems", "'1'"),
    ({"maxItems": True}, "/maxItems", "true"),
    ({"required": "a"}, "/required", "'a'"),
    ({"required": [1]}, "/required", "1"),
    ({"enum": "a"}, "/enum", "'a'"),
    ({"minimum": "3"}, "/minimum", "'3'"),
    ({"exclusiveMinimum": True}, "/exclusiveMinimum", "draft-04"),
    ({"pattern": 5}, "/pattern", "5"),
    ({"items": {"a~/b": {}, "pattern": "(x"}}, "/items/pattern", "(x"),
    ({"properties": {"a~/b": {"pattern": "[z-a]"}}}, "/properties/a~0~1b/pattern", "z-a"),
    ({"format": 1}, "/format", "1"),
    ({"anyOf": []}, "/anyOf", "list"),
    ({"anyOf": {}}, "/anyOf", "list"),
    ({"anyOf": [{}, 1]}, "/anyOf/1", "1"),
    ({"items": [{}]}, "/items", "prefixItems"),
    ({"prefixItems": {}}, "/prefixItems", "list"),
    ({"additionalProperties": None}, "/additionalProperties", "null"),
    ({"multipleOf": 0}, "/multipleOf", "0"),
    ({"uniqueItems": 1}, "/uniqueItems", "1"),
    ({"$ref": 1}, "/$ref", "1"),
    ({"$ref": "#/$defs/no"}, "/$ref", "nowhere"),
    ({"$ref": "#no"}, "/$ref", "anchor"),
    ({"$ref": "#/title", "title": "x"}, "/$ref", "no schema"),
    ({"items": {"$ref": "http://e.org/x"}}, "/items/$ref", "registry"),
    ({"$ref": "other.json#/x"}, "/$ref", "other.json"),
    ({"$schema": "http://e.org/mine"}, "/$schema", "mine"),
    ({"$schema": 5}, "/$schema", "URI"),
    ({"$ref": "#"}, "/$ref", "same schema"),
    ({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}, "/$defs/a/allOf/0/$ref", "same schema"),
    ({"anyOf": [{"type": "null"}, {"$ref": "#"}]}, "/anyOf/1/$ref", "same schema"),
    ({"enum": ["\ud800"]}, "/enum", "surrogate"),
    ({"const": [{"\udfff": 1}]}, "/const", "surrogate"),
    ({"properties": {"\ud800": {}}}, "/properties", "surrogate"),
    ({"required": ["\ud800"]}, "/required", "surrogate"),
    (5, "", "5"),
    ([], "", "an array"),
    ("", "", "no JSON"),
    ('{"a": NaN}', "", "NaN"),
    ('{"minimum": 1e99999999999}', "", "exponent"),
    ('{"type": "null", "type": "null"}', "/type", "twice"),
    ('{"items": {"enum": [{"x": 1, "x": 2}]}}', "/items/enum/0/x", "twice"),
]

UNSUPPORTED: list[tuple[Any, str]] = [
    ({"not": {"uniqueItems": True}}, "/not/uniqueItems"),
    ({"not": {"$ref": "#"}}, "/not"),
    ({"type": "object", "not": {"not": {"allOf": [{"$ref": "#/not"}]}}}, "/not/not"),
    ({"format": "idn-hostname"}, "/format"),
    ({"pattern": "(a+)\\1"}, "/pattern"),
]

UNSATISFIABLE: list[tuple[Any, str, str]] = [
    (False, "", ""),
    ({"enum": []}, "/enum", "enum"),
    ({"type": "object", "properties": {"size": {"enum": []}}, "required": ["size"]}, "/properties/size/enum", "enum"),
    ({"type": "string", "enum": [1, 2]}, "/enum", "enum"),
    ({"type": "string", "const": 1}, "/const", "const"),
    ({"allOf": [{"type": "string"}, {"type": "null"}]}, "/allOf/1/type", "types"),
    ({"type": "string", "minLength": 3, "maxLength": 2}, "/maxLength", "minLength"),
    ({"type": "integer", "minimum": 1, "maximum": 0}, "/minimum", "bounds"),
    ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "/minimum", "bounds"),
    ({"type": "array", "minItems": 2, "maxItems": 1}, "/minItems", "minItems"),
    ({"type": "array", "items": False, "minItems": 1}, "/items", "nothing"),
    ({"type": "object", "required": ["a"], "additionalProperties": False}, "/additionalProperties", "nothing"),
    ({"type": "object", "required": ["a"], "properties": {"a": False}}, "/properties/a", "nothing"),
    ({"type": "object", "required": ["a"], "unevaluatedProperties": False}, "/unevaluatedProperties", "nothing"),
    ({"type": "array", "unevaluatedItems": False, "minItems": 1}, "/unevaluatedItems", "nothing"),
    (
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [False], "minItems": 1},
        "",
        "nothing",
    ),
    ({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}, "", "without end"),
    ({"not": {}}, "/not", ""),
    ({"type": "string", "pattern": "a^b"}, "/pattern", "pattern"),
    ({"type": "string", "pattern": "^aaa$", "maxLength": 2}, "/pattern", "pattern"),
    ({"anyOf": [False, {"enum": []}]}, "", ""),
]


@pytest.mark.parametrize(("schema", "location", "word"), MALFORMED)
def test_malformed(schema: Any, location: str, word: str) -> None:
    given = schema if isinstance(schema, str | dict | bool) else json.dumps(schema)
    with pytest.raises((SchemaError, LimitError)) as caught:
        record(given)
    assert caught.value.location == location
    assert word in str(caught.value)


@pytest.mark.parametrize(("schema", "location"), UNSUPPORTED)
def test_unsupported(schema: Any, location: str) -> None:
    with pytest.raises(SchemaError, match=location.rpartition("/")[2].replace("$", r"\$")) as caught:
        record(schema)
    assert caught.value.location == location
    assert caught.value.hint


@pytest.mark.parametrize(("schema", "location", "word"), UNSATISFIABLE)
def test_unsatisfiable(schema: Any, location: str, word: str) -> None:
    with pytest.raises(UnsatisfiableError) as caught:
        record(schema)
    assert word in str(caught.value)
    if location:
        assert caught.value.location == location


def test_parts_without_values_are_left_out() -> None:
    recorder = record({"type": "object", "properties": {"a": {"enum": []}, "b": {"type": "null"}}})
    assert recorder.accepts('{"b":null,"c":1}') and not recorder.accepts('{"a":1}')
    recorder = record({"anyOf": [{"type": "object", "required": ["a"], "properties": {"a": False}}, {"type": "null"}]})
    assert recorder.accepts("null") and not recorder.accepts("{}")
    recorder = record({"type": "array", "prefixItems": [{}, {"enum": []}], "items": {}})
    assert recorder.accepts("[1]") and not recorder.accepts("[1,1]")
    loop = {
        "type": "object",
        "properties": {"n": {"$ref": "#"}, "m": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
    }
    endless = {"x": {"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#/$defs/x"}}}}
    recorder = record({**loop, "$defs": endless})
    assert recorder.accepts('{"n":{"n":{}},"m":[]}') and not recorder.accepts('{"m":[{}]}')


def test_wrong_options() -> None:
    with pytest.raises(ValueError, match="key_order"):
        JsonSchema({}, key_order="random")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        JsonSchema(5)
    with pytest.raises(SchemaError, match=r"NaN|nan|compliant"):
        JsonSchema({"minimum": float("nan")})
    loop: dict[str, Any] = {}
    loop["items"] = loop
    with pytest.raises(ConstraintError):
        JsonSchema(loop)


@pytest.mark.parametrize(
    "text", ['{"items":' * 10_000 + "{}" + "}" * 10_000, '{"const":' + "[" * 5_000 + "]" * 5_000 + "}"]
)
def test_nesting_without_end_is_an_error_of_ours(text: str) -> None:
    with pytest.raises(ConstraintError, match="deep"):
        record(text)


def test_nesting_as_deep_as_the_reader_goes() -> None:
    depth = 100
    deep: Any = {"type": "null"}
    for _ in range(depth):
        deep = {"type": "array", "items": deep}
    assert record(json.dumps(deep)).accepts("[" * depth + "null" + "]" * depth)
    value: Any = 1
    for _ in range(depth):
        value = [value]
    assert record({"const": value, "type": "array"}).accepts(json.dumps(value))


def test_long_chains_and_wide_schemas() -> None:
    count = 10_000
    chain = {"$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(count)} | {f"d{count}": {"type": "null"}}}
    assert record({"$ref": "#/$defs/d0", **chain}).accepts("null")
    nested = {"$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}], "minLength": 1} for n in range(count)}}
    nested["$defs"][f"d{count}"] = {"type": "string"}
    assert record({"$ref": "#/$defs/d0", **nested}).accepts('"a"')
    required = {
        "$defs": {
            f"d{n}": {"type": "object", "properties": {"k": {"$ref": f"#/$defs/d{n + 1}"}}, "required": ["k"]}
            for n in range(count)
        }
    }
    required["$defs"][f"d{count}"] = {"enum": []}
    with pytest.raises(UnsatisfiableError) as caught:
        record({"$ref": "#/$defs/d0", **required})
    assert caught.value.location == f"/$defs/d{count}/enum"


def test_a_hundred_thousand_schemas_take_a_second_or_two() -> None:
    schema = {
        "type": "object",
        "properties": {f"p{n}": {"type": "object", "properties": {"a": {"type": "integer"}}} for n in range(50_000)},
    }
    text = json.dumps(schema)
    start = time.process_time()
    recorder = record(text)
    assert time.process_time() - start < 8
    assert recorder.accepts('{"p7":{"a":1}}')


def test_combinations_of_truth_multiply_only_so_far() -> None:
    cases = [
        {"if": {"properties": {"t": {"const": k}}}, "then": {"properties": {"s": {"pattern": f"^.*{k}"}}}}
        for k in "abcdefghijkl"
    ]
    with pytest.raises(LimitError, match=r"more than \d+ c") as caught:
        record({"allOf": cases})
    assert caught.value.location.startswith("/allOf/")
    assert caught.value.hint


def test_limits_are_ours() -> None:
    deep: Any = {"type": "null"}
    for _ in range(30):
        deep = {"properties": {"a": deep}}
    assert JsonSchema(deep).plan(CompileLimits())
    with pytest.raises(LimitError, match="deep") as caught:
        JsonSchema(deep).plan(CompileLimits(depth=20))
    assert caught.value.location == "/properties/a" * 10
    with pytest.raises(LimitError, match="deep") as caught:
        JsonSchema({"const": json.loads("[" * 300 + "]" * 300)}).plan(CompileLimits())
    assert caught.value.location.startswith("/const/0/0")
    names: dict[str, Any] = {f"{n:0>900}": {} for n in range(1300)}
    with pytest.raises(LimitError, match="1 MB"):
        JsonSchema({"properties": {"a": {"properties": names}}}).plan(CompileLimits())
    with pytest.raises(LimitError, match="1 MB"):
        JsonSchema({"const": names}).plan(CompileLimits())
    schema = {"properties": {f"p{n}": {"type": "string"} for n in range(3000)}}
    with pytest.raises(LimitError, match="nodes"):
        JsonSchema(schema).plan(CompileLimits(nodes=1000))
    with pytest.raises(LimitError, match="longer"):
        JsonSchema(schema).plan(CompileLimits(seconds=1e-9))
