"""JSON numbers as regular terms: all of them, and those between two bounds, compared digit by digit.

The syntax is RFC 8259, section 6: ``-?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?``. Ranges are by value and without
exponents (with them the writings of one value are not a regular set: ``1 0^n e-n``). "-0" is a number of value 0 and
stands wherever 0 does. Terms have O(digits of the bounds) nodes, and bounds may have any number of digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from maskwright.grammar.fractions import Part, fraction_tail
from maskwright.grammar.ir import EMPTY, EPSILON, Ir, chars, concat, literal, one_of, optional, repeat, union

Number = int | Decimal
PLAIN_FRACTION_DIGITS = 20

_DIGIT = chars([(48, 57)])
_NONZERO = chars([(49, 57)])
_ZERO, _DOT, _MINUS = literal("0"), literal("."), literal("-")
_NATURAL = union(_ZERO, concat(_NONZERO, repeat(_DIGIT)))
_ZEROS = optional(concat(_DOT, repeat(_ZERO, 1)))


@lru_cache(maxsize=2)  # one term, so that it is found again by identity
def json_number(full: bool) -> Ir:
    """Any number; `full` with exponents and any number of fraction digits, else without and at most 20."""
    if not full:
        return concat(optional(_MINUS), _NATURAL, _fraction(PLAIN_FRACTION_DIGITS))
    exponent = concat(one_of("eE"), optional(one_of("+-")), repeat(_DIGIT, 1))
    return concat(optional(_MINUS), _NATURAL, _fraction(None), optional(exponent))


@lru_cache(maxsize=2)
def json_integer(full: bool) -> Ir:
    """Any integer; `full` also with a fraction of zeros and an exponent that keeps it an integer whatever its digits.

    Left out of `full`, because their set is not regular: exponents that move a fraction (1.5e1) or eat zeros (10e-1).
    """
    if not full:
        return concat(optional(_MINUS), _NATURAL)
    up = concat(one_of("eE"), union(concat(optional(one_of("+")), repeat(_DIGIT, 1)), concat(_MINUS, repeat(_ZERO, 1))))
    down = concat(one_of("eE"), _MINUS, repeat(_DIGIT, 1))
    return concat(optional(_MINUS), union(concat(_NATURAL, _ZEROS, optional(up)), concat(_ZERO, _ZEROS, down)))


@lru_cache(maxsize=512)
def integer_range(lo: int | None, hi: int | None, *, full: bool = False) -> Ir:
    """The integers from `lo` to `hi`; None has no bound. `full` also with a fraction of zeros. No exponents."""
    low = None if lo is None else (Decimal(lo), False)
    high = None if hi is None else (Decimal(hi), False)
    tail = _ZEROS if full else EPSILON
    return _signed(low, high, _Tail(tail, lambda lo, hi: tail))


@lru_cache(maxsize=512)
def decimal_range(
    lo: Number | None,
    lo_exclusive: bool,
    hi: Number | None,
    hi_exclusive: bool,
    max_fraction_digits: int | None = PLAIN_FRACTION_DIGITS,
) -> Ir:
    """The numbers between `lo` and `hi` by value; None has no bound.

    Args:
        lo: the lower bound.
        lo_exclusive: it does not belong to the range itself.
        hi: the upper bound.
        hi_exclusive: it does not belong to the range itself.
        max_fraction_digits: the most digits after the point; None has no bound.
    """
    low = None if lo is None else (Decimal(lo), lo_exclusive)
    high = None if hi is None else (Decimal(hi), hi_exclusive)
    tail = _Tail(_fraction(max_fraction_digits), lambda lo, hi: fraction_tail(lo, hi, max_fraction_digits))
    return _signed(low, high, tail)


def _fraction(most: int | None) -> Ir:
    return optional(concat(_DOT, repeat(_DIGIT, 1, most))) if most != 0 else EPSILON


@dataclass(frozen=True)
class _Tail:
    """What may follow the digits before the point: anything once they decided, else what the bounds' fractions say."""

    any: Ir
    between: Callable[[Part | None, Part | None], Ir]


# A bound of magnitudes: its digits before the point, those after it (no trailing zeros), and whether it is excluded.
_Bound = tuple[str, str, bool]
_Signed = tuple[Decimal, bool]


def _signed(lo: _Signed | None, hi: _Signed | None, tail: _Tail) -> Ir:
    """Numbers with a sign: two ranges of magnitudes."""
    for bound in (lo, hi):
        if bound is not None and not bound[0].is_finite():
            raise ValueError(f"a bound is a finite number, not {bound[0]}")
    positive = negative = EMPTY
    if hi is None or hi[0] > 0 or (hi[0] == 0 and not hi[1]):
        positive = _magnitudes(_bound(lo), None if hi is None else _bound(hi), tail)
    if lo is None or lo[0] < 0 or (lo[0] == 0 and not lo[1]):
        negative = _magnitudes(_bound(_negated(hi)), None if lo is None else _bound(_negated(lo)), tail)
    return union(positive, concat(_MINUS, negative))


def _negated(bound: _Signed | None) -> _Signed | None:
    # copy_negate: the minus operator would round to the precision of the context.
    return None if bound is None else (bound[0].copy_negate(), bound[1])


def _bound(bound: _Signed | None) -> _Bound:
    """A bound of magnitudes; below zero there is none to keep to."""
    if bound is None or bound[0] < 0:
        return "0", "", False
    whole, _, fraction = f"{bound[0].copy_abs():f}".partition(".")
    return whole.lstrip("0") or "0", fraction.rstrip("0"), bound[1]


def _magnitudes(lo: _Bound, hi: _Bound | None, tail: _Tail) -> Ir:
    """The numerals between two bounds, by the number of digits before the point."""
    size = len(lo[0])
    if hi is None:
        longer = concat(_NONZERO, repeat(_DIGIT, size), tail.any)
        return union(_same_length(lo, None, tail), longer)
    if len(hi[0]) < size:
        return EMPTY
    if len(hi[0]) == size:
        return _same_length(lo, hi, tail)
    parts = [_same_length(lo, None, tail), _same_length(None, hi, tail)]
    if len(hi[0]) > size + 1:
        parts.append(concat(_NONZERO, repeat(_DIGIT, size, len(hi[0]) - 2), tail.any))
    return union(*parts)


def _same_length(lo: _Bound | None, hi: _Bound | None, tail: _Tail) -> Ir:
    """The numerals with as many digits before the point as the bounds given."""
    size = len((lo or hi or ("", ""))[0])
    low = lo[0] if lo else "0" if size == 1 else "1" + "0" * (size - 1)
    high = hi[0] if hi else "9" * size
    if low > high:
        return EMPTY
    same = next((at for at in range(size) if low[at] != high[at]), size)
    if same == size:
        return concat(literal(low), tail.between(lo and lo[1:], hi and hi[1:]))
    above, below = tail.between(lo and lo[1:], None), tail.between(None, hi and hi[1:])
    for at in range(size - 1, same, -1):
        rest = concat(repeat(_DIGIT, size - at - 1, size - at - 1), tail.any)
        above = union(concat(literal(low[at]), above), concat(_digits(low[at], "9", 1, 0), rest))
        below = union(concat(literal(high[at]), below), concat(_digits("0", high[at], 0, -1), rest))
    rest = concat(repeat(_DIGIT, size - same - 1, size - same - 1), tail.any)
    between = concat(_digits(low[same], high[same], 1, -1), rest)
    decided = union(concat(literal(low[same]), above), between, concat(literal(high[same]), below))
    return concat(literal(low[:same]), decided)


@lru_cache(maxsize=512)
def _digits(first: str, last: str, after: int, before: int) -> Ir:
    lo, hi = ord(first) + after, ord(last) + before
    return chars([(lo, hi)]) if lo <= hi else EMPTY
