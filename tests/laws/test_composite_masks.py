"""The masks of outputs of several parts are the oracle's at every step."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

import maskwright as mw
from laws.problems import _MAKERS, Problem, _problem
from laws.test_masks import follow
from maskwright.reference import Undecided
from maskwright.reference.composite import composite
from maskwright.reference.language import EMPTY, Node, contains


@dataclass
class Parts:
    """Random parts; the languages of those that are no composites."""

    rng: random.Random
    languages: dict[int, Node] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)
    has_schema: bool = False

    def leaf(self) -> Any:
        while True:
            # Two schemas might differ in their white space, which is refused.
            kind = self.rng.choice(["regex", "choice"] if self.has_schema else ["regex", "choice", "schema"])
            problem = _MAKERS[kind](self.rng, 1, True)
            if problem.language is not EMPTY and "uniqueItems" not in problem.constructs:
                self.has_schema |= kind == "schema"
                self.languages[id(problem.constraint)] = problem.language
                self.kept.append(problem.constraint)
                return problem.constraint

    def part(self, depth: int) -> Any:
        kind = self.rng.choice(["leaf", "text", "free"] + ["seq", "alt", "capture"] * (depth > 0))
        if kind == "leaf":
            return self.leaf()
        if kind == "text":
            return self.rng.choice(["", "a", "ab", "é{", '"', "1,"])
        if kind == "free":
            return mw.Free(until=self.rng.choice(["a", "aab", "\n\n", "é"]))
        return self.composite(kind, depth - 1)

    def composite(self, kind: str, depth: int) -> Any:
        if kind == "capture":
            return mw.Capture("x", self.part(depth))
        parts = [self.part(depth) for _ in range(self.rng.randint(1, 3))]
        return mw.Seq(*parts) if kind == "seq" else mw.Alt(*parts)


def problem(seed: int) -> Problem:
    rng = random.Random(seed)
    parts = Parts(rng)
    whole = parts.composite(rng.choice(["seq", "seq", "alt", "capture"]), 1)
    language = composite(whole, lambda part: parts.languages[id(part)])
    return _problem(rng, whole, language, "composite", frozenset(), None if not parts.has_schema else True)


@pytest.mark.parametrize("count", [20, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_masks_of_composites_are_the_oracles(count: int) -> None:
    followed = 0
    for seed in range(count):
        case = problem(seed)
        rng = random.Random(seed)
        try:
            if not case.oracle.mask(case.oracle.start()):
                continue
            follow(case, [rng.randrange(1 << 16) for _ in range(7)], case.compile().matcher())
        except Undecided:
            continue
        followed += 1
    assert followed > count / 2


def test_free_text_by_hand() -> None:
    until = composite(mw.Seq("<", mw.Free(until="aa")), lambda part: EMPTY)
    for text, belongs in {"<aa": True, "<baa": True, "<aaa": False, "<aab": False, "<abaa": True, "<a": False}.items():
        assert contains(until, text.encode()) == belongs, text
    anything = composite(mw.Alt("", mw.Capture("n", mw.Free())), lambda part: EMPTY)
    assert contains(anything, "é".encode())
    assert not contains(anything, b"\xc3")


@pytest.mark.parametrize("part", [mw.Special("<t>"), mw.Free(max_tokens=3), mw.Free(until=mw.Special("<t>"))])
def test_regions_of_tokens_are_no_texts(part: Any) -> None:
    with pytest.raises(ValueError, match="region of tokens, not a text"):
        composite(mw.Seq("a", part), lambda part: EMPTY)
