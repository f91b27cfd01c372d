"""Back-references, conditionals, atomic groups and possessive quantifiers against `re`; ECMA-262 against node."""

from __future__ import annotations

import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskwright.errors import ConstraintError, LimitError, RegexError
from maskwright.grammar.regex import pattern_ir
from unit.grammar.naive import matches
from unit.grammar.node import judging

TEXTS = ["".join(t) for n in range(5) for t in product("ab", repeat=n)] + ["abab", "c", "aca", "acb", "abcab", "aab c"]
LEAVES = ["a", "b", "c", "[ab]", ".", "a*", "b?", "^", "$", r"\b", "ab", "", "(?=a)", "(?!b)"]
BODIES = ["a", "b", "a|b", "ab?", "[ab]", "a|", "a|ab", "^a|b", "(?=a).", "(?:a|b){1,2}", "(a|b)c?", "a*"]
REFERENCES = [r"\1", r"\1", r"\2", "(a|b)(b|c)\\2", "(b?)(c|a)\\2"]
ATOMICS = [
    "(?>a)",
    "(?>ab|c)",
    "a*+",
    "[ab]?+",
    "(?>a+)",
    "(?>b+?)",
    "(?>a|ab)",
    "(?:ab)*+",
    "a{1,2}+",
    "(?>ca*)",
    "(?>)",
]


def grown(leaf: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.sampled_from(BODIES).map(lambda b: f"({b})")

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.lists(st.one_of(inner, group), min_size=1, max_size=4).map("".join),
            st.lists(st.one_of(inner, group), min_size=2, max_size=3).map(lambda o: f"(?:{'|'.join(o)})"),
            st.tuples(inner, st.sampled_from(["?", "*", "{2}", "{0}"])).map(lambda t: f"(?:{t[0]}){t[1]}"),
            st.tuples(st.sampled_from(["(?=", "(?!", "(", "("]), inner).map(lambda t: f"{t[0]}{t[1]})"),
        )

    return st.recursive(st.one_of(leaf, group), grow, max_leaves=7)


def python_patterns() -> st.SearchStrategy[str]:
    condition = st.tuples(st.sampled_from("12"), st.sampled_from(["a", "b", r"\1", "", "a|b", "|c", r"[ab]|(c)"]))
    atomic = ATOMICS if sys.version_info >= (3, 11) else ["a"]
    return grown(
        st.one_of(
            st.sampled_from(LEAVES),
            st.sampled_from(REFERENCES),
            st.sampled_from(BODIES).map(lambda body: rf"({body})\1"),
            condition.map(lambda c: f"(?({c[0]}){c[1]})"),
            st.sampled_from(atomic),
        )
    )


def compared(pattern: str, flags: int = 0) -> bool:
    """Whether the pattern was taken; then it agrees with `re` on all texts."""
    try:
        judge = re.compile(pattern, flags)
    except re.error:
        with pytest.raises(RegexError):
            pattern_ir(pattern, flags=flags)
        return False
    try:
        full, search = (pattern_ir(pattern, match=m, flags=flags) for m in ("full", "search"))
    except RegexError as error:
        assert "not supported" in str(error), (pattern, str(error))
        return False
    for text in TEXTS:
        assert matches(full, text) == (judge.fullmatch(text) is not None), (pattern, text)
        assert matches(search, text) == (judge.search(text) is not None), (pattern, text)
    return True


@settings(max_examples=400, deadline=None)
@given(python_patterns())
def test_references_are_those_of_re(pattern: str) -> None:
    compared(pattern)


def test_each_kind_is_drawn_and_taken_often_enough() -> None:
    taken: Counter[str] = Counter()

    @settings(max_examples=1000, deadline=None, database=None, derandomize=True)
    @given(python_patterns())
    def draw(pattern: str) -> None:
        try:
            pattern_ir(pattern)
        except ConstraintError:
            return
        for kind in (r"\1", r"\2", "(?(1)", "(?>", "+"):
            taken[kind] += kind in pattern

    draw()
    assert all(n >= 12 for n in taken.values()) and len(taken) == 5, taken


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a|b)\1",
        r"(?:(?(2)a)|(?:(a)\1){0}|(a)\1)",
        r"(a)?\1b",
        r"(?:(a)|b)\1",
        r"(?P<q>[ab]).*(?P=q)",
        r"((a)|b)\1\2",
        r"(a|b)(c|a)\1\2",
        r"(?:(a|b)\1)*c",
        r"(a|ab)(c|\1)\2",
        r"(a|)b\1",
        r"(a?b?)\1",
        r"(?:(a|b)|c)(?:\1|c)",
        r"(?=(a|b)\1)..c?",
        r"(?!(a|b)\1)...",
        r"(a\b|ab)\1",
        r"(?(1)a|b)(c)",
        r"(a)?(?(1)b|c)",
        r"(?P<n>a)?(?(n)b)",
        r"(?:(a)|b)(?:c(?(1)a|b))*",
        r"(a)?(?=(?(1)(b)|c)\2?).*",
        r"(?:a(?(1)b)){2}|(c)",
    ],
)
def test_by_hand(pattern: str) -> None:
    assert compared(pattern)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="re has them since Python 3.11")
@pytest.mark.parametrize(
    "pattern",
    ["a*+b", "(?:ab)++c?", "(?>ab|c)[ab]", "(?>c?a*)", "a?+$", "a*+(?:b|$)", "(?:a*+b)*", "(?>a(?>b*))c|a", "(?=a++)a"],
)
def test_atomic_parts_that_are_plain(pattern: str) -> None:
    assert compared(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"), [(r"(k)\1", "kK"), (r"(k)\1", "\u212ak"), (r"(s)\1", "ſs"), (r"(İ)\1", "İi")]
)
@pytest.mark.parametrize("flags", [re.I, re.I | re.A, 0])
def test_case_folding_of_back_references(pattern: str, text: str, flags: int) -> None:
    for t in (text, text[::-1], text[0] * 2, text[1] * 2, text.lower(), text.upper()):
        assert matches(pattern_ir(pattern, flags=flags), t) == bool(re.fullmatch(pattern, t, flags)), t


def test_case_folding_holds_for_all_of_unicode() -> None:
    for letter in "aAkKsSſßẞiİıµμΣςσǅéÅ\u212b𐐀":
        everything = [chr(c) for c in [*range(0x2200), *range(0xA640, 0xABFF), *range(0x10400, 0x10450)]]
        judge = re.compile(rf"({letter})(?i:\1)")
        term = pattern_ir(judge.pattern)
        assert [c for c in everything if judge.fullmatch(letter + c)] == [
            c for c in everything if matches(term, letter + c)
        ]


@pytest.mark.parametrize(
    ("dialect", "pattern", "offset", "said"),
    [
        ("python", r"(a*)\1", 4, r"\\1"),
        ("python", r"(?P<n>a)+(?P=n)", 9, "repeat"),
        ("python", r"(?=(a))\1", 7, "lookaround"),
        ("python", r"(?:(a)|b\1)*", 8, "left out"),
        ("python", r"(?:(?(1)a|b)(c))*", 3, "conditional"),
        ("python", r"((a|ab)(?(1)a))", 7, "inside the group"),
        ("python", r"(?:(a))*(?(1)b)", 8, "conditional"),
        ("python", r"(\w)\1", 4, "more than 1000 texts"),
        ("python", "a*+a", 1, r"\*\+"),
        ("python", "(?>a*?)b", 0, r"\(\?>"),
        ("python", "(?>a|ab)c", 0, r"\(\?>"),
        ("ecma", r"^(a*)b\1$", 6, r"\\1"),
        ("ecma", r"(?<=\1(a))", 4, "lookbehind"),
        ("ecma", r"(?<n>a+)\k<n>", 8, r"\\k<n>"),
    ],
)
def test_refusals(dialect: Any, pattern: str, offset: int, said: str) -> None:
    with pytest.raises(RegexError, match=said) as caught:
        pattern_ir(pattern, dialect)
    assert caught.value.location == f"offset {offset}" and caught.value.hint
    assert "not supported" in str(caught.value)


@pytest.mark.parametrize(
    ("dialect", "pattern", "offset"),
    [
        ("python", r"\1(a)", 0),
        ("python", r"(a\1)", 2),
        ("python", "(?P=n)", 0),
        ("python", "(?(2)a)(b)", 0),
        ("python", "(a)(?(1)a|b|c)", 3),
        ("python", "(?(x)a)", 0),
        ("python", "(?(0)a)", 0),
        ("python", "(?(1", 0),
        ("python", r"(?<=(a)\1)b", 7),
        ("ecma", r"\1", 0),
        ("ecma", r"(a)\2", 3),
        ("ecma", r"\k<n>", 0),
        ("ecma", r"(?<n>a)\k", 7),
        ("ecma", r"(?<n>a)\k<m>", 7),
    ],
)
def test_syntax_errors(dialect: Any, pattern: str, offset: int) -> None:
    if dialect == "python":
        with pytest.raises(re.error):
            re.compile(pattern)
    with pytest.raises(RegexError) as caught:
        pattern_ir(pattern, dialect)
    assert caught.value.location == f"offset {offset}" and "not supported" not in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 20_000 + ")" * 20_000 + r"\1",
        r"(a|b)" * 40 + "".join(rf"\{n}" for n in range(1, 41)),
        r"([a-z])" * 3 + r"\3\2\1",
        "(?>" * 20_000 + "a" + ")" * 20_000,
        r"(a|b)\1" * 3000,
        "(?:a|(b))*" * 5000 + r"(?(1)a)",
        r"((a{9}){9}){9}\1",
    ],
    ids=lambda p: p[:8],
)
def test_hostile_references(pattern: str) -> None:
    try:
        assert pattern_ir(pattern).size <= 1_000_000
    except (LimitError, RegexError) as error:
        assert error.location.startswith("offset")


@pytest.fixture(scope="module")
def node() -> Iterator[Any]:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    with judging() as judge:
        yield judge


ECMA_LEAVES = [*LEAVES, r"\1", r"\1", r"\2", "(?<=a|ab)", r"(?<=\1)"]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(grown(st.sampled_from(ECMA_LEAVES)), st.booleans())
def test_node_agrees(node: Any, pattern: str, full: bool) -> None:
    if full:
        pattern = f"^(?:{pattern})$"
    verdicts = node(pattern, TEXTS)
    try:
        term = pattern_ir(pattern, "ecma", "search")
    except RegexError as error:
        assert verdicts is None or "not supported" in str(error), (pattern, str(error))
        return
    assert verdicts is not None, pattern
    assert [matches(term, t) for t in TEXTS] == verdicts, pattern


def test_named_references_of_ecma() -> None:
    for pattern in (r"^(?<q>['`]).*\k<q>$", r"^\k<q>(?<q>['`])$", r"^(?<a>x)?\k<\u0061>$"):
        term = pattern_ir(pattern, "ecma", "search")
        assert matches(term, "'") == ("k<q>(" in pattern), pattern
        assert matches(term, "'x'") == (".*" in pattern) and not matches(term, "'x`"), pattern
