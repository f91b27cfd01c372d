"""Ranges of JSON numbers against comparison of their values."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.grammar.digits import decimal_range, integer_range, json_integer, json_number
from unit.grammar.naive import runs as matches

PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]{1,20})?")
FULL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
SHORT = ["".join(t) for n in range(6) for t in product("-019.", repeat=n)]


def inside(text: str, lo: Decimal | None, low_open: bool, hi: Decimal | None, high_open: bool) -> bool:
    value = Decimal(text)
    return (lo is None or value > lo or (value == lo and not low_open)) and (
        hi is None or value < hi or (value == hi and not high_open)
    )


def test_numbers_without_bounds() -> None:
    for text in [*SHORT, "1e5", "-0.5E-10", "1e", "1e+", "0." + "1" * 20, "0." + "1" * 21]:
        assert matches(json_number(False), text) == (PLAIN.fullmatch(text) is not None)
        assert matches(json_number(True), text) == (FULL.fullmatch(text) is not None)


BOUNDS = st.one_of(
    st.none(),
    st.integers(-130, 130).map(Decimal),
    st.decimals(-120, 120, places=1),
    st.decimals(-12, 12, places=3),
    st.sampled_from([Decimal(t) for t in ("0", "-0", "0.0", "100", "99.99", "1.50", "-1E+1", "0.001")]),
)
NUMERALS = st.from_regex(r"-?(0|[1-9][0-9]{0,2})(\.[0-9]{1,4})?", fullmatch=True)


def near(bound: Decimal | None) -> list[str]:
    """Writings of the bound and of its close neighbours."""
    if bound is None:
        return ["0", "-0", "7", "-3.5", "1000"]
    texts = [f"{bound + Decimal(d):f}" for d in ("0", "1", "-1", "0.1", "-0.1", "0.001", "-0.001", "10", "-10")]
    return texts + [t + "0" if "." in t else t + ".00" for t in texts]


@settings(max_examples=400, deadline=None)
@given(BOUNDS, st.booleans(), BOUNDS, st.booleans(), st.sampled_from([None, 0, 1, 2, 4, 20]), st.lists(NUMERALS))
def test_decimal_ranges(
    lo: Decimal | None, low_open: bool, hi: Decimal | None, high_open: bool, most: int | None, texts: list[str]
) -> None:
    term = decimal_range(lo, low_open, hi, high_open, most)
    for text in [*texts, *near(lo), *near(hi)]:
        fits = most is None or len(text.partition(".")[2]) <= most
        assert matches(term, text) == (fits and inside(text, lo, low_open, hi, high_open)), text
    assert term.size < 3000


def test_decimal_ranges_by_brute_force() -> None:
    bounds = [None, *map(Decimal, ("-1.1", "-1", "-0.9", "0", "0.01", "0.1", "0.9", "1", "1.01", "9.1", "10", "11"))]
    texts = [t for t in SHORT if PLAIN.fullmatch(t)]
    for lo, hi in product(bounds, repeat=2):
        for low_open, high_open in product((False, True), repeat=2):
            term = decimal_range(lo, low_open, hi, high_open, 2)
            for text in texts[:: 7 if low_open or high_open else 3]:
                fits = len(text.partition(".")[2]) <= 2
                assert matches(term, text) == (fits and inside(text, lo, low_open, hi, high_open)), (lo, hi, text)


@settings(max_examples=300, deadline=None)
@given(st.none() | st.integers(-1200, 1200), st.none() | st.integers(-1200, 1200), st.booleans())
def test_integer_ranges(lo: int | None, hi: int | None, full: bool) -> None:
    term = integer_range(lo, hi, full=full)
    around = {v + d for v in (lo, hi, 0) if v is not None for d in (-100, -10, -1, 0, 1, 10, 100, 999)}
    for value in around:
        fits = (lo is None or lo <= value) and (hi is None or value <= hi)
        assert matches(term, str(value)) == fits
        assert matches(term, f"{value}.0") == (fits and full)
        assert not matches(term, f"{value}.1")
        assert not matches(term, f"0{value}")
    assert matches(term, "-0") == ((lo is None or lo <= 0) and (hi is None or hi >= 0))


def test_bounds_of_any_size() -> None:
    big = 10**1000 + 7
    term = integer_range(-big, big)
    digits = f"{Decimal(big):f}"
    assert matches(term, digits) and matches(term, "-" + digits) and not matches(term, digits[:-1] + "8")
    assert term.size < 100_000
    small = Decimal("0." + "0" * 300 + "1")
    term = decimal_range(small, True, None, False, None)
    assert not matches(term, f"{small:f}") and matches(term, f"{small:f}1") and not matches(term, "0.0")
    assert not matches(decimal_range(small, False, small, False), f"{small:f}")


def test_integers_in_full() -> None:
    term = json_integer(True)
    for text in ("0", "-0", "12", "1.0", "1.000", "1e2", "1E+2", "1.0e3", "5e0", "5e-0", "0e-7", "-0.0E-1"):
        assert matches(term, text) and Decimal(text) % 1 == 0, text
    for text in ("01", "1.", "1.5", "1e-1", "1.5e1", "10e-1", "+1", "e1", ".0", "1e", "--1"):
        assert not matches(term, text), text


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity"])
def test_bounds_are_finite(bad: str) -> None:
    with pytest.raises(ValueError, match="finite"):
        decimal_range(Decimal(bad), False, None, False)
