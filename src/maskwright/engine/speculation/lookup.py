"""Prompt lookup: what followed the last tokens where they came before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maskwright.engine.row import Row
    from maskwright.engine.speculation.options import PromptLookup

__all__ = ["Lookup"]

_KEPT = 8  # places remembered of each run of tokens, the latest


class Lookup:
    """An index of the runs of tokens of a text that grows.

    Args:
        how: the lengths of runs.
        before: tokens of another text, which the runs of this one do not span into.
    """

    def __init__(self, how: PromptLookup, before: Sequence[int] = ()) -> None:
        self._sizes = range(how.longest, how.shortest - 1, -1)
        self._tokens: list[int] = []
        self._starts = len(before)
        self._places: dict[tuple[int, ...], list[int]] = {}
        self._indexed = 0
        self.extend(before)

    def extend(self, tokens: Sequence[int]) -> None:
        """Appends tokens."""
        self._tokens += tokens

    def __len__(self) -> int:
        return len(self._tokens) - self._starts

    def follow(self, width: int, length: int) -> list[list[int]]:
        """Up to `width` continuations of the text, of up to `length` tokens, that begin with different tokens."""
        self._index()
        found: dict[int, list[int]] = {}
        for size in self._sizes if length else ():
            for end in reversed(self._places.get(tuple(self._tokens[-size:]), ())):
                follows = self._tokens[end : end + length]
                if len(found) < width:
                    found.setdefault(follows[0], follows)
        return list(found.values())

    def _index(self) -> None:
        """Notes the runs that end before the last token: those that something follows."""
        for end in range(self._indexed, len(self._tokens) - 1):
            for size in self._sizes:
                begin = end + 1 - size
                if begin >= 0 and not begin < self._starts <= end:
                    places = self._places.setdefault(tuple(self._tokens[begin : end + 1]), [])
                    places.append(end + 1)
                    del places[:-_KEPT]
        self._indexed = max(self._indexed, len(self._tokens) - 1)


def up_to_date(lookup: Lookup, row: Row) -> Lookup:
    """The index of a row's text, with what it has now."""
    known, held = row.request.read_first, len(lookup)
    if held < len(known):
        lookup.extend(known[held:])
        held = len(known)
    lookup.extend(row.tokens[held - len(known) :])
    return lookup
