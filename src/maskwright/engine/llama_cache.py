"""Keys and values of the Llama of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

from maskwright.engine.blocks import joined_holds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from maskwright.engine.blocks import Holds
    from maskwright.engine.llama import LlamaConfig

__all__ = ["LlamaCache"]

_FIRST_CAPACITY: Final = 128


class LlamaCache:
    """Keys and values of ``B`` rows in one tensor, each row from position 0 on.

    What lies behind a row's length, or behind the last row, is old or zero, never read, and always finite.
    """

    def __init__(self, config: LlamaConfig, batch: int, dtype: torch.dtype, device: torch.device) -> None:
        shape = (2, config.block_count, batch, config.head_count_kv, 0, config.head_size)
        self.held = [0] * batch
        self.holds: Holds | None = None
        self.cached_tokens: tuple[int, ...] = (0,) * batch
        self.data = torch.zeros(shape, dtype=dtype, device=device)
        self._limit = config.context_length

    @property
    def lengths(self) -> tuple[int, ...]:
        """See :attr:`maskwright.engine.model.Cache.lengths`."""
        return tuple(self.held)

    def fork(self, rows: Sequence[int]) -> LlamaCache:
        """See :meth:`maskwright.engine.model.Cache.fork`."""
        twin = LlamaCache.__new__(LlamaCache)
        twin.held = [self.held[row] for row in rows]
        twin._limit = self._limit
        twin.holds = None if self.holds is None else self.holds.fork(rows)
        twin.cached_tokens = tuple(self.cached_tokens[row] for row in rows)
        used = max(twin.held, default=0)
        index = torch.tensor(list(rows), dtype=torch.long, device=self.data.device)
        twin.data = self.data[:, :, :, :, :used].index_select(2, index)
        return twin

    def select(self, rows: Sequence[int]) -> None:
        """See :meth:`maskwright.engine.model.Cache.select`."""
        if list(rows) == list(range(len(self.held))):
            return
        moves = [(to, at) for to, at in enumerate(rows) if to != at]
        if 4 * len(rows) <= self.data.shape[2] or {to for to, _ in moves} & {*rows, *range(len(self.held), len(rows))}:
            twin = self.fork(rows)
            if len(rows) == len(self.held):  # beams that reorder: the room behind the rows is kept
                self.data[:, :, : len(rows), :, : twin.data.shape[4]] = twin.data
                twin.data = self.data
            self.held, self.data, self.holds, self.cached_tokens = twin.held, twin.data, twin.holds, twin.cached_tokens
            return
        for to, at in moves:  # nobody wants what these rows hold
            length = self.held[at]
            self.data[:, :, to, :, :length] = self.data[:, :, at, :, :length]
        self.holds = None if self.holds is None else self.holds.fork(rows)
        self.held = [self.held[row] for row in rows]
        self.cached_tokens = tuple(self.cached_tokens[row] for row in rows)

    def join(self, other: LlamaCache) -> None:
        """See :meth:`maskwright.engine.model.GrowingCache.join`."""
        count = len(self.held)
        self._reserve_rows(count + len(other.held))
        self.reserve(max(other.held, default=0))
        for row, length in enumerate(other.held):
            self.data[:, :, count + row, :, :length] = other.data[:, :, row, :, :length]
        self.holds = joined_holds(self.holds, count, other.holds, len(other.held))
        self.held += other.held
        self.cached_tokens += other.cached_tokens

    def truncate(self, lengths: Sequence[int]) -> None:
        """See :meth:`maskwright.engine.model.Cache.truncate`."""
        if len(lengths) != len(self.held):
            raise ValueError(f"got {len(lengths)} lengths for {len(self.held)} rows")
        for row, (new, old) in enumerate(zip(lengths, self.held, strict=True)):
            if not 0 <= new <= old:
                raise ValueError(f"row {row} holds {old} tokens and cannot be truncated to {new}")
        self.held = list(lengths)
        if self.holds is not None:
            self.holds.truncate(lengths)

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Appends the nodes of a path in each row, of those that the last tree left behind the rows."""
        for row, path in enumerate(paths):
            begin = self.held[row]
            if path:
                index = torch.tensor([begin + node for node in path], device=self.data.device)
                self.data[:, :, row, :, begin : begin + len(path)] = self.data[:, :, row].index_select(3, index)
            self.held[row] = begin + len(path)

    def read_block(self, row: int, begin: int, end: int) -> Tensor:
        """A copy of the keys and values of some positions of a row, ``(2, layers, K, end - begin, D)``."""
        return self.data[:, :, row, :, begin:end].clone()

    def load_blocks(self, rows: Sequence[Sequence[Tensor]], tokens: Sequence[Sequence[int]]) -> None:
        """Fills empty rows with blocks of :meth:`read_block`, which are of these tokens."""
        lengths = [sum(block.shape[3] for block in blocks) for blocks in rows]
        self.reserve(max(lengths))
        for row, blocks in enumerate(rows):
            if blocks:
                self.data[:, :, row, :, : lengths[row]] = torch.cat(list(blocks), dim=3)
        self.held, self.cached_tokens = lengths, tuple(lengths)

    def reserve(self, length: int) -> None:
        """Makes room for rows of ``length`` tokens, doubling so that decoding rarely copies."""
        capacity = self.data.shape[4]
        if length <= capacity:
            return
        grown = min(max(length, 2 * capacity, _FIRST_CAPACITY), max(self._limit, length))
        self._grow(4, grown)

    def _reserve_rows(self, count: int) -> None:
        """Makes room for rows, doubling so that joining rarely copies."""
        if count > self.data.shape[2]:
            self._grow(2, max(count, 2 * self.data.shape[2]))

    def _grow(self, dimension: int, size: int) -> None:
        shape = list(self.data.shape)
        shape[dimension] = size
        # Zeros, not uninitialised memory: a masked position has weight 0, and 0 times NaN is NaN.
        fresh = torch.zeros(shape, dtype=self.data.dtype, device=self.data.device)
        fresh.narrow(dimension, 0, self.data.shape[dimension]).copy_(self.data)
        self.data = fresh
