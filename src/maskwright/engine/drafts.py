"""Text that a constraint nearly determines, as drafts: keys, punctuation, the white space around it.

A draft is a guess. What the model reads of it is verified token by token, so that a wrong one costs time and never
changes an output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.request import Guide
    from maskwright.engine.row import Row, Words

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

    Where white space may or may not come before a byte that must, it is guessed to come as it did the last time after
    the same byte of this output.

    Args:
        model: whose tokenizer cuts the text.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._tokens = model.vocabulary.tokens
        self._encode = model.encode
        self._cut: dict[bytes, list[int]] = {}

    def __call__(self, row: Row) -> Sequence[int]:
        """The tokens that are likely to come next; none where the constraint leaves much open."""
        if row.matcher is None or row.mask is None or _count(row.mask) > _FEW:
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
        solid = [byte for byte in firsts if byte not in _SPACES]
        if len(firsts) == 1:
            return bytes(firsts)
        if len(solid) != 1:
            return None
        guessed = _space_after(text)
        return guessed if guessed and guessed[0] in firsts else bytes(solid)

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


def _space_after(text: bytes) -> bytes:
    """The one byte of white space to guess after a text: the next of those that followed its last byte before."""
    solid = text.rstrip(_SPACES)
    if not solid or solid[-1:] not in b",:{[":
        return b""
    typed = text[len(solid) :]
    before = solid.rfind(solid[-1:], 0, len(solid) - 1)
    if before < 0:
        usual = b" " if solid[-1:] in b",:" else b""
    else:
        after = solid[before + 1 :]
        usual = after[: len(after) - len(after.lstrip(_SPACES))]
    return usual[len(typed) : len(typed) + 1] if usual.startswith(typed) else b""


def _count(mask: Words) -> int:
    return int(np.unpackbits(mask.view(np.uint8)).sum())
