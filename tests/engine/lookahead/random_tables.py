"""A language model that is a table, and laws by brute force: nothing here uses masks, tries or particles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from tests.engine.models import ToyCache

from maskwright import Vocabulary

TOKENS = [b"a", b"b", b"c", b"ab", b"bc"]
EOS = len(TOKENS)


class TableModel:
    """Random logits for every sequence of tokens; after `seed` nothing is random."""

    name = "table"

    def __init__(
        self,
        seed: int = 0,
        tokens: Sequence[bytes] = TOKENS,
        tilt: Mapping[int, float] | None = None,
        scale: float = 2.0,
    ) -> None:
        self.vocabulary = Vocabulary([*tokens, b"<eos>"], eos_ids=[len(tokens)])
        self.eos_ids = self.vocabulary.eos_ids
        self.context_length = 512
        self.device = torch.device("cpu")
        self.forwards = 0
        self._seed, self._scale = seed, scale
        self._known: dict[tuple[int, ...], torch.Tensor] = {}
        self._tilt = torch.zeros(len(tokens) + 1)
        for token, more in (tilt or {}).items():
            self._tilt[token] = more

    def logits(self, tokens: tuple[int, ...]) -> torch.Tensor:
        """What follows a sequence, the prompt included."""
        found = self._known.get(tokens)
        if found is None:
            rng = np.random.default_rng([self._seed, *tokens])
            drawn = torch.from_numpy(self._scale * rng.standard_normal(self.vocabulary.size)).float()
            found = self._known[tokens] = drawn + self._tilt
        return found

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        """One token for a prompt; the single bytes of a text."""
        return [0] if add_special else [self.vocabulary.tokens.index(bytes([b])) for b in text.encode()]

    def apply_chat_template(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return [0]

    def new_cache(self, batch: int) -> ToyCache:
        return ToyCache([[] for _ in range(batch)])

    def forward(self, tokens: Sequence[Sequence[int]], cache: ToyCache) -> torch.Tensor:
        return torch.stack([block[-1] for block in self.forward_all(tokens, cache)])

    def forward_all(self, tokens: Sequence[Sequence[int]], cache: ToyCache) -> list[torch.Tensor]:
        self.forwards += 1
        out = []
        for row, new in zip(cache.rows, tokens, strict=True):
            blocks = []
            for token in new:
                row.append(token)
                blocks.append(self.logits(tuple(row)))
            out.append(torch.stack(blocks))
        return out

    def log_p(self, tokens: tuple[int, ...], temperature: float = 1.0) -> np.ndarray:
        """Log-probabilities after a prompt of token 0 and an output, float64."""
        return torch.log_softmax(self.logits((0, *tokens)).double() / temperature, -1).numpy()


def language(model: TableModel, pattern: str, longest: int) -> dict[tuple[int, ...], float]:
    """P of all sequences of at most `longest` tokens that end with EOS and match, by trying every sequence."""
    found: dict[tuple[int, ...], float] = {}
    tokens, eos = model.vocabulary.tokens, model.eos_ids[0]

    def extend(prefix: tuple[int, ...], log_p: float) -> None:
        steps = model.log_p(prefix)
        text = b"".join(tokens[t] for t in prefix).decode()
        if re.fullmatch(pattern, text):
            found[(*prefix, eos)] = float(np.exp(log_p + steps[eos]))
        if len(prefix) + 1 < longest:
            for token in range(len(tokens) - 1):
                extend((*prefix, token), log_p + steps[token])

    extend((), 0.0)
    return found


def conditional(law: Mapping[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    """P* = P / Z."""
    total = sum(law.values())
    return {x: p / total for x, p in law.items()}
