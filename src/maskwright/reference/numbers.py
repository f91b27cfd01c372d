"""Numbers as JSON writes them: all, integers, ranges of integers, and the writings of one value."""

from __future__ import annotations

from decimal import Decimal

from maskwright.reference.language import (
    EMPTY,
    EPSILON,
    Node,
    alt,
    byte_range,
    cat,
    literal,
    one_byte_of,
    optional,
    repeat,
)
from maskwright.reference.ranges import decimal_digit, span

PLAIN_FRACTION = 20  # the most fraction digits of `numbers="plain"`
_DIGIT = one_byte_of(b"0123456789")
_NATURAL = alt(literal(b"0"), cat(byte_range(ord("1"), ord("9")), repeat(_DIGIT, 0, None)))


def number(style: str) -> Node:
    """Any number: RFC 8259, section 6; `plain` has no exponent and at most 20 fraction digits."""
    most = PLAIN_FRACTION if style == "plain" else None
    head = cat(optional(literal(b"-")), _NATURAL, optional(cat(literal(b"."), repeat(_DIGIT, 1, most))))
    if style == "plain":
        return head
    exponent = cat(one_byte_of(b"eE"), optional(one_byte_of(b"+-")), repeat(_DIGIT, 1, None))
    return cat(head, optional(exponent))


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


def integers(low: int | None, high: int | None) -> Node:
    """Integers without a fraction from `low` to `high`; None has no bound. -0 is a JSON number of value 0."""
    positive = naturals(max(low or 0, 0), high) if high is None or high >= 0 else EMPTY
    negative = EMPTY
    if low is None or low <= 0:
        negative = naturals(max(-(high or 0), 0), None if low is None else -low)
    return alt(positive, cat(literal(b"-"), negative))


def writings(value: Decimal, style: str) -> Node:
    """One value as `plain` numbers: trailing zeros may follow it, up to 20 fraction digits in all."""
    sign = literal(b"-") if value < 0 else EPSILON if value else optional(literal(b"-"))
    whole, _, fraction = f"{abs(value):f}".partition(".")
    fraction = fraction.rstrip("0")
    zeros = repeat(literal(b"0"), 0 if fraction else 1, PLAIN_FRACTION - len(fraction))
    tail = cat(literal(b"." + fraction.encode()), zeros)
    return cat(sign, literal(whole.encode()), tail if fraction else optional(tail))
