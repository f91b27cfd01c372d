"""Numbers as JSON writes them: all, those between two bounds, and the writings of one value."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal

from maskwright.reference.language import (
    EMPTY,
    EPSILON,
    Node,
    alt,
    byte_range,
    cat,
    intersect,
    is_empty,
    literal,
    one_byte_of,
    optional,
    repeat,
)
from maskwright.reference.ranges import decimal_digit, span

PLAIN_FRACTION = 20  # the most fraction digits of `numbers="plain"`
_DIGIT = one_byte_of(b"0123456789")
_ZERO = literal(b"0")
_NATURAL = alt(_ZERO, cat(byte_range(ord("1"), ord("9")), repeat(_DIGIT, 0, None)))

Bound = tuple[Decimal, bool]  # a value, and whether it is excluded itself


def number(style: str) -> Node:
    """Any number: RFC 8259, section 6; `plain` has no exponent and at most 20 fraction digits."""
    fraction = optional(cat(literal(b"."), repeat(_DIGIT, 1, PLAIN_FRACTION if style == "plain" else None)))
    exponent = EPSILON if style == "plain" else _exponent(b"+-")
    return cat(optional(literal(b"-")), _NATURAL, fraction, exponent)


def integer(style: str) -> Node:
    """Any integer. `plain` has no fraction.

    `full` has zeros as its fraction, and an exponent that makes no fraction whatever digits stand before it: not
    negative, or zero; any where all digits are zeros. (1.5e1 and 10e-1 are integers too, but the texts of integers are
    no regular language.)
    """
    sign = optional(literal(b"-"))
    if style == "plain":
        return cat(sign, _NATURAL)
    zeros = optional(cat(literal(b"."), repeat(_ZERO, 1, None)))
    minus_zero = cat(one_byte_of(b"eE"), literal(b"-"), repeat(_ZERO, 1, None))
    whole = cat(_NATURAL, zeros, alt(_exponent(b"+"), minus_zero))
    return cat(sign, alt(whole, cat(_ZERO, zeros, _exponent(b"+-"))))


def _exponent(signs: bytes) -> Node:
    return optional(cat(one_byte_of(b"eE"), optional(one_byte_of(signs)), repeat(_DIGIT, 1, None)))


def places(whole: bool, style: str, most: int = PLAIN_FRACTION) -> Node:
    """The digits that may stand after the point, with none of them there is no point."""
    if whole:
        return EPSILON if style == "plain" else repeat(_ZERO, 0, None)
    return repeat(_DIGIT, 0, most if style == "plain" else None)


def between(low: Bound | None, high: Bound | None, fraction: Node) -> Node:
    """Numbers without exponent between two bounds (None: no bound) that have one of `places`; -0 has the value 0."""
    positive = EMPTY if high is not None and high[0] < 0 else _magnitudes(_at_least_zero(low), high, fraction)
    negative = EMPTY
    if low is None or low[0] <= 0:
        mirrored = None if high is None else (-high[0], high[1])
        negative = _magnitudes(_at_least_zero(mirrored), None if low is None else (-low[0], low[1]), fraction)
    return alt(positive, cat(literal(b"-"), negative))


def fits(value: Decimal, low: Bound | None, high: Bound | None) -> bool:
    """Whether a value lies between two bounds."""
    above = low is None or value > low[0] or (value == low[0] and not low[1])
    return above and (high is None or value < high[0] or (value == high[0] and not high[1]))


def _at_least_zero(low: Bound | None) -> Bound:
    return (Decimal(0), False) if low is None or low[0] < 0 else low


def _magnitudes(low: Bound, high: Bound | None, fraction: Node) -> Node:
    """Unsigned numbers between two bounds, the lower of which is not negative."""
    if high is not None and (high[0] < low[0] or (high[0] == low[0] and (low[1] or high[1]))):
        return EMPTY
    first, above = int(low[0].to_integral_value(ROUND_FLOOR)), _above(_digits(low[0]), low[1])
    if high is None:
        return alt(_number(first, first, above, fraction), cat(naturals(first + 1, None), _tail(fraction)))
    last, below = int(high[0].to_integral_value(ROUND_FLOOR)), _below(_digits(high[0]), high[1])
    if first == last:
        return _number(first, first, above, below, fraction)
    return alt(
        _number(first, first, above, fraction),
        _number(first + 1, last - 1, fraction),
        _number(last, last, below, fraction),
    )


def _digits(value: Decimal) -> str:
    return f"{value:f}".partition(".")[2].rstrip("0")


def _number(low: int, high: int, *digits: Node) -> Node:
    """An integer from `low` to `high`, then a point and digits that belong to all of `digits`."""
    return cat(naturals(low, high), _tail(intersect(*digits)))


def _tail(digits: Node) -> Node:
    some = intersect(digits, repeat(_DIGIT, 1, None))
    return alt(EPSILON if digits.nullable else EMPTY, EMPTY if is_empty(some) else cat(literal(b"."), some))


def _above(fraction: str, strict: bool) -> Node:
    """Digit strings D with 0.D at least (strictly more than) 0.`fraction`, of any length."""
    every = repeat(_DIGIT, 0, None)
    if not fraction:
        return cat(repeat(_ZERO, 0, None), byte_range(ord("1"), ord("9")), every) if strict else every
    digit = int(fraction[0])
    more = cat(byte_range(ord("0") + digit + 1, ord("9")), every)
    return alt(more, cat(decimal_digit(0, digit, digit), _above(fraction[1:], strict)))


def _below(fraction: str, strict: bool) -> Node:
    """Digit strings D with 0.D at most (strictly less than) 0.`fraction`, of any length."""
    if not fraction:
        return EMPTY if strict else repeat(_ZERO, 0, None)
    digit = int(fraction[0])
    less = cat(byte_range(ord("0"), ord("0") + digit - 1), repeat(_DIGIT, 0, None))
    return alt(EPSILON, less, cat(decimal_digit(0, digit, digit), _below(fraction[1:], strict)))


def naturals(low: int, high: int | None) -> Node:
    """Decimals without leading zeros from `low` (at least 0) to `high`; no bound where that is None."""
    if high is not None and high < low:
        return EMPTY
    longest = len(str(low if high is None else high))
    parts = []
    for count in range(len(str(low)), longest + 1):
        least = max(low, 10 ** (count - 1) if count > 1 else 0)
        most = 10**count - 1 if high is None else min(high, 10**count - 1)
        parts.append(span(least, most, 10, count, decimal_digit))
    if high is None:
        parts.append(cat(byte_range(ord("1"), ord("9")), repeat(_DIGIT, longest, None)))
    return alt(*parts)


def writings(value: Decimal, style: str) -> Node:
    """One value without exponent, and zeros after it: to 20 fraction digits in all with `plain` numbers."""
    most = max(PLAIN_FRACTION, len(_digits(value)))
    return between((value, False), (value, False), places(False, style, most))
