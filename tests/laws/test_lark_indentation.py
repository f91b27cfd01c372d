"""Indentation: lark's verdicts over all short texts, walks that end in what lark parses, and lark's Python grammar."""

from __future__ import annotations

import random
import sysconfig
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import lark
import pytest
from lark.indenter import Indenter, PythonIndenter

import maskwright as mw
from laws.test_lark_laws import VOCABULARIES, accepts, finish
from maskwright.reference.lark import LarkOracle

BLOCKS = """
file: (_NL | stmt)*
stmt: A ":" suite | A ["(" [A ("," A)*] ")"] _NL
suite: A _NL | _NL _INDENT stmt+ _DEDENT
A: /a/
_NL: /(\\n[ \\t]*)+/
COMMENT: /#[^\\n]*/
%declare _INDENT _DEDENT
%ignore " "
%ignore COMMENT
"""


class Blocks(Indenter):
    NL_type = "_NL"
    OPEN_PAREN_types: ClassVar = ["LPAR"]
    CLOSE_PAREN_types: ClassVar = ["RPAR"]
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 2


OPTIONS: dict[str, Any] = {"start": "file", "parser": "lalr"}


def verdict(oracle: LarkOracle, text: str) -> bool:
    try:
        return bool(oracle.accepts(text))
    except (lark.exceptions.LarkError, IndexError, AssertionError):
        return False


@pytest.mark.parametrize("lexer", ["contextual", "basic"])
@pytest.mark.parametrize("length", [5, pytest.param(7, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_blocks_over_all_short_texts(lexer: str, length: int) -> None:
    options = {**OPTIONS, "lexer": lexer, "postlex": Blocks()}
    oracle = LarkOracle(BLOCKS, options)
    compiled = mw.compile(mw.Lark(BLOCKS, **options), VOCABULARIES["bytes"])
    seen = 0
    for n in range(length + 1):
        for letters in product("a:\n (", repeat=n):
            text = "".join(letters)
            seen += accepts(compiled, text)
            assert accepts(compiled, text) == verdict(oracle, text), text
    assert seen > 10


def test_longer_blocks() -> None:
    options = {**OPTIONS, "postlex": Blocks()}
    oracle = LarkOracle(BLOCKS, options)
    compiled = mw.compile(mw.Lark(BLOCKS, **options), VOCABULARIES["bytes"])
    for text in (
        "a:\n  a\n",
        "a:\n  a\na\n",
        "a:\n  a:\n    a\n  a\na\n",
        "a:\n  a:\n    a\n   a\n",
        "a:\n\ta\n  a\n",
        "a(a,\n a)\n",
        "a(#\n)\n",
        "a:#a\n a#\n",
        "a # x",
        "a:\n a\n# a\n a\n",
        "a:\n a\n",
        " a\n",
        "a:\na\n",
        "a)\n",
    ):
        assert accepts(compiled, text) == verdict(oracle, text), text


@pytest.mark.parametrize("count", [30, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_walks_through_blocks(count: int) -> None:
    options = {**OPTIONS, "postlex": Blocks()}
    oracle = LarkOracle(BLOCKS, options)
    tokens = [bytes([i]) for i in range(256)] + [b"\n  ", b"\n    ", b":\n ", b")\n", b"a:", b"  ", b"(a", b"\n\n"]
    vocabulary = mw.Vocabulary([*tokens, b"<eos>"], eos_ids=[len(tokens)], special_ids=[len(tokens)])
    compiled = mw.compile(mw.Lark(BLOCKS, **options), vocabulary)
    for seed in range(count):
        rng = random.Random(seed)
        matcher, text = compiled.matcher(), b""
        for _ in range(rng.randint(1, 25)):
            allowed = [t for t in matcher.allowed_tokens() if t < len(tokens)]
            assert allowed == [t for t in range(len(tokens)) if matcher.fork().accept(t)], text
            token = rng.choice([t for t in allowed if tokens[t].isascii()])
            assert matcher.accept(token)
            text += tokens[token]
        text = finish(matcher, tokens, text)
        assert verdict(oracle, text.decode()), text


REFUSED = [
    ("file: A _NL\nA: /a/\n_NL: /\\n/\n", "is not used"),
    (BLOCKS.replace("suite: A _NL |", "suite: A _NL _INDENT |"), "does not close"),
    (BLOCKS.replace("_NL _INDENT stmt+ _DEDENT", "A _INDENT stmt+ _DEDENT"), "without _NL"),
    (BLOCKS.replace("/(\\n[ \\t]*)+/", "/\\n/"), "blanks"),
    (BLOCKS.replace('["(" [A ("," A)*] ")"]', '["(" _NL ")"]'), "between brackets"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_grammars_that_do_not_balance_are_refused(text: str, message: str) -> None:
    with pytest.raises(mw.LarkError, match=message):
        mw.compile(mw.Lark(text, **OPTIONS, postlex=Blocks()), VOCABULARIES["bytes"])


def test_indenters_with_methods_of_their_own_are_refused() -> None:
    class Own(Blocks):
        def handle_NL(self, token: Any) -> Any:
            yield token

    with pytest.raises(mw.LarkError, match="overrides handle_NL"):
        mw.compile(mw.Lark(BLOCKS, **OPTIONS, postlex=Own()), VOCABULARIES["bytes"])
    with pytest.raises(mw.LarkError, match="no postlex"):
        mw.compile(mw.Lark(BLOCKS, start="file", postlex=Blocks()), VOCABULARIES["bytes"])


@pytest.fixture(scope="module")
def python() -> tuple[mw.CompiledGrammar, lark.Lark]:
    text = (Path(lark.__file__).parent / "grammars" / "python.lark").read_text(encoding="utf-8")
    options: dict[str, Any] = {"start": "file_input", "parser": "lalr", "postlex": PythonIndenter()}
    limits = mw.CompileLimits(seconds=120)
    return mw.compile(mw.Lark(text, **options), VOCABULARIES["bytes"], limits=limits), lark.Lark(text, **options)


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_python_lark_on_the_standard_library(python: tuple[mw.CompiledGrammar, lark.Lark], count: int) -> None:
    compiled, parser = python
    files = [p for p in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")) if p.stat().st_size < 20_000]
    for path in random.Random(5).sample(files, min(count, len(files))):
        text = path.read_text(encoding="utf-8")
        try:
            parser.parse(text)
            parses = True
        except (lark.exceptions.LarkError, IndexError, AssertionError):
            parses = False
        assert accepts(compiled, text) == parses, path.name
