"""How JSON values are written: white space, strings with their escapes, numbers (RFC 8259), as languages of bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, lru_cache

from maskwright.grammar import ir
from maskwright.reference.language import EMPTY, EPSILON, Node, alt, cat, literal, one_byte_of, repeat
from maskwright.reference.ranges import hex_digit, span
from maskwright.reference.regex import translate, utf8

_SHORT_ESCAPES = {'"': b'\\"', "\\": b"\\\\", "\b": b"\\b", "\f": b"\\f", "\n": b"\\n", "\r": b"\\r", "\t": b"\\t"}
_NEWLINES, _BLANKS = 2, 20


@dataclass(frozen=True)
class Style:
    """The writing of values; the options have the names and values of `maskwright.JsonSchema`."""

    whitespace: str = "bounded"
    escapes: str = "minimal"
    numbers: str = "plain"
    key_order: str = "schema"
    formats: str = "assert"
    space: Node = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "space", _SPACES[self.whitespace])

    def char(self, low: int, high: int) -> Node:
        """The writings of one character of a string, whose code point is from `low` to `high`."""
        return _char(low, high, self.escapes)

    def content(self, term: ir.Ir) -> Node:
        """The writings, without the quotes, of the strings of a term."""
        return translate(term, self.char)

    def any_content(self, least: int, most: int | None) -> Node:
        """The writings, without the quotes, of all strings of `least` to `most` code points."""
        return repeat(_any_char(self.escapes), least, most)

    def text(self, value: str) -> Node:
        """The writings, with the quotes, of one string; `EMPTY` where it holds a lone surrogate."""
        return quoted(cat(*(self.char(ord(c), ord(c)) for c in value)) if value else EPSILON)


_SPACES = {
    "compact": EPSILON,
    "bounded": alt(
        EPSILON, literal(b" "), cat(repeat(literal(b"\n"), 1, _NEWLINES), repeat(one_byte_of(b" \t"), 0, _BLANKS))
    ),
    "any": repeat(one_byte_of(b" \t\n\r"), 0, None),
}


def quoted(content: Node) -> Node:
    """The content between two quotes."""
    return cat(literal(b'"'), content, literal(b'"'))


@cache
def _any_char(escapes: str) -> Node:
    return alt(_char(0, 0xD7FF, escapes), _char(0xE000, 0x10FFFF, escapes))


@lru_cache(maxsize=4096)
def _char(low: int, high: int, escapes: str) -> Node:
    raw = [(max(low, first), min(high, last)) for first, last in ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF))]
    short = [text for c, text in _SHORT_ESCAPES.items() if low <= ord(c) <= high]
    return alt(
        *(utf8(first, last) for first, last in raw),
        *(literal(text) for text in short),
        _any_escape(low, high) if escapes == "any" else _needed_escape(low, high),
    )


def _needed_escape(low: int, high: int) -> Node:
    """Control characters that have no short escape: backslash, u and four digits in either case."""
    return alt(*(_hex4(c, c) for c in range(low, min(high, 0x1F) + 1) if chr(c) not in _SHORT_ESCAPES))


def _any_escape(low: int, high: int) -> Node:
    solidus = literal(b"\\/") if low <= ord("/") <= high else EMPTY
    plane0 = [(max(low, first), min(high, last)) for first, last in ((0, 0xD7FF), (0xE000, 0xFFFF))]
    return alt(solidus, *(_hex4(first, last) for first, last in plane0), _pair(max(low, 0x10000), high))


def _hex4(low: int, high: int) -> Node:
    return cat(literal(b"\\u"), span(low, high, 16, 4, hex_digit)) if low <= high else EMPTY


def _pair(low: int, high: int) -> Node:
    """A surrogate pair: two digits of radix 1024 above 0x10000 (RFC 8259, section 7)."""

    def half(place: int, first: int, last: int) -> Node:
        base = 0xD800 if place else 0xDC00
        return _hex4(base + first, base + last)

    return span(low - 0x10000, high - 0x10000, 1024, 2, half) if low <= high else EMPTY


