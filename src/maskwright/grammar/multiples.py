"""Multiples of a number as regular terms: JSON numerals without exponents, by value, between two bounds.

A multiple of p/10^k is a whole number of units of 10^-k that p divides, so all bounds are moved to the nearest
multiples, and then numerals are compared digit by digit, as ranges are (`digits`). Once the digits read decide that
comparison, what may follow depends on their remainder alone (`ir.Multiple`, which the core reads arithmetically). So a
term has O(digits of the bounds) nodes whatever p is, and is empty exactly where no multiple lies between the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from maskwright.grammar.ir import EMPTY, EPSILON, MAX_MODULUS, Ir, Multiple, concat, literal, union

Number = int | Decimal
Bound = tuple[Number, bool]  # and whether it is excluded itself

_MAX_SCALE = 4400


@dataclass(frozen=True)
class Grid:
    """The multiples of modulus / 10^scale, in lowest terms."""

    modulus: int
    scale: int

    @property
    def step(self) -> Fraction:
        """The number that they are multiples of."""
        return Fraction(self.modulus, 10**self.scale)

    @property
    def is_small_enough(self) -> bool:
        """Whether the core can count by it."""
        return self.modulus <= MAX_MODULUS and self.scale <= _MAX_SCALE


def grid_of(steps: Iterable[Number | Fraction]) -> Grid:
    """The common multiples of positive decimal numbers. Exact, in integers of any size."""
    fractions = [Fraction(step) for step in steps]
    common = Fraction(lcm(*(f.numerator for f in fractions)), gcd(*(f.denominator for f in fractions)))
    scale, unit = 0, common.denominator
    while 10**scale % unit:
        scale += 1
    return Grid(common.numerator * (10**scale // unit), scale)


def is_multiple(value: Number | Fraction, step: Number | Fraction) -> bool:
    """Whether a number is a multiple of another, exactly."""
    return (Fraction(value) / Fraction(step)).denominator == 1


def ends(step: Fraction, low: Bound | None, high: Bound | None) -> tuple[int | None, int | None]:
    """The multiples of a number between two bounds, the first and the last, counted by it."""
    first = last = None
    if low is not None:
        least = Fraction(low[0]) / step
        first = floor(least) + 1 if low[1] else ceil(least)
    if high is not None:
        most = Fraction(high[0]) / step
        last = ceil(most) - 1 if high[1] else floor(most)
    return first, last


def multiples(grid: Grid, low: Bound | None, high: Bound | None, room: int | None, most: int | None = None) -> Ir:
    """The numerals of the multiples between two bounds; None has no bound.

    Args:
        grid: the multiples, of a modulus and a scale that `is_small_enough` says are.
        low: the lower bound.
        high: the upper bound.
        room: the most digits after the point, not below the scale; None has no bound.
        most: the most digits before the point where no bound limits them.
    """
    first, last = (None if n is None else n * grid.modulus for n in ends(grid.step, low, high))
    if first is not None and last is not None and first > last:
        return EMPTY
    writer = _Writer(grid, room, most)
    positive = negative = EMPTY
    if last is None or last >= 0:
        positive = writer.numerals(max(first or 0, 0), last)
    if first is None or first <= 0:
        negative = writer.numerals(max(-(last or 0), 0), None if first is None else -first)
    return union(positive, concat(literal("-"), negative))


class _Bound:
    """A multiple of the modulus, as the digits of a numeral.

    Attributes:
        digits: `size` of them before the point and `scale` after it.
        remainders: of the value that the first n digits have with zeros after them.
    """

    __slots__ = ("digits", "remainders", "size")

    def __init__(self, grid: Grid, value: int) -> None:
        # Not by str(), which refuses long integers.
        self.digits = f"{Decimal(value):f}".rjust(grid.scale + 1, "0")
        self.size = len(self.digits) - grid.scale
        self.remainders = [0]
        for at, digit in enumerate(self.digits):
            self.remainders.append(_append(grid, self.remainders[-1], at - self.size, int(digit)))


def _append(grid: Grid, remainder: int, place: int, digit: int) -> int:
    """The remainder after one more digit: at a place behind the point, or before it (negative)."""
    if place < 0:
        return (remainder * 10 + digit * pow(10, grid.scale, grid.modulus)) % grid.modulus
    return (remainder + digit * pow(10, grid.scale - place - 1, grid.modulus)) % grid.modulus


class _Writer:
    """Numerals without a sign, of values counted in units of 10^-scale."""

    def __init__(self, grid: Grid, room: int | None, most: int | None) -> None:
        self.grid, self.room, self.most = grid, room, most

    def numerals(self, low: int, high: int | None) -> Ir:
        """Those between two multiples of the modulus."""
        least = _Bound(self.grid, low)
        if high is None:
            return union(self._one_sided(least, up=True), self._longer(least.size, self.most))
        greatest = _Bound(self.grid, high)
        if low == high:
            return self._exactly(least)
        if least.size == greatest.size:
            return self._between(least, greatest)
        ends = self._one_sided(least, up=True), self._one_sided(greatest, up=False)
        return union(*ends, self._longer(least.size, greatest.size - 1))

    def _longer(self, size: int, most: int | None) -> Ir:
        """Those with more digits before the point than `size`, up to `most` of them."""
        if most is not None and most <= size:
            return EMPTY
        last = None if most is None else most - 1
        return self._choice(range(1, 10), lambda d: self._multiple(_append(self.grid, 0, -1, d), size, last, -1))

    def _between(self, low: _Bound, high: _Bound) -> Ir:
        """Those between two bounds with as many digits before the point."""
        same = next(at for at, (a, b) in enumerate(zip(low.digits, high.digits, strict=True)) if a != b)
        first, last = int(low.digits[same]), int(high.digits[same])
        rest = union(
            concat(literal(str(first)), self._edge(low, same + 1, up=True)),
            self._choice(range(first + 1, last), lambda d: self._after(low, same, d)),
            concat(literal(str(last)), self._edge(high, same + 1, up=False)),
        )
        for at in range(same, 0, -1):
            rest = concat(literal(low.digits[at - 1]), self._joined(rest, low, at, not low.digits[at:].strip("0")))
        return rest

    def _one_sided(self, bound: _Bound, up: bool) -> Ir:
        """Those of the bound's size not below it (`up`), or not above it; no leading zero."""
        first = int(bound.digits[0])
        others = range(first + 1, 10) if up else range(0 if bound.size == 1 else 1, first)
        free = self._choice(others, lambda d: self._after(bound, 0, d))
        return union(concat(literal(bound.digits[0]), self._edge(bound, 1, up)), free)

    def _edge(self, bound: _Bound, start: int, up: bool) -> Ir:
        """What may follow the first `start` digits of a bound.

        From the bound's last digit back: its next digit, or one that leaves the bound behind on the right side and
        lets anything follow.
        """
        # From where a lower bound has only zeros on, everything is above it.
        end = max(len(bound.digits.rstrip("0")), start) if up else len(bound.digits)
        out = self._after(bound, end)
        for at in range(end - 1, start - 1, -1):
            digit = int(bound.digits[at])
            others = range(digit + 1, 10) if up else range(digit)
            free = self._choice(others, lambda d, at=at: self._after(bound, at, d))  # type: ignore[misc]
            out = self._joined(union(concat(literal(str(digit)), out), free), bound, at, not up)
        return out

    def _joined(self, more: Ir, bound: _Bound, at: int, stop: bool) -> Ir:
        """What may follow the first `at` digits: more of them, with the point before them, or (`stop`) nothing."""
        if at < bound.size:
            return more
        if at == bound.size:
            more = concat(literal("."), more)
        return union(EPSILON, more) if stop and not bound.remainders[at] else more

    def _after(self, bound: _Bound, at: int, digit: int | None = None) -> Ir:
        """Anything after the first `at` digits of a bound, and one more where that is given."""
        remainder = bound.remainders[at]
        if digit is not None:
            remainder = _append(self.grid, remainder, at - bound.size, digit)
            at += 1
        left = bound.size - at
        return self._multiple(remainder, left, left, -1) if left >= 0 else self._multiple(remainder, 0, 0, -left)

    def _multiple(self, remainder: int, least: int, most: int | None, read: int) -> Ir:
        return Multiple(self.grid.modulus, self.grid.scale, remainder, least, most, self.room, read)

    def _choice(self, digits: Iterable[int], after: Callable[[int], Ir]) -> Ir:
        return union(*(concat(literal(str(d)), after(d)) for d in digits))

    def _exactly(self, bound: _Bound) -> Ir:
        """One value: its digits without the last zeros of the fraction, then zeros."""
        size = bound.size
        fraction = bound.digits[size:].rstrip("0")
        # Nothing but zeros follows a multiple of 1 that no more digits before the point are left for.
        zeros = Multiple(1, 0, 0, 0, 0, self.room, len(fraction) or -1)
        return concat(literal(bound.digits[:size] + ("." + fraction if fraction else "")), zeros)
