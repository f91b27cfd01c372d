"""Faults planted in the lowering of Lark grammars: the laws over random grammars notice each of them."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

import maskwright as mw
from laws.test_lark_indentation import BLOCKS, OPTIONS, Blocks, verdict
from laws.test_lark_laws import VOCABULARIES, accepts, compared, draw
from maskwright.grammar.lark import assembly, indents, lexers, patterns
from maskwright.reference.lark import LarkOracle

FIRST = 700_000  # seeds of grammars that no other law compiles, since compiled ones are remembered
MOST = 250

load, lower = (import_module(f"maskwright.grammar.lark.{name}") for name in ("load", "lower"))

_star, _up_to, _ahead = assembly.Assembly.star, assembly.Assembly.up_to, assembly.Assembly.ahead
_options, _start, _flatten, _load = assembly.Assembly.options, lexers.Terminals.start, lower.flatten, load.load


def _by_width(self: Any, definitions: list[Any]) -> Any:
    return _start(self, sorted(definitions, key=lambda d: (-d.pattern.max_width, -len(d.pattern.value), d.name)))


def _one_start(*args: Any) -> Any:
    loaded = _load(*args)
    return replace(loaded, starts=loaded.starts[:1])


EARLEY, BASIC, LALR = ("earley", "dynamic"), ("earley", "basic"), ("lalr", "contextual")
MUTANTS: dict[str, tuple[tuple[str, str], Any, str, Any]] = {
    "terminals in the reverse order": (BASIC, lexers.Terminals, "start", lambda self, d: _start(self, d[::-1])),
    "priorities of terminals do not matter": (BASIC, lexers.Terminals, "start", _by_width),
    "words are no keywords": (BASIC, lexers.Terminals, "takes", lambda *_: False),
    "words are always keywords": (LALR, lexers.Terminals, "takes", lambda *_: True),
    "no guards": (EARLEY, lower, "KINDS", {**lexers.KINDS, "dynamic": lexers.EVERY}),
    "nothing is ignored": (
        LALR, lower, "flatten",
        lambda a, k, s, ignored, *more: _flatten(a, k, s, [False] * len(ignored), *more),
    ),
    "no rule is nullable": (BASIC, import_module("maskwright.grammar.lark.general"), "nullable", lambda _: set()),
    "lazy loops are greedy": (
        EARLEY, assembly.Assembly, "star", lambda self, body, lazy, nullable: _star(self, body, False, nullable),
    ),
    "lazy options are greedy": (
        EARLEY, assembly.Assembly, "up_to",
        lambda self, count, body, lazy, nullable: _up_to(self, count, body, False, nullable),
    ),
    "the last alternative is preferred": (
        EARLEY, assembly.Assembly, "options", lambda self, writers: _options(self, writers[::-1]),
    ),
    "lookaheads are turned around": (
        EARLEY, assembly.Assembly, "ahead", lambda self, body, negative: _ahead(self, body, not negative),
    ),
    "case matters always": (EARLEY, patterns, "_I", 0),
    "^ holds everywhere": (EARLEY, patterns.PatternCompiler, "begin", lambda *_: None),
    "^ holds nowhere": (LALR, patterns.PatternCompiler, "begin", lambda self, *_: self.out.char(())),
    "one start is enough": (EARLEY, load, "load", _one_start),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_planted_faults_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logging.getLogger("lark").setLevel(logging.CRITICAL)
    pair, owner, attribute, fault = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, fault)
    begin = FIRST + MOST * sorted(MUTANTS).index(name)
    for seed in range(begin, begin + MOST):
        rng = random.Random(f"{pair}.{seed}")
        case = draw(rng, pair)
        try:
            compared(case, rng, 3)
        except (AssertionError, LookupError):
            return
    pytest.fail("nothing was noticed")


_words: Callable[..., list[int]] = indents.Indents.words
INDENTS: dict[str, Callable[[indents.Indents, dict[str, int]], list[int]]] = {
    "tabs are eight wide": lambda self, numbers: _words(replace(self, tab=8), numbers),
    "brackets do not count": lambda self, numbers: _words(replace(self, opening=(), closing=()), numbers),
    "blocks close by opening": lambda self, n: _words(replace(self, indent=self.dedent, dedent=self.indent), n),
}


@pytest.mark.parametrize("name", sorted(INDENTS))
def test_planted_faults_of_indentation_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indents.Indents, "words", INDENTS[name])
    text = f"// {name}\n{BLOCKS}"
    options = {**OPTIONS, "postlex": Blocks()}
    compiled = mw.compile(mw.Lark(text, **options), VOCABULARIES["bytes"])
    oracle = LarkOracle(text, options)
    samples = ["a:\n\ta\n  a\n", "a(a,\n a)\n", "a:\n a\n", "a:\n  a:\n    a\n  a\na\n"]
    assert any(accepts(compiled, sample) != verdict(oracle, sample) for sample in samples)
