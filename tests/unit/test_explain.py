"""explain: places, expectations and reasons, for texts and tokens."""

from __future__ import annotations

import enum
import json
import random
import subprocess
import sys
import time
from typing import Any

import pytest

import maskwright as mw
from maskwright.cli import main
from maskwright.explanation.json_text import place_of
from maskwright.grammar.plan import Constraint

BYTES = mw.Vocabulary([*(bytes([b]) for b in range(256)), b"<eos>"], eos_ids=[256])
OBJECT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "kind": {"enum": ["red", "green", 1, True]},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1, "maxItems": 2},
        'q"uote': {"type": "object", "additionalProperties": {"const": None}, "required": ["x"]},
    },
    "required": ["name", "kind"],
    "additionalProperties": False,
    "$defs": {"tag": {"type": "string", "pattern": "^[a-c]+$"}},
}
OPEN = {"properties": {"a": {"type": "null"}, "b": {"anyOf": [{"type": "number"}, {"$ref": "#/properties/a"}]}}}
TUPLE = {"type": "array", "prefixItems": [{"type": "integer"}, {"const": "x"}], "items": False}
OLD = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}], "additionalItems": False}

# schema, text, column of what is refused, and texts that the explanation has to hold
REFUSED: list[tuple[Any, str, int, str, list[str]]] = [
    (OBJECT, '{"name": "x"}', 12, "/name",
     ["the string has 1 character, but minLength is 2", "/properties/name/minLength"]),
    (OBJECT, '{"name": "abcdef"}', 16, "/name", ["the closing '\"'", "5 characters already, and maxLength is 5"]),
    (OBJECT, '{"nome": 1}', 4, "", ['the key "name"', 'no property "nome" is allowed', "/additionalProperties"]),
    (OBJECT, '{"name":"ab"}', 13, "", ["','", 'required and not there: "kind"', "schema: /required"]),
    (OBJECT, '{"name":"ab","age":151,"kind":1}', 22, "/age",
     ["[0]", "because maximum is 150", "/properties/age/maximum"]),
    (OBJECT, '{"name":"ab","age":-1}', 21, "/age", ["minimum is 0"]),
    (OBJECT, '{"name":"ab","age":1.5}', 21, "/age", ["[0-9]", 'type is "integer"']),
    (OBJECT, '{"name":"ab","age":7 "', 22, "", ["expected: ','"]),
    (OBJECT, '{"name":"ab","kind":"blue"}', 22, "/kind", ['"green", "red"', 'enum is ["red", "green", 1, true]']),
    (OBJECT, '{"name":"ab","kind":false}', 21, "/kind", ['"green", "red", a number, true', "/properties/kind/enum"]),
    (OBJECT, '{"name":"ab","kind":trie}', 23, "/kind", ['expected: "ue"']),
    (OBJECT, '{"name":"ab","kind":"red","tags":[]}', 35, "/tags", ["a string", "has 0 items, but minItems is 1"]),
    (OBJECT, '{"name":"ab","kind":1,"tags":["a","q"]}', 36, "/tags/1",
     ["[a-c]", 'pattern is "^[a-c]+$"', "/$defs/tag"]),
    (OBJECT, '{"name":"ab","kind":1,"tags":["a","b","c"]}', 38, "/tags", ["']'", "2 items already, and maxItems is 2"]),
    (OBJECT, '{"name":"ab","name":"x"}', 15, "", ['the key "age", the key "kind"', 'the key "name" occurs twice']),
    (OBJECT, '{"kind":"red","name":"ab"}', 3, "", ['the key "kind" comes too late', 'key_order="any" would allow it']),
    (OBJECT, '{"name":"ab","kind":1,"age":1}', 24, "", ['the key "age" comes too late, after "kind"']),
    (OBJECT, '{"name":"ab","kind":"red",}', 27, "", ["a key has to follow the comma", 'the key "tags"']),
    (OBJECT, '{"name":"ab","kind":1,"q\\"uote":{"x":0}}', 38, '/q"uote/x',
     ["null", "const is null", "additionalProperties"]),
    (OBJECT, '{"name":"ab","kind":1,"q\\"uote":{}}', 34, '/q"uote',
     ['expected: the key "x"', 'required and not there: "x"']),
    (OBJECT, '{"name" 5}', 9, "", ["expected: ':'"]),
    (OBJECT, '{"name": 5}', 10, "/name", ["expected: a string", "a number is written, but the type is string"]),
    (OBJECT, '{"name": Null}', 10, "/name", ["a value of type string is due", ': "Null"']),
    (OBJECT, '{"name": "a\nb"}', 12, "/name", ['"\\n"', "escape"]),
    (OBJECT, "[", 1, "", ["an object", "an array is written, but the type is object", "schema: /type"]),
    (OBJECT, '{"name":"ab","kind":1} ', 23, "", ["expected: end of text"]),
    (OPEN, '{"a": 1}', 7, "/a", ["null", "/properties/a/type"]),
    (OPEN, '{"b": "x"}', 7, "/b",
     ["a number, null", "the type is number", "the type is null", "/properties/b/anyOf/0/type"]),
    (OPEN, '{x', 2, "", ['the key "a", the key "b", any other key, \'}\'']),
    (OPEN, '{"x\\u00zz', 8, "", ["[01]"]),
    (TUPLE, '[1,"y"]', 5, "/1", ['expected: "x"', '"x"', "/prefixItems/1/const"]),
    (TUPLE, '[1,"x",2]', 7, "", ["']'", "items is false", "schema: /items"]),
    (OLD, "[1,2]", 3, "", ["']'", "additionalItems is false"]),
    (OLD, '["a"]', 2, "/0", ["the type is integer", "/items/0/type"]),
    ({"type": "object", "unevaluatedProperties": False}, '{"a"', 2, "", ["'}'"]),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}, "type": "array"}}}, "[[[1", 4, "/0/0/0",
     ["an array", "/$defs/a/type"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "text", "column", "pointer", "words"), REFUSED, ids=lambda v: str(v)[:40])
def test_refused_json(schema: Any, text: str, column: int, pointer: str, words: list[str]) -> None:
    explanation = mw.explain(mw.JsonSchema(schema), text)
    shown = str(explanation)
    assert not explanation.ok, shown
    assert not explanation.complete
    assert (explanation.offset, explanation.pointer) == (column - 1, pointer), shown
    for word in words:
        assert word in shown
    assert shown.startswith("refused at line 1, column ")


# constraint, text, offset, what is expected
PLAIN: list[tuple[Constraint, str, int, tuple[str, ...]]] = [
    (mw.Regex(r"[0-9]{4}-[0-9a-f]"), "2024-x", 5, ("[0-9a-f]",)),
    (mw.Regex("true|false|[0-9]+"), "x", 0, ('"false"', '"true"', "[0-9]")),
    (mw.Regex("[0-9]+"), "1x", 1, ("[0-9]", "end of text")),
    (mw.Regex("[0-9]+"), "", 0, ("[0-9]",)),
    (mw.Regex("a"), "aa", 1, ("end of text",)),
    (mw.Regex("[é-ü]"), "日", 0, ("[é-ü]",)),
    (mw.Regex("日本(語|人)"), "日本x", 2, ("[人語]",)),
    (mw.Regex(r"[]^\\-]"), "x", 0, (r"[\-\\-\^]",)),
    (mw.Regex("[^a]"), "a", 0, ("[\\x00-`b-\\x7f] or a character beyond ASCII",)),
    (mw.Regex("[^\x00-\x7f]"), "a", 0, ("a character beyond ASCII",)),
    (mw.Regex("😀|😁x"), "a", 0, ("[😀😁]",)),
    (mw.Choice(["spam", "ham", "spa", "x"]), "sp", 2, ('"spam"', '"spa"')),
    (mw.Choice(["spam", "spa"]), "spa", 3, ('"spam"', "end of text")),
    (mw.Choice(["spam", "ham"]), "hat", 2, ('"ham"',)),
    (mw.Choice([f"c{n:02}" for n in range(30)]), "d", 0,
     (*(f'"c{n:02}"' for n in range(20)), "one of 10 more choices")),
]  # fmt: skip


@pytest.mark.parametrize(("constraint", "text", "offset", "expected"), PLAIN, ids=lambda v: repr(v)[:40])
def test_other_constraints(constraint: Constraint, text: str, offset: int, expected: tuple[str, ...]) -> None:
    explanation = mw.explain(constraint, text)
    assert explanation.expected == expected
    assert explanation.offset == offset
    assert explanation.ok == (offset == len(text))
    assert (explanation.pointer, explanation.schema_path) == (None, None)


def test_what_is_shown() -> None:
    schema = mw.JsonSchema({"properties": {"é日": {"minimum": 3, "type": "integer"}}})
    explanation = mw.explain(schema, '{\n "é日": 2}')
    assert str(explanation).splitlines() == [
        'refused at line 2, column 9 (offset 10): "}"',
        '   "é日": 2}',
        "           ^",
        "expected: [0-9]",
        "because minimum is 3",
        "value: /é日",
        "schema: /properties/é日/minimum",
    ]
    assert (explanation.line, explanation.column, explanation.offset, explanation.byte) == (2, 9, 10, 13)


def test_long_lines_are_cut_around_the_place() -> None:
    text = "a" * 500 + "\tb" + "c" * 500
    shown = str(mw.explain(mw.Regex(r"a*\tx"), text)).splitlines()
    line, caret = shown[1], shown[2]
    assert len(line) <= 78
    assert line.startswith("  …aaa")
    assert line.endswith("ccc…")
    assert line[caret.index("^")] == "b"
    assert line[caret.index("^") - 2 : caret.index("^")] == "\\t"


@pytest.mark.parametrize(
    ("constraint", "text", "verdict"),
    [
        (mw.Regex("ab?"), "a", "allowed: the text obeys the constraint\nmay follow: [b]"),
        (mw.Regex("ab"), "ab", "allowed: the text obeys the constraint"),
        (mw.JsonSchema(OBJECT), '{"name":"ab","kind":1}', "allowed: the text obeys the constraint"),
        (mw.Regex("abcd"), "ab", 'incomplete at line 1, column 3 (offset 2): end of text\n  ab\n    ^\nexpected: "cd"'),
    ],
)
def test_allowed_and_incomplete(constraint: Constraint, text: str, verdict: str) -> None:
    explanation = mw.explain(constraint, text)
    assert str(explanation) == verdict
    assert explanation.ok
    assert explanation.complete == verdict.startswith("allowed")


# ---------------------------------------------------------------- bytes, tokens


def test_bytes() -> None:
    regex = mw.Regex("[é日]+")
    assert mw.explain(regex, "é日".encode()).complete
    cut = mw.explain(regex, "é日".encode()[:-1])
    assert (cut.ok, cut.complete, cut.byte, cut.offset, cut.expected) == (True, False, 2, 1, ("[é日]", "end of text"))
    broken = mw.explain(regex, "é".encode() + b"\xe6a")
    assert (broken.ok, broken.byte, broken.offset, broken.found) == (False, 2, 1, '"\ufffd"')
    stray = mw.explain(regex, "é".encode() + b"\x80")
    assert (stray.ok, stray.byte) == (False, 2)
    surrogate = mw.explain(regex, "é\ud800")
    assert (surrogate.ok, surrogate.offset, surrogate.found) == (False, 1, '"\\ud800"')
    str(surrogate).encode()


WORDS = mw.Vocabulary([*(bytes([b]) for b in range(256)), b"<eos>", b"12", b"34-", b"1x", b"<pad>", b""], [256], [260])


def test_tokens() -> None:
    regex = mw.Regex(r"[0-9]+-[0-9]")
    explanation = mw.explain(regex, [257, 258, 259, 257], WORDS)
    assert (explanation.ok, explanation.token, explanation.byte) == (False, 2, 6)
    assert explanation.text == "1234-1x12"
    assert explanation.found == "b'1x' (id 259)"
    assert explanation.expected == ("end of text",)
    assert str(explanation).startswith("refused at line 1, column 7 (offset 6): b'1x' (id 259), token 2")
    assert mw.explain(regex, iter([257, 258, 49, 256]), WORDS).complete
    assert mw.explain(mw.compile(regex, WORDS), [257, 258]).ok
    with pytest.raises(TypeError, match="without a vocabulary"):
        mw.explain(regex, [1])
    with pytest.raises(TypeError):
        mw.explain(regex, ["1"], WORDS)  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("tokens", "at", "found", "reason"),
    [
        ([257, 256], 1, "end of text (id 256)", "the text is not complete"),
        ([257, 260], 1, "b'<pad>' (id 260)", "never matches text"),
        ([257, 261], 1, "b'' (id 261)", "never matches text"),
        ([257, 262], 1, "id 262", "262 tokens"),
        ([-1], 0, "id -1", "262 tokens"),
        ([257, 258, 49, 256, 49], 4, "b'1' (id 49)", "the text has ended"),
    ],
)
def test_tokens_that_are_no_text(tokens: list[int], at: int, found: str, reason: str) -> None:
    explanation = mw.explain(mw.Regex(r"[0-9]+-[0-9]"), tokens, WORDS)
    assert not explanation.ok
    assert (explanation.token, explanation.found) == (at, found)
    assert len(explanation.reasons) == 1
    assert reason in explanation.reasons[0]


def test_a_vocabulary_that_cannot_spell_the_rest() -> None:
    vocab = mw.Vocabulary([b"a", b"ab", b"c", b"<eos>"], [3])
    regex = mw.Regex("(ab|ax)c|aay")
    assert mw.explain(regex, "ax").ok
    by_text = mw.explain(regex, "aa", vocab)
    assert (by_text.ok, by_text.offset) == (False, 1)
    assert "no sequence of the vocabulary's tokens" in by_text.reasons[0]
    by_tokens = mw.explain(regex, [0], vocab)
    assert (by_tokens.ok, by_tokens.token) == (False, 0)
    assert "no sequence of the vocabulary's tokens" in by_tokens.reasons[0]
    assert mw.explain(regex, [1, 2], vocab).complete


def test_banned_ids_of_a_compiled_grammar() -> None:
    compiled = mw.compile(mw.Regex("[ab]+"), BYTES, banned_ids=[98])
    assert mw.explain(compiled, "a").complete
    explanation = mw.explain(compiled, "ab")
    assert (explanation.ok, explanation.offset) == (False, 1)


def test_errors_of_the_constraint_come_through() -> None:
    with pytest.raises(mw.RegexError):
        mw.explain(mw.Regex("("), "a")


# ---------------------------------------------------------------- laws


class Letters(enum.Enum):
    A = "ab"
    B = "ac"


LAW: list[tuple[Constraint, list[str]]] = [
    (mw.JsonSchema(OBJECT),
     ['{"name":"abc","age":15,"kind":"green","tags":["ab","c"]}', '{"name": "ab",\n "kind": 1}']),
    (mw.JsonSchema(OPEN, key_order="any", escapes="any", numbers="full"),
     ['{"b":-1.5e3,"\\u00e9":[{"a":"\\n"}],"a":null}']),
    (mw.JsonSchema(OBJECT, whitespace="any", escapes="any"), ['{ "name" : "\\u0061b", "kind" : true }']),
    (mw.JsonSchema(TUPLE), ['[12,"x"]', "[]"]),
    (mw.JsonSchema({"enum": ["aé", "a日", 1, 12, None, {"a": [1]}, "\\"]}), ['"aé"', '{"a":[1]}', "12", '"\\\\"']),
    (mw.Regex(r"(?:[a-f]{2}-)*(?:é|日本)?[^é]"), ["ab-cd-é!", "日本x", "ff-😀"]),
    (mw.Choice(Letters), ["ab", "ac"]),
    (mw.Choice(["日本", "日光", "x\n"]), ["日光", "x\n"]),
]  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    new = rng.choice(["", "a", "0", '"', "}", "]", ",", " ", "\n", "é", "😀", "\\", "x", "-", ":", "{"])
    return text[:at] + new + text[at + rng.randrange(3) :]


@pytest.mark.parametrize(("constraint", "texts"), LAW, ids=lambda v: repr(v)[:30])
def test_law(constraint: Constraint, texts: list[str]) -> None:
    """The place is that of the longest allowed beginning; the characters are those, and only those, that may follow."""
    rng = random.Random(0)
    compiled = mw.compile(constraint, BYTES)

    def allowed(text: str) -> bool:
        return compiled.matcher().accept_text(text)

    for n in range(120):
        text = texts[n % len(texts)]
        for _ in range(n // 40):
            text = mutated(text, rng)
        explanation = mw.explain(constraint, text)
        read = text[: explanation.offset]
        assert explanation.text == text
        assert explanation.ok == (read == text)
        assert allowed(read)
        assert explanation.ok or not allowed(text[: len(read) + 1])
        matcher = compiled.matcher()
        assert matcher.accept_text(read)
        assert explanation.can_end == matcher.is_accepting == ("end of text" in explanation.expected)
        assert explanation.complete == (explanation.ok and matcher.is_accepting)
        assert explanation.expected
        assert str(explanation).isprintable() or "\n" in str(explanation)
        for letter in 'az09"\\{}[],: -.\n\x00\x7fé日本光😀\u2028':
            said = letter in explanation.characters or (ord(letter) >= 0x80 and explanation.characters.beyond)
            assert said >= allowed(read + letter), (read, letter)
            if ord(letter) < 0x80 or not explanation.characters.beyond:
                assert said == allowed(read + letter), (read, letter)


@pytest.mark.parametrize("text", ['{"a": [1, {"b\\"": "x\\\\", "c": [true, null, -1.5e3, "\\u00e9"]}], "d": {}}'])
def test_places_in_json(text: str) -> None:
    """At each value's end, the place's pointer leads to that value in the whole."""
    value = json.loads(text)
    seen = set()
    for end in range(1, len(text) + 1):
        place = place_of(text[:end])
        at = value
        for step in place.path:
            at = at[step]
        seen.add((place.state, place.pointer))
        if place.state in ("string", "scalar"):
            assert str(json.dumps(at, ensure_ascii=False)).strip('"').startswith(place.written[:1])
    assert ("string", '/a/1/b"') in seen
    assert ("scalar", "/a/1/c/2") in seen
    assert ("key-string", "/a/1") in seen
    assert ("after", "/a") in seen
    assert ("key", "/d") in seen
    assert place_of(text).state == "end"


@pytest.mark.slow  # by the clock: not for a busy machine
@pytest.mark.timeout(30)
def test_long_and_deep_texts() -> None:
    start = time.perf_counter()
    deep = mw.explain(mw.JsonSchema(True), "[" * 20_000 + "x")
    assert (deep.ok, deep.offset) == (False, 20_000)
    assert deep.pointer == "/0" * 20_000
    str(deep)
    many = mw.explain(mw.JsonSchema({"items": {"type": "integer"}}), "[" + "1,\n" * 50_000 + '"x"]')
    assert (many.line, many.column, many.pointer) == (50_001, 1, "/50000")
    wide = mw.JsonSchema({"properties": {f"key{n:04}": True for n in range(3000)}, "additionalProperties": False})
    assert "more keys" in str(mw.explain(wide, '{"x"'))
    assert time.perf_counter() - start < 15


# ---------------------------------------------------------------- command line


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(OBJECT))
    assert main(["explain", "--schema", str(path), '{"name":"ab","kind":1}']) == 0
    assert capsys.readouterr().out == "allowed: the text obeys the constraint\n"
    assert main(["explain", "--schema", str(path), '{"name": 5}']) == 1
    out, err = capsys.readouterr()
    assert out.startswith("refused at line 1, column 10")
    assert err == ""
    assert main(["explain", "--regex", "a+", "b"]) == 1
    assert main(["explain", "--choice", "a", "--choice", "b", "b"]) == 0
    capsys.readouterr()
    assert main(["explain", "--regex", "(", "b"]) == 1
    assert "a group is not closed" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["explain", "b"])


@pytest.mark.parametrize(("data", "code"), [(b"a\r", 0), (b"a\r\n", 0), (b"a\r\n\n", 1), (b"\xff", 1)])
def test_command_reads_bytes(data: bytes, code: int) -> None:
    command = [sys.executable, "-m", "maskwright.cli", "explain", "--regex", r"a\r", "-"]
    command[1:3] = ["-c", "import sys; from maskwright.cli import main; sys.exit(main())"]
    done = subprocess.run(command, input=data, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, b"")


def test_outputs_of_several_parts_are_explained_as_texts() -> None:
    letter = mw.Seq("Dear ", mw.Capture("name", mw.Regex("[A-Z][a-z]+")), ",\n", mw.Free(until="\n\n"))
    found = mw.explain(letter, "Dear ann")
    assert (found.ok, found.offset, found.found, found.expected) == (False, 5, '"ann"', ("[A-Z]",))
    assert mw.explain(letter, "Dear Ann,\nhow are you\n\n").complete
    with pytest.raises(mw.ConstraintError, match=r"regions of tokens.*explain"):
        mw.explain(mw.Seq("a", mw.Special("<t>")), "a")
