"""Random patterns of the Python dialect against `re` itself."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.errors import RegexError
from maskwright.grammar.regex import pattern_ir
from unit.grammar.naive import matches

ATOMS = [
    "a",
    "b",
    "c",
    "A",
    ".",
    r"\n",
    r"\d",
    r"\w",
    r"\s",
    r"\W",
    r"\D",
    r"\S",
    "1",
    " ",
    "ſ",
    "K",
    "é",
    "_",
    "ß",
    "İ",
]
CLASSES = [
    "[ab]",
    "[^a]",
    r"[\w]",
    r"[^\s]",
    "[a-c1]",
    r"[\Wa]",
    "[^b\n]",
    "[]a]",
    "[a-]",
    r"[\n-]",
    "[kK]",
    "[^k]",
    r"[\d_s]",
]
ANCHORS = ["^", "$", r"\A", r"\Z"]
QUANTIFIERS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}", "{2,}", "{0}", "{1,3}?", "{,}", "{3}"]
FLAG_GROUPS = ["(?i:", "(?s:", "(?a:", "(?-i:", "(?is:", "(?u:", "(?x: ", "(?s-i:"]
TEXTS = st.text(alphabet="abcAk1 \n_ſKéßİi-\r٣", max_size=6)
FLAGS = st.sampled_from([0, re.I, re.S, re.A, re.I | re.A, re.X, re.I | re.S])


def patterns() -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(ATOMS), st.sampled_from(CLASSES), st.sampled_from(ANCHORS), st.just(""))

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        group = st.tuples(st.sampled_from(["(", "(?:", *FLAG_GROUPS]), inner).map(lambda g: f"{g[0]}{g[1]})")
        return st.one_of(
            st.lists(inner, min_size=1, max_size=3).map("".join),
            st.lists(inner, min_size=1, max_size=3).map("|".join),
            group,
            st.tuples(st.sampled_from(["(?:", "("]), inner, st.sampled_from(QUANTIFIERS)).map(
                lambda q: f"{q[0]}{q[1]}){q[2]}"
            ),
            st.tuples(st.sampled_from(ATOMS + CLASSES), st.sampled_from(QUANTIFIERS)).map("".join),
        )

    return st.recursive(leaf, grow, max_leaves=7)


@settings(max_examples=500, deadline=None)
@given(patterns(), FLAGS, st.lists(TEXTS, min_size=4, max_size=8))
def test_full_and_search_are_those_of_re(pattern: str, flags: int, texts: list[str]) -> None:
    try:
        judge = re.compile(pattern, flags)
    except re.error:  # a blank to repeat, under the flag x
        with pytest.raises(RegexError):
            pattern_ir(pattern, flags=flags)
        return
    full, search = (pattern_ir(pattern, match=m, flags=flags) for m in ("full", "search"))
    for text in texts:
        assert matches(full, text) == (judge.fullmatch(text) is not None), (pattern, flags, text)
        if ("(?u" if flags & re.A else "(?a") in pattern:
            continue  # re.search(r"(?a:\W)", "ß") is None, against its own fullmatch: a bug of CPython both ways
        assert matches(search, text) == (judge.search(text) is not None), (pattern, flags, text)


ANCHORED = st.recursive(
    st.sampled_from(["a", r"\n", "^", "$", r"\Z", "", r"[a\n]", "a?", r"\n?"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda o: f"(?:{'|'.join(o)})"),
        st.tuples(inner, st.sampled_from(QUANTIFIERS)).map(lambda q: f"(?:{q[0]}){q[1]}"),
    ),
    max_leaves=8,
)
SHORT_TEXTS = ["".join(t) for n in range(5) for t in product("a\n", repeat=n)] + ["ab", "b\n"]


@settings(max_examples=500, deadline=None)
@given(ANCHORED)
def test_anchors_anywhere(pattern: str) -> None:
    judge = re.compile(pattern)
    full, search = (pattern_ir(pattern, match=m) for m in ("full", "search"))
    for text in SHORT_TEXTS:
        assert matches(full, text) == (judge.fullmatch(text) is not None), (pattern, text)
        assert matches(search, text) == (judge.search(text) is not None), (pattern, text)


PIECES = [
    *r"ab01,{}[]()|*+?^$.\-:#=<!> 7n",
    "\n",
    "(?:",
    "(?P<n>",
    "(?P<m>",
    "(?i)",
    "(?x)",
    "(?s:",
    "(?-i:",
    "(?a:",
    "(?i-s:",
    "(?#",
    r"\1",
    r"\12",
    r"\012",
    r"\377",
    r"\400",
    r"\x",
    r"\x41",
    r"\u00e9",
    r"\N{DIGIT ONE}",
    r"\q",
    r"\Z",
    r"\b",
    r"\8",
    "[^",
    "[]",
    "(?=",
    "(?<!",
    "(?P=n)",
    "(?(1)",
    "(?>",
    "{2}",
    "{1,2}",
    "{,2}",
    "{2,1}",
    "a*",
    "a+",
    r"\w",
    r"\d-",
    "a-",
    "-b]",
    "a|",
    "(?",
    "(?L)",
    "(?au:",
]
SYNTAX = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)


@settings(max_examples=1500, deadline=None)
@given(SYNTAX, st.sampled_from([0, re.X, re.I]))
def test_legal_exactly_where_re_says_so_or_refused(pattern: str, flags: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            judge = re.compile(pattern, flags)
        except (re.error, OverflowError):
            judge = None
    try:
        term = pattern_ir(pattern, flags=flags)
    except RegexError as error:
        assert error.location.startswith("offset ")
        assert judge is None or "is not supported" in str(error), (pattern, str(error))
        return
    assert judge is not None, pattern
    for text in ("", "a", "b", "ab", "a\n", pattern[:4]):
        assert matches(term, text) == (judge.fullmatch(text) is not None), (pattern, text)


def test_every_construct_is_drawn_often_enough() -> None:
    count: Counter[str] = Counter()

    @settings(max_examples=600, deadline=None, database=None, derandomize=True)
    @given(patterns())
    def draw(pattern: str) -> None:
        found = {
            "anchor": r"[$]|\\[AZ]|(?<!\[)\^",
            "class": r"\[",
            "flag": r"\(\?[aisux-]+:",
            "lazy": r"[*+?}]\?",
            "count": r"\{",
            "alternation": r"\|",
            "escape": r"\\[dDsSwW]",
        }
        count.update(name for name, what in found.items() if re.search(what, pattern))

    draw()
    assert all(n >= 12 for n in count.values()), count
    assert len(count) == 7


@pytest.mark.parametrize("flags", [0, re.I, re.A, re.I | re.A])
def test_classes_hold_for_all_of_unicode(flags: int) -> None:
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    for pattern in (
        r"\w",
        r"\d",
        r"\s",
        r"\W",
        "[a-z]",
        "[^a-z]",
        "k",
        "[^ſ]",
        "[ß-ÿ]",
        r"[\Wk]",
        "İ",
        "[İi]",
        "ǅ",
        "[Α-Ω]",
    ):
        (ranges,) = [pattern_ir(pattern, flags=flags).ranges]  # type: ignore[attr-defined]
        ours = "".join("".join(map(chr, range(lo, hi + 1))) for lo, hi in ranges)
        assert ours == "".join(re.findall(pattern, everything, flags)), pattern
