"""The shipped Python grammar against `ast.parse`: what it allows parses, and the standard library is allowed."""

from __future__ import annotations

import ast
import random
import sysconfig
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import assets
import maskwright as mw
from laws.python_walks import WORDS, Derivations, mask_walk

TOKENS = [*(bytes([i]) for i in range(256)), *(w.encode() for w in WORDS)]
VOCABULARY = mw.Vocabulary([*TOKENS, b"<eos>"], eos_ids=[len(TOKENS)], special_ids=[len(TOKENS)])
# Modules that are refused though they end in a line end, with what is in them.
KNOWN: dict[str, str] = {}


@pytest.fixture(scope="module")
def grammar() -> mw.Lark:
    return mw.Lark.shipped("python")


@pytest.fixture(scope="module")
def compiled(grammar: mw.Lark) -> mw.CompiledGrammar:
    return mw.compile(grammar, VOCABULARY, limits=mw.CompileLimits(seconds=120))


def accepts(compiled: mw.CompiledGrammar, text: str) -> bool:
    matcher = compiled.matcher()
    return bool(matcher.accept_text(text) and matcher.is_accepting)


def parses(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the grammar has no escapes that Python warns of
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True


@pytest.mark.parametrize("count", [4, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
def test_walks_over_masks_parse(compiled: mw.CompiledGrammar, count: int) -> None:
    for seed in range(count):
        text = mask_walk(compiled, random.Random(f"mask.{seed}"), 60 if count < 100 else 400)
        assert parses(text), (seed, text)


@pytest.mark.parametrize("count", [6, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
def test_every_rule_gives_python(grammar: mw.Lark, compiled: mw.CompiledGrammar, count: int) -> None:
    derivations = Derivations(grammar)
    for seed in range(count):
        text = derivations.module(random.Random(f"rule.{seed}"), 400)
        assert accepts(compiled, text), (seed, text)
        assert parses(text), (seed, text)
    least = min(derivations.used[rule] for rule in derivations.productive)
    print(f"{len(derivations.productive)} rules, each at least {least} times")
    assert least >= 10 or count < 100


# What docs/lark.md tells that Python takes and the grammar does not.
NARROWER = [
    "x = 1", "if x:\n\ty\n", "if x:\n\f  y\n", "(\n\tx)\n", "x = 1\n\\\ny = 2\n", "  \nx\n",
    "if x:\n    y\n  # c",
    "'\\N{BULLET}'\n", "λ = 1\n", "match (x)\n", "match(x):\n    case _: pass\n", "match -x:\n    case _: pass\n",
    "match *a, b:\n    case _: pass\n", "match ...:\n    case _: pass\n", "match not x:\n    case _: pass\n",
    'f\"\"\"{a\n}\"\"\"\n', 'f\"\"\"{c["d"]}\"\"\"\n', "f\"{b'x'}\"\n", "f\'\'\'{\"\"\"a\"\"\"}\'\'\'\n",
    "f'{yield}'\n",
    "f'{*a, b}'\n", "f'{[x for x.y in z]}'\n", "f'{(lambda *a: a)()}'\n", "f'{g(*a)}'\n", "f'{a[b:=1]}'\n",
    "f'{a:\\n}'\n",
    "f'{[a async for a in b]}'\n", "with a as *b: pass\n", "with (a, [*b] as c): pass\n",
]  # fmt: skip


@pytest.mark.parametrize("text", NARROWER)
def test_what_python_takes_and_the_grammar_does_not(compiled: mw.CompiledGrammar, text: str) -> None:
    assert parses(text) and not accepts(compiled, text)


def modules() -> Iterator[tuple[str, str]]:
    """Names and texts of the standard library, its tests aside."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        if not {"site-packages", "test", "tests"} & set(path.relative_to(root).parts):
            with warnings.catch_warnings(), tokenize.open(path) as file:
                warnings.simplefilter("ignore")
                text = file.read()
                try:
                    ast.parse(text)
                except SyntaxError:
                    continue
            yield str(path.relative_to(root)), text


def test_some_modules_of_the_standard_library(compiled: mw.CompiledGrammar) -> None:
    root = Path(sysconfig.get_paths()["stdlib"])
    for name in ("types.py", "textwrap.py", "contextlib.py"):
        assert accepts(compiled, (root / name).read_text(encoding="utf-8")), name


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_standard_library(compiled: mw.CompiledGrammar) -> None:
    refused, open_ended, total = [], [], 0
    for name, text in modules():
        total += 1
        if not accepts(compiled, text):
            (refused if text.endswith("\n") else open_ended).append(name)
    print(f"{total} modules, refused {refused}, without a last line end {open_ended}")
    assert set(refused) <= set(KNOWN)
    assert len(refused) <= 0.01 * total


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_standard_library_token_by_token(grammar: mw.Lark) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = str(assets.tokenizer_folder("llama3") / "tokenizer.json")
    tokenizer, vocabulary = tokenizers.Tokenizer.from_file(path), mw.Vocabulary.from_tokenizer(path)
    compiled = mw.compile(grammar, vocabulary, limits=mw.CompileLimits(seconds=120))
    refused, total, count = [], 0, 0
    for name, text in modules():
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert b"".join(vocabulary.tokens[i] for i in ids) == text.encode(), name
        matcher = compiled.matcher()
        if matcher.accept_tokens(ids) < len(ids) or not matcher.is_accepting:
            refused.append(name)
        total, count = total + 1, count + len(ids)
    print(f"{total} modules, {count} tokens, refused {refused}")
    assert set(refused) <= set(KNOWN)
