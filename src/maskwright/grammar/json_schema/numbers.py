"""Numbers: bounds, and the texts of the values between them. The digit-by-digit construction is `maskwright.grammar.digits`."""

from __future__ import annotations

from decimal import Decimal
from math import ceil, floor
from typing import TYPE_CHECKING

from maskwright.grammar.automata import automaton
from maskwright.grammar.ir import EPSILON, Ir, chars, concat, literal, one_of, optional, repeat, union

from .kinds import BOOLEAN, FRACTION, INTEGER, NULL, NUMBER
from .options import Options

if TYPE_CHECKING:
    from maskwright._core import Regex

Number = int | Decimal
# A bound and whether it is excluded.
Bound = tuple[Number, bool]

# Fraction digits of plain numbers.
PLAIN_DIGITS = 20
_DIGIT = chars([(48, 57)])
_automata: dict[object, Regex] = {}


def tighter(one: Bound | None, other: Bound, sign: int) -> Bound:
    """The stricter of two lower (sign 1) or upper (sign -1) bounds."""
    if one is None or one[0] == other[0]:
        return other if one is None else (one[0], one[1] or other[1])
    return other if (other[0] > one[0]) == (sign > 0) else one


def is_range_empty(low: Bound, high: Bound, integer: bool, options: Options) -> bool:
    """Whether no number lies between two bounds, among those that can be written by the options."""
    if integer:
        first = floor(low[0]) + 1 if low[1] else ceil(low[0])
        last = ceil(high[0]) - 1 if high[1] else floor(high[0])
        return first > last
    return low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))


def scalar_automaton(types: int, low: Bound | None, high: Bound | None, options: Options) -> Regex:
    """The automaton of the texts of `null`, booleans and numbers, those of `types`, with bounds of the numbers."""
    types &= NULL | BOOLEAN | NUMBER
    if not types & NUMBER:
        low = high = None
    key = (types, low, high, options.numbers, options.typed)
    found = _automata.get(key)
    if found is None:
        if len(_automata) > 4096:
            _automata.clear()
        found = _automata[key] = automaton(_scalars(types, low, high, options))
    return found


def _scalars(types: int, low: Bound | None, high: Bound | None, options: Options) -> Ir:
    parts = [literal(word) for bit, word in ((NULL, "null"), (BOOLEAN, "true"), (BOOLEAN, "false")) if types & bit]
    if types & NUMBER:
        parts.append(number_ir(low, high, not types & FRACTION, options))
    return union(*parts)


def number_ir(low: Bound | None, high: Bound | None, integer: bool, options: Options) -> Ir:
    """The texts of the numbers between two bounds."""
    if low is not None or high is not None:
        raise NotImplementedError
    body = union(literal("0"), concat(chars([(49, 57)]), repeat(_DIGIT)))
    sign = optional(literal("-"))
    if integer:
        tail = EPSILON if options.numbers == "plain" else concat(_zeros(options), _exponent("+"))
    elif options.numbers == "plain":
        tail = optional(concat(literal("."), repeat(_DIGIT, 1, PLAIN_DIGITS)))
    else:
        tail = concat(optional(concat(literal("."), repeat(_DIGIT, 1))), _exponent("+-"))
    return concat(sign, body, tail)


def _exponent(signs: str) -> Ir:
    return optional(concat(one_of("eE"), optional(one_of(signs)), repeat(_DIGIT, 1)))


def _zeros(options: Options) -> Ir:
    return optional(concat(literal("."), repeat(literal("0"), 1)))


def canonical(value: Number) -> str:
    """The shortest text of a number without an exponent."""
    text = format(value, "f") if isinstance(value, Decimal) else str(value)
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def value_ir(value: Number, options: Options) -> Ir:
    """The texts of one number: its digits, and zeros after them."""
    text = canonical(value)
    most = PLAIN_DIGITS if options.numbers == "plain" else None
    sign = optional(literal("-")) if text == "0" else EPSILON
    if "." in text:
        left = None if most is None else max(most - len(text.split(".")[1]), 0)
        return concat(literal(text), repeat(literal("0"), 0, left))
    return concat(sign, literal(text), optional(concat(literal("."), repeat(literal("0"), 1, most))))


_ = INTEGER
