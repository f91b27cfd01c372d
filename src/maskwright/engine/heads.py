"""Logits of the tokens that a mask allows, where these are few.

The head of a small model is a good part of its weights, and a decode step reads all of it. Where a mask leaves few
tokens, their rows of the head decide which one comes. What else a step tells (the probability of the token among all,
the mass that the mask kept) is computed at the end of the output, for all such places in one product.

Models offer it by ``splits_head``, ``forward_states`` and ``logits_of``; see `maskwright.engine.native.NativeModel`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from maskwright.engine.draw import Draw, measure

if TYPE_CHECKING:
    from torch import Tensor

    from maskwright.engine.bitsets import Words
    from maskwright.engine.row import Row
    from maskwright.errors import GenerationError

__all__ = ["Postponed", "Split"]

# Tokens allowed at a place, and at all such places of a step together.
_FEW, _FEW_TOGETHER = 128, 1024
_AT_ONCE = 64  # places whose full logits are computed in one product


@dataclass(frozen=True, slots=True)
class Postponed:
    """What a place needs to be measured later."""

    state: Tensor
    mask: Words


class Split:
    """The head of a model, asked for as little as a step needs.

    Args:
        model: with ``logits_of``.
        size: of the vocabulary.
    """

    def __init__(self, model: Any, size: int) -> None:
        self._model = model
        self._size = size

    def logits(self, states: Tensor, masks: Sequence[Words | None]) -> tuple[Tensor, set[int]]:
        """Logits ``(n, V)`` at some places, and at which of them only those of allowed tokens are there (else -inf).

        Places without a mask get all: so must those with rules that look at all logits, such as penalties.
        """
        few = {at for at, mask in enumerate(masks) if mask is not None and 0 < _count(mask) <= _FEW}
        ids = _union([mask for at, mask in enumerate(masks) if at in few and mask is not None], self._size)
        if not few or len(ids) > _FEW_TOGETHER:
            return self._model.logits_of(states)[:, : self._size], set()
        whole = [at for at in range(len(masks)) if at not in few]
        some = sorted(few)
        logits = torch.full((len(masks), self._size), -math.inf)
        if whole:
            logits[whole] = self._model.logits_of(states[whole])[:, : self._size]
        found = torch.full((len(some), self._size), -math.inf)
        found[:, ids] = self._model.logits_of(states[some], ids)
        logits[some] = found
        return logits, few

    def postpone(
        self, draws: list[Draw | GenerationError], few: set[int], states: Tensor, masks: Sequence[Words | None]
    ) -> None:
        """Marks the draws at places where most logits were not computed."""
        for at in few:
            each, mask = draws[at], masks[at]
            if isinstance(each, Draw) and mask is not None:
                draws[at] = Draw(each.token, math.nan, math.nan, postponed=Postponed(states[at].clone(), mask))

    def settle(self, row: Row) -> None:
        """Measures what was postponed in an ended row."""
        pending = [(at, draw.postponed) for at, draw in enumerate(row.draws) if draw.postponed is not None]
        for begin in range(0, len(pending), _AT_ONCE):
            part = pending[begin : begin + _AT_ONCE]
            logits = self._model.logits_of(torch.stack([each.state for _, each in part]))[:, : self._size]
            masks = np.stack([each.mask for _, each in part]).view(np.int32)
            tokens = [row.draws[at].token for at, _ in part]
            found = measure(logits, row.sampling, torch.from_numpy(masks), tokens)
            for (at, _), draw in zip(part, found, strict=True):
                row.draws[at] = replace(draw, postponed=None)


def _count(mask: Words) -> int:
    return int(np.unpackbits(mask.view(np.uint8)).sum())


def _union(masks: Sequence[Words], size: int) -> Tensor:
    if not masks:
        return torch.zeros(0, dtype=torch.long)
    together = np.bitwise_or.reduce(np.stack(masks))
    ids = np.flatnonzero(np.unpackbits(together.view(np.uint8), bitorder="little")[:size])
    return torch.from_numpy(ids)
