"""The accept test of speculative decoding, and what is drawn after it.

At one place let p be the distribution of the next token with all rules applied, the mask of the place included, and q
the one that a draft was drawn from. The draft d is accepted with probability min(1, p(d) / q(d)); else a token is drawn
from the residual (p - q)+, normalised. The token then has the law of p, whatever q is. Several drafts from q are tried
in turn, p becoming the residual each time.

The test is strict, ``u q(d) < p(d)``: with ``<=`` a draft of probability 0 would pass where u is 0.

Sources: Leviathan, Kalman and Matias, "Fast inference from transformers via speculative decoding", ICML 2023; Chen et
al., "Accelerating large language model decoding with speculative sampling", 2023; several drafts at a place: Miao et
al., "SpecInfer", ASPLOS 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from torch import Tensor

    from maskwright.engine.rng import Stream
    from maskwright.engine.speculation.window import Trial

__all__ = ["ACCEPT", "DRAFT", "accepts", "residual", "settle", "tried"]

# Channels of a request's random numbers: of drafts (one each for the drafts of a place), and of accept tests.
ACCEPT, DRAFT = 1, 2
# Residual masses below are rounding errors of p and q.
_LEAST_MASS = 1e-12


def accepts(p: Tensor, q: Tensor, drafts: Tensor, u: Tensor) -> Tensor:
    """Whether drafts are accepted.

    Args:
        p: probabilities, ``(n, V)``.
        q: those that the drafts were drawn from, ``(n, V)``.
        drafts: int64 ``(n,)``.
        u: uniform numbers, ``(n,)``.

    Returns:
        bool ``(n,)``; never True where p is 0.
    """
    at = drafts.unsqueeze(-1)
    return u * q.gather(-1, at).squeeze(-1) < p.gather(-1, at).squeeze(-1)


def residual(p: Tensor, q: Tensor) -> Tensor:
    """``(p - q)+`` normalised, ``(n, V)``; p itself where p and q are the same but for rounding."""
    left = (p - q).clamp(min=0)
    mass = left.sum(-1, keepdim=True)
    return torch.where(mass > _LEAST_MASS, left / mass.clamp(min=_LEAST_MASS), p)


def tried(p: Tensor, q: Tensor, drafts: Tensor, u: Tensor) -> Tensor:
    """What to draw from after drafts were tried in turn: all on the first that is accepted, else the last residual.

    Args:
        p: probabilities, ``(n, V)``.
        q: those that the drafts were drawn from, independently, ``(n, V)``.
        drafts: int64 ``(n, k)``; -1 where a row has fewer.
        u: uniform numbers, ``(n, k)``.

    Returns:
        Probabilities, ``(n, V)``.
    """
    done = torch.zeros(len(p), dtype=torch.bool, device=p.device)
    for tokens, numbers in zip(drafts.unbind(-1), u.unbind(-1), strict=True):
        done = done | (tokens < 0)
        some = tokens.clamp(min=0)
        accepted = accepts(p, q, some, numbers)
        sure = torch.zeros_like(p).scatter_(-1, some.unsqueeze(-1), 1.0)
        after = torch.where(accepted.unsqueeze(-1), sure, residual(p, q))
        p = torch.where(done.unsqueeze(-1), p, after)
        done = done | accepted
    return p


def settle(
    logits: Tensor, trials: Sequence[Trial | None], streams: Sequence[Stream], positions: Sequence[int]
) -> Tensor:
    """Logits to draw from after the drafts of each row were tried.

    Args:
        logits: all rules applied, ``(rows, V)``.
        trials: the drafts of each row, if it has any.
        streams: the random numbers of each row.
        positions: index of the token to draw, per row.

    Returns:
        float64 ``(rows, V)``; rows without drafts, and rows from which nothing can be drawn, as they are.
    """
    out = logits.double()
    some = [(row, trial) for row, trial in enumerate(trials) if trial is not None and bool(out[row].max().isfinite())]
    if not some:
        return out
    rows = [row for row, _ in some]
    width = max(len(trial.tokens) for _, trial in some)
    drafts = torch.tensor([[*trial.tokens, *[-1] * (width - len(trial.tokens))] for _, trial in some])
    numbers = [replace(streams[row], channel=ACCEPT).uniforms(positions[row], width) for row in rows]
    q = torch.stack([trial.q for _, trial in some]).to(out.device)
    u = torch.from_numpy(np.stack(numbers)).to(out.device)
    out[rows] = tried(torch.softmax(out[rows], -1), q, drafts.to(out.device), u).log()
    return out
