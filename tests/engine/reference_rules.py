"""The distribution that a draw must follow: one row, float64, written for reading, and its wrong variants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from maskwright.engine.sampling import Sampling

Floats = npt.NDArray[np.float64]


def softmax(x: Floats) -> Floats:
    e = np.exp(x - x.max())
    return e / e.sum()


def keep(x: Floats, kept: Collection[int]) -> Floats:
    out = np.full(len(x), -np.inf)
    out[list(kept)] = x[list(kept)]
    return out


def nucleus(x: Floats, ranked: Sequence[int], share: float) -> list[int]:
    p, mass, kept = softmax(x), 0.0, []
    for i in ranked:
        if mass >= share or x[i] == -np.inf:
            break
        kept.append(i)
        mass += p[i]
    return kept


def apply(rule: str, x: Floats, s: Sampling, allowed: Sequence[int], seen: Mapping[int, int]) -> Floats:
    p, best = softmax(x), sorted(range(len(x)), key=lambda i: (-x[i], i))
    surprise = -np.log(np.maximum(p, 1e-300))
    entropy = float((p * surprise).sum())
    if rule == "logit_bias":
        return x + np.array([s.logit_bias.get(i, 0.0) for i in range(len(x))])
    if rule == "penalties":
        if s.penalty_space == "logprob" and s.repetition_penalty != 1 and seen:
            x = np.log(p)
        out = x.copy()
        for i, n in seen.items():
            if i not in s.penalty_exempt:
                scaled = x[i] / s.repetition_penalty if x[i] > 0 else x[i] * s.repetition_penalty
                out[i] = scaled - s.frequency_penalty * n - s.presence_penalty
        return out
    if rule == "mask":
        return keep(x, allowed)
    if rule == "temperature":
        return x / s.temperature
    if rule == "top_k":
        return keep(x, best[: s.top_k]) if s.top_k else x
    if rule == "top_p":
        return keep(x, nucleus(x, best, s.top_p)) if s.top_p < 1 else x
    if rule == "min_p":
        return keep(x, [i for i in best if p[i] >= s.min_p * p[best[0]]])
    if rule == "typical_p":
        alive = [i for i in best if x[i] > -np.inf]
        typical = sorted(alive, key=lambda i: (abs(surprise[i] - entropy), i))
        return keep(x, nucleus(x, typical, s.typical_p)) if s.typical_p < 1 else x
    least = s.epsilon if rule == "epsilon" else min(s.eta, np.sqrt(s.eta) * np.exp(-entropy))
    return keep(x, [i for i in best if p[i] >= least or x[i] == x.max()])


def reference(
    logits: Floats,
    sampling: Sampling,
    allowed: Sequence[int],
    seen: Mapping[int, int] | None = None,
    order: Sequence[str] | None = None,
) -> Floats:
    """Probabilities after all rules, in the sampling's order or (a wrong variant) another."""
    x = logits.astype(np.float64)
    for rule in sampling.order if order is None else order:
        x = apply(rule, x, sampling, allowed, seen or {})
    return softmax(x)
