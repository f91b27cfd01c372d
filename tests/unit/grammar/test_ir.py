from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.grammar.ir import (
    ALL,
    ANY,
    EMPTY,
    EPSILON,
    Alt,
    And,
    Cat,
    Chars,
    Ir,
    Not,
    Repeat,
    chars,
    complement,
    concat,
    intersect,
    intersect_ranges,
    literal,
    merge_ranges,
    negate_ranges,
    one_of,
    optional,
    repeat,
    union,
)
from maskwright.grammar.ir_program import from_program, to_program
from unit.grammar.naive import matches, runs

A, B = literal("a"), literal("b")


def terms() -> st.SearchStrategy[Ir]:
    """Terms built without the normalising helpers."""
    leaf = st.sampled_from([EMPTY, EPSILON, A, B, ANY, ALL, chars([(97, 98)]), literal("ab")])

    def grow(inner: st.SearchStrategy[Ir]) -> st.SearchStrategy[Ir]:
        parts = st.lists(inner, min_size=1, max_size=3).map(tuple)
        bounds = st.tuples(st.integers(0, 3), st.none() | st.integers(0, 3))
        return st.one_of(
            parts.map(Cat),
            parts.map(Alt),
            parts.map(And),
            inner.map(Not),
            st.tuples(inner, bounds).map(
                lambda t: Repeat(t[0], t[1][0], None if t[1][1] is None else t[1][0] + t[1][1])
            ),
        )

    return st.recursive(leaf, grow, max_leaves=6)


def normal(term: Ir) -> Ir:
    """The same language, built by the helpers."""
    parts = [normal(child) for child in term.children]
    if isinstance(term, Repeat):
        return repeat(parts[0], term.min, term.max)
    if isinstance(term, Not):
        return complement(parts[0])
    for kind, helper in ((Cat, concat), (Alt, union), (And, intersect)):
        if isinstance(term, kind) and parts:
            return helper(*parts)
    return term


TEXTS = ["", "a", "b", "ab", "ba", "aa", "aab", "abab", "c", "\U0001f409"]


@settings(max_examples=600, deadline=None)
@given(terms())
def test_helpers_keep_the_language_and_nullability_is_right(term: Ir) -> None:
    other = normal(term)
    for text in TEXTS:
        assert matches(term, text) == matches(other, text) == runs(other, text), text
    assert term.nullable == matches(term, "") and other.nullable == term.nullable
    assert term.size == 1 + sum(c.size for c in term.children)


@settings(max_examples=300, deadline=None)
@given(terms(), terms())
def test_programs_pickles_and_equality(one: Ir, other: Ir) -> None:
    again = from_program(to_program(one))
    assert again == one and hash(again) == hash(one) and pickle.loads(pickle.dumps(one)) == one
    assert (one == other) == (to_program(one) == to_program(other))
    assert one != "a"


def test_program_of_each_operator() -> None:
    assert list(to_program(EMPTY)) == [0] and list(to_program(EPSILON)) == [1]
    assert list(to_program(one_of("ac"))) == [2, 2, 97, 97, 99, 99]
    assert list(to_program(concat(A, repeat(B, 2)))) == [2, 1, 97, 97, 2, 1, 98, 98, 5, 2, -1, 3, 2]
    assert list(to_program(And((A, Not(B))))) == [2, 1, 97, 97, 2, 1, 98, 98, 7, 6, 2]
    assert list(to_program(Alt((A, Repeat(B, 0, 7))))) == [2, 1, 97, 97, 2, 1, 98, 98, 5, 0, 7, 4, 2]


RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda r: (r[0], r[0] + r[1])))


@given(RANGES, RANGES)
def test_ranges_are_sets(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    def members(ranges: object) -> set[int]:
        return {c for lo, hi in ranges for c in range(lo, hi + 1)}  # type: ignore[attr-defined]

    left, right = merge_ranges(one), merge_ranges(other)
    assert members(left) == members(one)
    assert all(a[1] + 1 < b[0] for a, b in pairwise(left))
    assert members(intersect_ranges(left, right)) == members(one) & members(other)
    rest = negate_ranges(left)
    assert intersect_ranges(rest, left) == () and merge_ranges([*rest, *left]) == ANY.ranges


def test_surrogates_are_no_characters() -> None:
    assert ANY.ranges == ((0, 0xD7FF), (0xE000, 0x10FFFF))
    assert chars([(0xD800, 0xDFFF)]) == EMPTY and literal("a\ud800") == EMPTY
    assert merge_ranges([(0xD000, 0xE000)]) == ((0xD000, 0xD7FF), (0xE000, 0xE000))
    assert negate_ranges(((0, 0xD7FF),)) == ((0xE000, 0x10FFFF),)


def test_normal_forms() -> None:
    assert union(A, B) == Chars(((97, 98),)) and union() == EMPTY and concat() == EPSILON and concat(A, EMPTY) == EMPTY
    assert repeat(repeat(A)) == repeat(A) and repeat(repeat(A, 1), 2, 3) == repeat(A, 2)
    assert repeat(A, 1, 1) is A and repeat(A, 0, 0) == EPSILON and repeat(A, 3, 2) == EMPTY
    assert repeat(A, 5, 99_999_999).size == 2
    assert optional(repeat(A)) == repeat(A) and optional(A) == repeat(A, 0, 1)
    assert complement(complement(A)) == A and complement(EMPTY) == ALL and intersect(A, ALL) == A
    assert intersect(A, B) == EMPTY and intersect() == ALL


def test_nodes_are_immutable() -> None:
    with pytest.raises(AttributeError):
        A.ranges = ()  # type: ignore[attr-defined]


def test_nesting_costs_no_recursion() -> None:
    term = other = EPSILON
    for _ in range(20_000):
        term, other = Cat((Alt((term, B)), A)), Cat((Alt((other, B)), A))
    assert term == other and hash(term) == hash(other) and term.size == 80_001
    assert pickle.loads(pickle.dumps(term)) == term and "80001" in repr(term)
