"""The cache of a Hugging Face model, with rows of different lengths.

A ``DynamicCache`` holds, per layer, keys and values of one common length; a row that is
shorter leaves columns unused. Here the columns of a row are always contiguous, and before
new tokens are appended all rows are moved so that they end at the same column: sliding
windows and relative positions then see what they would see in a row of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

__all__ = ["TransformersCache"]


class TransformersCache:
    """See :class:`maskwright.engine.model.Cache`, which this implements.

    Attributes:
        tokens: the token ids of each row; all there is for models whose cache cannot be
            forked and truncated, which compute every row anew.
        store: the ``DynamicCache``, or None while it is empty or not used.
        starts: the column where each row begins.
    """

    def __init__(self, tokens: list[list[int]], starts: list[int], store: Any = None) -> None:
        self.tokens = tokens
        self.starts = starts
        self.store = store

    @property
    def lengths(self) -> tuple[int, ...]:
        """See :attr:`maskwright.engine.model.Cache.lengths`."""
        return tuple(map(len, self.tokens))

    @property
    def columns(self) -> int:
        """The common length of the stored keys."""
        return 0 if self.store is None else int(self.store.get_seq_length())

    def fork(self, rows: Sequence[int]) -> TransformersCache:
        """See :meth:`maskwright.engine.model.Cache.fork`."""
        index = torch.tensor(list(rows), dtype=torch.long)
        store = self._rebuilt(lambda states: states.index_select(0, index.to(states.device))) if rows else None
        return TransformersCache([list(self.tokens[row]) for row in rows], [self.starts[row] for row in rows], store)

    def select(self, rows: Sequence[int]) -> None:
        """See :meth:`maskwright.engine.model.Cache.select`."""
        if list(rows) == list(range(len(self.tokens))):
            return
        twin = self.fork(rows)
        self.tokens, self.starts, self.store = twin.tokens, twin.starts, twin.store

    def truncate(self, lengths: Sequence[int]) -> None:
        """See :meth:`maskwright.engine.model.Cache.truncate`."""
        if len(lengths) != len(self.tokens):
            raise ValueError(f"got {len(lengths)} lengths for {len(self.tokens)} rows")
        for row, (new, old) in enumerate(zip(lengths, self.lengths, strict=True)):
            if not 0 <= new <= old:
                raise ValueError(f"row {row} holds {old} tokens and cannot be truncated to {new}")
        # The columns stay until the next append, which has to move them anyway.
        self.tokens = [row[:length] for row, length in zip(self.tokens, lengths, strict=True)]

    def align(self) -> None:
        """Makes all rows end at the last column and the longest begin at the first."""
        if self.store is None:
            return
        lengths = self.lengths
        width = max(lengths)
        if width == 0:
            self.store, self.starts = None, [0] * len(lengths)
            return
        starts = [width - length for length in lengths]
        if len({start - old for start, old in zip(starts, self.starts, strict=True)}) == 1:
            first = self.starts[0] - starts[0]
            if first or width != self.columns:
                self.store = self._rebuilt(lambda states: states[:, :, first : first + width])
        else:
            shift = torch.tensor([old - start for start, old in zip(starts, self.starts, strict=True)])
            source = (torch.arange(width) + shift.unsqueeze(1)).clamp_min_(0)
            self.store = self._rebuilt(lambda states: _gather_columns(states, source))
        self.starts = starts

    def crop(self, columns: int) -> None:
        """Drops what an interrupted forward has appended to some layers."""
        self.store = self._rebuilt(lambda states: states[:, :, :columns]) if columns else None

    def _rebuilt(self, change: Callable[[Tensor], Tensor]) -> Any:
        """A new ``DynamicCache`` of the changed keys and values."""
        if self.store is None:
            return None
        from transformers import DynamicCache

        fresh = DynamicCache()
        for index, layer in enumerate(self.store.layers):
            if isinstance(layer.keys, torch.Tensor):
                fresh.update(change(layer.keys), change(layer.values), index)
        return fresh


def _gather_columns(states: Tensor, source: Tensor) -> Tensor:
    """Column ``source[b, c]`` of row b becomes column c: ``(B, K, S, D)`` -> ``(B, K, c, D)``."""
    index = source.to(states.device)[:, None, :, None]
    return states.gather(2, index.expand(-1, states.shape[1], -1, states.shape[3]))
