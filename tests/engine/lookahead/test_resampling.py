"""Effective sample size and systematic resampling."""

from __future__ import annotations

import math

import numpy as np
import pytest

from maskwright.engine.lookahead.resampling import effective_size, log_mean, normalized, systematic

WEIGHTS = np.array([0.02, 3.0, 0.0, 0.7, 0.7, 1.1])


def logs(weights):
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(weights, dtype=float))


def mean_descendants(resample, log_weights, runs=2000):
    """Average number of descendants of each particle over a grid of random numbers."""
    found = np.zeros(len(log_weights))
    for at in range(runs):
        found += np.bincount(resample(log_weights, (at + 0.5) / runs), minlength=len(log_weights))
    return found / runs


def test_descendants_are_in_proportion_to_the_weights():
    expected = len(WEIGHTS) * WEIGHTS / WEIGHTS.sum()
    assert mean_descendants(systematic, logs(WEIGHTS)) == pytest.approx(expected, abs=2e-3)


def test_every_particle_has_as_many_descendants_as_its_weight_or_one_more():
    expected = len(WEIGHTS) * WEIGHTS / WEIGHTS.sum()
    for uniform in np.linspace(0, 1, 101, endpoint=False):
        counts = np.bincount(systematic(logs(WEIGHTS), uniform), minlength=len(WEIGHTS))
        assert (np.floor(expected - 1e-9) <= counts).all()
        assert (counts <= np.ceil(expected + 1e-9)).all()


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_only_ratios_of_weights_matter(scale):
    assert systematic(logs(WEIGHTS) + math.log(scale), 0.3).tolist() == systematic(logs(WEIGHTS), 0.3).tolist()


def test_a_resampling_that_forgets_to_normalize_is_noticed():
    def mutant(log_weights, uniform):
        edges = np.exp(log_weights).cumsum()  # as if the weights summed to 1
        points = (np.arange(len(edges)) + uniform) / len(edges)
        return np.minimum(np.searchsorted(edges, points, side="right"), len(edges) - 1)

    expected = len(WEIGHTS) * WEIGHTS / WEIGHTS.sum()
    assert np.abs(mean_descendants(mutant, logs(WEIGHTS)) - expected).max() > 0.1


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2**-53])
def test_a_particle_without_weight_has_no_descendants(uniform):
    assert set(systematic(logs([0, 1, 0, 1e-9, 0]), uniform).tolist()) <= {1, 3}


def test_effective_size_and_mean():
    assert effective_size(logs([2, 2, 2])) == pytest.approx(3)
    assert effective_size(logs([1, 0, 0])) == pytest.approx(1)
    assert effective_size(logs([2, 1, 1])) == pytest.approx(16 / 6)
    assert log_mean(logs([1, 3])) == pytest.approx(math.log(2))
    assert log_mean(logs([0, 0])) == -math.inf
    assert normalized(logs([1, 3])).tolist() == pytest.approx([0.25, 0.75])
