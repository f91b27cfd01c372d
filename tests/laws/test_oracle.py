"""The oracle itself: every text over a small alphabet against `json` and `jsonschema`, and what its answers mean."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from maskwright.reference.json_text import Style
from maskwright.reference.language import (
    EMPTY,
    Node,
    complement,
    contains,
    derive,
    first_bytes,
    intersect,
    is_empty,
    literal,
)
from maskwright.reference.oracle import Oracle
from maskwright.reference.schema import SchemaLanguage
from maskwright.reference.spelling import Spelling

LENIENT = Style(whitespace="any", escapes="any", key_order="any")
RECURSIVE = {"anyOf": [{"type": "integer", "minimum": -12, "maximum": 21}, {"$ref": "#/$defs/l"}],
             "$defs": {"l": {"type": "array", "items": {"$ref": "#"}, "maxItems": 1}}}  # fmt: skip
ENUMERATED: list[tuple[Any, str, int]] = [
    (True, '[]{},:"1 ', 5),
    ({"type": ["array", "integer"], "maxItems": 2}, "[], 1-", 6),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, '{}":,1a', 6),
    ({"properties": {"a": {"enum": [1, "a"]}}, "required": ["a"], "type": "object"}, '{}":a1', 7),
    ({"type": "object", "properties": {"a": False}, "maxLength": 1}, '{":a1}', 6),
    ({"type": "string", "minLength": 1, "maxLength": 2}, '"\\ua0', 7),
    ({"type": "number"}, "-01.", 6),
    ({"type": "integer", "exclusiveMinimum": -1, "maximum": 10}, "-01", 6),
    ({"prefixItems": [{"type": "null"}], "items": False, "minItems": 1, "type": "array"}, "[],nul ", 6),
    (RECURSIVE, "-012[]", 5),
    ({"enum": [[], {}, None, "a", 1]}, '[]{}nula"1', 4),
]


def texts(alphabet: str, most: int) -> Iterator[str]:
    for length in range(most + 1):
        yield from map("".join, itertools.product(alphabet, repeat=length))


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def is_valid(schema: Any, text: str) -> bool:
    """What the standard library and jsonschema say; our texts have no white space around them."""
    try:
        value = json.loads(text, object_pairs_hook=no_duplicates)
    except ValueError:
        return False
    return text == text.strip() and jsonschema.Draft202012Validator(schema).is_valid(value)


def no_pattern(text: str) -> Any:
    raise AssertionError(text)


def language(schema: Any, style: Style = LENIENT) -> Node:
    return SchemaLanguage(schema, style, no_pattern).language


@pytest.mark.parametrize(("schema", "alphabet", "most"), ENUMERATED)
def test_schema_language_is_what_json_and_jsonschema_accept(schema: Any, alphabet: str, most: int) -> None:
    node = language(schema)
    accepted = 0
    for text in texts(alphabet, most):
        assert contains(node, text.encode()) == is_valid(schema, text), text
        accepted += contains(node, text.encode())
    assert accepted > 0


@pytest.mark.parametrize(("schema", "alphabet", "most"), ENUMERATED)
def test_every_viable_prefix_can_be_completed(schema: Any, alphabet: str, most: int) -> None:
    """`is_empty` promises a text behind every derivative: find one, along random walks."""
    rng = random.Random(1)
    letters = sorted(set(f'{alphabet}"}}]:,0u'.encode()))
    spelling = Spelling(bytes((b,)) for b in letters)
    for _ in range(6):
        node = language(schema)
        for _ in range(2 * most):
            assert spelling.completion(node) is not None
            choices = [b for b in first_bytes(node) if b in letters]
            if not choices:
                assert node.nullable
                break
            node = derive(node, bytes((rng.choice(choices),)))


def test_styles_narrow_the_writing() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    ordered, reverse = b'{"a":"/","b":1}', b'{"b":1,"a":"/"}'
    for style, text, expected in (
        (Style(), ordered, True),
        (Style(), reverse, False),
        (Style(key_order="any"), reverse, True),
        (Style(), b'{ "a": "/",\n\n\t  "b":1}', True),
        (Style(), b'{  "a":"/"}', False),
        (Style(), b'{\n\n\n"a":"/"}', False),
        (Style(), b"{\n" + b" " * 20 + b"}", True),
        (Style(), b"{\n" + b" " * 21 + b"}", False),
        (Style(whitespace="any"), b"{  \r\n\n\n}", True),
        (Style(whitespace="compact"), b"{ }", False),
        (Style(), b'{"a":"\\/"}', False),
        (Style(escapes="any"), b'{"\\u0061":"\\/\\ud83D\\uDe00"}', True),
        (Style(escapes="any"), b'{"a":"\\ud83d"}', False),
        (Style(escapes="any"), b'{"a":"","\\u0061":""}', False),
        (Style(), b'{"a":"\\u001F\\n"}', True),
        (Style(), b'{"a":"\\u000a"}', False),
        (Style(), b'{"z":1,"z":2}', False),
        (Style(), b'{"z":1,"y":2}', True),
    ):
        assert contains(language(schema, style), text) == expected, (style, text)


def test_unproductive_parts_are_no_dead_ends() -> None:
    never = {"$defs": {"l": {"type": "object", "properties": {"n": {"$ref": "#/$defs/l"}}, "required": ["n"]}}}
    assert is_empty(language({"$ref": "#/$defs/l", **never}))
    only_b = language(
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/l"}, "b": True}, "additionalProperties": False} | never
    )
    assert contains(only_b, b'{"b":null}')
    assert derive(only_b, b'{"a') is EMPTY
    assert contains(language({"items": {"$ref": "#/$defs/l"}, "type": "array", **never}), b"[]")
    assert derive(language({"items": {"$ref": "#/$defs/l"}, "type": "array", **never}), b"[{") is EMPTY


def test_boolean_operations_are_exact() -> None:
    both = intersect(complement(literal(b"a")), literal(b"a"))
    assert is_empty(both)
    assert not is_empty(intersect(complement(literal(b"a")), literal(b"b")))


def test_liveness_over_token_sequences() -> None:
    """Seven pieces that spell `ab` and `ba` only in certain cuts."""
    oracle = Oracle(literal(b"abba"), [b"ab", b"b", b"a", b"abb", b"bba", b"<eos>"], [5])
    assert oracle.allowed([]) == {0, 2, 3}
    assert oracle.allowed([3]) == {2}
    assert Oracle(literal(b"abba"), [b"ab", b"b", b"abb", b"bba", b"<eos>"], [4]).allowed([]) == set()
    assert Oracle(literal(b"abba"), [b"ab", b"abb", b"ba", b"a", b"<eos>"], [4]).allowed([]) == {0, 1}


def test_liveness_without_a_closing_bracket() -> None:
    """No search over ever deeper brackets could tell: the equations do."""
    nested = {"type": "array", "items": {"$ref": "#"}}
    assert Oracle(language(nested), [b"[", b",", b"[]", b"<eos>"], [3]).allowed([]) == {2}
    assert Oracle(language(nested), [b"[", b",", b"[]", b"]]", b"<eos>"], [4]).allowed([]) == {0, 2}
    assert Oracle(language(nested), [b"[", b",", b"[]", b"]]", b"<eos>"], [4]).allowed([0]) == {0, 2}
    assert Oracle(language(nested), [b"[", b",", b"[]", b"]]", b"<eos>"], [4]).allowed([0, 2]) == {1}


def test_liveness_counts_the_keys_that_can_be_spelled() -> None:
    oracle = Oracle(language({"type": "object"}), [b"{", b'"a":1', b'"b":1', b",", b"}", b"<eos>"], [5])
    assert oracle.allowed([0, 1]) == {3, 4}
    assert oracle.allowed([0, 1, 3]) == {2}
    assert oracle.allowed([0, 1, 3, 2]) == {4}
    assert oracle.allowed([0, 1, 3, 2, 4]) == {5}


def least_by_search(node: Node, tokens: list[bytes], most: int) -> int | None:
    """Token sequences, all of them, shortest first."""
    level = {node}
    for length in range(most + 1):
        if any(rest.nullable for rest in level):
            return length
        level = {derive(rest, token) for rest in level for token in tokens} - {EMPTY}
    return None


@pytest.mark.parametrize(("schema", "alphabet", "most"), ENUMERATED)
def test_the_equations_count_tokens_like_a_search(schema: Any, alphabet: str, most: int) -> None:
    rng = random.Random(2)
    for _ in range(12):
        letters = rng.sample(alphabet, rng.randint(len(alphabet) // 2, len(alphabet)))
        tokens = [*map(str.encode, letters), *("".join(rng.choices(alphabet, k=3)).encode() for _ in range(3))]
        tokens += rng.sample([b'{"', b'":', b"1}", b"[]", b"]]", b'"a":1', b'"}', b"true", b"null"], 4)
        spelling, least = Spelling(tokens), least_by_search(language(schema), tokens, 4)
        found = spelling.tokens_left(language(schema))
        assert found == least if least is not None else found is None or found > 4
        assert least is None or spelling.can_finish(language(schema))


def test_end_of_sequence_and_special_tokens() -> None:
    oracle = Oracle(literal(b"a"), [b"a", b"a", b"", b"a", b"<eos>", b"a"], eos_ids=[4, 5], special_ids=[3])
    assert oracle.allowed([]) == {0, 1}
    assert oracle.allowed([1]) == {4, 5}
    assert oracle.allowed([1, 5]) == {4, 5}
    assert oracle.min_tokens(oracle.start()) == 1
    assert oracle.mask_within(oracle.start(), 2) == {0, 1}
    assert oracle.mask_within(oracle.start(), 1) == set()
