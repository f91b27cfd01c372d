"""Text that a constraint nearly determines, as drafts: keys, punctuation, the white space around it.

A draft is a guess. What the model reads of it is verified token by token, so that a wrong one costs time and never
changes an output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from maskwright.engine.bitsets import Words
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.request import Guide
    from maskwright.engine.row import Row

__all__ = ["Spans", "drafter_for"]

# Where more tokens are allowed, the text is the model's to choose.
_FEW = 192
_LONGEST_SPAN = 64  # bytes
_LONGEST_DRAFT = 12  # tokens
_SPACES = b" \t\n\r"


def drafter_for(model: LanguageModel) -> Callable[[Row], Sequence[int]]:
    """The grammar's own drafts for a model."""
    return Spans(model)


class Spans:
    """Drafts the bytes that must follow.

    Where white space may or may not come before a byte that must, it is guessed from how this output is set so far.

    Args:
        model: whose tokenizer cuts the text.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._tokens = model.vocabulary.tokens
        self._encode = model.encode
        self._cut: dict[bytes, list[int]] = {}

    def __call__(self, row: Row) -> Sequence[int]:
        """The tokens that are likely to come next; none where the constraint leaves much open."""
        if row.matcher is None or row.mask is None or row.missed or _count(row.mask) > _FEW:
            row.missed = False  # after a draft of which nothing was right, one step without
            return ()
        text = row.final_text.encode()
        span = self._span(row.matcher.fork(), text)
        tokens = self._tokens_of(span) if len(span) > 1 else []
        return tokens[:_LONGEST_DRAFT] if len(tokens) > 0 else ()

    def _span(self, guide: Guide, text: bytes) -> bytes:
        """What must follow, by first bytes of the tokens allowed."""
        span = b""
        while len(span) < _LONGEST_SPAN and not guide.is_accepting:
            ids = guide.allowed_tokens()
            if len(ids) > _FEW:
                break
            firsts = {self._tokens[i][0] for i in ids if self._tokens[i]}
            byte = self._guess(firsts, text + span)
            if byte is None or not guide.accept_text(byte):
                break
            span += byte
        return span

    def _guess(self, firsts: set[int], text: bytes) -> bytes | None:
        solid = bytes(byte for byte in firsts if byte not in _SPACES)
        if len(firsts) == 1:
            return bytes(firsts)
        if len(solid) != 1:
            return None
        style = _space_before(text, solid)
        typed = text[len(text.rstrip(_SPACES)) :]
        if style is None:
            return None
        follows = style[len(typed) : len(typed) + 1] if style.startswith(typed) else b""
        return follows if follows and follows[0] in firsts else solid

    def _tokens_of(self, span: bytes) -> list[int]:
        found = self._cut.get(span)
        if found is None:
            try:
                found = self._encode(span.decode(), add_special=False)
            except UnicodeDecodeError:
                found = []
            if b"".join(self._tokens[i] for i in found) != span:
                found = []
            if len(self._cut) > 4096:
                self._cut.clear()
            self._cut[span] = found
        return found


@dataclass(slots=True)
class _Level:
    """How the members of an open object or array are set: white space after its bracket and around its last comma."""

    opened: bytes | None
    before: bytes = b""
    after: bytes | None = None


def _space_before(text: bytes, solid: bytes) -> bytes | None:
    """The white space to guess between a JSON text and the byte that must come; None where nothing tells.

    Members of an object or array are taken to be set like those before, deeper ones to be indented by as much again.
    """
    before = text.rstrip(_SPACES)
    last = before[-1:]
    levels = _levels(text)
    indent = levels[0].opened if levels else None
    unit = len(indent) - 1 if indent is not None and indent.startswith(b"\n") else 0
    if last == b":":
        usual = _COLON.findall(before)
        return usual[-1] if usual else b" "
    if last == b"," and levels:
        return levels[-1].opened if levels[-1].after is None else levels[-1].after
    if last in (b"{", b"["):
        outer = levels[-2].opened if len(levels) > 1 else None
        return outer + b" " * unit if outer is not None and outer.startswith(b"\n") else outer
    if solid in (b"}", b"]") and levels:
        inner = levels[-1].opened
        return inner[: len(inner) - unit] if inner is not None and inner.startswith(b"\n") else inner
    return levels[-1].before if solid == b"," and levels else b""


# The white space after a key and its colon.
_COLON = re.compile(rb'":([ \t\r\n]*)(?=[^ \t\r\n])')
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{[]([ \t\r\n]*)|[]}]|([ \t\r\n]*),([ \t\r\n]*)', re.S)


def _levels(text: bytes) -> list[_Level]:
    """The objects and arrays that are open, the outermost first."""
    levels: list[_Level] = []
    for found in _STRUCTURE.finditer(text):
        more = found.end() < len(text)
        if found[0][:1] in (b"{", b"["):
            levels.append(_Level(found[1] if more else None))
        elif found[0] in (b"}", b"]") and levels:
            levels.pop()
        elif found[2] is not None and levels and more:
            levels[-1].before, levels[-1].after = found[2], found[3]
    return levels


def _count(mask: Words) -> int:
    return int(np.unpackbits(mask.view(np.uint8)).sum())
