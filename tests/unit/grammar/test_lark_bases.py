"""Masks of Lark grammars over a vocabulary large enough for its bases, held against the acceptance of each token; and
what is stored of a grammar, held against what is found out anew."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from lark.indenter import PythonIndenter

import maskwright as mw
from maskwright import _core
from maskwright.compiler import CompiledGrammar
from maskwright.grammar.lark import Lark, LarkPlan
from maskwright.grammar.plan import Report

SYLLABLES = ("ba", "co", "di", "fe", "gu", "lo", "mi", "na", "pe", "qu", "ri", "so", "tu", "vo", "xe", "zy")


def large_vocabulary() -> mw.Vocabulary:
    words = ["".join(parts) for n in (1, 2, 3) for parts in product(SYLLABLES, repeat=n)]
    made = [p + w for w in words for p in ("", " ")] + [w.upper() for w in words[:272]] + [f"{n}" for n in range(1000)]
    made += [w + e for w in words[:272] for e in ("(", " (", ".", " =", "'", "' ", "9", "é", " ba", "\n", "\n\n  ", "Co")]
    made += ["  ", "   ", " \n", "\n  ", "()", "))", "('", "',", ") ", "''", "\\'", "\\n", "#", " #", "# ba", "é", " é", "中é", "if", "in"]
    tokens = list(dict.fromkeys([bytes([b]) for b in range(256)] + [t.encode() for t in made] + ["é".encode()[1:] + b"ba"]))
    return mw.Vocabulary([*tokens, b"<end>"], eos_ids=[len(tokens)], special_ids=[len(tokens)])


VOCABULARY = large_vocabulary()
COMMON = r"""
call: NAME "(" [item ("," item)*] ")"
item: NAME | INT | FLOAT | STR | call | NAME "=" item | "if" item "in" item
NAME: /[a-z_][a-z0-9_]*/
INT: /[0-9]+/
FLOAT: /[0-9]+\.[0-9]*/
STR: /'([^'\\\n]|\\.)*'/
"""
FLAT = "start: call+\n" + COMMON + "COMMENT: /#[^\\n]*/\n%ignore /[ \\n]+/\n%ignore COMMENT\n"
BLOCKS = "start: (line | NL)*\nline: call NL | NAME \":\" NL _INDENT line+ _DEDENT\n" + COMMON.replace('"("', "LPAR").replace('")"', "RPAR")
BLOCKS += "LPAR: \"(\"\nRPAR: \")\"\nNL: /(\\r?\\n[ \\t]*)+/\n%declare _INDENT _DEDENT\n%ignore / +/\n"
FLAT_TEXT = "ba(co9, 12, 1.5, 'gu\\n é', # lo 中\n di('xe'), if ba in _co) fegu()"
BLOCK_TEXT = "baco:\n  di(ba, 'é')\n  so:\n   fe()\nlomi(co=12)\n"


class Blocks(PythonIndenter):
    NL_type = "NL"
    OPEN_PAREN_types = ["LPAR"]
    CLOSE_PAREN_types = ["RPAR"]


CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "dynamic": (FLAT, FLAT_TEXT, {}),
    "dynamic, nothing ignored": (FLAT.split("COMMENT")[0], "ba(co9,12,1.5,'gu\\n é',if(),di('xe'))fe()", {}),
    "dynamic_complete": (FLAT, FLAT_TEXT, {"lexer": "dynamic_complete"}),
    "basic": (FLAT, FLAT_TEXT, {"lexer": "basic"}),
    "contextual": (FLAT, FLAT_TEXT, {"parser": "lalr"}),
    "blocks": (BLOCKS, BLOCK_TEXT, {"parser": "lalr", "postlex": Blocks()}),
}


def spell(text: str) -> list[int]:
    """Longest tokens first."""
    ids = {token: i for i, token in enumerate(VOCABULARY.tokens) if not VOCABULARY.kinds[i]}
    data, out = text.encode(), list[int]()
    while data:
        width = next(w for w in range(min(len(data), 12), 0, -1) if data[:w] in ids)
        out.append(ids[data[:width]])
        data = data[width:]
    return out


@pytest.mark.parametrize("name", CASES)
def test_masks_hold_the_tokens_that_are_accepted(name: str) -> None:
    grammar, text, options = CASES[name]
    matcher = mw.compile(mw.Lark(grammar, **options), VOCABULARY).matcher()
    size = VOCABULARY.size - 1
    for at, token in enumerate([*spell(text), None]):
        if at % 3 == 0 or token is None:
            allowed = [t for t in matcher.allowed_tokens() if t < size]
            assert allowed == [t for t in range(size) if matcher.count_accepted([t])], at
        assert token is None or matcher.accept(token), at
    assert matcher.is_accepting


@pytest.mark.parametrize("name", CASES)
def test_a_stored_survey_tells_what_is_found_anew(name: str) -> None:
    grammar, text, options = CASES[name]
    constraint = Lark(f"{grammar}// stored\n", **options)
    found = constraint.lowered()
    assert not found.surveyed
    known = found.with_survey(_core.LarkGrammar(found.form).survey_words())
    compiled = []
    for form in (found.form, known.form):
        core = _core.LarkGrammar(form)
        assert core.survey() == (0 if "nothing" in name else 1)
        compiled.append(CompiledGrammar(constraint, VOCABULARY, LarkPlan(core, found.terminals, found.rules, Report(()))))
    one, other = (c.matcher() for c in compiled)
    for token in spell(text):
        assert one.allowed_tokens() == other.allowed_tokens()
        assert one.min_tokens_to_accept() == other.min_tokens_to_accept()
        assert one.accept(token) and other.accept(token)
    assert one.is_accepting and other.is_accepting
