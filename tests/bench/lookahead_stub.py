"""A model that takes no time: what is measured beside it is the library alone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tests.engine.models import ToyCache


class StubModel:
    """Random logits, the same after every prefix; one token in ten is an EOS.

    Attributes:
        seconds: spent in here.
        places: tokens after which logits were given.
    """

    name = "stub"
    context_length = 1 << 16
    device = torch.device("cpu")

    def __init__(self, vocabulary: Any) -> None:
        self.vocabulary = vocabulary
        self.eos_ids = vocabulary.eos_ids
        self.seconds, self.places = 0.0, 0
        self._logits = torch.randn(vocabulary.size, generator=torch.Generator().manual_seed(0))
        self._logits[list(vocabulary.eos_ids)] = 9.0

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        return [0]

    def apply_chat_template(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return [0]

    def new_cache(self, batch: int) -> ToyCache:
        return ToyCache([[] for _ in range(batch)])

    def forward(self, tokens: Sequence[Sequence[int]], cache: ToyCache) -> torch.Tensor:
        return torch.stack([block[-1] for block in self.forward_all(tokens, cache)])

    def forward_all(self, tokens: Sequence[Sequence[int]], cache: ToyCache) -> list[torch.Tensor]:
        begin = time.process_time()
        for row, new in zip(cache.rows, tokens, strict=True):
            row.extend(new)
            self.places += len(new)
        found = [self._logits.expand(len(new), -1).clone() for new in tokens]
        self.seconds += time.process_time() - begin
        return found
