"""`uniqueItems`: what may follow a text, what is refused, what cannot be satisfied."""

from __future__ import annotations

from typing import Any

import pytest

import maskwright as mw

TOKENS = [bytes([i]) for i in range(256)] + [b'","', b'"]', b"true", b"1,", b",1", b"[1,1]", b'ab"', b"],[", b"<eos>"]
EOS = len(TOKENS) - 1
VOCABULARY = mw.Vocabulary(TOKENS, eos_ids=[EOS])
BOOLEANS = {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True}
LETTERS = {"type": "array", "items": {"enum": ["abc", "abd", "x"]}, "uniqueItems": True, "minItems": 3}
PAIRS = {"items": {"enum": [1, 2]}, "minItems": 2, "maxItems": 2, "uniqueItems": True, "type": "array"}


def matcher(schema: Any, text: str = "", **options: Any) -> mw.Matcher:
    options.setdefault("whitespace", "compact")
    made = mw.compile(mw.JsonSchema(schema, **options), VOCABULARY).matcher()
    assert made.accept_text(text)
    return made


def follows(schema: Any, text: str, **options: Any) -> set[bytes]:
    return {TOKENS[t] for t in matcher(schema, text, **options).allowed_tokens()}


def accepts(schema: Any, text: str, **options: Any) -> bool:
    made = matcher(schema, **options)
    return made.accept_text(text) and made.is_accepting


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (BOOLEANS, "[true,", {b"f"}),
        (BOOLEANS, "[true,false", {b"]"}),
        (LETTERS, '["abc",', {b'"'}),
        (LETTERS, '["abc","', {b"a", b"x"}),
        (LETTERS, '["abc","ab', {b"d"}),
        (LETTERS, '["abc","x","abd"', {b"]"}),
        ({**BOOLEANS, "items": {"enum": [1, 12, 3]}}, "[12,", {b"1", b"3", b"1,"}),
        ({**BOOLEANS, "items": {"enum": [1, 12]}}, "[1,1", {b"2"}),
        ({**BOOLEANS, "items": {"const": "a"}}, '["a"', {b"]"}),
        # An inner array that would repeat an outer item, and one that can only repeat it.
        ({"type": "array", "items": PAIRS, "uniqueItems": True}, "[[1,2],[", {b"2"}),
        ({"type": "array", "items": PAIRS, "uniqueItems": True}, "[[1,2],[2,1]", {b"]"}),
    ],
)
def test_what_may_follow(schema: Any, text: str, expected: set[bytes]) -> None:
    assert follows(schema, text) == expected


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("1", "1.0", True),
        ("100", "1e2", True),
        ("10e-1", "1.000", True),
        ("0", "-0.0e7", True),
        ("0", "0e123456789123456789123456789", True),
        ("1e123456789123456789123456788", "10e123456789123456789123456787", True),
        ("1e123456789123456789123456789", "1e123456789123456789123456788", False),
        ("1", "true", False),
        ("0", "false", False),
        ('"a"', r'"\u0061"', True),
        (r'"\ud83d\ude00"', '"\U0001f600"', True),
        ('"1"', "1", False),
        ('{"a":1,"b":[2]}', '{"b":[2.0],"a":1}', True),
        ('{"a":1,"b":2}', '{"a":2,"b":1}', False),
        ("[1,2]", "[2,1]", False),
        ("[[],{}]", "[ [ ], { } ]", True),
        ("[]", "{}", False),
        ("null", '""', False),
    ],
)
def test_equality_is_that_of_values(left: str, right: str, equal: bool) -> None:
    options: dict[str, Any] = {"numbers": "full", "escapes": "any", "key_order": "any", "whitespace": "any"}
    assert accepts({"uniqueItems": True}, f"[{left},3,{right}]", **options) != equal
    assert accepts({"uniqueItems": True}, f"[ {right} , {left} ]", **options) != equal
    assert accepts({"uniqueItems": False}, f"[{left},{right}]", **options)


def test_a_number_may_still_become_another() -> None:
    made = matcher({"items": {"type": "integer"}, "type": "array", "uniqueItems": True}, "[1,1")
    assert {TOKENS[t] for t in made.allowed_tokens()} >= {b"1", b"0", b".", b"1,"} - {b"."}
    assert b"]" not in {TOKENS[t] for t in made.allowed_tokens()}


def test_an_item_is_kept_for_a_position_that_needs_it() -> None:
    schema = {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "null"}],
        "items": {"enum": [1, {"a": 0}]},
        "uniqueItems": True,
        "minItems": 4,
    }
    assert b"," not in follows(schema, "[1")
    assert follows(schema, '[2,null,{"a":0},') == {b"1"}


def test_white_space_between_items() -> None:
    strings = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    assert accepts(strings, '["a", "b",\n  "c"]', whitespace="bounded")
    assert not accepts(strings, '["a", "b",\n  "a"]', whitespace="bounded")
    made = matcher(BOOLEANS, "[true,", whitespace="any")
    assert {TOKENS[t] for t in made.allowed_tokens()} == {b"f", b" ", b"\n", b"\t", b"\r"}
    assert made.accept_text(" \n") and made.accept_text("false ]") and made.is_accepting


def test_rollback_and_forks_have_their_own_items() -> None:
    made = matcher(BOOLEANS, "[")
    one, other = made.fork(), made.fork()
    assert one.accept_text("true,") and other.accept_text("false,")
    assert {TOKENS[t] for t in one.allowed_tokens()} == {b"f"}
    assert {TOKENS[t] for t in other.allowed_tokens()} == {b"t", b"true"}
    one.rollback(1)
    assert one.allowed_tokens() == made.allowed_tokens()


@pytest.mark.parametrize(
    "schema",
    [
        {**BOOLEANS, "minItems": 3},
        {**BOOLEANS, "items": {"const": 1}, "minItems": 2},
        {"type": "array", "prefixItems": [{"const": 1}, {"const": 1.0}], "minItems": 2, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"enum": [1, 2]}] * 3, "minItems": 3, "uniqueItems": True},
        {**BOOLEANS, "items": {"type": "string", "pattern": "^(a|b)$"}, "minItems": 3},
        {"const": [1, 1], "uniqueItems": True},
    ],
)
def test_what_cannot_be_is_found_when_it_is_compiled(schema: Any) -> None:
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile(mw.JsonSchema(schema), VOCABULARY)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"not": {"uniqueItems": True}}, "/not/uniqueItems"),
        ({"if": {"uniqueItems": True}, "then": {"maxItems": 3}}, "/if/uniqueItems"),
        ({"properties": {"a": {"contains": {"uniqueItems": True}}}}, "/properties/a/contains/uniqueItems"),
    ],
)
def test_what_need_not_hold_is_refused_by_name(schema: Any, place: str) -> None:
    with pytest.raises(mw.SchemaError, match="uniqueItems") as error:
        mw.compile(mw.JsonSchema(schema), VOCABULARY)
    assert error.value.location == place


def test_a_vocabulary_without_single_bytes_is_refused() -> None:
    with pytest.raises(mw.VocabularyError, match="uniqueItems"):
        mw.compile(mw.JsonSchema(BOOLEANS), mw.Vocabulary([b"[true,", b"false]", b"[]", b"<eos>"], eos_ids=[3]))
