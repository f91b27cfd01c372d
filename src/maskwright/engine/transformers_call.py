"""How the forward of a Hugging Face model is called, and with which rectangles of ids."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch

from maskwright.engine.trees import depths, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from maskwright.engine.transformers_model import TransformersModel

__all__ = ["Batch", "Call", "inspect_forward", "tree_batch", "trees_agree"]

# Keys and values that can be forked and cut. Sliding layers are kept whole here and the
# window left to the attention mask; recurrent states and compressed keys cannot be.
_FORKABLE: Final = frozenset({"DynamicLayer", "DynamicSlidingWindowLayer"})
# A tree and its paths one by one differ by rounding alone.
_TREE_TOLERANCE: Final = 0.05


class Batch:
    """New tokens of ragged rows as one rectangle behind ``columns`` stored columns.

    Rows end at the last stored column, so new tokens stand at the left of the rectangle and
    the padding at the right. Without stored columns it is the other way round: then the last
    column holds the last token of every row, and rows stay aligned.
    """

    def __init__(self, tokens: Sequence[Sequence[int]], lengths: Sequence[int], columns: int) -> None:
        counts = [len(row) for row in tokens]
        width = max(counts)
        shape = (len(tokens), width)
        self.ids = torch.zeros(shape, dtype=torch.long)
        self.positions = torch.zeros(shape, dtype=torch.long)
        self.mask = torch.zeros((len(tokens), columns + width), dtype=torch.long)
        self.starts: list[int] = []
        self.ends: list[int] = []  # in the rectangle, exclusive
        for row, (new, length, count) in enumerate(zip(tokens, lengths, counts, strict=True)):
            begin = 0 if columns else width - count
            self.ids[row, begin : begin + count] = torch.tensor(list(new))
            self.positions[row, begin : begin + count] = torch.arange(length, length + count)
            self.mask[row, columns + begin - length : columns + begin + count] = 1
            self.starts.append(columns + begin - length)
            self.ends.append(begin + count)

    def every_column(self) -> list[int]:
        """All columns of the rectangle."""
        return list(range(self.ids.shape[1]))

    def last_columns(self) -> list[int]:
        """The columns of the last tokens."""
        return sorted({end - 1 for end in self.ends})


@dataclass(frozen=True)
class Call:
    """How a model's forward is called.

    Attributes:
        cache: the name of its cache argument; None if a ``DynamicCache`` will not do.
        takes_positions: whether ``position_ids`` can be given (else they follow from the mask).
        takes_logits_to_keep: whether logits can be asked for at some columns only.
    """

    cache: str | None
    takes_positions: bool
    takes_logits_to_keep: bool

    def new_store(self) -> Any:
        """An empty cache of the library."""
        from transformers import DynamicCache

        return DynamicCache()


def inspect_forward(model: Any) -> Call:
    """How this model's forward can be called."""
    names = set(inspect.signature(model.forward).parameters)
    cache = next((name for name in ("cache", "past_key_values") if name in names), None)
    if cache is not None and (getattr(model, "_is_stateful", False) or not _is_forkable(model.config)):
        cache = None
    return Call(cache, "position_ids" in names, "logits_to_keep" in names)


def _is_forkable(config: Any) -> bool:
    """Whether all layers keep plain keys and values, by what the library would use for them."""
    return all(type(layer).__name__ in _FORKABLE for layer in default_layers(config))


def tree_batch(
    tokens: Sequence[Sequence[int]],
    parents: Sequence[Sequence[int]],
    lengths: Sequence[int],
    columns: int,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """Ids and positions ``(B, n)`` of trees behind rows that end at the last of ``columns``, and what each node sees.

    Returns:
        ids, positions, and a mask ``(B, 1, n, columns + n)`` of 0 and the least number of ``dtype``.
    """
    width = max(map(len, tokens))
    ids = torch.zeros((len(tokens), width), dtype=torch.long)
    positions = torch.zeros_like(ids)
    seen = torch.zeros((len(tokens), width, columns + width), dtype=torch.bool)
    seen[:, :, columns:] = torch.eye(width, dtype=torch.bool)  # padding sees itself: a row of nothing would be NaN
    for row, (nodes, tree, length) in enumerate(zip(tokens, parents, lengths, strict=True)):
        count = len(nodes)
        ids[row, :count] = torch.tensor(list(nodes))
        positions[row, :count] = length + torch.tensor(depths(tree))
        seen[row, :count, columns - length : columns] = True
        seen[row, :count, columns : columns + count] = visible(tree)
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
    return ids, positions, mask.unsqueeze(1)


def trees_agree(model: TransformersModel) -> bool:
    """Whether a small tree is read as its paths are: masks given from outside are honoured, windows do not cut."""
    if not model._call.takes_positions or any(
        type(layer).__name__ != "DynamicLayer" for layer in default_layers(model.model.config)
    ):
        return False
    ids = [i % model._width for i in (1, 2, 3, 5, 8, 13, 21)]
    try:
        cache = model.new_cache(2)
        model.forward([ids[:3], ids[:1]], cache)
        found = model.forward_tree([ids[3:], ids[3:5]], [[-1, 0, 0, 1], [-1, -1]], cache)
        cache.keep([[0, 2], [1]])
        after = model.forward([ids[:1], ids[:1]], cache)
        paths = [[*ids[:3], ids[3], ids[4], ids[6]], [*ids[:3], ids[3], ids[5], ids[0]], [ids[0], ids[4], ids[0]]]
        read = model.forward_all(paths, model.new_cache(3))
    except (RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError):
        return False
    pairs = [
        (found[0][1], read[0][4]), (found[0][3], read[0][5]), (found[0][2], read[1][4]),
        (after[0], read[1][5]), (found[1][1], read[2][1]), (after[1], read[2][2]),
    ]  # fmt: skip
    scale = max(float(want.abs().max()) for _, want in pairs)
    return all(float((got - want).abs().max()) <= _TREE_TOLERANCE * (1 + scale) for got, want in pairs)


def default_layers(config: Any) -> list[Any]:
    """The cache layers that the library would use for a model; none where it cannot tell."""
    from transformers import DynamicCache

    try:
        return list(DynamicCache(config=config).layers)
    except (TypeError, AttributeError, KeyError, ValueError):  # a release without the argument, an unknown layer type
        return [None]
