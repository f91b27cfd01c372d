"""The shipped grammars: their examples, held against judges that know the languages otherwise."""

from __future__ import annotations

import ast
import csv
import datetime
import io
import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright import _core
from maskwright.grammar.lark.shipped import SHIPPED, shipped_path
from maskwright.grammar.lark.stored import read_lowered, shipped_key

BYTES = [bytes([i]) for i in range(256)]
VOCABULARY = mw.Vocabulary([*BYTES, b"<eos>"], eos_ids=[256], special_ids=[256])
LIMITS = mw.CompileLimits(seconds=120)  # python takes seconds, and more where other programs use the cores
WORDS = ("SELECT ", " FROM ", "', '", '":', '", "', "))", "\r\n", "2024", "-02-", "sin(", "  ", " + ")
MERGED = mw.Vocabulary(
    [*BYTES, *(w.encode() for w in WORDS), b"<eos>"], eos_ids=[256 + len(WORDS)], special_ids=[256 + len(WORDS)]
)
# What sqlite3 says of a text that it could parse, about names and numbers of columns.
ABOUT_NAMES = ("no such", "duplicate column", "no tables", "wrong number of arg", "misuse of aggregate", "ambiguous")


def sqlite(text: str) -> None:
    if not text.strip():
        raise ValueError("empty")
    try:
        sqlite3.connect(":memory:").execute("EXPLAIN " + text)
    except sqlite3.Error as error:
        if not any(said in str(error) for said in ABOUT_NAMES) and "same number of result columns" not in str(error):
            raise


JUDGES: dict[str, Callable[[str], Any]] = {
    "arithmetic": lambda text: ast.parse(text.strip(" \t"), mode="eval"),
    "csv": lambda text: list(csv.reader(io.StringIO(text, newline=""), strict=True)),
    "iso8601": datetime.datetime.fromisoformat,
    "json": json.loads,
    "python": ast.parse,
    "sql": sqlite,
}
# Refused examples that a judge is more lenient about: fromisoformat takes hours alone (T12), Python trailing commas in
# calls, numbers such as `1.`, more operators and tuples.
LENIENT = {
    "arithmetic": {"1.", ".5", "max(a,)", "()", "a,b"},
    "iso8601": {"2024-01-01T12"},
    # Python takes modules without a last line end and tabs as indentation.
    "python": {"x = 1", "if x:\n\ty\n"},
}


def examples(name: str, kind: str) -> list[str]:
    path = shipped_path(name).with_suffix(".examples.json")
    found: list[str] = json.loads(Path(path).read_text(encoding="utf-8"))[kind]
    assert len(set(found)) == len(found) >= 20
    return found


def accepts(compiled: mw.CompiledGrammar, text: str) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_text(text) and matcher.is_accepting


def judged(name: str, text: str) -> bool:
    try:
        JUDGES[name](text)
    except Exception:
        return False
    return True


def test_every_grammar_has_a_judge() -> None:
    assert set(JUDGES) == set(SHIPPED)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_accepted_examples(name: str) -> None:
    grammar = mw.Lark.shipped(name)
    compiled = mw.compile(grammar, VOCABULARY, limits=LIMITS)
    for text in examples(name, "accepted"):
        assert accepts(compiled, text), text
        assert judged(name, text), text
        if name != "python" or text == "x = 1\n":  # lark takes long to make each of its many lexers
            grammar.tree(text)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_refused_examples(name: str) -> None:
    compiled = mw.compile(mw.Lark.shipped(name), VOCABULARY, limits=LIMITS)
    for text in examples(name, "refused"):
        assert not accepts(compiled, text), text
        assert judged(name, text) == (text in LENIENT.get(name, ())), text


def walk(compiled: mw.CompiledGrammar, rng: random.Random, most: int = 120) -> str:
    """A text by random tokens, kinds of characters equally likely; in the end the shortest way is taken."""
    matcher, out = compiled.matcher(), b""
    tokens = compiled.vocabulary.tokens
    while True:
        closing = len(out) > most
        budget = max(matcher.min_tokens_to_accept() + 1, 2) if closing else None
        allowed = [t for t in matcher.allowed_tokens(max_tokens=budget) if t not in compiled.vocabulary.eos_ids]
        if matcher.is_accepting and (closing or not allowed or rng.random() < 0.2):
            return out.decode()
        kinds: dict[str, list[int]] = {}
        for token in allowed:
            first = chr(tokens[token][0])
            kind = "a" if first.isalpha() else "0" if first.isdigit() else " " if first.isspace() else first
            if tokens[token].isascii():
                kinds.setdefault(kind if len(tokens[token]) == 1 else "long", []).append(token)
        token = rng.choice(rng.choice([kinds[k] for k in sorted(kinds)]))
        assert matcher.accept(token)
        out += tokens[token]


@pytest.mark.parametrize("name", sorted(SHIPPED))
@pytest.mark.parametrize("count", [12, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_walks_pass_the_judge(name: str, count: int) -> None:
    compiled = mw.compile(mw.Lark.shipped(name), MERGED, limits=LIMITS)
    for seed in range(count):
        text = walk(compiled, random.Random(f"{name}.{seed}"))
        assert judged(name, text), text


def test_unknown_names_are_told_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="arithmetic, csv, iso8601, json, python, sql"):
        mw.Lark.shipped("cobol")


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_lowered_forms_are_of_the_grammars(name: str) -> None:
    """Run `python -m maskwright.grammar.lark.shipped` after a change to a grammar."""
    path = shipped_path(name)
    text = path.read_text(encoding="utf-8")
    found = read_lowered(path.with_suffix(".lowered"), shipped_key(text))
    assert found is not None
    made = mw.Lark(text, **SHIPPED[name]).lowered()
    assert found.terminals == made.terminals
    for one in (found, made):  # state numbers of lark's tables differ from run to run
        assert _core.LarkGrammar(one.form).survey() >= 0
    assert len(found.words) == len(made.words)
    assert found.surveyed and not made.surveyed
