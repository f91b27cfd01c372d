"""From logits to a token: the rules of sampling as pure functions on rows.

The order is fixed: bias, mask, temperature, top-k, top-p, min-p, draw. The mask comes before everything that looks at
ranks or total mass (a nucleus chosen before the mask can lose all its tokens to it) and after everything that adds
finite numbers. Rows are independent of each other: the result of one never depends on how many are in the batch.

Sources: nucleus sampling, Holtzman et al., "The curious case of neural text degeneration", ICLR 2020; min-p, Nguyen et
al., "Turning up the heat", 2024; the Gumbel-max rule, Gumbel 1954, as in Maddison et al., "A* sampling", NIPS 2014.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from maskwright.errors import GenerationError

if TYPE_CHECKING:
    import torch

    from maskwright.engine.rng import Stream

__all__ = [
    "BiasError",
    "DeadConstraintError",
    "Draw",
    "NonFiniteLogitsError",
    "Sampling",
    "add_bias",
    "draw",
    "gumbel_max",
    "keep_min_p",
    "keep_top_k",
    "keep_top_p",
    "log_mass",
    "scale",
    "truncate",
]

_NUCLEUS_GUESS = 1024  # a nucleus is rarely larger; sorting this many costs a tenth of sorting a vocabulary


class DeadConstraintError(GenerationError):
    """The mask of a row allows no token at all."""


class BiasError(GenerationError):
    """Logit bias forbids every token that the mask allows."""


class NonFiniteLogitsError(GenerationError):
    """The model's logits hold NaN or +inf, or give probability zero to every allowed token."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. Immutable; checked when made.

    Attributes:
        temperature: logits are divided by it; 0 takes the most probable allowed token (lowest id on ties).
        top_k: only the ``top_k`` most probable allowed tokens stay (ties by lowest id); 0 keeps all.
        top_p: the smallest set of most probable tokens whose mass reaches ``top_p`` stays, the token that crosses the
            line included; 1 keeps all.
        min_p: tokens less probable than ``min_p`` times the most probable one go; 0 keeps all.
        logit_bias: token id -> number added to its logit; ``-inf`` forbids it. Never revives what the mask forbids.

    Raises:
        ValueError: for a value outside of its range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, 0 <= self.temperature < math.inf, "a finite number, at least 0")
        _check("top_k", self.top_k, isinstance(self.top_k, int) and self.top_k >= 0, "a whole number, 0 for all tokens")
        _check("top_p", self.top_p, 0 < self.top_p <= 1, "greater than 0 and at most 1")
        _check("min_p", self.min_p, 0 <= self.min_p <= 1, "between 0 and 1")
        bias = {operator.index(token): float(value) for token, value in sorted(self.logit_bias.items())}
        for token, value in bias.items():
            _check(f"logit_bias[{token}]", value, token >= 0 and value < math.inf, "a number or -inf, for an id >= 0")
        object.__setattr__(self, "logit_bias", bias)

    def __hash__(self) -> int:
        return hash((self.temperature, self.top_k, self.top_p, self.min_p, tuple(self.logit_bias.items())))

    @property
    def greedy(self) -> bool:
        """Whether nothing is drawn: temperature 0."""
        return self.temperature == 0


def _check(name: str, value: object, good: bool, want: str) -> None:
    if not good:  # NaN compares false with everything and ends here too
        raise ValueError(f"{name} is {value!r}; it must be {want}")


def add_bias(logits: torch.Tensor, bias: Mapping[int, float]) -> torch.Tensor:
    """Adds logit bias.

    Args:
        logits: float32, shape ``(rows, V)``.
        bias: token id -> addend; may be ``-inf``.

    Returns:
        The sum; the same tensor where there is no bias.

    Raises:
        ValueError: if an id is not in the vocabulary.
    """
    import torch

    if not bias:
        return logits
    ids = list(bias)
    if ids[-1] >= logits.shape[-1]:
        raise ValueError(f"logit_bias names token {ids[-1]}; the vocabulary has {logits.shape[-1]}")
    out = logits.clone()
    out[:, ids] += torch.tensor(list(bias.values()), dtype=out.dtype, device=out.device)
    return out


def scale(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """Divides by the temperature, greatest logit of the row first moved to 0 so that nothing overflows.

    Args:
        logits: float32, shape ``(rows, V)``; ``-inf`` stays.
        temperature: greater than 0.

    Returns:
        New tensor of the same shape, its greatest entry per row 0 (rows without a finite entry stay ``-inf``).
    """
    top = logits.amax(dim=-1, keepdim=True)
    return (logits - top.nan_to_num(neginf=0.0)) / temperature


def keep_top_k(logits: torch.Tensor, counts: torch.Tensor | int) -> torch.Tensor:
    """Keeps the greatest entries of each row, exactly that many, ties by lowest id; the others become ``-inf``.

    Args:
        logits: shape ``(rows, V)``.
        counts: at least 1; one number, or one per row (int64, shape ``(rows,)``).

    Returns:
        New tensor of the same shape. Rows with fewer finite entries keep them all.
    """
    import torch

    counts = torch.as_tensor(counts, device=logits.device).expand(logits.shape[0]).clamp(max=logits.shape[-1])
    values = logits.topk(int(counts.max()), dim=-1).values
    threshold = values.gather(-1, (counts - 1).unsqueeze(-1))
    kept = logits >= threshold
    if bool((kept.sum(-1) > counts).any()):
        # torch.topk breaks ties as it likes: of those equal to the last value kept, the first few by id stay.
        above, equal = logits > threshold, logits == threshold
        room = (counts - above.sum(-1)).unsqueeze(-1)
        kept = above | (equal & (equal.cumsum(-1) <= room))
    return logits.masked_fill(~kept, -math.inf)


def keep_top_p(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    """Keeps the smallest set of most probable tokens whose mass is at least ``top_p`` (Holtzman et al. 2020).

    A token goes if the tokens before it, in order of probability and then id, already hold ``top_p``: the one that
    crosses the line stays, and there is always one.

    Args:
        logits: float32, shape ``(rows, V)``.
        top_p: in ``(0, 1]``.

    Returns:
        New tensor of the same shape, ``-inf`` where a token goes.
    """
    if top_p >= 1:
        return logits
    width = min(_NUCLEUS_GUESS, logits.shape[-1])
    counts = _nucleus_size(logits, top_p, width)
    if width < logits.shape[-1] and bool((counts > width).any()):
        counts = _nucleus_size(logits, top_p, logits.shape[-1])
    return keep_top_k(logits, counts)


def _nucleus_size(logits: torch.Tensor, top_p: float, width: int) -> torch.Tensor:
    """Tokens in each row's nucleus, shape ``(rows,)``; ``width + 1`` stands for more than ``width``."""
    largest = logits.topk(width, dim=-1).values.double()
    before = (largest - log_mass(logits).unsqueeze(-1)).exp().cumsum(-1)
    kept = 1 + (before < top_p).sum(-1)
    return kept if width < logits.shape[-1] else kept.clamp(max=width)


def keep_min_p(logits: torch.Tensor, min_p: float) -> torch.Tensor:
    """Keeps tokens at least ``min_p`` times as probable as the most probable one (Nguyen et al. 2024).

    Args:
        logits: float32, shape ``(rows, V)``.
        min_p: between 0 and 1.

    Returns:
        New tensor of the same shape, ``-inf`` where a token goes; the most probable one always stays.
    """
    if min_p <= 0:
        return logits
    top = logits.amax(dim=-1, keepdim=True).double()
    return logits.masked_fill(logits.double() < top + math.log(min_p), -math.inf)


def truncate(scaled: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Top-k, top-p and min-p, in this order, on masked logits of shape ``(rows, V)`` already at their temperature."""
    if sampling.top_k:
        scaled = keep_top_k(scaled, sampling.top_k)
    return keep_min_p(keep_top_p(scaled, sampling.top_p), sampling.min_p)


def log_mass(logits: torch.Tensor) -> torch.Tensor:
    """Log of the summed exponentials of each row, float64 of shape ``(rows,)``; ``-inf`` for an empty row."""
    import torch

    top = logits.amax(dim=-1, keepdim=True).nan_to_num(nan=math.nan, neginf=0.0)
    return (logits - top).exp().sum(-1, dtype=torch.float64).log() + top.squeeze(-1)


def gumbel_max(logits: torch.Tensor, streams: Sequence[Stream], positions: Sequence[int]) -> torch.Tensor:
    """Draws one token per row from the softmax of its logits.

    Args:
        logits: shape ``(rows, V)``; ``-inf`` is never drawn.
        streams: the random numbers of each row.
        positions: index of the token to draw, per row.

    Returns:
        int64, shape ``(rows,)``; 0 for a row without a finite entry, which the caller must have ruled out.
    """
    import torch

    tokens = []
    for row, stream, position in zip(logits.double().cpu().numpy(), streams, positions, strict=True):
        ids = np.flatnonzero(row > -np.inf)
        noisy = row[ids] + stream.gumbels(position, ids)
        tokens.append(int(ids[noisy.argmax()]) if len(ids) else 0)
    return torch.tensor(tokens, dtype=torch.int64, device=logits.device)


@dataclass(frozen=True, slots=True)
class Draw:
    """One token, and what it cost.

    Attributes:
        token: its id.
        logprob: its log-probability in nats under the model before mask and truncation, with bias and at the
            temperature of the draw (1 if that is 0).
        kept: log of the probability mass that the mask left, at most 0.
    """

    token: int
    logprob: float
    kept: float


def draw(
    logits: torch.Tensor,
    sampling: Sampling,
    bitmask: torch.Tensor | None,
    streams: Sequence[Stream],
    positions: Sequence[int],
) -> list[Draw | GenerationError]:
    """One token for every row: bias, mask, temperature, top-k, top-p, min-p, draw.

    Args:
        logits: float32 (or narrower), shape ``(rows, V)``.
        sampling: the rules, the same for every row.
        bitmask: int32, shape ``(rows, ceil(V / 32))``, on the CPU; None where no row is constrained.
        streams: the random numbers of each row.
        positions: index of the token to draw, per row.

    Returns:
        Per row a draw, or the error that says why there is none; rows do not affect each other.
    """
    import torch

    biased = add_bias(logits.float(), sampling.logit_bias)
    masked = biased if bitmask is None else mask_logits(biased, bitmask)
    temperature = sampling.temperature or 1.0
    scaled = scale(masked, temperature)
    # Greedy takes the first of several greatest.
    tokens = masked.argmax(-1) if sampling.greedy else gumbel_max(truncate(scaled, sampling), streams, positions)
    # Logs of mass relative to the greatest unmasked logit, in float64: near temperature 0 a float32 would overflow.
    top, high = biased.amax(dim=-1).double(), masked.amax(dim=-1).double()
    total = log_mass(scaled if bitmask is None else scale(biased, temperature))
    kept = log_mass(scaled) + (high - top) / temperature
    chosen = (biased.gather(-1, tokens.unsqueeze(-1)).squeeze(-1).double() - top) / temperature
    table = torch.stack([tokens.double(), chosen - total, kept - total]).T.tolist()
    return [
        Draw(int(token), logprob, min(share, 0.0))
        if math.isfinite(logprob) and math.isfinite(share)
        else _why_not(logits[row], sampling, None if bitmask is None else bitmask[row])
        for row, (token, logprob, share) in enumerate(table)
    ]


def mask_logits(logits: torch.Tensor, bitmask: torch.Tensor) -> torch.Tensor:
    """A copy of logits of shape ``(rows, V)`` with ``-inf`` where the bitmask holds 0."""
    from maskwright.masks import apply_bitmask_

    out = logits.clone()
    apply_bitmask_(out, bitmask)
    return out


def _why_not(row: torch.Tensor, sampling: Sampling, bitmask: torch.Tensor | None) -> GenerationError:
    """The error of a row of logits, shape ``(V,)``, from which nothing can be drawn."""
    row = row.float().unsqueeze(0)
    if bool((row.isnan() | (row == math.inf)).any()):
        return NonFiniteLogitsError(
            "the model's logits hold NaN or +inf", hint="Check the weights, or run the model in float32 or bfloat16"
        )
    if bitmask is not None:
        row = mask_logits(row, bitmask.unsqueeze(0))
        if not bool(bitmask.any()):
            return DeadConstraintError("the constraint allows no token here, though its text is not finished")
    if not bool((row > -math.inf).any()):
        return NonFiniteLogitsError(
            "the model gives probability zero (a logit of -inf) to every token that the constraint allows",
            hint="Remove what suppresses tokens inside the model",
        )
    banned = [token for token, value in sampling.logit_bias.items() if value == -math.inf]
    return BiasError(
        f"logit_bias forbids every token that the constraint allows here; it forbids {len(banned)} tokens",
        hint="Forbid tokens where the constraint is compiled, with compile(..., banned_ids=[...])",
    )
