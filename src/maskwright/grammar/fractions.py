"""Fraction digits between two bounds, as regular terms.

A fraction is a string of digits after the point, of at most `room` of them; missing ones count as zeros. A language of
such strings is kept as a pair: whether the empty string belongs (then the point is left out too), and the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from maskwright.grammar.ir import EMPTY, EPSILON, Ir, chars, concat, literal, optional, repeat, union

Part = tuple[str, bool]  # the digits of a bound after the point, and whether the bound is excluded

_DIGIT = chars([(48, 57)])
_NONZERO = chars([(49, 57)])
_ZERO, _DOT = literal("0"), literal(".")


def fraction_tail(lo: Part | None, hi: Part | None, room: int | None) -> Ir:
    """The tails of numerals, points included, that lie between the fractions of two bounds; None has no bound."""
    if hi is None:
        digits = _above(*(lo or ("", False)), room)
    elif lo is None:
        digits = _below(*hi, room)
    else:
        digits = _between(lo, hi, room)
    tail = concat(_DOT, digits.rest)
    return optional(tail) if digits.empty else tail


@dataclass(frozen=True)
class _Digits:
    empty: bool
    rest: Ir

    def after(self, digit: str) -> Ir:
        """The strings that go on with a digit, and then with these."""
        return concat(literal(digit), union(EPSILON, self.rest) if self.empty else self.rest)


def _left(room: int | None, spent: int) -> int | None:
    return None if room is None else room - spent


def _decided(first: int, last: int, room: int | None) -> Ir:
    """Strings whose first digit, of a range, decides: any digits follow."""
    return concat(chars([(48 + first, 48 + last)]), repeat(_DIGIT, 0, _left(room, 1))) if first <= last else EMPTY


def _positive(room: int | None) -> Ir:
    """Strings with a digit that is not zero. O(room), or O(1) without a bound."""
    if room is None:
        return concat(repeat(_ZERO), _NONZERO, repeat(_DIGIT))
    out = EMPTY
    for left in range(room):
        out = union(concat(_NONZERO, repeat(_DIGIT, 0, left)), concat(_ZERO, out))
    return out


def _above(bound: str, exclusive: bool, room: int | None) -> _Digits:
    """Strings not below a bound (without trailing zeros)."""
    end = len(bound) if room is None else min(len(bound), room)
    out = _Digits(False, EMPTY)
    if end == len(bound):
        left = _left(room, end)
        out = _Digits(not exclusive, _positive(left) if exclusive else repeat(_DIGIT, 1, left))
    for at in range(end - 1, -1, -1):
        digit = int(bound[at])
        out = _Digits(False, union(_decided(digit + 1, 9, _left(room, at)), out.after(bound[at])))
    return out


def _below(bound: str, exclusive: bool, room: int | None) -> _Digits:
    """Strings not above a bound (without trailing zeros)."""
    end = len(bound) if room is None else min(len(bound), room)
    out = _Digits(True, EMPTY)
    if end == len(bound):
        out = _Digits(False, EMPTY) if exclusive else _Digits(True, repeat(_ZERO, 1, _left(room, end)))
    for at in range(end - 1, -1, -1):
        digit = int(bound[at])
        out = _Digits(True, union(_decided(0, digit - 1, _left(room, at)), out.after(bound[at])))
    return out


def _between(lo: Part, hi: Part, room: int | None) -> _Digits:
    """Strings between two bounds."""
    size = max(len(lo[0]), len(hi[0]))
    low, high = lo[0].ljust(size, "0"), hi[0].ljust(size, "0")
    if low > high or (low == high and (lo[1] or hi[1])):
        return _Digits(False, EMPTY)
    if low == high:
        return _exactly(lo[0], room)
    same = next(at for at in range(size) if low[at] != high[at])
    least = len(lo[0])  # from here on the lower bound has only zeros
    end = same if room is None else min(same, room)
    out = _Digits(least <= end and not lo[1], EMPTY)
    if room is None or same < room:
        left = _left(room, same)
        above = _above(lo[0][same + 1 :], lo[1], _left(left, 1)).after(low[same])
        below = _below(hi[0][same + 1 :], hi[1], _left(left, 1)).after(high[same])
        out = _Digits(out.empty, union(above, _decided(int(low[same]) + 1, int(high[same]) - 1, left), below))
    for at in range(end - 1, -1, -1):
        out = _Digits(least <= at and not lo[1], out.after(low[at]))
    return out


def _exactly(bound: str, room: int | None) -> _Digits:
    if room is not None and len(bound) > room:
        return _Digits(False, EMPTY)
    out = _Digits(True, repeat(_ZERO, 1, _left(room, len(bound))))
    for digit in reversed(bound):
        out = _Digits(False, out.after(digit))
    return out
