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

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from maskwright.engine.rng import Stream
    from maskwright.engine.speculation.window import Trial

__all__ = ["ACCEPT", "DRAFT", "accepts", "residual", "settle", "verified"]

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


def verified(p: Tensor, q: Tensor, drafts: Tensor, u: Tensor) -> Tensor:
    """What to draw from after one accept test each: all on the draft where it is accepted, else the residual."""
    sure = torch.zeros_like(p).scatter_(-1, drafts.unsqueeze(-1), 1.0)
    return torch.where(accepts(p, q, drafts, u).unsqueeze(-1), sure, residual(p, q))


def settle(
    logits: Tensor, trials: Sequence[Sequence[Trial]], streams: Sequence[Stream], positions: Sequence[int]
) -> Tensor:
    """Logits to draw from after the drafts of each row were tried.

    Args:
        logits: all rules applied, ``(rows, V)``.
        trials: the drafts of each row.
        streams: the random numbers of each row.
        positions: index of the token to draw, per row.

    Returns:
        float64 ``(rows, V)``; rows without drafts, and rows from which nothing can be drawn, as they are.
    """
    out = logits.double()
    for row, (drafts, stream, position) in enumerate(zip(trials, streams, positions, strict=True)):
        if not drafts or not math.isfinite(float(out[row].max())):
            continue
        u = torch.from_numpy(replace(stream, channel=ACCEPT).uniforms(position, len(drafts))).to(out.device)
        out[row] = _tried(torch.softmax(out[row], -1), drafts, u).log()
    return out


def _tried(p: Tensor, drafts: Sequence[Trial], u: Tensor) -> Tensor:
    p = p.unsqueeze(0)
    for at, draft in enumerate(drafts):
        token, q = torch.tensor([draft.token], device=p.device), draft.q.unsqueeze(0)
        accepted = bool(accepts(p, q, token, u[at : at + 1]))
        p = verified(p, q, token, u[at : at + 1])
        if accepted:
            break
    return p[0]
