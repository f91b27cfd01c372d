"""Numbers: bounds, and the automata of the texts between them; their terms are made in `maskwright.grammar.digits`."""

from __future__ import annotations

from decimal import Decimal
from math import ceil, floor
from typing import TYPE_CHECKING

from maskwright.grammar import digits
from maskwright.grammar.automata import automaton
from maskwright.grammar.ir import (
    EPSILON,
    Ir,
    chars,
    complement,
    concat,
    intersect,
    literal,
    optional,
    repeat,
    union,
)

from .kinds import BOOLEAN, FRACTION, INTEGER, NULL, NUMBER
from .options import Options

if TYPE_CHECKING:
    from maskwright._core import Regex

Number = int | Decimal
# A bound and whether it is excluded.
Bound = tuple[Number, bool]

_CACHE_SIZE = 4096
_automata: dict[object, Regex] = {}
_DIGIT = chars([(48, 57)])
_WORDS = ((NULL, "null"), (BOOLEAN, "true"), (BOOLEAN, "false"))
# Numbers that are no integers, whatever their zeros.
_FRACTIONAL = concat(
    repeat(union(_DIGIT, literal("-"))), literal("."), repeat(_DIGIT), chars([(49, 57)]), repeat(_DIGIT)
)

_POINTED = concat(repeat(union(_DIGIT, literal("-"))), literal("."), repeat(_DIGIT, 1))


def _readable(most: int, tail: Ir) -> Ir:
    natural = union(literal("0"), concat(chars([(49, 57)]), repeat(_DIGIT, 0, most - 1)))
    return concat(optional(literal("-")), natural, tail)


# What Python's parsers take, by "is an integer": integers of 4,300 digits (sys.set_int_max_str_digits), and doubles
# that stay finite for sure.
_TYPED = {
    True: _readable(4300, EPSILON),
    False: _readable(308, optional(concat(literal("."), repeat(_DIGIT, 1, digits.PLAIN_FRACTION_DIGITS)))),
}


def tighter(one: Bound | None, other: Bound, sign: int) -> Bound:
    """The stricter of two lower (sign 1) or upper (sign -1) bounds."""
    if one is None or one[0] == other[0]:
        return other if one is None else (one[0], one[1] or other[1])
    return other if (other[0] > one[0]) == (sign > 0) else one


def is_range_empty(
    low: Bound | None, high: Bound | None, types: int, options: Options, excluded: tuple[Number, ...] = ()
) -> bool:
    """Whether no number of `types` lies between two bounds, among those that can be written by the options."""
    if low is None or high is None:
        return False
    if not types & FRACTION:
        least, most = integer_bounds(low, high)
        assert least is not None and most is not None
        left = most - least + 1
        return left <= 0 or (left <= len(excluded) and all(n in excluded for n in range(least, most + 1)))
    if low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1])):
        return True
    if high[0] - low[0] > Decimal("1e-19"):
        return False  # wider than the last digit of a plain number: there is one in between
    return automaton(number_ir(low, high, types, excluded, options)).is_empty


def integer_bounds(low: Bound | None, high: Bound | None) -> tuple[int | None, int | None]:
    """The least and the greatest integer between two bounds."""
    least = None if low is None else floor(low[0]) + 1 if low[1] else ceil(low[0])
    most = None if high is None else ceil(high[0]) - 1 if high[1] else floor(high[0])
    return least, most


def scalar_automaton(
    types: int, low: Bound | None, high: Bound | None, excluded: tuple[Number, ...], options: Options
) -> Regex:
    """The automaton of the texts of `null`, booleans and numbers, those of `types`, with what narrows the numbers."""
    types &= NULL | BOOLEAN | NUMBER
    if not types & NUMBER:
        low = high = None
        excluded = ()
    key = (types, low, high, excluded, options.numbers, options.typed, options.lexical)
    found = _automata.get(key)
    if found is None:
        if len(_automata) >= _CACHE_SIZE:
            _automata.clear()
        parts = [literal(word) for bit, word in _WORDS if types & bit]
        if types & NUMBER:
            parts.append(number_ir(low, high, types, excluded, options))
        found = _automata[key] = automaton(union(*parts))
    return found


def number_ir(low: Bound | None, high: Bound | None, types: int, excluded: tuple[Number, ...], options: Options) -> Ir:
    """The texts of the numbers of `types` between two bounds, without the `excluded` ones."""
    whole = not types & FRACTION
    full = options.numbers == "full" and not options.typed and not (whole and options.lexical)
    least, most = integer_bounds(low, high) if whole else (None, None)
    bounded = (least is not None or most is not None) if whole else (low is not None or high is not None)
    exact = bounded or bool(excluded) or not types & INTEGER  # by value, so without exponents
    if whole:
        term = digits.integer_range(least, most, full=full) if exact else digits.json_integer(full)
    elif exact:
        (lo, lo_open), (hi, hi_open) = low or (None, False), high or (None, False)
        term = digits.decimal_range(lo, lo_open, hi, hi_open, None if full else digits.PLAIN_FRACTION_DIGITS)
    else:
        term = digits.json_number(full)
    if not types & INTEGER:
        term = intersect(term, _POINTED if options.lexical else _FRACTIONAL)
    if excluded:
        term = intersect(term, complement(union(*(value_ir(v, options) for v in excluded))))
    if options.typed and (low is None or high is None):
        return _TYPED[whole] if not exact else intersect(term, _TYPED[whole])
    return term


def canonical(value: Number) -> str:
    """The shortest text of a number without an exponent."""
    text = format(value, "f") if isinstance(value, Decimal) else str(value)
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def value_ir(value: Number, options: Options, types: int = NUMBER) -> Ir:
    """The texts of one number: its digits, and zeros after them."""
    if options.lexical and not types & FRACTION:
        return digits.integer_range(int(value), int(value))
    places = len(canonical(value).partition(".")[2])
    most = max(digits.PLAIN_FRACTION_DIGITS, places) if options.numbers == "plain" or options.typed else None
    return digits.decimal_range(value, False, value, False, most)


def free_domain(options: Options) -> Ir:
    """The texts of all numbers by the options."""
    if options.typed:
        return _TYPED[False]
    return digits.json_number(options.numbers == "full")


def decimal_domain(options: Options) -> Ir:
    """The texts of all numbers without an exponent: those that can be told apart by value."""
    return _TYPED[False] if options.typed else digits.decimal_range(None, False, None, False, _places(options))


def _places(options: Options) -> int | None:
    return None if options.numbers == "full" else digits.PLAIN_FRACTION_DIGITS


def exact_number_ir(
    low: Bound | None, high: Bound | None, types: int, excluded: tuple[Number, ...], options: Options
) -> Ir:
    """The texts without exponent of the numbers of `types` between two bounds, by value: every writing of each."""
    if types & NUMBER == INTEGER:
        least, most = integer_bounds(low, high)
        term = digits.integer_range(least, most, full=not options.lexical)
    else:
        (lo, lo_open), (hi, hi_open) = low or (None, False), high or (None, False)
        term = digits.decimal_range(lo, lo_open, hi, hi_open, _places(options))
        if not types & INTEGER:
            term = intersect(term, _POINTED if options.lexical else _FRACTIONAL)
    if excluded:
        term = intersect(term, complement(union(*(value_ir(v, options) for v in excluded))))
    return term
