"""Digit strings between two bounds: decimals, UTF-8, hexadecimal escapes and surrogate pairs are all of this kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from maskwright.reference.language import EMPTY, EPSILON, Node, alt, byte_range, cat, one_byte_of

# The language of one digit, at a position counted from the right, between two values (both included).
Digit = Callable[[int, int, int], Node]


def between(low: Sequence[int], high: Sequence[int], radix: int, digit: Digit) -> Node:
    """All strings of as many digits as `low` and `high` have (the same number), whose value lies between theirs.

    Digits run from 0 to radix-1, the most significant first. Either the first digits of the bounds agree, or the text
    leaves one of the bounds behind: low digit then at least the rest, a digit in between then anything, high digit
    then at most the rest.
    """
    if not low:
        return EPSILON
    if list(low) > list(high):
        return EMPTY
    place = len(low) - 1
    zeros, nines = [0] * place, [radix - 1] * place
    if low[0] == high[0]:
        return cat(digit(place, low[0], low[0]), between(low[1:], high[1:], radix, digit))
    inner = EMPTY
    if low[0] + 1 <= high[0] - 1:
        inner = cat(digit(place, low[0] + 1, high[0] - 1), between(zeros, nines, radix, digit))
    elif low[1:] == zeros and high[1:] == nines:
        return cat(digit(place, low[0], high[0]), between(zeros, nines, radix, digit))
    return alt(
        cat(digit(place, low[0], low[0]), between(low[1:], nines, radix, digit)),
        inner,
        cat(digit(place, high[0], high[0]), between(zeros, high[1:], radix, digit)),
    )


def digits_of(value: int, radix: int, count: int) -> list[int]:
    """The last `count` digits of a value, the most significant first."""
    return [value // radix**place % radix for place in reversed(range(count))]


def span(low: int, high: int, radix: int, count: int, digit: Digit) -> Node:
    """`between` for two numbers below radix**count."""
    return between(digits_of(low, radix, count), digits_of(high, radix, count), radix, digit)


def decimal_digit(_place: int, low: int, high: int) -> Node:
    """A decimal digit."""
    return byte_range(ord("0") + low, ord("0") + high)


def hex_digit(_place: int, low: int, high: int) -> Node:
    """A hexadecimal digit in either case."""
    return one_byte_of("".join(f"{d:x}{d:X}" for d in range(low, high + 1)).encode())
