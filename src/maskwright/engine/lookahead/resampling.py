"""Weights of particles: effective sample size and systematic resampling.

Weights are held as logarithms (nats), shape ``(N,)``; ``-inf`` is a particle without weight. At least one is finite.

Sources: Kong, Liu and Wong, "Sequential imputations and Bayesian missing data problems", JASA 1994 (effective sample
size); Kitagawa, "Monte Carlo filter and smoother", JCGS 1996 (systematic resampling).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["effective_size", "log_mean", "normalized", "systematic"]

Floats = npt.NDArray[np.float64]


def log_mean(log_weights: Floats) -> float:
    """Log of the mean weight; ``-inf`` where there is none."""
    top = float(log_weights.max())
    return top + math.log(float(np.exp(log_weights - top).mean())) if math.isfinite(top) else -math.inf


def normalized(log_weights: Floats) -> Floats:
    """Weights that sum to 1."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def effective_size(log_weights: Floats) -> float:
    """``(sum w)^2 / sum w^2``: between 1 and N."""
    weights = normalized(log_weights)
    return float(1.0 / (weights**2).sum())


def systematic(log_weights: Floats, uniform: float) -> npt.NDArray[np.int64]:
    """The ancestor of each of N new particles, which have equal weights then.

    Particle ``i`` has ``floor(N w_i)`` or one more descendants, ``N w_i`` in expectation, w being normalized.

    Args:
        log_weights: shape ``(N,)``.
        uniform: one random number in ``[0, 1)``.

    Returns:
        int64, shape ``(N,)``, ascending.
    """
    edges = normalized(log_weights).cumsum()
    points = (np.arange(len(edges)) + uniform) / len(edges)
    # Divided by the last edge, every point is below it: a particle without weight is never an ancestor.
    return np.searchsorted(edges / edges[-1], points, side="right").astype(np.int64)
