"""A language model given by a table, and a brute-force oracle for what it says of a constraint.

The oracle tries all sequences of tokens, and shares no code with the sampler.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import torch

from maskwright import Vocabulary

TOKENS = (b"0", b"1", b"00", b"01", b"10", b"11", b"a", b"b")
EOS = len(TOKENS)


class TableCache:
    def __init__(self, rows: list[tuple[int, ...]]) -> None:
        self.rows = rows

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(map(len, self.rows))

    def fork(self, rows: Sequence[int]) -> TableCache:
        return TableCache([self.rows[r] for r in rows])

    def select(self, rows: Sequence[int]) -> None:
        self.rows = [self.rows[r] for r in rows]

    def truncate(self, lengths: Sequence[int]) -> None:
        self.rows = [row[:length] for row, length in zip(self.rows, lengths, strict=True)]


class TableModel:
    """Logits by prefix, drawn once from a generator that the prefix seeds. Counts its forwards.

    Args:
        seed: of the table.
        scale: of the logits.
        bias: added to the logits of some tokens.
    """

    name = "table"
    context_length = 512
    device = torch.device("cpu")
    vocabulary = Vocabulary([*TOKENS, b"<eos>"], eos_ids=[EOS])
    eos_ids = (EOS,)

    def __init__(self, seed: int = 0, scale: float = 1.5, bias: Mapping[int, float] | None = None) -> None:
        self.seed, self.scale, self.bias = seed, scale, dict(bias or {})
        self.rows: dict[tuple[int, ...], torch.Tensor] = {}
        self.calls = self.tokens = 0

    def logits(self, prefix: tuple[int, ...]) -> torch.Tensor:
        found = self.rows.get(prefix)
        if found is None:
            rng = np.random.default_rng([self.seed, zlib.crc32(bytes(prefix))])
            row = rng.normal(size=EOS + 1) * self.scale
            for token, value in self.bias.items():
                row[token] += value
            found = self.rows[prefix] = torch.from_numpy(row.astype(np.float32))
        return found

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        """Cuts from the left, the longest token first."""
        found, rest = [], text.encode()
        while rest:
            token = max((t for t in TOKENS if rest.startswith(t)), key=len)
            found.append(TOKENS.index(token))
            rest = rest[len(token) :]
        return found

    def apply_chat_template(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return self.encode("".join(m["content"] for m in messages))

    def new_cache(self, batch: int) -> TableCache:
        return TableCache([()] * batch)

    def forward(self, tokens: Sequence[Sequence[int]], cache: TableCache) -> torch.Tensor:
        return torch.stack([block[-1] for block in self.forward_all(tokens, cache)])

    def forward_all(self, tokens: Sequence[Sequence[int]], cache: TableCache) -> list[torch.Tensor]:
        self.calls += 1
        blocks = []
        for at, new in enumerate(tokens):
            self.tokens += len(new)
            row = cache.rows[at]
            blocks.append(torch.stack([self.logits((*row, *new[: i + 1])) for i in range(len(new))]))
            cache.rows[at] = (*row, *new)
        return blocks


def log_softmax(row: np.ndarray) -> np.ndarray:
    row = np.asarray(row, dtype=np.float64)
    return row - row.max() - math.log(np.exp(row - row.max()).sum())


def table_law(
    model: TableModel,
    pattern: str,
    max_tokens: int,
    prompt: Sequence[int] = (0,),
    change: Callable[[np.ndarray, tuple[int, ...]], np.ndarray] = lambda row, output: row,
    keep: Callable[[tuple[int, ...]], bool] = lambda output: True,
) -> dict[tuple[int, ...], float]:
    """The probability of every valid sequence, by trying all sequences of tokens that end with EOS.

    Args:
        model: the table.
        pattern: a regular expression that texts must match in full.
        max_tokens: EOS included.
        prompt: what comes before.
        change: makes the logits of the law from those of the model and the output so far.
        keep: which sequences count, by their tokens without EOS.
    """
    found = {}
    rows: dict[tuple[int, ...], np.ndarray] = {}
    for output in valid_outputs(pattern, max_tokens):
        if not keep(output):
            continue
        logp = 0.0
        for at, token in enumerate((*output, EOS)):
            before = output[:at]
            if before not in rows:
                rows[before] = log_softmax(change(model.logits((*prompt, *before)).double().numpy(), before))
            logp += float(rows[before][token])
        found[(*output, EOS)] = math.exp(logp)
    return found


@lru_cache
def valid_outputs(pattern: str, max_tokens: int) -> tuple[tuple[int, ...], ...]:
    """All sequences of at most ``max_tokens - 1`` tokens whose text matches, of all that there are."""
    match = re.compile(pattern.encode()).fullmatch
    outputs: list[tuple[int, ...]] = [()]
    for output in outputs:
        if len(output) < max_tokens - 1:
            outputs += [(*output, token) for token in range(EOS)]
    return tuple(output for output in outputs if match(b"".join(TOKENS[t] for t in output)))


def local_law(
    model: TableModel, sequences: Sequence[tuple[int, ...]], prompt: Sequence[int] = (0,)
) -> dict[tuple[int, ...], float]:
    """The probability of each sequence by masking step by step: at each prefix among the tokens that some sequence has.

    Args:
        model: the table.
        sequences: all valid ones.
        prompt: what comes before.
    """
    after: dict[tuple[int, ...], set[int]] = {}
    for sequence in sequences:
        for at, token in enumerate(sequence):
            after.setdefault(sequence[:at], set()).add(token)
    found = {}
    for sequence in sequences:
        p = 1.0
        for at, token in enumerate(sequence):
            row = np.exp(log_softmax(model.logits((*prompt, *sequence[:at])).double().numpy()))
            p *= row[token] / sum(row[t] for t in after[sequence[:at]])
        found[sequence] = p
    return found
