"""Outputs of several parts as languages of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maskwright.grammar import ir
from maskwright.grammar.regions import Alt, Capture, Free, Seq, Special
from maskwright.reference.language import EPSILON, Node, alt, cat, complement, intersect, literal, repeat
from maskwright.reference.regex import regex

__all__ = ["composite"]

_CHARACTER = regex(ir.ANY)
_ANYTHING = repeat(_CHARACTER, 0, None)


def composite(part: Any, language_of: Callable[[Any], Node]) -> Node:
    """The texts of a part.

    Args:
        part: a `Seq`, `Alt`, `Capture` or `Free` of texts, a string, or another constraint.
        language_of: the languages of other constraints.

    Raises:
        ValueError: special tokens, or free text of so many tokens: these are no texts.
    """
    if isinstance(part, str):
        return literal(part.encode()) if part else EPSILON
    if isinstance(part, Seq):
        return cat(*(composite(each, language_of) for each in part.parts))
    if isinstance(part, Alt | Capture):
        return alt(*(composite(each, language_of) for each in part.parts))
    if isinstance(part, Special) or (isinstance(part, Free) and part.max_tokens is not None):
        raise ValueError(f"{part!r} is a region of tokens, not a text")
    return _free(part.until) if isinstance(part, Free) else language_of(part)


def _free(until: Any) -> Node:
    if until is None:
        return _ANYTHING
    if isinstance(until, Special):
        raise ValueError(f"free text until {until!r} is a region of tokens, not a text")
    ends = cat(_ANYTHING, literal(until.encode()))
    return intersect(ends, complement(cat(ends, _CHARACTER, _ANYTHING)))
