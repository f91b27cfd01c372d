from __future__ import annotations

import pickle
from enum import Enum, IntEnum
from pathlib import PurePosixPath
from typing import Any, Literal

import pytest

from maskwright.errors import ConstraintError, UnsatisfiableError
from maskwright.grammar.choice import Choice
from maskwright.grammar.plan import CompileLimits


class Colour(Enum):
    RED = "red"
    GREEN = "green"
    ROUGE = "red"  # an alias


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Recorder:
    def __init__(self) -> None:
        self.texts: list[bytes] = []

    def new_node(self) -> int:
        return 0

    def define_choice(self, node: int, texts: list[bytes]) -> None:
        assert node == 0
        self.texts = texts


def texts_of(choice: Choice) -> list[bytes]:
    program: Any = Recorder()
    plan = choice.plan(CompileLimits())
    plan.start(program)
    assert plan.whitespace == 0 and [e.status for e in plan.report] == ["enforced"]
    return program.texts


@pytest.mark.parametrize(
    ("choices", "texts", "items"),
    [
        (["spam", "ham"], [b"spam", b"ham"], ["spam", "ham"]),
        (("a", ""), [b"a", b""], ["a", ""]),
        ([1, 2.5, None, True], [b"1", b"2.5", b"None", b"True"], [1, 2.5, None, True]),
        (Colour, [b"red", b"green"], [Colour.RED, Colour.GREEN]),
        (Level, [b"1", b"10"], [Level.LOW, Level.HIGH]),
        ([Colour.GREEN, "red"], [b"green", b"red"], [Colour.GREEN, "red"]),
        (Literal["x", 3, "y"], [b"x", b"3", b"y"], ["x", 3, "y"]),
        ({"yes": True, "no": False, 7: [7]}, [b"yes", b"no", b"7"], [True, False, [7]]),
        ({"b", "a"}, [b"a", b"b"], ["a", "b"]),
        ((c for c in ["é", "日本"]), ["é".encode(), "日本".encode()], ["é", "日本"]),
        (["a", "b", "a"], [b"a", b"b"], ["a", "b"]),
        ([PurePosixPath("/x")], [b"/x"], [PurePosixPath("/x")]),
    ],
)
def test_texts_and_items(choices: Any, texts: list[bytes], items: list[Any]) -> None:
    choice = Choice(choices)
    assert texts_of(choice) == texts
    parsed = [choice.parse(text.decode()) for text in texts]
    assert parsed == items and list(map(type, parsed)) == list(map(type, items))
    with pytest.raises(ValueError, match="none of the"):
        choice.parse("something else")


@pytest.mark.parametrize("choices", ["spam", b"spam", 3, None, str, [b"x"], [object()], {b"x": 1}])
def test_wrong_types(choices: Any) -> None:
    with pytest.raises(TypeError):
        Choice(choices)


def test_no_choice() -> None:
    for empty in ([], {}, (), Enum("Nothing", [])):
        with pytest.raises(UnsatisfiableError) as caught:
            Choice(empty).plan(CompileLimits())
        assert caught.value.location == "choices"


@pytest.mark.parametrize("choices", [[1, "1"], [1, True, "True"], ["a", "\ud800"], [1.0, "x", "1.0"]])
def test_what_cannot_be_told_apart_or_written(choices: Any) -> None:
    with pytest.raises(ConstraintError) as caught:
        Choice(choices).plan(CompileLimits())
    assert caught.value.location == f"choice {len(choices) - 1}"


def test_equality_is_by_content() -> None:
    assert Choice(["a", "b"]) == Choice(("a", "b")) and hash(Choice(["a"])) == hash(Choice(["a"]))
    assert Choice(["a", "b"]) != Choice(["ab"]) and Choice(["a", "b"]) != Choice(["b", "a"])
    assert Choice(["1"]) != Choice([1]) and Choice({"a": 1}) != Choice({"a": True})
    assert Choice({"a": [1]}) != Choice({"a": [1]})  # lists count by identity: they can change
    assert Choice(Colour) != Choice(["red", "green"])
    shared = [1]
    assert Choice({"a": shared}) == Choice({"a": shared})


def test_immutable_and_picklable() -> None:
    choice = Choice({"a": [1], "b": Colour.RED})
    choice.fingerprint()
    with pytest.raises(AttributeError):
        choice.texts = ()
    again = pickle.loads(pickle.dumps(choice))
    assert again.parse("a") == [1] and again.parse("b") is Colour.RED and again != choice
    assert pickle.loads(pickle.dumps(Choice(Colour))) == Choice(Colour)
    assert repr(Choice(["a"])) == "Choice(['a'])" and repr(Choice(range(20))).endswith("7, ...])")


def test_many_choices() -> None:
    choice = Choice([f"item {i}" for i in range(100_000)])
    assert len(texts_of(choice)) == 100_000 and choice.parse("item 99999") == "item 99999"
