"""References that depend on the dynamic scope, identifiers and the documents that references reach."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

import maskwright as mw
from maskwright.grammar.json_schema import JsonSchema

BYTES = mw.Vocabulary([bytes([i]) for i in range(256)] + [b"<eos>"], eos_ids=[256], special_ids=[256])
META = "https://json-schema.org/draft/2020-12/schema"


def compiled(schema: Any, **options: Any) -> mw.CompiledGrammar:
    return mw.compile(JsonSchema(schema, key_order="any", **options), BYTES)


def accepts(grammar: mw.CompiledGrammar, value: Any) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_text(json.dumps(value)) and matcher.is_accepting


def judge(schema: Any, good: list[Any], bad: list[Any], **options: Any) -> None:
    grammar = compiled(schema, **options)
    assert [value for value in good if not accepts(grammar, value)] == []
    assert [value for value in bad if accepts(grammar, value)] == []


LIST = {
    "$id": "list",
    "items": {"$dynamicRef": "#item"},
    "$defs": {"default": {"$dynamicAnchor": "item"}},
}


def test_the_outermost_resource_with_the_anchor_is_meant() -> None:
    schema = {
        "$id": "http://e.org/root",
        "$ref": "list",
        "$defs": {"text": {"$dynamicAnchor": "item", "type": "string"}, "list": LIST},
    }
    judge(schema, [["a"], [], 1], [[1], ["a", None]])
    del schema["$defs"]["text"]
    judge(schema, [["a"], [1]], [])


def test_one_schema_in_several_scopes() -> None:
    def lists(name: str, kind: str) -> dict[str, Any]:
        return {"$id": name, "$ref": "list", "$defs": {"x": {"$dynamicAnchor": "item", "type": kind}}}

    schema = {
        "$id": "http://e.org/root",
        "type": "object",
        "properties": {"s": {"$ref": "strings"}, "n": {"$ref": "numbers"}, "a": {"$ref": "list"}},
        "$defs": {"a": lists("strings", "string"), "b": lists("numbers", "number"), "list": LIST},
    }
    judge(schema, [{"s": ["a"], "n": [1], "a": [None]}], [{"s": [1]}, {"n": ["a"]}])


def test_the_scope_is_left_again() -> None:
    schema = {
        "$id": "http://e.org/root",
        "prefixItems": [
            {"$id": "strict", "$ref": "list", "$defs": {"x": {"$dynamicAnchor": "item", "type": "null"}}},
            {"$ref": "list"},
        ],
        "$defs": {"list": LIST},
    }
    judge(schema, [[[None], [1]]], [[[1]]])


def test_anchors_that_are_not_dynamic_and_pointers_are_plain_references() -> None:
    plain = {"$id": "list", "items": {"$dynamicRef": "#item"}, "$defs": {"default": {"$anchor": "item"}}}
    outer = {"$dynamicAnchor": "item", "type": "string"}
    judge({"$id": "http://e.org/r", "$ref": "list", "$defs": {"x": outer, "list": plain}}, [["a"], [1]], [])
    pointed = {**LIST, "items": {"$dynamicRef": "#/$defs/default"}}
    judge({"$id": "http://e.org/r", "$ref": "list", "$defs": {"x": outer, "list": pointed}}, [["a"], [1]], [])


def test_a_plain_reference_to_a_dynamic_anchor_stays_there() -> None:
    to_default = {**LIST, "items": {"$ref": "#item"}}
    own = {"$dynamicAnchor": "item", "type": "string"}
    judge({"$id": "http://e.org/r", "$ref": "list", "$defs": {"x": own, "list": to_default}}, [["a"], [1]], [])


def test_an_extensible_tree() -> None:
    tree = {
        "$id": "http://e.org/tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"data": {}, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
    }
    strict = {
        "$id": "http://e.org/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
    }
    deep = {"children": [{"data": 1, "children": [{"data": 2}]}]}
    slip = {"children": [{"data": 1, "children": [{"daat": 2}]}]}
    judge(strict, [deep], [slip], registry={"http://e.org/tree": tree})
    judge(tree, [deep, slip], [])


def test_recursive_references_of_2019() -> None:
    def document(outer: Any, inner: Any) -> dict[str, Any]:
        node = {
            "$id": "node",
            "$recursiveAnchor": inner,
            "anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"$recursiveRef": "#"}}],
        }
        return {
            "$id": "http://e.org/r",
            "$recursiveAnchor": outer,
            "$defs": {"node": node},
            "anyOf": [{"type": "integer"}, {"$ref": "#/$defs/node"}],
        }

    options: dict[str, Any] = {"default_draft": "2019-09"}
    judge(document(True, True), [1, {"a": 1}, {"a": {"b": 1}}, {"a": "x"}], [1.5, {"a": 1.5}], **options)
    for outer, inner in ((False, True), (True, False), (False, False)):
        judge(document(outer, inner), [1, {"a": "x"}, {"a": {"b": "x"}}], [{"a": 1}], **options)


def test_a_pointer_of_a_copy_is_that_of_the_original() -> None:
    schema = {
        "$id": "http://e.org/root",
        "$ref": "list",
        "$defs": {"x": {"$dynamicAnchor": "item", "minLength": "1"}, "list": LIST},
    }
    with pytest.raises(mw.SchemaError) as caught:
        compiled(schema)
    assert caught.value.location == "/$defs/x/minLength"


def test_the_report_lists_a_keyword_once_for_all_copies() -> None:
    lists = [
        {"$id": f"l{n}", "$ref": "list", "$defs": {"x": {"$dynamicAnchor": "item", "type": kind}}}
        for n, kind in enumerate(("string", "null"))
    ]
    schema = {"$id": "http://e.org/root", "prefixItems": lists, "$defs": {"list": LIST}}
    places = [(entry.pointer, entry.keyword) for entry in compiled(schema).report]
    assert len(places) == len(set(places)) and ("/$defs/list/items", "$dynamicRef") in places


def test_circles_of_dynamic_references_are_refused() -> None:
    schema = {"$id": "http://e.org/r", "$dynamicAnchor": "a", "anyOf": [{"$dynamicRef": "#a"}, {"type": "null"}]}
    with pytest.raises(mw.SchemaError, match="leads back"):
        compiled(schema)


def test_metaschemas_are_built_in() -> None:
    part = "https://json-schema.org/draft/2020-12/meta/content"
    judge({"$ref": part}, [{"contentEncoding": "x"}, True], [{"contentEncoding": 1}, 1])
    judge({"$ref": part + "#/properties/contentEncoding"}, ["x"], [1])
    judge({"items": {"$ref": part}}, [[{"contentSchema": {"contentEncoding": "x"}}]], [[{"contentEncoding": 1}]])


def test_other_documents_and_other_drafts_are_named() -> None:
    for schema, location, words in (
        ({"$ref": "http://e.org/x"}, "/$ref", "not at hand"),
        ({"items": {"$ref": "http://json-schema.org/draft-07/schema#"}}, "/items/$ref", "another draft"),
        ({"$dynamicRef": "#x", "$defs": {"a": {"$dynamicAnchor": "y"}}}, "/$ref", "nowhere"),
    ):
        with pytest.raises(mw.SchemaError, match=words) as caught:
            compiled(schema)
        assert caught.value.location == location


def test_an_anchor_of_a_document_that_goes_by_two_names() -> None:
    other = {"$id": "http://e.org/own", "$defs": {"x": {"$anchor": "here", "type": "null"}}}
    judge({"$ref": "http://e.org/other#here"}, [None], [1], registry={"http://e.org/other": other})


TYPES = ("string", "number", "boolean", "null")
SCALARS: list[Any] = [1, "a", True, None]
VALUES: list[Any] = [*SCALARS, *([x] for x in SCALARS), *([[x]] for x in SCALARS), [1, "a"], [[None], True], []]


def resources(rng: random.Random) -> dict[str, Any]:
    """A document of resources that refer to each other from inside arrays, with dynamic anchors here and there."""

    def leaf(name: str) -> dict[str, Any]:
        return {rng.choice(["$dynamicAnchor", "$dynamicAnchor", "$anchor"]): name, "type": rng.choice(TYPES)}

    def resource(name: str) -> dict[str, Any]:
        dynamic = {"$dynamicRef": rng.choice(["", *"abc"]) + "#" + rng.choice("pq")}
        # Not "#q": the validator takes a $ref to a dynamic anchor for a dynamic one.
        plain = {"$ref": rng.choice("abc") + rng.choice(["", "#/$defs/p"])}
        branches: list[Any] = [{"type": "array", "items": rng.choice([dynamic, dynamic, plain]), "minItems": 1}]
        if name != "c" and rng.random() < 0.5:
            branches.append({"$ref": chr(ord(name) + 1)})
        return {"$id": name, "anyOf": branches, "$defs": {"p": leaf("p"), "q": leaf("q")}}

    own = {"$dynamicAnchor": rng.choice("pq"), "type": rng.choice(TYPES)}
    made = {name: resource(name) for name in "abc"}
    return {"$id": "http://e.org/root", "$ref": rng.choice("abc"), "$defs": {"own": own, **made}}


def test_random_scopes_against_the_validator() -> None:
    rng = random.Random(7)
    seen = set[tuple[bool, ...]]()
    for _ in range(300):
        schema = resources(rng)
        expected = [jsonschema.Draft202012Validator(schema).is_valid(value) for value in VALUES]
        try:
            grammar = compiled(schema)
        except mw.UnsatisfiableError:
            assert not any(expected), schema
            continue
        assert [accepts(grammar, value) for value in VALUES] == expected, schema
        seen.add(tuple(expected))
    assert len(seen) > 20


def test_a_metaschema_of_the_registry_stands_for_its_draft() -> None:
    uri, start = "http://e.org/meta", "https://json-schema.org/draft/2020-12/vocab/"
    every = {start + name: True for name in ("core", "applicator", "unevaluated", "validation")}

    def own(vocabulary: Any) -> dict[str, Any]:
        return {uri: {"$schema": META, "$id": uri, "$vocabulary": vocabulary}}

    schema = {"$schema": uri, "prefixItems": [{"type": "null"}]}
    judge(schema, [[None], 1], [[1]], registry=own({**every, "http://e.org/v": False}), default_draft="7")
    without = {name: True for name in every if not name.endswith("validation")}
    for vocabulary, words in (({**every, "http://e.org/v": True}, "needs"), (without, "without the vocabulary")):
        with pytest.raises(mw.SchemaError, match=words) as caught:
            compiled(schema, registry=own(vocabulary))
        assert caught.value.location == "/$schema"
    judge(schema, [[None]], [[1]], registry={uri: {"$schema": META}}, default_draft="7")
    with pytest.raises(mw.SchemaError, match="unknown dialect"):
        compiled(schema, registry={uri: {"$schema": uri}})
