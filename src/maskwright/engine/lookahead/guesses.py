"""Drafts of the exact sampler: tokens that are likely to follow a prefix, read in the forward that reads the prefix.

A draft only says what is read early. The samples are the same with any drafts or none; good ones save forwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from maskwright.engine.bitsets import bits
from maskwright.engine.drafts import Spans

if TYPE_CHECKING:
    from maskwright.engine.bitsets import Words
    from maskwright.engine.lookahead.base import Base
    from maskwright.engine.lookahead.trie import Node, Trie
    from maskwright.engine.request import Guide
    from maskwright.engine.row import Row

__all__ = ["Guesses"]

_LONGEST = 12
_SAMPLES = 16  # accepted outputs that are looked at for a continuation


@dataclass(slots=True)
class _Place:
    """What `Spans` asks of a row."""

    matcher: Guide
    mask: Words
    final_text: str
    missed: bool = False


class Guesses:
    """Drafts what the constraint nearly determines, else what followed the same tokens in an output drawn before.

    Args:
        base: the law.
        trie: whose accepted outputs are looked at.
    """

    def __init__(self, base: Base, trie: Trie) -> None:
        self._base, self._trie = base, trie
        self._spans = Spans(base.model)

    def __call__(self, node: Node) -> Sequence[int]:
        """The tokens that are likely to follow."""
        found = self._determined(node)
        return found if len(found) else self._repeated(node)

    def _determined(self, node: Node) -> Sequence[int]:
        if not len(node.ids) or len(node.ids) > 192:
            return ()
        text = self._base.text_of(node.output()).decode(errors="replace")
        place = _Place(node.guide, bits(node.ids.tolist(), self._base.width), text)
        found = self._spans(cast("Row", place))
        return found if found else self._only(node)

    def _only(self, node: Node) -> list[int]:
        """The token that must follow, where there is one."""
        first = int(node.ids[0])
        return [first] if len(node.ids) == 1 and first not in self._trie.eos else []

    def _repeated(self, node: Node) -> Sequence[int]:
        """What followed the last two tokens, or the last one, in the newest output that has them."""
        output = node.output()
        for size in (2, 1):
            last = output[-size:]
            if len(last) < size:
                continue
            for accepted in reversed(self._trie.accepted[-_SAMPLES:]):
                starts = np.flatnonzero(np.array(accepted[: len(accepted) - size]) == last[0])
                for at in starts.tolist():
                    if list(accepted[at : at + size]) == last:
                        return accepted[at + size : at + size + _LONGEST]
        return ()
