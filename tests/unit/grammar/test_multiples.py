"""Multiples of a number between bounds, against arithmetic with fractions."""

from __future__ import annotations

import pickle
import random
import re
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest

from maskwright.grammar.automata import automaton
from maskwright.grammar.ir import Multiple, concat, literal
from maskwright.grammar.ir_program import from_program, to_program
from maskwright.grammar.multiples import Bound, ends, grid_of, is_multiple, multiples

NUMERAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
SHORT = [t for n in range(1, 6) for t in map("".join, product("-01259.", repeat=n)) if NUMERAL.fullmatch(t)]
STEPS = ("1", "2", "3", "7", "12", "100", "3e3", "0.5", "1.5", "0.25", "0.1", "0.03", "0.123456789", "1e-8")


def fits(text: str, step: Decimal, low: Bound | None, high: Bound | None, room: int | None) -> bool:
    value = Fraction(text)
    above = low is None or value > Fraction(low[0]) or (value == low[0] and not low[1])
    below = high is None or value < Fraction(high[0]) or (value == high[0] and not high[1])
    places = len(text.partition(".")[2])
    return above and below and value % Fraction(step) == 0 and (room is None or places <= room)


def bound(rng: random.Random, step: Decimal) -> Bound | None:
    if rng.random() < 0.3:
        return None
    value = Decimal(rng.randint(-130, 1300)) / 10 ** rng.randint(0, 3)
    return rng.randint(-3, 3) * step if rng.random() < 0.3 else value, rng.random() < 0.4


@pytest.mark.parametrize("text", STEPS)
def test_multiples_between_bounds(text: str) -> None:
    step = Decimal(text)
    rng, grid = random.Random(text), grid_of([step])
    some = [f"{step * n:f}" for n in (*range(-12, 13), 37, 999, 12345)]
    some += [text + ("0" if "." in text else ".00") for text in some]
    inside = 0
    for _ in range(40):
        low, high = bound(rng, step), bound(rng, step)
        room = rng.choice([None, 20, grid.scale, grid.scale + 1])
        regex = automaton(multiples(grid, low, high, room))
        for text in [*rng.sample(SHORT, 200), *filter(NUMERAL.fullmatch, some)]:
            inside += fits(text, step, low, high, room)
            assert regex.matches(text) == fits(text, step, low, high, room), (low, high, room, text)
        first, last = ends(grid.step, low, high)
        assert regex.is_empty == (first is not None and last is not None and first > last)
    assert inside > 100


def test_no_numeral_before_its_first_digit_or_after_its_last() -> None:
    regex = automaton(multiples(grid_of([3]), None, None, None))
    for text in ("", "-", "03", "00", "-03", "3.", ".0", "3.0.0", "+3", "3e0", "3.00x", " 3"):
        assert not regex.matches(text), text
    assert all(map(regex.matches, ("0", "-0", "-0.000", "3", "3.00")))


def test_digits_before_the_point_are_limited() -> None:
    regex = automaton(multiples(grid_of([7]), (Decimal(10), False), None, 0, most=4))
    assert regex.matches("9996") and not regex.matches("10003") and not regex.matches("7")


def test_bounds_of_many_digits() -> None:
    low, high = 7 * 10**4000 + 1, 7 * 10**4000 + 13
    regex = automaton(multiples(grid_of([7]), (low, False), (high, False), 0))
    text = "7" + "0" * 3999
    assert regex.matches(text + "7") and not regex.matches(text + "0") and not regex.matches(text + "8")


def test_common_multiples() -> None:
    assert grid_of([4, 6]) == grid_of([12]) and grid_of([Decimal("0.5"), Decimal("0.3")]) == grid_of([Decimal("1.5")])
    assert grid_of([Decimal("1E+2")]).step == 100 and grid_of([Decimal("1e-8"), 1]).step == 1
    assert grid_of([Decimal("0.70")]).step == Fraction(7, 10)
    assert not grid_of([10**19]).is_small_enough and grid_of([10**18]).is_small_enough


def test_no_rounding() -> None:
    assert is_multiple(Decimal("0.70"), Decimal("0.0001")) and is_multiple(10**400, Decimal("0.5"))
    assert not is_multiple(Decimal("0.00751"), Decimal("0.0001"))
    assert not is_multiple(10**400 + 1, 2)


def test_the_leaf_is_a_term_like_others() -> None:
    leaf = Multiple(7, 2, 3, 1, None, 20, -1)
    whole = concat(literal("-"), leaf)
    for term in (leaf, whole, Multiple(7, 2, 3, 0, 0, None, 1)):
        assert from_program(to_program(term)) == term and pickle.loads(pickle.dumps(term)) == term
        assert hash(from_program(to_program(term))) == hash(term)
    assert leaf != Multiple(7, 2, 4, 1, None, 20, -1)
    assert not leaf.nullable and Multiple(7, 2, 0, 0, 0, None, 1).nullable
    assert not Multiple(7, 2, 0, 0, 0, None, 0).nullable
