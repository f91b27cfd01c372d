"""Numerals that are multiples of a number, read digit by digit with fractions: what is left over, and for how much."""

from __future__ import annotations

from fractions import Fraction

from maskwright.reference.language import ALL_BYTES, EMPTY, Node, _intern

_DIGITS = b"0123456789"
_APART = [1 << b for b in b"-.0123456789"]


class _Multiple(Node):
    """The rest of a JSON numeral without exponent.

    Args:
        step: what its value is to be a multiple of.
        at: what was read last: "", "-", "0" (the only digit so far), "digit", ".", or "fraction".
        over: what the value read so far exceeds a multiple by.
        place: how many digits have been read after the point.
    """

    __slots__ = ("at", "over", "place", "step_size")

    def __init__(self, step: Fraction, at: str, over: Fraction, place: int) -> None:
        super().__init__(at in ("0", "digit", "fraction") and over == 0, True)
        self.step_size, self.at, self.over, self.place = step, at, over, place

    def _step(self, byte: int) -> Node:
        letter, at = chr(byte), self.at
        if letter == "-" and at == "":
            return _numeral(self.step_size, "-", Fraction(0), 0)
        if letter == "." and at in ("0", "digit"):
            return _numeral(self.step_size, ".", self.over, 0)
        if byte not in _DIGITS or at == "0":
            return EMPTY
        if at in (".", "fraction"):
            added = Fraction(int(letter), 10 ** (self.place + 1))
            return _numeral(self.step_size, "fraction", self.over + added, self.place + 1)
        kind = "0" if letter == "0" and at in ("", "-") else "digit"
        return _numeral(self.step_size, kind, self.over * 10 + int(letter), 0)

    def _partition(self) -> frozenset[int]:
        return frozenset((*_APART, ALL_BYTES & ~sum(_APART)))


def _numeral(step: Fraction, at: str, over: Fraction, place: int) -> Node:
    over %= step
    if at in (".", "fraction"):
        # The digits to come add less than one in the last place.
        missing = -over % step
        if missing >= Fraction(1, 10**place):
            return EMPTY
        if missing == 0 and Fraction(1, 10**place) <= step:
            while place > 1 and Fraction(1, 10 ** (place - 1)) <= step:
                place -= 1  # only zeros from here on, however many
    return _intern(_Multiple, step, at, over, place)


def multiples(step: Fraction) -> Node:
    """The numerals without exponent whose value is a multiple of a decimal number; -0 has the value 0."""
    return _numeral(step, "", Fraction(0), 0)
