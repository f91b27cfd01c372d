"""From logits to tokens: the rules in their order, the draw, and what it says of probabilities.

Rows are independent of each other: the result of one never depends on how many are in the batch. A step reads one table
back from the device, whatever the rules.

Sources: the Gumbel-max rule, Gumbel 1954, as in Maddison et al., "A* sampling", NIPS 2014.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from maskwright.engine.penalties import add_bias, penalize
from maskwright.engine.sampling import BiasError, DeadConstraintError, NonFiniteLogitsError, Sampling
from maskwright.engine.speculation.verify import settle
from maskwright.engine.truncation import log_mass, on_host, scale, truncate
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    import torch

    from maskwright.engine.heads import Postponed
    from maskwright.engine.rng import Stream
    from maskwright.engine.speculation.window import Trial

__all__ = ["Alternative", "Draw", "Seen", "before_mask", "draw", "gumbel_max", "mask_logits", "measure", "processed"]
__all__ += ["why_not"]

Seen = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that could have come.

    Attributes:
        token: its id.
        raw: its log-probability in nats under the model alone.
        masked: the same among allowed tokens only; ``-inf`` where it is not allowed.
    """

    token: int
    raw: float
    masked: float


@dataclass(frozen=True, slots=True)
class Draw:
    """One token, and what it cost. Log-probabilities are in nats.

    Attributes:
        token: its id.
        logprob: under the model before mask and truncation, with bias and penalties and at the temperature of the draw
            (1 if that is 0).
        kept: log of the probability mass that the mask left, at most 0; NaN where no mask was computed.
        raw: under the model alone (temperature 1, no rules). NaN unless details were asked for, as are the next.
        masked: under the model alone, among the tokens that the mask allows.
        processed: that with which the token was drawn: all rules applied.
        alternatives: the most probable tokens of the model, best first.
        postponed: what the log-probabilities are to be computed from, while they are not; see `heads`.
    """

    token: int
    logprob: float
    kept: float
    raw: float = math.nan
    masked: float = math.nan
    processed: float = math.nan
    alternatives: tuple[Alternative, ...] = ()
    postponed: Postponed | None = field(default=None, repr=False, compare=False)


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

    if not on_host(logits):
        everything = np.arange(logits.shape[-1])
        noise = np.stack([s.gumbels(p, everything) for s, p in zip(streams, positions, strict=True)])
        return (logits.double() + torch.from_numpy(noise).to(logits.device, non_blocking=True)).argmax(-1)
    tokens = []
    for row, stream, position in zip(logits.double().numpy(), streams, positions, strict=True):
        ids = np.flatnonzero(row > -np.inf)
        noisy = row[ids] + stream.gumbels(position, ids)
        tokens.append(int(ids[noisy.argmax()]) if len(ids) else 0)
    return torch.tensor(tokens, dtype=torch.int64)


def draw(
    logits: torch.Tensor,
    sampling: Sampling,
    bitmask: torch.Tensor | None,
    streams: Sequence[Stream],
    positions: Sequence[int],
    seen: Sequence[Seen] | None = None,
    details: int | None = None,
    trials: Sequence[Trial | None] | None = None,
) -> list[Draw | GenerationError]:
    """One token for every row.

    Args:
        logits: float32 (or narrower), shape ``(rows, V)``.
        sampling: the rules, the same for every row.
        bitmask: int32, shape ``(rows, ceil(V / 32))``, on the CPU; None where no row is constrained.
        streams: the random numbers of each row.
        positions: index of the token to draw, per row.
        seen: per row the tokens that penalties count; needed where there are any.
        details: number of alternatives to list, 0 for the further log-probabilities alone; None for neither.
        trials: per row, tokens drawn from a draft's distribution, each accepted or refused; the law of the token is
            the same.

    Returns:
        Per row a draw, or the error that says why there is none; rows do not affect each other.
    """
    logits = logits.float()
    free, temperature = before_mask(logits, sampling, seen)
    masked = free if bitmask is None else mask_logits(free, bitmask)
    # Greedy takes the first of several greatest.
    final = None if sampling.greedy else truncate(masked, sampling, _after_mask(sampling))
    if final is None:
        tokens = masked.argmax(-1)
    else:
        tokens = gumbel_max(settle(final, trials, streams, positions) if trials else final, streams, positions)
    table = _measure(free, masked if bitmask is not None else None, tokens, temperature)
    extra = [] if details is None else _details(logits, bitmask, tokens, final, details)
    return [
        _as_draw(row) if math.isfinite(row[1]) and math.isfinite(row[2])
        else why_not(logits[at], free[at], None if bitmask is None else bitmask[at])
        for at, row in enumerate(_read_back(tokens, [*table, *extra]))
    ]  # fmt: skip


def processed(
    logits: torch.Tensor, sampling: Sampling, bitmask: torch.Tensor | None, seen: Sequence[Seen] | None
) -> torch.Tensor:
    """The logits that :func:`draw` draws from: all rules applied (greedy: those whose greatest it takes)."""
    free, _ = before_mask(logits.float(), sampling, seen)
    masked = free if bitmask is None else mask_logits(free, bitmask)
    return masked if sampling.greedy else truncate(masked, sampling, _after_mask(sampling))


def measure(
    logits: torch.Tensor, sampling: Sampling, bitmask: torch.Tensor, tokens: Sequence[int]
) -> list[Draw]:
    """What :func:`draw` says of tokens that were drawn already, without details; there are no penalties."""
    import torch

    free, temperature = before_mask(logits.float(), sampling, None)
    chosen = torch.tensor(list(tokens), dtype=torch.int64, device=logits.device)
    table = _measure(free, mask_logits(free, bitmask), chosen, temperature)
    return [_as_draw(row) for row in _read_back(chosen, table)]


def before_mask(
    logits: torch.Tensor, sampling: Sampling, seen: Sequence[Seen] | None
) -> tuple[torch.Tensor, float]:
    """Bias and penalties (and temperature, where it comes so early); also the temperature still to be applied."""
    temperature = sampling.temperature or 1.0
    for rule in sampling.order[: sampling.order.index("mask")]:
        if rule == "logit_bias":
            logits = add_bias(logits, sampling.logit_bias)
        elif rule == "temperature":
            logits, temperature = scale(logits, temperature), 1.0
        elif sampling.penalizes:
            if seen is None:
                raise ValueError("penalties need the tokens that were seen")
            logits = penalize(logits, seen, sampling)
    return logits, temperature


def _after_mask(sampling: Sampling) -> tuple[str, ...]:
    return tuple(sampling.order[sampling.order.index("mask") + 1 :])


def _measure(
    free: torch.Tensor, masked: torch.Tensor | None, tokens: torch.Tensor, temperature: float
) -> list[torch.Tensor]:
    """Log-probability of the tokens before the mask, and log of the mass that it keeps: float64 ``(rows,)`` each."""
    import torch

    # Relative to the greatest unmasked logit, in float64: near temperature 0 a float32 would overflow.
    top = free.amax(dim=-1).double()
    total = log_mass(scale(free, temperature))
    chosen = (free.gather(-1, tokens.unsqueeze(-1)).squeeze(-1).double() - top) / temperature
    if masked is None:
        return [chosen - total, torch.where(total.isnan(), total, 0.0)]
    high = masked.amax(dim=-1).double()
    kept = log_mass(scale(masked, temperature)) + (high - top) / temperature
    return [chosen - total, kept - total]


def _details(
    logits: torch.Tensor, bitmask: torch.Tensor | None, tokens: torch.Tensor, final: torch.Tensor | None, count: int
) -> list[torch.Tensor]:
    """Columns of a table: raw, masked and processed log-probability, then id, raw, masked of each alternative."""
    import torch

    allowed = logits if bitmask is None else mask_logits(logits, bitmask)
    mass, allowed_mass = log_mass(logits).unsqueeze(-1), log_mass(allowed).unsqueeze(-1)
    at = tokens.unsqueeze(-1)
    columns = [logits.gather(-1, at).double() - mass, allowed.gather(-1, at).double() - allowed_mass]
    if final is None:
        columns.append(torch.zeros_like(columns[0]))
    else:
        columns.append(final.gather(-1, at).double() - log_mass(final).unsqueeze(-1))
    best = logits.topk(min(count, logits.shape[-1]), dim=-1) if count else None
    if best is not None:
        raw, masked = best.values.double() - mass, allowed.gather(-1, best.indices).double() - allowed_mass
        for i in range(raw.shape[-1]):
            columns += [best.indices[:, i : i + 1].double(), raw[:, i : i + 1], masked[:, i : i + 1]]
    return [column.squeeze(-1) for column in columns]


def _read_back(tokens: torch.Tensor, columns: list[torch.Tensor]) -> list[list[float]]:
    """The one transfer of a step."""
    import torch

    table: list[list[float]] = torch.stack([tokens.double(), *columns]).T.tolist()
    return table


def _as_draw(row: list[float]) -> Draw:
    token, logprob, kept = int(row[0]), row[1], min(row[2], 0.0)
    if len(row) == 3:
        return Draw(token, logprob, kept)
    others = [Alternative(int(row[i]), row[i + 1], row[i + 2]) for i in range(6, len(row), 3)]
    return Draw(token, logprob, kept, row[3], row[4], row[5], tuple(others))


def mask_logits(logits: torch.Tensor, bitmask: torch.Tensor) -> torch.Tensor:
    """A copy of logits of shape ``(rows, V)`` with ``-inf`` where the bitmask holds 0."""
    from maskwright.masks import apply_bitmask_

    out = logits.clone()
    apply_bitmask_(out, bitmask)
    return out


def why_not(row: torch.Tensor, free: torch.Tensor, bitmask: torch.Tensor | None) -> GenerationError:
    """The error of a row of logits from which nothing can be drawn; before and after bias, shape ``(V,)`` each."""
    row, free = row.unsqueeze(0), free.unsqueeze(0)
    if bool((row.isnan() | (row == math.inf)).any()):
        return NonFiniteLogitsError(
            "the model's logits hold NaN or +inf", hint="Check the weights, or run the model in float32 or bfloat16"
        )
    if bitmask is not None:
        row, free = (mask_logits(each, bitmask.unsqueeze(0)) for each in (row, free))
        if not bool(bitmask.any()):
            return DeadConstraintError("the constraint allows no token here, though its text is not finished")
    if not bool((row > -math.inf).any()):
        return NonFiniteLogitsError(
            "the model gives probability zero (a logit of -inf) to every token that the constraint allows",
            hint="Remove what suppresses tokens inside the model",
        )
    if bool((free > -math.inf).any()):
        return NonFiniteLogitsError("bias or penalties are too large for float32", hint="Lower them")
    return BiasError(
        "logit_bias forbids every token that the constraint allows here",
        hint="Forbid tokens where the constraint is compiled, with compile(..., banned_ids=[...])",
    )
