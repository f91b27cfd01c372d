"""Values of streams: what is closed stays, what is not closed does not show."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pydantic
import pytest

import maskwright as mw
from engine.hf_models import byte_tokenizer, tiny
from engine.models import ToyModel
from maskwright.engine.partial import PartialJson

VALUES: list[Any] = [
    {"a": 1, "b": [True, None, {"c": "x\"\\\n😀/é", "d~/": []}], "": {"": -1.5e3}, "k:,": {}},
    [[], [[1, 2], "3"], {"a": {"b": {"c": [0]}}}, False],
    "a\\\"b\\\\ud83d\ud7ff",
    "",
    12,
    -0.5,
    None,
    True,
    [],
    {},
]


PLACES = [('{"k":', "}", "/k"), ("[1,", "]", "/1"), ("", "", ""), ('[{"k":[', "]}]", "/0/k/0")]


def texts(value: Any) -> list[str]:
    return [
        json.dumps(value),
        json.dumps(value, ensure_ascii=False, indent=2),
        json.dumps(value, separators=(",", ":")),
    ]


def at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def pointers(value: Any, here: str = "") -> list[str]:
    """Of the value and all in it, children first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [p for k, v in items for p in pointers(v, f"{here}/{str(k).replace('~', '~0').replace('/', '~1')}")]
    return [*inner, here]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_character_of_a_text(value: Any) -> None:
    for text in texts(value):
        scanner, seen = PartialJson(), []
        for character in text:
            scanner.push(character)
            seen.append((scanner.value(), list(scanner.closed)))
        scanner.finish()
        assert scanner.value() == value
        assert scanner.closed == pointers(value)
        for partial, closed in seen:
            assert scanner.closed[: len(closed)] == closed
            for pointer in closed:
                assert at(partial, pointer) == at(value, pointer)
            known = set(pointers(partial)) - {""}
            assert known <= set(scanner.closed)
            # Only what still grows shows without being closed.
            assert all(isinstance(at(partial, pointer), dict | list) for pointer in known - set(closed))


def test_shown_values_do_not_change_afterwards() -> None:
    text, random_ = json.dumps(VALUES[:2]), random.Random(1)
    for _ in range(50):
        scanner, kept, place = PartialJson(), [], 0
        while place < len(text):
            step = random_.randint(1, 9)
            scanner.push(text[place : place + step])
            place += step
            kept.append((scanner.value(), json.dumps(scanner.value())))
        assert all(json.dumps(value) == then for value, then in kept)
        assert kept[-1][0] == VALUES[:2]


def test_numbers_and_words_show_when_they_cannot_change() -> None:
    scanner = PartialJson()
    shown = []
    for character in "[12, true ,nu":
        scanner.push(character)
        shown.append(scanner.value())
    assert shown[:4] == [[], [], [], [12]]
    assert shown[-1] == [12, True]
    root = PartialJson()
    root.push("12")
    assert (root.value(), root.closed) == (None, [])
    root.finish()
    assert (root.value(), root.closed) == (12, [""])


@pytest.mark.parametrize("value", ["a\"\\b\n😀é€\\u12", "\\\\", "\ud7ff\\n\\ud83d", "x" * 50])
def test_partial_strings_are_beginnings(value: str) -> None:
    for ascii_only in (True, False):
        body = json.dumps(value, ensure_ascii=ascii_only)
        for before, after, pointer in PLACES:
            scanner, last = PartialJson(partial_strings=True), ""
            scanner.push(before)
            for character in body:
                scanner.push(character)
                shown = at(scanner.value(), pointer)
                assert value.startswith(shown)
                assert shown.startswith(last)
                assert len(shown) <= len(last) + 1
                last = shown
            assert last == value
            scanner.push(after)
            assert at(scanner.value(), pointer) == value
            assert scanner.closed[-1] == ""


def test_keys_never_show_before_they_are_closed() -> None:
    scanner = PartialJson(partial_strings=True)
    for character in '{"a": "x", "bc':
        scanner.push(character)
    assert scanner.value() == {"a": "x"}


def test_deep_and_hostile_texts_end() -> None:
    scanner = PartialJson()
    scanner.push("[" * 2_000 + "1")
    scanner.value()
    scanner.push("]" * 2_000)
    assert scanner.closed[-1] == ""
    long = PartialJson()
    long.push('{"a":1,"b":' + "9" * 5000 + ',"c":2}')
    long.finish()
    assert long.value() == {"a": 1}
    assert long.closed == ["/a"]


class Item(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=8)
    tags: list[int] = pydantic.Field(max_length=3)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("strings", [False, True])
def test_a_stream_of_json_grows(seed: int, strings: bool) -> None:
    schema = Item.model_json_schema()
    constraint = mw.JsonSchema(Item if seed % 2 else schema)
    chunks = list(mw.stream(ToyModel(), "p", constraint, seed=seed, max_tokens=60, partial_strings=strings))
    final = json.loads("".join(chunk.text for chunk in chunks))
    for before, after in itertools.pairwise(chunks):
        assert after.closed[: len(before.closed)] == before.closed
        assert all(at(before.value, pointer) == at(final, pointer) for pointer in before.closed)
    assert chunks[-1].closed == tuple(pointers(final))
    assert chunks[-1].value == (Item.model_validate(final) if seed % 2 else final)
    assert any(chunk.value is not None for chunk in chunks[:-1])


def test_other_constraints_close_as_a_whole() -> None:
    for constraint in (mw.Regex("[a-f]{4}"), mw.Choice(["yes", "no"]), None):
        *before, last = mw.stream(ToyModel(), "p", constraint, seed=1, max_tokens=8)
        assert all(chunk.value is None and chunk.closed == () for chunk in before)
        assert last.closed == ("",)


def test_a_cancelled_stream_keeps_what_was_closed() -> None:
    class AfterSome:
        asked = 0

        def is_set(self) -> bool:
            self.asked += 1
            return self.asked > 12

    constraint = mw.JsonSchema({"type": "array", "items": {"type": "integer"}, "minItems": 40}, whitespace="compact")
    *before, last = mw.stream(ToyModel(), "p", constraint, seed=3, max_tokens=400, cancel=AfterSome())
    assert last.result is not None
    assert not last.result.valid
    assert last.value[: len(before[-1].value)] == before[-1].value
    assert "" not in last.closed


@pytest.fixture(scope="module")
def special() -> mw.TransformersModel:
    return mw.TransformersModel(tiny("llama"), byte_tokenizer(), context_length=96)


ROW = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "items": {"enum": [1, "x", True]}, "minItems": 1, "maxItems": 3},
        "b": {"type": "null"},
    },
    "required": ["a", "b"],
    "additionalProperties": False,
}


def grows(chunks: list[mw.Chunk], partial: Any) -> None:
    """Every value holds those of the chunks before, the last one is the result's, and places close once."""
    last: Any = None
    for chunk in chunks[:-1]:
        value = partial(chunk.value)
        if last is not None:
            assert value["a"][: len(last.get("a", []))] == last.get("a", []) if "a" in last else True
            assert set(last) <= set(value)
        last = value
        assert len(set(chunk.closed)) == len(chunk.closed)
        assert chunks[-1].closed[: len(chunk.closed)] == chunk.closed
    assert chunks[-1].closed[-1] == ""
    assert chunks[-1].value == chunks[-1].result.value  # type: ignore[union-attr]
    assert any(partial(chunk.value) for chunk in chunks[:-1])


@pytest.mark.parametrize("end", ["!", "ab", mw.Special("<|user|>"), mw.Special("the")])
@pytest.mark.parametrize("limit", [9, None])
def test_values_of_answers_after_reasoning(end: Any, limit: int | None, special: Any) -> None:
    shown = 0
    for seed in range(4):
        thinking = mw.Thinking(end=end, max_tokens=limit)
        chunks = list(
            mw.stream(special, "p", mw.JsonSchema(ROW), thinking=thinking, seed=seed, max_tokens=90, drafts=False)
        )
        if chunks[-1].result.finish_reason == "length" and not chunks[-1].result.valid:  # type: ignore[union-attr]
            continue
        grows(chunks, lambda value: value)
        assert {"/a", "/b", "/a/0"} <= set(chunks[-1].closed)
        shown += 1
    assert shown


def test_values_of_captures(special: Any) -> None:
    data = mw.Capture("d/", mw.JsonSchema(ROW))
    whole = mw.Seq("see ", mw.Capture("n", mw.Free(until="!")), data, "\n", mw.Regex("[0-9]{2}"))
    for seed in range(4):
        chunks = list(mw.stream(special, "p", whole, seed=seed, max_tokens=90, drafts=False))
        grows(chunks, lambda value: None if value is None else value["d/"])
        assert {"/d~1/a", "/d~1/b", "/d~1"} <= set(chunks[-1].closed)
    for unclear in (
        mw.Seq(mw.Regex("a*"), mw.Capture("d", mw.JsonSchema(ROW))),
        mw.Seq(mw.Capture("d", mw.JsonSchema({"type": "integer", "maximum": 99})), mw.Regex("[0-9]")),
        mw.Seq("x", mw.JsonSchema(ROW)),
    ):
        chunks = list(mw.stream(special, "p", unclear, seed=1, max_tokens=90, drafts=False))
        assert all(chunk.value is None and chunk.closed == () for chunk in chunks[:-1])
        assert chunks[-1].value == chunks[-1].result.value  # type: ignore[union-attr]
        assert chunks[-1].closed == ("",)
