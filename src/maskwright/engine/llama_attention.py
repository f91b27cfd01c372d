"""Attention of the Llama of this package: rows of different lengths, trees of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from maskwright.engine.trees import depths, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from maskwright.engine.llama import LlamaConfig
    from maskwright.engine.llama_cache import LlamaCache

__all__ = ["Attention", "Piece", "rows_that_end", "waves"]


@dataclass(frozen=True)
class Piece:
    """``count`` of a row's new tokens, from its ``first`` new one on."""

    row: int
    first: int
    count: int


class Attention:
    """Attention of one wave against the cache, the same for every layer."""

    def __init__(
        self, config: LlamaConfig, wave: list[Piece], cache: LlamaCache, parents: Sequence[Sequence[int]] | None = None
    ) -> None:
        self.cache = cache
        self.wave = wave
        self.kv_heads = config.head_count_kv
        self.group = config.head_count // config.head_count_kv
        starts = [cache.held[piece.row] for piece in wave]
        self.ends = [start + piece.count for start, piece in zip(starts, wave, strict=True)]
        cache.reserve(max(self.ends))
        device = cache.data.device
        spans = [torch.arange(start, end) for start, end in zip(starts, self.ends, strict=True)]
        self.slots = torch.cat(spans).to(device)
        self.positions = self.slots
        rows = [piece.row for piece in wave]
        counts = [piece.count for piece in wave]
        # All rows with equally many tokens go through one call, others row by row.
        self.together = parents is None and rows == list(range(len(cache.held))) and len(set(counts)) == 1
        self.same_start = starts[0] if len(set(starts)) == 1 else None
        self.owners = torch.repeat_interleave(torch.tensor(rows), torch.tensor(counts)).to(device)
        self.masks: list[Tensor | None]
        if parents is not None:
            trees = [parents[row] for row in rows]
            deep = [start + torch.tensor(depths(tree)) for start, tree in zip(starts, trees, strict=True)]
            self.positions = torch.cat(deep).to(device)
            self.masks = [
                _tree_mask(tree, start, self.group, cache.data.dtype, device)
                for tree, start in zip(trees, starts, strict=True)
            ]
            return
        if self.together:
            views = [(self.positions.view(len(rows), counts[0]), max(self.ends))]
        else:
            views = [(span.to(device).unsqueeze(0), int(span[-1]) + 1) for span in spans]
        self.masks = [_causal_mask(view, length, self.group, cache.data.dtype) for view, length in views]

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Writes keys and values ``(T, K, D)``, attends with queries ``(T, H, D)``: ``(T, H D)``."""
        stored_keys, stored_values = self.cache.data[0, layer], self.cache.data[1, layer]
        self._store(stored_keys, keys)
        self._store(stored_values, values)
        if self.together:
            batch, end = len(self.wave), max(self.ends)
            return self._mix(
                queries, stored_keys[:batch, :, :end], stored_values[:batch, :, :end], self.masks[0], batch
            )
        mixed = []
        parts = torch.split(queries, [piece.count for piece in self.wave])
        for piece, end, part, mask in zip(self.wave, self.ends, parts, self.masks, strict=True):
            here = slice(piece.row, piece.row + 1)
            mixed.append(self._mix(part, stored_keys[here, :, :end], stored_values[here, :, :end], mask, 1))
        return torch.cat(mixed)

    def _store(self, stored: Tensor, new: Tensor) -> None:
        """Writes ``(T, K, D)`` into ``(B or more, K, capacity, D)``."""
        if self.together and self.same_start is not None:
            batch = len(self.wave)
            stored[:batch, :, self.same_start : self.ends[0]] = new.view(batch, -1, *new.shape[1:]).transpose(1, 2)
        else:
            stored[self.owners, :, self.slots] = new

    def _mix(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, batch: int) -> Tensor:
        # The query heads that share a key head are laid out as further query positions:
        # keys and values need not be repeated.
        size = queries.shape[-1]
        split = queries.view(batch, -1, self.kv_heads, self.group, size).permute(0, 2, 3, 1, 4)
        count = split.shape[3]
        stacked = split.reshape(batch, self.kv_heads, self.group * count, size)
        mixed = functional.scaled_dot_product_attention(stacked, keys, values, attn_mask=mask)
        mixed = mixed.view(batch, self.kv_heads, self.group, count, size).permute(0, 3, 1, 2, 4)
        return mixed.reshape(batch * count, -1)

    def commit(self) -> None:
        """Records the new lengths; until then the cache reads as before."""
        for piece, end in zip(self.wave, self.ends, strict=True):
            self.cache.held[piece.row] = end


def waves(counts: Sequence[int], budget: int) -> Iterator[list[Piece]]:
    """Cuts the new tokens of all rows, in order, into passes of at most ``budget`` tokens.

    A batch with more rows than that still advances in one pass.
    """
    budget = max(budget, len(counts))
    wave: list[Piece] = []
    room = budget
    for row, count in enumerate(counts):
        done = 0
        while done < count:
            take = min(count - done, room)
            wave.append(Piece(row, done, take))
            done += take
            room -= take
            if room == 0:
                yield wave
                wave, room = [], budget
    if wave:
        yield wave


def rows_that_end(hidden: Tensor, wave: list[Piece], counts: Sequence[int]) -> Tensor:
    """The states at the last new token of each row that ends in this wave."""
    last = []
    offset = 0
    for piece in wave:
        offset += piece.count
        if piece.first + piece.count == counts[piece.row]:
            last.append(offset - 1)
    if len(last) == len(hidden):
        return hidden
    return hidden[torch.tensor(last, dtype=torch.long, device=hidden.device)]


def _causal_mask(positions: Tensor, length: int, group: int, dtype: torch.dtype) -> Tensor | None:
    """What queries at ``positions`` ``(B, n)`` may not see: ``(B, 1, group n, length)`` of 0 and -inf.

    None where every query sees all ``length`` keys.
    """
    if positions.shape[1] == 1 and int(positions.min()) == length - 1:
        return None
    hidden = torch.arange(length, device=positions.device) > positions.unsqueeze(-1)
    mask = torch.zeros(hidden.shape, dtype=dtype, device=positions.device).masked_fill_(hidden, -torch.inf)
    return mask.repeat(1, group, 1).unsqueeze(1)


def _tree_mask(parents: Sequence[int], held: int, group: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What the nodes of a tree behind ``held`` tokens may not see: ``(1, 1, group n, held + n)`` of 0 and -inf."""
    seen = visible(parents)
    mask = torch.zeros((len(parents), held + len(parents)), dtype=dtype)
    mask[:, held:].masked_fill_(~seen, -torch.inf)
    return mask.repeat(group, 1).unsqueeze(0).unsqueeze(0).to(device)
