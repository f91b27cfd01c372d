"""Closing budgets of the shipped Python grammar: what a text still needs is counted by columns, not by a guess."""

from __future__ import annotations

import ast
import random

import pytest

import maskwright as mw
from laws.test_lark_laws import finish

BYTES = [bytes([i]) for i in range(256)]
# What has begun, the fewest bytes that make a module of it, and at most so many may be asked for beyond.
TABLE = [
    ("x", "\n", 0),
    ("if x:", "a\n", 2),
    ("if x:\n    y", "\n", 0),
    ("class A:\n    def f(self):\n        if x:\n            y", "\n", 0),
    ("try:\n    a\n", "finally:a\n", 4),
    ("while x:\n        try:\n            a\n", "        finally:a\n", 16),
    ("match x:\n                case 1:\n                    pass", "\n", 0),
]


@pytest.fixture(scope="module")
def compiled() -> mw.CompiledGrammar:
    vocabulary = mw.Vocabulary([*BYTES, b"<eos>"], eos_ids=[256], special_ids=[256])
    return mw.compile(mw.Lark.shipped("python"), vocabulary, limits=mw.CompileLimits(seconds=120))


@pytest.mark.parametrize(("text", "rest", "slack"), TABLE)
def test_a_few_bytes_are_enough(compiled: mw.CompiledGrammar, text: str, rest: str, slack: int) -> None:
    ast.parse(text + rest)
    matcher = compiled.matcher()
    assert matcher.accept_text(text)
    assert len(rest) <= matcher.min_tokens_to_accept() <= len(rest) + slack


def test_every_budget_is_kept(compiled: mw.CompiledGrammar) -> None:
    for seed in range(3):
        rng = random.Random(seed)
        matcher, text = compiled.matcher(), b""
        blanks = [b"\n" + b" " * rng.randint(*most) for most in ((1, 9), (10, 20))]
        for piece in (b"if a:", blanks[0], b"try:", blanks[1], b"a = (b"):
            assert matcher.accept_text(piece)
            text += piece
        budget = matcher.min_tokens_to_accept()
        done = finish(matcher, BYTES, text)
        assert len(done) - len(text) <= budget
        ast.parse(done)
