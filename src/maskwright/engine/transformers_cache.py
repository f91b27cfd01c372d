"""The cache of a Hugging Face model, with rows of different lengths.

A ``DynamicCache`` holds, per layer, keys and values of one common length; a row that is
shorter leaves columns unused. Here the columns of a row are always contiguous, and before
new tokens are appended all rows are moved so that they end at the same column: sliding
windows and relative positions then see what they would see in a row of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from maskwright.engine.blocks import joined_holds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from maskwright.engine.blocks import Holds

__all__ = ["TransformersCache"]


@dataclass(frozen=True)
class _PendingTree:
    """Nodes that the store holds and no row does, from a column on."""

    tokens: Sequence[Sequence[int]]
    columns: int


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
        self.holds: Holds | None = None
        self.cached_tokens: tuple[int, ...] = (0,) * len(tokens)
        self._tree: _PendingTree | None = None

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
        self.drop_tree()
        index = torch.tensor(list(rows), dtype=torch.long)
        store = self._rebuilt(lambda states: states.index_select(0, index.to(states.device))) if rows else None
        twin = TransformersCache([list(self.tokens[row]) for row in rows], [self.starts[row] for row in rows], store)
        twin.holds = None if self.holds is None else self.holds.fork(rows)
        twin.cached_tokens = tuple(self.cached_tokens[row] for row in rows)
        return twin

    def select(self, rows: Sequence[int]) -> None:
        """See :meth:`maskwright.engine.model.Cache.select`."""
        if list(rows) == list(range(len(self.tokens))):
            return
        twin = self.fork(rows)
        self.tokens, self.starts, self.store = twin.tokens, twin.starts, twin.store
        self.holds, self.cached_tokens = twin.holds, twin.cached_tokens

    def join(self, other: TransformersCache) -> None:
        """See :meth:`maskwright.engine.model.GrowingCache.join`."""
        self.align()
        other.align()
        self.holds = joined_holds(self.holds, len(self.tokens), other.holds, len(other.tokens))
        width = max(self.columns, other.columns)
        self.store = _stacked(self, other, width)
        self.tokens += other.tokens
        self.starts = [width - len(row) for row in self.tokens] if self.store is not None else [0] * len(self.tokens)
        self.cached_tokens += other.cached_tokens

    def truncate(self, lengths: Sequence[int]) -> None:
        """See :meth:`maskwright.engine.model.Cache.truncate`."""
        if len(lengths) != len(self.tokens):
            raise ValueError(f"got {len(lengths)} lengths for {len(self.tokens)} rows")
        for row, (new, old) in enumerate(zip(lengths, self.lengths, strict=True)):
            if not 0 <= new <= old:
                raise ValueError(f"row {row} holds {old} tokens and cannot be truncated to {new}")
        # The columns stay until the next append, which has to move them anyway.
        self.tokens = [row[:length] for row, length in zip(self.tokens, lengths, strict=True)]
        if self.holds is not None:
            self.holds.truncate(lengths)

    def hold_tree(self, tokens: Sequence[Sequence[int]], columns: int) -> None:
        """Notes that the columns from ``columns`` on are the nodes of a tree."""
        self._tree = _PendingTree(tokens, columns)

    def drop_tree(self) -> None:
        """Forgets a tree of which nothing was kept."""
        if self._tree is not None:
            columns, self._tree = self._tree.columns, None
            self.crop(columns)

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Appends the nodes of a path in each row, of those that the last tree left behind the rows."""
        if self._tree is None:
            raise ValueError("there is no tree to keep a path of")
        tree, self._tree = self._tree, None
        lengths = [held + len(path) for held, path in zip(self.lengths, paths, strict=True)]
        width = max(lengths)
        source = torch.zeros((len(paths), width), dtype=torch.long)
        for row, path in enumerate(paths):
            columns = [*range(self.starts[row], self.starts[row] + len(self.tokens[row]))]
            columns += [tree.columns + node for node in path]
            source[row, width - len(columns) :] = torch.tensor(columns, dtype=torch.long)
            self.tokens[row].extend(tree.tokens[row][node] for node in path)
        self.store = self._rebuilt(lambda states: _gather_columns(states, source)) if width else None
        self.starts = [width - length for length in lengths]

    def read_block(self, row: int, begin: int, end: int) -> list[tuple[Tensor, Tensor]]:
        """Copies of the keys and values of some positions of a row, one pair ``(K, end - begin, D)`` per layer."""
        here = slice(self.starts[row] + begin, self.starts[row] + end)
        return [(layer.keys[row, :, here].clone(), layer.values[row, :, here].clone()) for layer in self.store.layers]

    def load_blocks(
        self, rows: Sequence[Sequence[list[tuple[Tensor, Tensor]]]], tokens: Sequence[Sequence[int]]
    ) -> None:
        """Fills empty rows with blocks of :meth:`read_block`, which are of these tokens."""
        from transformers import DynamicCache

        self.tokens = [list(row) for row in tokens]
        lengths = [sum(block[0][0].shape[1] for block in blocks) for blocks in rows]
        width, some = max(lengths), next(blocks[0] for blocks in rows if blocks)
        self.starts, self.store = [width - length for length in lengths], DynamicCache()
        self.cached_tokens = tuple(lengths)
        for layer, pair in enumerate(some):
            joined = []
            for at, like in enumerate(pair):
                states = like.new_zeros(len(rows), like.shape[0], width, like.shape[2])
                for row, blocks in enumerate(rows):
                    if blocks:
                        states[row, :, self.starts[row] :] = torch.cat([block[layer][at] for block in blocks], dim=1)
                joined.append(states)
            self.store.update(*joined, layer)

    def align(self) -> None:
        """Makes all rows end at the last column and the longest begin at the first."""
        self.drop_tree()
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


def _stacked(one: TransformersCache, other: TransformersCache, width: int) -> Any:
    """The rows of two aligned caches in one store whose columns are all needed; None where there are none."""
    from transformers import DynamicCache

    like = one.store or other.store
    if like is None:
        return None
    fresh = DynamicCache()
    for index, layer in enumerate(like.layers):
        if isinstance(layer.keys, torch.Tensor):
            keys, values = (
                torch.cat([_widened(cache, index, name, width, getattr(layer, name)) for cache in (one, other)])
                for name in ("keys", "values")
            )
            fresh.update(keys, values, index)
    return fresh


def _widened(cache: TransformersCache, layer: int, name: str, width: int, like: Tensor) -> Tensor:
    """Keys or values of a layer with zeros before, so that there are ``width`` columns."""
    rows = len(cache.tokens)
    if cache.store is None:
        return like.new_zeros(rows, like.shape[1], width, like.shape[3])
    states: Tensor = getattr(cache.store.layers[layer], name)
    return torch.nn.functional.pad(states, (0, 0, width - states.shape[2], 0))


def _gather_columns(states: Tensor, source: Tensor) -> Tensor:
    """Column ``source[b, c]`` of row b becomes column c: ``(B, K, S, D)`` -> ``(B, K, c, D)``."""
    index = source.to(states.device)[:, None, :, None]
    return states.gather(2, index.expand(-1, states.shape[1], -1, states.shape[3]))
