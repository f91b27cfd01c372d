"""Regular languages of strings: patterns, formats and lengths together, and their automata by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from maskwright.errors import LimitError
from maskwright.grammar import formats, regex
from maskwright.grammar.automata import automaton
from maskwright.grammar.ir import (
    ALL,
    ANY,
    Alt,
    And,
    Chars,
    Ir,
    Not,
    Repeat,
    complement,
    concat,
    intersect,
    literal,
    one_of,
    repeat,
)
from maskwright.grammar.plan import Budget, CompileLimits

if TYPE_CHECKING:
    from maskwright._core import Regex

# Each language with a name, so that a conjunction can be looked up without hashing its terms.
Regexes = Sequence[tuple[str, Ir]]
_CACHE_SIZE = 4096
_automata: dict[object, Regex] = {}
_emptiness: dict[object, bool] = {}
_shapes: dict[str, int | None] = {}


def pattern_ir(pattern: str, limits: CompileLimits, loose: bool = False) -> Ir:
    """The strings in which an ECMA-262 pattern is found. Raises RegexError and LimitError.

    `loose` takes what flag u refuses, needless escapes and closing brackets, for the characters.
    """
    return regex.pattern_ir(pattern, "ecma-loose" if loose else "ecma", "search", 0, limits.nodes)


def format_ir(name: str, typed: bool) -> Ir | None:
    """The strings of a format; None where it is not known. `typed` leaves out what Python's types cannot hold."""
    if name not in formats.KNOWN_FORMATS:
        return None
    return _typed_format(name) if typed and name in _TYPED else formats.format_ir(name)


# What pydantic's parsers take of a format: no year 0, no leap second, no duration over 999,999,999
# days, or with 2**32 seconds or more in its time part.
_TYPED = frozenset({"date", "time", "date-time", "duration"})
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_SHORT = r"P([0-9]{1,6}Y)?([0-9]{1,7}M)?([0-9]{1,7}W)?([0-9]{1,8}D)?(T([0-9]{1,6}H)?([0-9]{1,7}M)?([0-9]{1,7}S)?)?"


@lru_cache(maxsize=len(_TYPED))
def _typed_format(name: str) -> Ir:
    if name == "duration":
        whole = formats.format_ir(name)
        assert whole is not None
        return intersect(whole, regex.pattern_ir(_SHORT))
    if name == "time":
        return regex.pattern_ir(_TIME)
    date = formats.format_ir("date")
    assert date is not None
    date = intersect(date, complement(concat(literal("0000"), ALL)))
    return date if name == "date" else concat(date, one_of("Tt"), regex.pattern_ir(_TIME))


def has_strings(name: str, ir: Ir) -> bool:
    """Whether a term plainly has strings, which shows from its shape where nothing is intersected or complemented."""
    shape = _shape(name, ir)
    return shape is not None and shape >= 0


def _shape(name: str, ir: Ir) -> int | None:
    """The length of the shortest string of a simple term, -1 where there is none; None for other terms."""
    if name not in _shapes:
        if len(_shapes) >= _CACHE_SIZE:
            _shapes.clear()
        _shapes[name] = _shortest(ir)
    return _shapes[name]


def _shortest(ir: Ir) -> int | None:
    done: list[int] = []
    stack: list[tuple[Ir, bool]] = [(ir, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, And | Not):
            return None
        if not ready and node.children:
            stack.append((node, True))
            stack.extend((child, False) for child in node.children)
            continue
        start = len(done) - len(node.children)
        parts = done[start:]
        del done[start:]
        if isinstance(node, Chars):
            done.append(1)
        elif isinstance(node, Repeat):
            done.append(0 if node.min == 0 else parts[0] * node.min if parts[0] >= 0 else -1)
        elif isinstance(node, Alt):
            done.append(min((p for p in parts if p >= 0), default=-1))
        else:
            done.append(-1 if -1 in parts else sum(parts))
    return done[0]


def is_everything(ir: Ir) -> bool:
    """Whether a term is plainly the language of all strings: a few states of its complement's automaton tell."""
    return ir == ALL or automaton(complement(ir)).is_empty_within(16) > 0


def _key(regexes: Regexes, least: int, most: int) -> object:
    return (tuple([name for name, _ in regexes]), least, most)


def _language(regexes: Regexes, least: int, most: int) -> Ir:
    parts = [ir for _, ir in regexes]
    if least or most >= 0:
        parts.append(repeat(ANY, least, None if most < 0 else most))
    return intersect(*parts)


def string_automaton(regexes: Regexes, least: int, most: int) -> Regex:
    """The automaton of the strings that fit all of `regexes` and have `least` to `most` (-1: any) code points."""
    key = _key(regexes, least, most)
    found = _automata.get(key)
    if found is None:
        if len(_automata) >= _CACHE_SIZE:
            _automata.clear()
        found = _automata[key] = automaton(_language(regexes, least, most))
    return found


def is_string_empty(regexes: Regexes, least: int, most: int, budget: Budget, where: Callable[[], str]) -> bool:
    """Whether no string is in that language, decided by exploring its automaton where its shape does not tell.

    Raises:
        LimitError: `limits.states` do not settle it, or the compile was cancelled; at `where()`.
    """
    if 0 <= most < least:
        return True
    if not regexes:
        return False
    fewest = _shape(*regexes[0]) if len(regexes) == 1 else None
    if fewest is not None:
        if fewest < 0 or 0 <= most < fewest:
            return True
        if least <= fewest:
            return False
    key = _key(regexes, least, most)
    found = _emptiness.get(key)
    if found is None:
        regex = string_automaton(regexes, least, most)
        verdict = regex.is_empty_within(budget.limits.states, lambda: budget.check(where()))
        if verdict < 0:
            raise LimitError(
                "Whether any string fits pattern, format and lengths together was not settled",
                location=where(),
                hint="Raise CompileLimits.states, or write one pattern for all",
            )
        if len(_emptiness) >= _CACHE_SIZE:
            _emptiness.clear()
        found = _emptiness[key] = bool(verdict)
    return found
