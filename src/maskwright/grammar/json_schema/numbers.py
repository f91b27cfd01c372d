"""Numbers: bounds, and the automata of the texts between them; their terms are made in `maskwright.grammar.digits`."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, NamedTuple

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
from maskwright.grammar.multiples import Grid, ends, grid_of, is_multiple, multiples

from .kinds import BOOLEAN, FRACTION, INTEGER, NULL, NUMBER
from .options import Options

if TYPE_CHECKING:
    from maskwright._core import Regex

Number = int | Decimal
# A bound and whether it is excluded.
Bound = tuple[Number, bool]


class Steps(NamedTuple):
    """The numbers that others have to be multiples of, and those that they must not be multiples of."""

    of: tuple[Number, ...] = ()
    not_of: tuple[Number, ...] = ()


FREE = Steps()
_CACHE_SIZE = 4096
_automata: dict[object, Regex] = {}
# The last digit of a plain number.
_FINEST = Decimal(1).scaleb(-digits.PLAIN_FRACTION_DIGITS)
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
_READABLE_DIGITS = {True: 4300, False: 308}
_TYPED = {
    True: _readable(_READABLE_DIGITS[True], EPSILON),
    False: _readable(
        _READABLE_DIGITS[False], optional(concat(literal("."), repeat(_DIGIT, 1, digits.PLAIN_FRACTION_DIGITS)))
    ),
}


def tighter(one: Bound | None, other: Bound, sign: int) -> Bound:
    """The stricter of two lower (sign 1) or upper (sign -1) bounds."""
    if one is None or one[0] == other[0]:
        return other if one is None else (one[0], one[1] or other[1])
    return other if (other[0] > one[0]) == (sign > 0) else one


def is_range_empty(
    low: Bound | None,
    high: Bound | None,
    types: int,
    options: Options,
    excluded: tuple[Number, ...] = (),
    steps: Steps = FREE,
) -> bool:
    """Whether no number of `types` lies between two bounds, among those that can be written by the options."""
    if steps is not FREE:
        return _has_no_multiple(low, high, types, options, excluded, steps)
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


def _is_full(types: int, options: Options) -> bool:
    whole = not types & FRACTION
    return options.numbers == "full" and not options.typed and not (whole and options.lexical)


def _grid(types: int, steps: Steps, options: Options) -> Grid | None:
    """The numbers that can be written of those that are multiples; None where each is."""
    finest: tuple[Number, ...] = ()
    if not types & FRACTION:
        finest = (1,)
    elif not _is_full(types, options):
        finest = (_FINEST,)
    grid = grid_of((*steps.of, *finest)) if steps.of else None
    return None if grid is not None and (grid.modulus, grid.scale) == (1, 0) and not types & FRACTION else grid


def fit(types: int, steps: Steps, options: Options) -> bool:
    """Whether the core can count by these multiples."""
    grids = [_grid(types, steps, options), *(grid_of(s) for s in (steps.of, *((n,) for n in steps.not_of)) if s)]
    return all(grid is None or grid.is_small_enough for grid in grids)


def _has_no_multiple(
    low: Bound | None,
    high: Bound | None,
    types: int,
    options: Options,
    excluded: tuple[Number, ...],
    steps: Steps,
) -> bool:
    """`is_range_empty` beside multiples: by counting, since an automaton may have as many states as the modulus."""
    not_of = (*steps.not_of, 1) if not types & INTEGER else steps.not_of
    if types & FRACTION and not steps.of and _is_full(types, options):
        if low is None or high is None or low[0] < high[0]:
            return False  # as many fraction digits as it takes
        step = Fraction(low[0]) or Fraction(1)
    else:
        grid = _grid(types, steps, options)
        step = Fraction(1 if not types & FRACTION else _FINEST) if grid is None else grid.step
    if any(is_multiple(step, n) for n in not_of):
        return True
    first, last = ends(step, low, high)
    if first is None or last is None:
        return False  # finitely many numbers and proper subgroups cover no such range
    # Nor do n subgroups cover so long a run: of the order of n^2 log^2 n at most (Iwaniec, "On the problem of
    # Jacobsthal", Demonstratio Math. 11, 1978).
    left_out, run = {Fraction(v) for v in excluded}, 4096 + len(excluded) + 64 * len(not_of) ** 2
    values = (n * step for n in range(first, min(last + 1, first + run)))
    return last - first < run and all(v in left_out or any(is_multiple(v, n) for n in not_of) for v in values)


def integer_bounds(low: Bound | None, high: Bound | None) -> tuple[int | None, int | None]:
    """The least and the greatest integer between two bounds."""
    least = None if low is None else floor(low[0]) + 1 if low[1] else ceil(low[0])
    most = None if high is None else ceil(high[0]) - 1 if high[1] else floor(high[0])
    return least, most


def scalar_automaton(
    types: int,
    low: Bound | None,
    high: Bound | None,
    excluded: tuple[Number, ...],
    options: Options,
    steps: Steps = FREE,
) -> Regex:
    """The automaton of the texts of `null`, booleans and numbers, those of `types`, with what narrows the numbers."""
    types &= NULL | BOOLEAN | NUMBER
    if not types & NUMBER:
        low = high = None
        excluded, steps = (), FREE
    key = (types, low, high, excluded, steps, options.numbers, options.typed, options.lexical)
    found = _automata.get(key)
    if found is None:
        if len(_automata) >= _CACHE_SIZE:
            _automata.clear()
        parts = [literal(word) for bit, word in _WORDS if types & bit]
        if types & NUMBER:
            parts.append(number_ir(low, high, types, excluded, options, steps))
        found = _automata[key] = automaton(union(*parts))
    return found


def number_ir(
    low: Bound | None,
    high: Bound | None,
    types: int,
    excluded: tuple[Number, ...],
    options: Options,
    steps: Steps = FREE,
) -> Ir:
    """The texts of the numbers of `types` between two bounds, without the `excluded` ones."""
    whole, full = not types & FRACTION, _is_full(types, options)
    grid = _grid(types, steps, options) if steps.of else None
    least, most = integer_bounds(low, high) if whole else (None, None)
    bounded = (least is not None or most is not None) if whole else (low is not None or high is not None)
    # By value, so without exponents.
    exact = bounded or bool(excluded) or not types & INTEGER or grid is not None or bool(steps.not_of)
    if grid is not None:
        room = None if full else 0 if whole else digits.PLAIN_FRACTION_DIGITS
        term = multiples(grid, low, high, room, _READABLE_DIGITS[whole] if options.typed else None)
    elif whole:
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
    if steps.not_of:
        term = intersect(term, *(complement(multiples(grid_of((n,)), None, None, None)) for n in steps.not_of))
    if grid is None and options.typed and (low is None or high is None):
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
    low: Bound | None,
    high: Bound | None,
    types: int,
    excluded: tuple[Number, ...],
    options: Options,
    steps: Steps = FREE,
) -> Ir:
    """The texts without exponent of the numbers of `types` between two bounds, by value: every writing of each."""
    whole = types & NUMBER == INTEGER
    if steps.of:
        grid = grid_of((*steps.of, 1) if whole else steps.of)
        # The domain that this is held against keeps plain numbers to their places.
        term = multiples(grid, low, high, 0 if whole and options.lexical else None)
    elif whole:
        least, most = integer_bounds(low, high)
        term = digits.integer_range(least, most, full=not options.lexical)
    else:
        (lo, lo_open), (hi, hi_open) = low or (None, False), high or (None, False)
        term = digits.decimal_range(lo, lo_open, hi, hi_open, _places(options))
    if not types & INTEGER:
        term = intersect(term, _POINTED if options.lexical else _FRACTIONAL)
    if steps.not_of:
        term = intersect(term, *(complement(multiples(grid_of((n,)), None, None, None)) for n in steps.not_of))
    if excluded:
        term = intersect(term, complement(union(*(value_ir(v, options) for v in excluded))))
    return term
