"""Lookarounds, word boundaries and line anchors against `re` itself."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.errors import LimitError, RegexError
from maskwright.grammar.automata import automaton
from maskwright.grammar.regex import pattern_ir

TEXTS = ["".join(t) for n in range(4) for t in product("ab \n", repeat=n)] + ["abab", "ab a", "a\nb\n", "éa", "aab b"]
LEAVES = ["a", "b", ".", " ", r"\n", "[ab]", "[^a]", r"\w", "a*", "[ab]+", ".*", "b?", "(?:ab)*", r"\W+", "ab", ""]
LOCAL = [r"\b", r"\B", r"\B", "(?m:^)", "(?m:$)", "(?m:$)", "^", "$", r"\Z"]
FIXED = ["a", "b", "ab", "[ab]", ".", r"\n", "^a", "a|b", "..", r"\W", ""]


def patterns() -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(LEAVES), st.sampled_from(LOCAL))
    behind = st.tuples(st.sampled_from(["(?<=", "(?<!"]), st.sampled_from(FIXED)).map(lambda t: f"{t[0]}{t[1]})")

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.lists(st.one_of(inner, inner, behind), min_size=1, max_size=4).map("".join),
            st.lists(inner, min_size=2, max_size=3).map(lambda o: f"(?:{'|'.join(o)})"),
            st.tuples(st.sampled_from(["(?=", "(?!"]), inner).map(lambda t: f"{t[0]}{t[1]})"),
            st.tuples(inner, st.sampled_from(["?", "{2}", "{1,2}", "{0,3}"])).map(lambda t: f"(?:{t[0]}){t[1]}"),
            st.tuples(st.sampled_from(["(?!", "(?="]), inner, st.sampled_from([".)*", "[ab])+$", r"\W){2}$"])).map(
                lambda t: f"(?:{t[0]}{t[1]}){t[2]}"
            ),
        )

    return st.recursive(leaf, grow, max_leaves=6)


@settings(max_examples=300, deadline=None)
@given(patterns())
def test_assertions_are_those_of_re(pattern: str) -> None:
    judge = re.compile(pattern)
    try:
        full, search = (pattern_ir(pattern, match=m) for m in ("full", "search"))
    except RegexError as error:
        assert "not supported" in str(error)
        return
    for text in TEXTS:
        assert automaton(full).matches(text) == (judge.fullmatch(text) is not None), (pattern, text)
        assert automaton(search).matches(text) == (judge.search(text) is not None), (pattern, text)


def test_each_kind_is_drawn_and_taken_often_enough() -> None:
    taken: Counter[str] = Counter()

    @settings(max_examples=600, deadline=None, database=None, derandomize=True)
    @given(patterns())
    def draw(pattern: str) -> None:
        try:
            pattern_ir(pattern, match="search")
        except RegexError:
            taken["refused"] += 1
            return
        for kind in ("(?=", "(?!", "(?<=", "(?<!", r"\b", r"\B", "(?m:^", "(?m:$"):
            taken[kind] += kind in pattern

    draw()
    assert all(n >= 12 for n in taken.values()) and len(taken) == 9, taken
    assert taken["refused"] < 300, taken


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^(?=.*\d)(?=.*[a-z]).{4,8}$", ["ab12", "1aaaaaaa"], ["abcd", "1234", "a1", "abc123456"]),
        (r"^(?!foo)[a-z]+$", ["bar", "fo", "xfoo"], ["foo", "food", ""]),
        (r"^(?=[^=]+$)(?!\s+$)(.|\n)+$", ["a", " a"], ["", " ", "a=b"]),
        (r"^(?!^lucene\.|builtin\.).*", ["", "luceneX"], ["lucene.", "builtin.x"]),
        (r"^([\da-z](?:(?!.*--)[\da-z-]*[\da-z])?)$", ["a", "a-b"], ["a--b", "a-", ""]),
        (r"^((?!mode)(?!Mode).)*$", ["", "mod", "abc"], ["mode", "aMode", "xmodex"]),
        (r"^(?:(?=\b|x).){1,4}$", ["a", "xx"], ["", "ab", "a xy"]),
        (r"^[a-z]+(?<!foo)$", ["bar"], ["foo", "afoo"]),
        (r"\bfoo\b", ["foo", "a foo b", "foo-"], ["afoo", "foo_"]),
        (r"(?<=\$)\d+(?!\d|\.)", ["$12", "a$1b"], ["12", "$x", "$1."]),
        (r"(?<!\d)\d{3}(?!\d)", ["123", "a123b"], ["1234", "12"]),
    ],
)
def test_patterns_of_the_field(pattern: str, good: list[str], bad: list[str]) -> None:
    language = automaton(pattern_ir(pattern, "ecma", "search"))
    assert [t for t in good if not language.matches(t)] == []
    assert [t for t in bad if language.matches(t)] == []


@pytest.mark.parametrize(
    ("pattern", "offset", "said"),
    [
        ("(?:(?!x).)*x", 3, "(?!"),
        ("(?:(?!x)(?!y)..)*", 3, "(?!"),
        (r"(?:a\b)*", 4, r"\\b"),
        ("a(?=b)[ab]+(?<!c)", 1, "(?="),
        ("x(?:a|(?<=x)b)", 6, "(?<="),
        ("(?<=(?=a).)b", 4, "(?="),
        ("(?:a(?=b).){1,99}", 4, "(?="),
    ],
)
def test_refusals(pattern: str, offset: int, said: str) -> None:
    with pytest.raises(RegexError) as caught:
        pattern_ir(pattern)
    error = caught.value
    assert (error.location, said in error.message, bool(error.hint)) == (f"offset {offset}", True, True), str(error)


@pytest.mark.parametrize("pattern", ["(?<=a*)b", "(?<!a|bc)d", "(?<=a{1,2})b"])
def test_lookbehinds_have_one_width(pattern: str) -> None:
    with pytest.raises(re.error):
        re.compile(pattern)
    with pytest.raises(RegexError, match="lengths"):
        pattern_ir(pattern)
    assert pattern_ir(pattern, "ecma").size > 0


@pytest.mark.parametrize(
    "pattern",
    ["(?=" * 20_000 + ")" * 20_000, "(?:a|" * 5000 + r"\b" + ")" * 5000, r"(?:\ba?){30}" * 200, r"(?:\b|a)" * 300],
    ids=lambda p: p[:8],
)
def test_hostile_assertions(pattern: str) -> None:
    try:
        assert pattern_ir(pattern, match="search").size <= 1_000_000
    except (LimitError, RegexError) as error:
        assert error.location.startswith("offset")
