"""Pearson's chi-square test, with its p-value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

Floats = npt.NDArray[np.float64]


def p_value(counts: npt.NDArray[np.int64], p: Floats) -> float:
    """The probability that counts fit a distribution as badly or worse; cells expected below 5 are joined."""
    if counts[p == 0].any():
        return 0.0
    n = int(counts.sum())
    small = n * p < 5
    observed, expected = counts[~small].astype(float), n * p[~small]
    if n * p[small].sum() > 0:
        observed = np.append(observed, counts[small].sum())
        expected = np.append(expected, n * p[small].sum())
    if len(expected) < 2:
        return 1.0
    statistic = ((observed - expected) ** 2 / np.maximum(expected, 1e-12)).sum()
    half = torch.tensor([(len(expected) - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))
