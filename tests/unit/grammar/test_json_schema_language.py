"""Which texts a schema accepts, keyword by keyword, as the lowered machines say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from unit.grammar.recorder import record

# schema, texts it accepts, texts it does not
Row = tuple[Any, list[str], list[str]]

SIMPLE: list[Row] = [
    (True, ["1", '"x"', "null", "{}", "[]", '{"a":[{"b":1.5}]}'], ["", "{", "1 2"]),
    ({}, ["1", "true", '{"a":{}}'], ["nul"]),
    ({"title": "T", "x-y": 1}, ["[[]]"], []),
    ({"type": "null"}, ["null"], ["0", '"null"', "false"]),
    ({"type": "boolean"}, ["true", "false"], ["null", "0", '"true"']),
    ({"type": "integer"}, ["0", "-0", "-12", "12345678901234567890"], ["1.5", "1.0", "01", "1e2", "+1", '"1"']),
    ({"type": "number"}, ["0", "-1.5", "1.00", "0.12345678901234567890"], ["0.123456789012345678901", "1e2", ".5"]),
    ({"type": ["string", "null"]}, ["null", '"a"'], ["1", "true"]),
    ({"type": "object"}, ["{}", '{"a":1}'], ["[]", "null"]),
    ({"type": "array"}, ["[]", "[1,null]"], ["{}", "1"]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"😀😀😀"', '"a\\n"'], ['"a"', '"abcd"', '"😀"']),
    ({"minLength": 2}, ['"ab"', "1", "null", "[]", "{}"], ['"a"', '""']),
    ({"maxLength": 2.0}, ['"ab"', "12345"], ['"abc"']),
    ({"pattern": "a.c"}, ['"xabcx"', "5"], ['"ac"', '"ABC"']),
    ({"type": "string", "pattern": "^a+$", "maxLength": 3}, ['"a"', '"aaa"'], ['"aaaa"', '""', '"b"']),
    ({"type": "integer", "minimum": -3, "exclusiveMaximum": 12}, ["-3", "0", "-0", "11"], ["-4", "12", "110"]),
    ({"type": "integer", "minimum": 0.5, "maximum": 2.5}, ["1", "2"], ["0", "3"]),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, ["0.1", "1", "1.0"], ["0", "-0.0", "1.01", "-1"]),
    ({"minimum": 5}, ["5", "7.5", '"x"', "null"], ["4", "-9"]),
    (
        {"enum": [1, "a", None, True, [1, {"b": 2}], {"c": []}]},
        ["1", "1.0", '"a"', "null", "true", '[1,{"b":2}]', '{"c":[]}'],
        ["2", "false", '"b"', "[1]", "{}", '{"c":[1]}'],
    ),
    ({"const": 0}, ["0", "-0", "0.00"], ["false", "00", '"0"', "null"]),
    ({"const": -1.5}, ["-1.5", "-1.500"], ["1.5", "-1.51"]),
    ({"const": {"a": 1, "b": 2}}, ['{"a":1,"b":2}'], ['{"b":2,"a":1}', '{"a":1}', '{"a":1,"b":2,"c":3}']),
    ({"enum": ["é", 'q"', "\n", ""]}, ['"é"', '"q\\""', '"\\n"', '""'], ['"e"']),
    ({"type": "string", "enum": ["a", 1]}, ['"a"'], ["1"]),
    ({"enum": [1, 2, 3], "minimum": 2}, ["2", "3"], ["1"]),
    ({"enum": [{"a": 1}, {"a": "x"}, [0]], "properties": {"a": {"type": "string"}}}, ['{"a":"x"}', "[0]"], ['{"a":1}']),
    ({"enum": ["ab", "b"], "pattern": "^a"}, ['"ab"'], ['"b"']),
    (
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
        ["[1]", "[1,2]"],
        ["[]", "[1,2,3]", '["a"]'],
    ),
    (
        {"type": "array", "prefixItems": [{"type": "null"}, {"type": "string"}], "items": False},
        ["[]", "[null]", '[null,"a"]'],
        ["[1]", '[null,"a",1]'],
    ),
    ({"type": "array", "prefixItems": [{"type": "null"}]}, ["[]", "[null,1,{}]"], ["[1]"]),
    ({"type": "array", "prefixItems": [{"const": 1}, False]}, ["[]", "[1]"], ["[1,2]"]),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, ['"a"', "3"], ["null", "1.5"]),
    ({"anyOf": [{"type": "string"}, False]}, ['"a"'], ["3"]),
]

OBJECTS: list[Row] = [
    (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": True}, "required": ["b"]},
        ['{"b":1}', '{"a":1,"b":2}', '{"a":1,"b":2,"c":3,"d":4}'],
        ['{"a":1}', '{"b":1,"a":2}', '{"a":"x","b":1}', '{"c":1,"b":2}', '{"b":1,"b":2}', '{"b":1,"c":1,"c":2}'],
    ),
    (
        {"type": "object", "required": ["z", "a"]},
        ['{"z":1,"a":2}', '{"z":1,"a":2,"b":3}'],
        ['{"a":2,"z":1}', '{"z":1}'],
    ),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, ["{}", '{"a":1}'], ['{"b":1}']),
    (
        {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "null"}},
        ['{"a":1,"b":null}'],
        ['{"b":1}'],
    ),
    (
        {"type": "object", "required": ["x"], "additionalProperties": {"type": "null"}},
        ['{"x":null}'],
        ['{"x":1}', "{}"],
    ),
    ({"type": "object", "properties": {"a": False}}, ["{}", '{"b":1}'], ['{"a":1}']),
    ({"properties": {"a": {"type": "null"}}}, ['{"a":null}', "3", '"x"'], ['{"a":1}']),
    (
        {"type": "object", "properties": {"ü/~": {"type": "null"}}, "additionalProperties": False},
        ['{"ü/~":null}'],
        ['{"u":null}'],
    ),
]

TOGETHER: list[Row] = [
    ({"allOf": [{"type": ["integer", "string"]}, {"type": ["number", "null"]}]}, ["1"], ["1.5", '"a"', "null"]),
    ({"allOf": [{"minimum": 2}, {"maximum": 5, "type": "integer"}, {"exclusiveMaximum": 5}]}, ["2", "4"], ["1", "5"]),
    (
        {"allOf": [{"pattern": "a"}, {"pattern": "b"}], "type": "string", "maxLength": 2},
        ['"ab"', '"ba"'],
        ['"a"', '"abx"'],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "allOf": [{"properties": {"a": {"minimum": 3}, "b": {}}}],
        },
        ['{"a":3}', '{"a":3,"b":[]}'],
        ['{"a":2}', '{"a":"x"}'],
    ),
    # A name that one side lists still has to fit the additionalProperties of the other.
    (
        {
            "type": "object",
            "properties": {"a": {}},
            "additionalProperties": False,
            "allOf": [{"properties": {"b": {}}, "required": ["a"]}],
        },
        ['{"a":1}'],
        ["{}", '{"a":1,"b":2}'],
    ),
    (
        {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "allOf": [{"properties": {"n": {"minimum": 5}}}],
        },
        ['{"n":5}', '{"m":1}'],
        ['{"n":4}', '{"n":"x"}', '{"m":"x"}'],
    ),
    (
        {
            "allOf": [
                {"prefixItems": [{"type": "integer"}]},
                {"items": {"minimum": 1}},
                {"type": "array", "maxItems": 2},
            ]
        },
        ["[]", "[1]", '[2,"x"]', "[2,1]"],
        ["[0]", '["x"]', "[1,0]", "[1,1,1]"],
    ),
    (
        {"$ref": "#/$defs/s", "maxLength": 2, "$defs": {"s": {"type": "string", "minLength": 1}}},
        ['"a"', '"ab"'],
        ['""', '"abc"', "1"],
    ),
    (
        {
            "type": "object",
            "required": ["k"],
            "anyOf": [{"properties": {"k": {"const": 1}}}, {"properties": {"k": {"const": 2}, "z": {"type": "null"}}}],
        },
        ['{"k":1,"z":5}', '{"k":2,"z":null}'],
        ['{"k":2,"z":5}', '{"k":3}', "{}"],
    ),
    ({"anyOf": [{"type": "string"}, {"minimum": 5}], "not": {"const": "no"}}, ['"yes"', "6"], ['"no"', "4"]),
    ({"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}, {"not": {"const": 3}}]}, ["2"], ["1", "3", "4"]),
    ({"allOf": [True, {}, {"title": "x"}]}, ["1", "{}"], []),
]

CONDITIONS: list[Row] = [
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, ['"a"', "1"], ["null"]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, ["1", "2.5", '"x"'], ["3", "1.5"]),
    (
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
        ['{"a":1}', '{"b":1}'],
        ["{}", '{"a":1,"b":1}'],
    ),
    (
        {"oneOf": [{"type": "string", "maxLength": 3}, {"type": "string", "minLength": 3}]},
        ['"ab"', '"abcd"'],
        ['"abc"', "1"],
    ),
    (
        {
            "type": "object",
            "required": ["k"],
            "properties": {"k": {"type": "string"}},
            "oneOf": [
                {"properties": {"k": {"const": "a"}, "x": {"type": "null"}}},
                {"properties": {"k": {"const": "b"}}},
            ],
        },
        ['{"k":"a","x":null}', '{"k":"b","x":1}'],
        ['{"k":"a","x":1}', '{"k":"c"}', "{}"],
    ),
    ({"not": {"type": ["string", "null"]}}, ["1", "{}"], ['"a"', "null"]),
    ({"not": {"type": "integer"}}, ["1.5", "null"], ["1", "1.0"]),
    ({"not": {"required": ["a"]}}, ['{"b":1}'], ['{"a":1}', "1", '"x"']),
    (
        {"type": "object", "not": {"properties": {"a": {"const": 1}}, "required": ["a"]}},
        ["{}", '{"a":2}', '{"b":1}'],
        ['{"a":1}'],
    ),
    ({"type": "string", "not": {"enum": ["a", "b"]}}, ['"c"', '"ab"', '""'], ['"a"', '"b"']),
    ({"type": "integer", "minimum": 2, "maximum": 9, "not": {"const": 5}}, ["2", "9", "4"], ["5", "1"]),
    ({"type": "string", "not": {"pattern": "^x"}}, ['"ax"', '""'], ['"x"', '"xa"']),
    ({"not": {"not": {"type": "string"}}}, ['"a"'], ["1"]),
    (
        {"not": {"anyOf": [{"type": "string"}, {"minimum": 3}]}, "type": ["string", "number"]},
        ["2", "-1.5"],
        ['"a"', "3"],
    ),
    ({"type": "integer", "not": {"minimum": 3, "maximum": 5}}, ["2", "6"], ["3", "5"]),
    ({"type": "array", "not": {"minItems": 2}}, ["[]", "[1]"], ["[1,2]"]),
    ({"not": {}}, [], []),
    ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "null"}}, ['"ab"', "null"], ['"a"', "1"]),
    (
        {
            "type": "object",
            "required": ["c", "z"],
            "properties": {"c": {"enum": ["NL", "US"]}},
            "if": {"properties": {"c": {"const": "US"}}},
            "then": {"properties": {"z": {"pattern": "^[0-9]{5}$"}}},
            "else": {"properties": {"z": {"pattern": "^[0-9]{4}$"}}},
        },
        ['{"c":"US","z":"12345"}', '{"c":"NL","z":"1234"}'],
        ['{"c":"US","z":"1234"}', '{"c":"NL","z":"12345"}'],
    ),
    (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "type": "object"},
        ["{}", '{"b":1}', '{"a":1,"b":1}'],
        ['{"a":1}'],
    ),
    ({"if": False, "then": False, "else": {"type": "null"}}, ["null"], ["1"]),
    ({"then": {"type": "null"}}, ["1"], []),
    ({"not": {"if": True, "then": {"type": "string"}}}, ["1"], ['"a"']),
    ({"oneOf": [{"oneOf": [{"minimum": 1}, {"maximum": 1}]}, {"type": "string"}]}, ["0", "2", '"a"'], ["1", "null"]),
    ({"dependentRequired": {"a": ["b"]}, "type": "object"}, ["{}", '{"b":1}', '{"a":1,"b":1}'], ['{"a":1}']),
    (
        {"dependentSchemas": {"a": {"properties": {"b": {"type": "null"}}}}},
        ['{"b":1}', '{"a":1}', '{"a":1,"b":null}', "7"],
        ['{"a":1,"b":1}'],
    ),
    (
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        ['{"a":1,"b":2}', '{"c":1,"d":1}', "{}"],
        ['{"a":1}', '{"c":1}'],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {}, "b": {}, "c": {}},
            "additionalProperties": False,
            "minProperties": 2,
        },
        ['{"a":1,"b":2}', '{"a":1,"c":1}', '{"a":1,"b":2,"c":3}'],
        ["{}", '{"a":1}'],
    ),
    (
        {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False, "maxProperties": 1},
        ["{}", '{"a":1}', '{"b":1}'],
        ['{"a":1,"b":2}'],
    ),
    ({"type": "object", "maxProperties": 0}, ["{}"], ['{"a":1}']),
    ({"type": "object", "propertyNames": {"enum": ["a", "b"]}}, ["{}", '{"a":1,"b":2}'], ['{"c":1}']),
    (
        {"type": "object", "patternProperties": {"": {"type": "null"}}, "additionalProperties": False},
        ["{}", '{"a":null}'],
        ['{"a":1}'],
    ),
    ({"type": "array", "contains": True}, ["[1]", "[1,2]"], ["[]"]),
    ({"multipleOf": 1}, ["2", "null"], ["1.5"]),
    ({"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False}, ['{"a":1}'], ['{"b":1}']),
    ({"type": "array", "prefixItems": [{}], "unevaluatedItems": False}, ["[1]"], ["[1,2]"]),
]

REFERENCES: list[Row] = [
    ({"$ref": "#/$defs/a~1b~0%25", "$defs": {"a/b~%": {"type": "null"}}}, ["null"], ["1"]),
    (
        {"type": "object", "properties": {"v": {"type": "integer"}, "n": {"$ref": "#"}}, "additionalProperties": False},
        ["{}", '{"v":1,"n":{"n":{"v":2}}}'],
        ['{"n":{"v":"x"}}', '{"n":1}'],
    ),
    ({"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "null"}}}, ["null"], ["1"]),
    ({"$id": "http://e.org/r", "$ref": "s", "$defs": {"x": {"$id": "s", "type": "null"}}}, ["null"], ["1"]),
    ({"$id": "http://e.org/r", "$ref": "http://e.org/r#/$defs/x", "$defs": {"x": {"type": "null"}}}, ["null"], ["1"]),
    (
        {
            "$defs": {"t": {"$id": "http://e.org/t", "$defs": {"u": {"type": "null"}}, "$ref": "#/$defs/u"}},
            "$ref": "#/$defs/t",
        },
        ["null"],
        ["1"],
    ),
    ({"properties": {"$ref": {"type": "null"}, "$id": {"type": "null"}}}, ['{"$ref":null}'], ['{"$ref":1}']),
    ({"prefixItems": [{"type": "null"}, {"$ref": "#/prefixItems/0"}]}, ["[null,null]"], ["[null,1]"]),
    (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/c"}, "c": True}, "$ref": "#/$defs/a"},
        ["1", "{}"],
        [],
    ),
    # Draft 7 and older look at nothing beside a reference.
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"s": {"type": "string"}},
            "properties": {"a": {"$ref": "#/definitions/s", "maxLength": 1}},
        },
        ['{"a":"long"}'],
        ['{"a":1}'],
    ),
    ({"$dynamicRef": "#/$defs/x", "$defs": {"x": {"type": "null"}}}, ["null"], ["1"]),
]

DRAFTS: list[tuple[str, Any, list[str], list[str]]] = [
    (
        "7",
        {"type": "array", "items": [{"type": "null"}], "additionalItems": {"type": "integer"}},
        ["[]", "[null,1]"],
        ["[1]", "[null,null]"],
    ),
    ("7", {"type": "array", "items": {"type": "null"}, "additionalItems": False}, ["[null,null]"], ["[1]"]),
    ("2020-12", {"type": "array", "items": {"type": "null"}, "additionalItems": False}, ["[null,null]"], ["[1]"]),
    ("7", {"prefixItems": [{"type": "null"}]}, ["[1]"], []),
    ("4", {"type": "integer", "minimum": 3, "exclusiveMinimum": True}, ["4"], ["3"]),
    ("4", {"type": "integer", "maximum": 3, "exclusiveMaximum": False}, ["3"], ["4"]),
    ("4", {"not": {"minimum": 3, "exclusiveMinimum": True}, "type": "integer"}, ["3", "2"], ["4"]),
    ("4", {"const": 1}, ["2"], []),
    ("4", {"id": "http://e.org/r", "$ref": "#x", "definitions": {"y": {"id": "#x", "type": "null"}}}, ["null"], ["1"]),
    ("6", {"if": False, "then": False, "else": False}, ["1"], []),
    ("2019-09", {"$recursiveRef": "#", "type": "null"}, [], []),
]


@pytest.mark.parametrize(("schema", "accepted", "refused"), [*SIMPLE, *OBJECTS, *TOGETHER, *REFERENCES])
def test_table(schema: Any, accepted: list[str], refused: list[str]) -> None:
    judge(record(schema), accepted, refused)


@pytest.mark.parametrize(("schema", "accepted", "refused"), [row for row in CONDITIONS if row[1]])
def test_conditions(schema: Any, accepted: list[str], refused: list[str]) -> None:
    judge(record(schema), accepted, refused)


@pytest.mark.parametrize(("draft", "schema", "accepted", "refused"), [row for row in DRAFTS if row[2]])
def test_drafts(draft: Any, schema: Any, accepted: list[str], refused: list[str]) -> None:
    judge(record(schema, default_draft=draft), accepted, refused)


def judge(recorder: Any, accepted: list[str], refused: list[str]) -> None:
    assert [t for t in accepted if not recorder.accepts(t)] == []
    assert [t for t in refused if recorder.accepts(t)] == []


def test_any_order() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]}
    judge(record(schema, key_order="any"), ['{"b":1,"a":2}', '{"c":1,"b":2,"a":3}'], ['{"a":1}', '{"b":1,"b":2}'])
    judge(record({"const": {"a": 1, "b": 2}}, key_order="any"), ['{"b":2,"a":1}'], ['{"a":1}'])


def test_full_numbers() -> None:
    judge(record({"type": "integer"}, numbers="full"), ["1", "1.0", "1e2", "10E+1"], ["1.5", "1e-1"])
    judge(record({"type": "number"}, numbers="full"), ["1e-5", "-1.5E+10", "0." + "1" * 30], ["1e", "01"])
    judge(record({"type": "integer", "minimum": 3}, numbers="full"), ["3.0", "4"], ["2", "3.5", "2.0"])
    judge(record({"const": 1.5}, numbers="full"), ["1.5", "1.5" + "0" * 40], ["1.6"])


def test_formats_are_asserted_or_annotations() -> None:
    schema = {"type": "string", "format": "date"}
    judge(record(schema), ['"2024-02-29"'], ['"2023-02-29"', '"x"'])
    judge(record(schema, formats="annotate"), ['"x"'], ["1"])
    judge(record({"format": "no-such-format"}), ['"x"'], [])
    judge(record({"format": "date", "type": ["string", "null"]}), ["null", '"2024-02-28"'], ['"x"'])


def test_a_schema_may_be_text_bytes_or_data() -> None:
    schema = {"type": "string", "enum": ["é"]}
    for given in (
        schema,
        json.dumps(schema),
        json.dumps(schema, ensure_ascii=False).encode(),
        json.dumps(schema).encode("utf-16"),
    ):
        judge(record(given), ['"é"'], ['"e"'])


def test_the_registry_holds_other_documents() -> None:
    registry = {
        "http://e.org/t": {"$defs": {"n": {"type": "null"}}, "items": {"$ref": "#/$defs/n"}},
        "http://e.org/u": {"$ref": "t"},
    }
    judge(record({"$ref": "http://e.org/t#/$defs/n"}, registry=registry), ["null"], ["1"])
    judge(record({"$ref": "http://e.org/u", "type": "array"}, registry=registry), ["[null]"], ["[1]"])


def test_the_order_of_keys_is_that_of_the_schema_then_of_required() -> None:
    schema = {"required": ["z", "b"], "properties": {"b": {}, "a": {}}, "type": "object"}
    judge(record(schema), ['{"b":1,"a":1,"z":1,"y":1}'], ['{"z":1,"b":1}', '{"b":1,"z":1,"a":1}'])
