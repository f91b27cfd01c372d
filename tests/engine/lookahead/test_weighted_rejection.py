"""Adaptive weighted rejection: proper weights, E[weight; token = t] = p(t), beside estimators that are not."""

from __future__ import annotations

import random
from bisect import bisect

import numpy as np
import pytest

from maskwright.engine.lookahead.weighted_rejection import weighted_rejection

P = np.array([0.3, 0.25, 0.2, 0.1, 0.08, 0.05, 0.02])
GOOD = np.array([False, True, False, True, False, True, True])
EDGES = P.cumsum().tolist()[:-1]
RUNS = 8_000


def gumbel(runs, seed=0):
    return -np.log(-np.log(np.random.default_rng(seed).random((runs, len(P)))))


def moments(estimator, runs=RUNS):
    """Mean of weight times [token = t], its standard error, and the variance of the weight."""
    found = np.zeros((runs, len(P)))
    for at, noise in enumerate(gumbel(runs)):
        drawn = estimator(noise)
        if drawn is not None:
            found[at, drawn[0]] = drawn[1]
    return found.mean(0), found.std(0) / runs**0.5, found.sum(1).var()


def ours(noise, further=1):
    return weighted_rejection(np.log(P), noise, lambda at: bool(GOOD[at]), further)


def is_unbiased(estimator):
    mean, error, _ = moments(estimator)
    return bool((np.abs(mean - P * GOOD) <= 4 * error + 1e-12).all())


def in_order(noise):
    return np.argsort(-(np.log(P) + noise))


def recursive(noise, forget=False):
    """The published one: mass left after the rejects, times a coin on the token after the accepted one."""
    order = in_order(noise)
    first = next(at for at in range(len(order)) if GOOD[order[at]])
    rejected = P[order[:first]].sum()
    token = order[first]
    share = P[token] / (1 - rejected)
    coin = np.random.default_rng(int(noise[0] * 1e9) % 2**32).random() < share
    good = coin or (first + 1 < len(order) and GOOD[order[first + 1]])
    return int(token), (1.0 if forget else 1 - rejected) * good


def geometric(noise, accepts=2, naive=False):
    """The published one: a run with replacement until the second accepted token."""
    rng = random.Random(float(noise[0]))
    draws, found = 0, []
    while len(found) < accepts:
        token = bisect(EDGES, rng.random())
        draws += 1
        found += [token] if GOOD[token] else []
    return found[0], accepts / draws if naive else (accepts - 1) / (draws - 1)


@pytest.mark.parametrize("further", [1, 2, 4])
def test_weights_are_proper(further):
    assert is_unbiased(lambda noise: ours(noise, further))


def test_the_token_is_a_draw_among_the_accepted_ones():
    counts = np.zeros(len(P))
    for noise in gumbel(RUNS, seed=1):
        counts[ours(noise)[0]] += 1
    law = P * GOOD / P[GOOD].sum()
    assert (np.abs(counts / RUNS - law) <= 4 * np.sqrt(law * (1 - law) / RUNS) + 1e-12).all()


def without_own_mass(noise):
    """Forgets the mass of the accepted token."""
    token, weight = ours(noise)
    return token, weight - P[token]


def from_the_first_on(noise):
    """Also averages the estimates that depend on which token was accepted."""
    order, seen, accepted, all_of_them, chosen = in_order(noise), 0.0, 0.0, [], None
    for at in order:
        all_of_them.append(accepted + (1 - seen) * GOOD[at])
        done = chosen is not None
        chosen = int(at) if chosen is None and GOOD[at] else chosen
        seen, accepted = seen + P[at], accepted + P[at] * GOOD[at]
        if done:
            break
    return chosen, float(np.mean(all_of_them))


def without_the_rejects(noise):
    """Takes the mass that is left for 1."""
    token, weight = ours(noise)
    rejected = P[in_order(noise)[: list(in_order(noise)).index(token)]].sum()
    return token, weight / (1 - rejected)


@pytest.mark.parametrize(
    "mutant",
    [
        without_own_mass,
        from_the_first_on,
        without_the_rejects,
        lambda noise: recursive(noise, forget=True),
        lambda noise: geometric(noise, naive=True),
    ],
    ids=["own-mass", "first-on", "rejects", "recursive-forgets-rejects", "geometric-counts-all"],
)
def test_wrong_estimators_are_noticed(mutant):
    assert not is_unbiased(mutant)


@pytest.mark.parametrize("published", [recursive, geometric])
def test_published_estimators_pass_too(published):
    assert is_unbiased(published)


def test_the_recursive_one_asks_as_much_and_has_greater_variance():
    assert moments(recursive)[2] > 1.2 * moments(ours)[2]


def test_mass_is_exact_where_all_were_asked():
    token, mass = ours(gumbel(1)[0], further=len(P))
    assert GOOD[token]
    assert mass == pytest.approx(P[GOOD].sum())


def test_nothing_accepted_is_none_and_each_is_asked_once():
    asked = []
    assert weighted_rejection(np.log(P), gumbel(1)[0], lambda at: bool(asked.append(at))) is None
    assert sorted(asked) == list(range(len(P)))


def test_many_candidates_come_in_the_same_order():
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(500, 0.3))
    noise = -np.log(-np.log(rng.random(500)))
    asked = []
    weighted_rejection(np.log(p), noise, lambda at: asked.append(at) or len(asked) > 130)
    expected = np.argsort(-(np.log(p) + noise))[: len(asked)]
    assert asked == expected.tolist()
    assert len(asked) == 132


def test_tokens_of_probability_zero_are_never_asked_about():
    log_p = np.array([-np.inf, 0.0])
    assert weighted_rejection(log_p, np.array([9.0, 0.0]), lambda at: at == 0) is None
