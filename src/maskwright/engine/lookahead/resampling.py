"""Weights of particles: effective sample size and systematic resampling.

Weights are held as logarithms (nats), shape ``(N,)``; ``-inf`` is a particle without weight. At least one is finite.

Sources: Kong, Liu and Wong, "Sequential imputations and Bayesian missing data problems", JASA 1994 (effective sample
size); Kitagawa, "Monte Carlo filter and smoother", JCGS 1996 (systematic resampling).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["draw_one", "edges_of", "effective_size", "index_at", "log_mean", "normalized", "systematic"]

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
    points = (np.arange(len(log_weights)) + uniform) / len(log_weights)
    edges = edges_of(log_weights)
    return np.array([index_at(edges, point) for point in points.tolist()], dtype=np.int64)


def draw_one(log_weights: Floats, uniform: float) -> int:
    """An index in proportion to its weight, by inversion of one random number in ``[0, 1)``."""
    return index_at(edges_of(log_weights), uniform)


def edges_of(log_weights: Floats) -> Floats:
    """Where weights end that are laid end to end."""
    return np.asarray(np.exp(log_weights - log_weights.max()).cumsum())


def index_at(edges: Floats, point: float) -> int:
    """On which weight a point falls, of ``[0, 1)`` from the first to the last edge; never on one that is 0."""
    # Products round: every point must stay below the last edge.
    last = float(edges[-1])
    return int(edges.searchsorted(min(point * last, math.nextafter(last, 0.0)), side="right"))
