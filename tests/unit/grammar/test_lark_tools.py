"""Lark grammars: the rule that `explain` tells, the remarks of lint, the terminals of the guard limit, dead ends."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import maskwright as mw
from maskwright.reference.lark import LarkOracle

VOCABULARY = mw.Vocabulary([*(bytes([i]) for i in range(256)), b"<eos>"], eos_ids=[256], special_ids=[256])
SUM = """start: sum
sum: product ("+" product)*
product: NUMBER ("*" NUMBER)*
NUMBER: /[0-9]+/
%ignore " "
"""


@pytest.mark.parametrize("options", [{"parser": "lalr"}, {"parser": "earley"}, {"parser": "earley", "lexer": "basic"}])
def test_explain_tells_the_rule(options: dict[str, Any]) -> None:
    grammar = mw.Lark(SUM, **options)
    told = mw.explain(grammar, "1 + 2 * + 3")
    assert (told.rule, told.expected) == ("product", ("NUMBER",))
    assert "rule: product" in str(told)
    assert mw.explain(grammar, "+").rule == "start"
    complete = mw.explain(grammar, "1")
    assert complete.complete and "rule:" not in str(complete)
    assert mw.explain(mw.Regex("a"), "b").rule is None


def test_lint_tells_of_empty_terminals_and_of_what_is_not_reached() -> None:
    for parser in ("lalr", "earley"):
        remarks = mw.Lark("start: A B\nA: /a*/\nB: /b?/\n", parser=parser).lint()
        assert "terminal A may match the empty string" in str(remarks[0]) and "line 2, column 1" in str(remarks[0])
    text = 'start: x\nx: A\ny: A y\nz: A\nA: "a"\nC: "c"\n_D: "d"\nE: _D\n// F: "f"\n'
    remarks = mw.Lark(text, parser="lalr").lint()
    assert [str(r).split(": ")[1] for r in remarks] == [
        "rule y is not reached from start",
        "rule z is not reached from start",
        "terminal C is used nowhere",
        "terminal E is used nowhere",
    ]
    assert "derives no text" in str(mw.Lark('start: A | w\nw: A w\nA: "a"', parser="lalr").lint()[0])
    assert mw.Lark(SUM, parser="lalr").lint() == []
    with pytest.raises(mw.LarkError, match="lark refuses"):
        mw.Lark("start: B\n").lint()


def test_the_guard_limit_names_both_terminals() -> None:
    text = 'start: (A|B|LONG)+\nA: "a"\nB: "b"\nLONG: /a[ab]{20}c/\n'
    with pytest.raises(mw.LimitError, match=r'where "a" ends, LONG could go on') as raised:
        mw.compile(mw.Lark(text, parser="lalr", lexer="basic"), VOCABULARY)
    assert raised.value.location == "line 2, column 4"
    short = mw.Lark(text.replace("20", "3"), parser="lalr", lexer="basic")
    assert mw.compile(short, VOCABULARY).matcher().accept_text("abab")


DEAD_ENDS = [
    # A terminal that takes blanks and leads nowhere: there are none behind "b".
    'start: A* "b" (never | "c")\nnever: BLANK never\nA: "a"\nBLANK.2: " "\n%ignore " "\n',
    # The rule that cannot be finished begins like one that can.
    'start: A "b" | A A w\nw: A w\nA: "a"\n%ignore " "\n',
    'start: x "c"\nx: A | x A w | A "b" w\nw: A w\nA: "a"\n%ignore " "\n',
    'start: y | A "c"\ny: x w\nx: A | A x "b"\nw: "b" w\nA: "a"\n%ignore " "\n',
]


@pytest.mark.parametrize("lexer", ["contextual", "basic"])
@pytest.mark.parametrize("text", DEAD_ENDS)
def test_rules_that_cannot_be_finished_are_no_ways(text: str, lexer: str) -> None:
    options = {"parser": "lalr", "lexer": lexer}
    oracle = LarkOracle(text, options)
    compiled = mw.compile(mw.Lark(text, **options), VOCABULARY)
    live = {t[:n] for t in oracle.texts("abc ", 5) for n in range(len(t) + 1)}
    assert live
    for letters in (p for n in range(4) for p in product("abc ", repeat=n)):
        prefix = "".join(letters)
        matcher = compiled.matcher()
        assert matcher.accept_text(prefix) == (prefix in live), prefix
        if matcher.accept_text(""):
            assert matcher.is_accepting == bool(oracle.accepts(prefix)) or prefix not in live, prefix
