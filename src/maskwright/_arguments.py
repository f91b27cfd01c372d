"""Checks of arguments: a slip is told with the argument's name, its value, and what to write instead.

A wrong type is a TypeError, a value out of its range a ValueError. True and False are no numbers here: they are slips.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

__all__ = ["flag", "number", "one_of", "require", "text", "whole"]


def require(name: str, value: object, good: bool, want: str) -> None:
    """Raises a ValueError unless `good`."""
    if not good:
        raise ValueError(f"{name} is {value!r}; it must be {want}")


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number between two bounds.

    Raises:
        TypeError: it is none.
        ValueError: it is beyond a bound.
    """
    want = f"a whole number, at least {least}" if most is None else f"a whole number between {least} and {most}"
    found = None if isinstance(value, bool) else _index(value)
    if found is None:
        raise TypeError(f"{name} is {value!r}; it must be {want}")
    require(name, value, least <= found and (most is None or found <= most), want)
    return found


def _index(value: object) -> int | None:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def number(
    name: str,
    value: object,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    above: float = -math.inf,
    below: float = math.inf,
) -> None:
    """A finite number in an interval that is closed at `least` and `most`, open at `above` and `below`.

    Raises:
        TypeError: it is none.
        ValueError: it is outside, infinite, or not a number.
    """
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (("at least", least), ("greater than", above), ("at most", most), ("less than", below))
        if math.isfinite(bound)
    ]
    want = " and ".join(["a finite number", *bounds]) if len(bounds) < 2 else f"a number {' and '.join(bounds)}"
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is {value!r}; it must be {want}")
    real = float(value)
    require(name, value, math.isfinite(real) and least <= real <= most and above < real < below, want)


def one_of(name: str, value: object, options: Sequence[object]) -> None:
    """One of some values, told by their type too (1 is not True).

    Raises:
        ValueError: it is none of them.
    """
    good = any(type(value) is type(option) and value == option for option in options)
    *first, last = map(repr, options)
    require(name, value, good, f"{', '.join(first)} or {last}" if first else last)


def flag(name: str, value: object) -> None:
    """True or False.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; it must be True or False")


def text(name: str, value: object) -> None:
    """A str that UTF-8 can spell.

    Raises:
        TypeError: it is no str.
        ValueError: it has a lone surrogate.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}; it must be a str")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} has a lone surrogate, {value[error.start]!r}, at offset {error.start}; no token spells it"
        ) from None
