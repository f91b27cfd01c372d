"""Regular terms over code points as languages of bytes.

`translate` replaces every code point by the texts that may write it: for a plain regex its UTF-8, inside a JSON
string its escapes too (json_text.py). A written text is cut into characters in one way only, so union, concatenation,
repeats and intersection carry over unchanged; the complement is taken within the texts that write something.
"""

from __future__ import annotations

from collections.abc import Callable

from maskwright.grammar import ir
from maskwright.reference.language import EMPTY, EPSILON, Node, alt, byte_range, cat, complement, intersect, repeat
from maskwright.reference.ranges import span

# (first code point, last, UTF-8 length, first lead byte): RFC 3629, section 4; the surrogates are left out.
_UTF8 = (
    (0x0, 0x7F, 1, 0x00),
    (0x80, 0x7FF, 2, 0xC0),
    (0x800, 0xD7FF, 3, 0xE0),
    (0xE000, 0xFFFF, 3, 0xE0),
    (0x10000, 0x10FFFF, 4, 0xF0),
)


def utf8(low: int, high: int) -> Node:
    """One code point from `low` to `high` in UTF-8."""
    return alt(*(_utf8(max(low, first), min(high, last), n, lead) for first, last, n, lead in _UTF8))


def _utf8(low: int, high: int, length: int, lead: int) -> Node:
    if low > high:
        return EMPTY
    if length == 1:
        return byte_range(low, high)

    def digit(place: int, first: int, last: int) -> Node:
        base = lead if place == length - 1 else 0x80
        return byte_range(base + first, base + last)

    return span(low, high, 64, length, digit)


def translate(term: ir.Ir, write: Callable[[int, int], Node]) -> Node:
    """The texts that write a string of `term`; `write(low, high)` gives the texts of one code point of that range."""

    def walk(node: ir.Ir) -> Node:
        if isinstance(node, ir.Chars):
            return alt(*(write(low, high) for low, high in node.ranges))
        if isinstance(node, ir.Repeat):
            return repeat(walk(node.body), node.min, node.max)
        if isinstance(node, ir.Not):
            return intersect(everything, complement(walk(node.body)))
        parts = [walk(child) for child in node.children]
        if isinstance(node, ir.Cat):
            return cat(*parts)
        return alt(*parts) if isinstance(node, ir.Alt) else intersect(*parts) if parts else everything

    everything = repeat(walk(ir.ANY), 0, None)
    return walk(term)


def regex(term: ir.Ir) -> Node:
    """The texts, in UTF-8, that match a term as a whole."""
    return translate(term, utf8)


def choice(texts: list[str]) -> Node:
    """One of the texts."""
    return alt(*(cat(*(utf8(ord(c), ord(c)) for c in text)) if text else EPSILON for text in texts))
