"""Counted n-grams as a language model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Counts"]


class Counts:
    """How often each token followed each run of up to ``order - 1`` tokens.

    Args:
        order: the longest run counted, what follows included.
        size: of the vocabulary.
    """

    def __init__(self, order: int, size: int) -> None:
        self._order = order
        self._size = size
        self._after: list[dict[tuple[int, ...], dict[int, int]]] = [{} for _ in range(order)]
        self._last: list[int] = []
        self.read = 0

    def extend(self, tokens: Sequence[int]) -> None:
        """Counts further tokens of the text."""
        text = [*self._last, *tokens]
        old = len(self._last)
        for length in range(self._order):
            begin = max(0, old - length)
            grams = zip(*(text[begin + i :] for i in range(length + 1)), strict=False)
            after = self._after[length]
            for gram, count in Counter(grams).items():
                here = after.setdefault(gram[:-1], {})
                here[gram[-1]] = here.get(gram[-1], 0) + count
        self._last = text[-(self._order - 1) :] if self._order > 1 else []
        self.read += len(tokens)

    def logits(self, tokens: Sequence[int]) -> Tensor:
        """Log-probabilities of what follows these tokens, float32 ``(V,)``, all finite."""
        p = torch.full((self._size,), 1.0 / self._size, dtype=torch.float64)
        for length in range(min(self._order, len(tokens) + 1)):
            found = self._after[length].get(tuple(tokens[len(tokens) - length :]))
            if not found:
                break
            # Witten and Bell: as much weight for what is new here as there were different tokens.
            p *= len(found)
            p[list(found)] += torch.tensor(list(found.values()), dtype=torch.float64)
            p /= len(found) + sum(found.values())
        return p.log().float()
