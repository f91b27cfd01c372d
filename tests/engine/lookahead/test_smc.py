"""Particles: unbiased weights, the law for many and for few, costs, repeatability."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.engine.lookahead.random_tables import TableModel, conditional, language
from tests.engine.statistics import p_value

import maskwright as mw
from maskwright.engine.lookahead import particles as module
from maskwright.engine.lookahead.base import Base
from maskwright.engine.lookahead.particles import Particles
from maskwright.engine.request import Request
from maskwright.engine.rng import Stream

PATTERN, LONGEST = r"(ab|c)*a|bc{0,3}", 5
MODEL = TableModel(3, scale=1.0)
LAW = language(MODEL, PATTERN, LONGEST)
Z = sum(LAW.values())
SINGLE = {"block_nodes": 1}
WAYS = [
    {},
    {"block_nodes": 4},
    SINGLE,
    {"twist": None},
    {"twist": None, **SINGLE},
    {"twist": lambda text: -0.7 * len(text), **SINGLE},
    {"ess_threshold": 1.0, **SINGLE},
]


def base_of(model=MODEL, pattern=PATTERN, seed=0, max_tokens=LONGEST, sampling=None, **settings):
    compiled = mw.compile(mw.Regex(pattern), model.vocabulary)
    request = Request((0,), compiled, Stream(seed), max_tokens)
    return Base(model, request, sampling or mw.Sampling(), mw.Lookahead(method="smc", **settings))


def ran(**settings):
    found = Particles(base_of(**settings))
    found.run()
    return found


def estimates(runs, **settings):
    return np.exp([ran(seed=seed, **settings).log_Z for seed in range(runs)])


def is_unbiased(found, truth=Z):
    return bool(abs(found.mean() - truth) <= 4 * found.std() / len(found) ** 0.5)


# --- weights


def test_T5_weights_are_unbiased():
    """The mean weight of outputs drawn by masks is Z."""
    found = np.exp(ran(particles=20_000, ess_threshold=0.0, **SINGLE).log_weights)
    assert is_unbiased(found)
    assert found.std() > 0.2 * Z  # else the test above says little


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_T5_the_estimate_of_Z_is_unbiased(way, count):
    assert is_unbiased(estimates(150, particles=count, **WAYS[way]))


class ForgetsTheMean(Particles):
    """Resampled particles weigh 1, whatever the weights were."""

    def _resample(self):
        before = self.resampled
        super()._resample()
        if self.resampled > before:
            self.particles = [replace(each, log_weight=0.0) for each in self.particles]


class KeepsTheTwist(Particles):
    """Resampled particles are not divided by their twist."""

    def _resample(self):
        before = self.resampled
        super()._resample()
        if self.resampled > before:
            twisted = [2 * each.log_twisted - each.log_weight for each in self.particles]
            self.particles = [replace(a, log_weight=b) for a, b in zip(self.particles, twisted, strict=True)]


@pytest.mark.parametrize("mutant", [ForgetsTheMean, KeepsTheTwist])
def test_wrong_weights_after_resampling_are_noticed(mutant):
    found = []
    for seed in range(150):
        made = mutant(base_of(seed=seed, particles=8, ess_threshold=1.0, **SINGLE))
        made.run()
        found.append(math.exp(made.log_Z))
    assert not is_unbiased(np.array(found))


def test_weights_without_the_mass_of_masks_are_noticed(monkeypatch):
    true = module.single
    monkeypatch.setattr(module, "single", lambda place, u: replace(true(place, u), log_weight=place.log_mass / 2))
    assert not is_unbiased(estimates(100, particles=8, **SINGLE))


def test_a_cut_without_one_of_its_leaves_is_noticed(monkeypatch):
    true, likely = module.spread, {x for x, p in conditional(LAW).items() if p > 0.005}

    def fewer(cut, log_p):
        found = true(cut, log_p)
        keep = found.log_p < max(found.log_p) if len(found.log_p) > 1 else slice(None)
        return replace(found, nodes=found.nodes[keep], tokens=found.tokens[keep], log_p=found.log_p[keep])

    assert likely <= {each.tokens for each in ran(particles=4000).particles}
    monkeypatch.setattr(module, "spread", fewer)
    assert not likely <= {each.tokens for each in ran(particles=4000).particles}


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_every_token_tells_its_probability_and_the_mass_of_its_mask(way):
    for each in ran(particles=64, **WAYS[way]).particles:
        assert math.fsum(draw.logprob for draw in each.draws) == pytest.approx(math.log(LAW[each.tokens]))
        for at, draw in enumerate(each.draws):
            before = each.tokens[:at]
            open_ = {x[at] for x in LAW if x[:at] == before}
            kept = np.exp(MODEL.log_p(before)[sorted(open_)]).sum()
            assert draw.kept == pytest.approx(math.log(kept), abs=1e-6)


# --- the law


def p_of(results):
    law = conditional(LAW)
    counts = np.array([sum(tuple(r.tokens) == x for r in results) for x in law])
    assert counts.sum() == len(results)
    return p_value(counts, np.array(list(law.values())))


def drawn(n, seed=1, **settings):
    ahead = mw.Lookahead(method="smc", **settings)
    return mw.generate(MODEL, "x", mw.Regex(PATTERN), lookahead=ahead, n=n, max_tokens=LONGEST, seed=seed)


def test_T1_many_particles_are_near_the_law_and_one_is_not():
    assert p_of(drawn(150, particles=64, **SINGLE)) > 1e-3
    assert p_of(drawn(600, particles=1, **SINGLE)) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_T1_in_full(seed):
    assert p_of(drawn(800, seed, particles=128)) > 1e-3
    assert p_of(drawn(2000, seed, particles=2, **SINGLE)) < 1e-6


def test_one_move_over_a_whole_language_is_exact_with_one_particle():
    results = drawn(300, particles=1, block_nodes=400)
    assert p_of(results) > 1e-3
    assert [r.lookahead.log_Z for r in results] == pytest.approx([math.log(Z)] * len(results))


# --- results


def test_results_say_what_they_are():
    (one, two) = drawn(2, particles=8)
    for each in (one, two):
        about = each.lookahead
        assert about.method == "smc"
        assert not about.exact
        assert about.tv_bound is None
        assert 1 <= about.ess <= 8 + 1e-9
        assert math.fsum(p.weight for p in about.particles) == pytest.approx(1)
        assert tuple(each.tokens) in [p.tokens for p in about.particles]
        assert all(p.logprob == pytest.approx(math.log(LAW[p.tokens])) for p in about.particles)
        assert each.valid
        assert each.finish_reason == "eos"
        assert each.logprob == pytest.approx(math.log(LAW[tuple(each.tokens)]))
    assert one.manifest["seed"] != two.manifest["seed"]


def test_the_same_seed_gives_the_same_particles_alone_and_beside_others():
    together = mw.generate(MODEL, ["x", "y"], mw.Regex(PATTERN), lookahead="smc", n=2, max_tokens=5, seed=[7, 9])
    alone = mw.generate(MODEL, "y", mw.Regex(PATTERN), lookahead="smc", n=2, max_tokens=5, seed=9)
    assert [r.lookahead.particles for r in together[1]] == [r.lookahead.particles for r in alone]
    assert alone[0].lookahead.particles != alone[1].lookahead.particles


def test_outputs_end_within_the_budget():
    results = mw.generate(MODEL, "x", mw.Regex("a*b"), lookahead="smc", n=20, max_tokens=4, seed=0)
    law = conditional(language(MODEL, "a*b", 4))
    assert {tuple(r.tokens) for r in results} <= set(law)


def test_T13_temperature_and_penalties_are_part_of_the_law():
    rules = mw.Sampling(temperature=0.7, repetition_penalty=1.5)
    found = ran(particles=200, sampling=rules, **SINGLE)
    for each in found.particles:
        for at, draw in enumerate(each.draws):
            logits = MODEL.logits((0, *each.tokens[:at])).double().clone()
            for token in set(each.tokens[:at]):
                logits[token] = logits[token] / 1.5 if logits[token] > 0 else logits[token] * 1.5
            assert draw.logprob == pytest.approx(float((logits / 0.7).log_softmax(-1)[draw.token]), abs=1e-5)


def test_T12_canonical_spellings_alone():
    found = ran(particles=300, tokenization="canonical").particles
    ended = {each.tokens for each in found if each.log_weight > -math.inf}
    canonical = {x for x in LAW if all(token < 3 for token in x[:-1])}  # this tokenizer cuts into single bytes
    assert ended <= canonical
    assert len(ended) < len({each.tokens for each in found})  # some went down other spellings and were lost
    truth = sum(LAW[x] for x in canonical)
    assert is_unbiased(estimates(40, particles=100, tokenization="canonical"), truth)


# --- cost


def test_particles_of_one_prefix_share_a_row():
    model = TableModel(3, scale=1.0)
    made = Particles(base_of(model, particles=500, **SINGLE))
    made.run()
    prefixes = {x[:at] for x in LAW for at in range(len(x))}
    assert made.nodes <= len(prefixes)
    assert made.forwards <= LONGEST
    assert model.forwards == made.forwards


def test_forced_text_and_finite_fields_take_few_forwards():
    model = TableModel(0, scale=1.0)
    made = Particles(base_of(model, "cccccc(ab|bc)cccc", particles=16, max_tokens=20))
    made.run()
    assert made.forwards <= 4
    alone = Particles(base_of(model, "cccccc(ab|bc)cccc", particles=16, max_tokens=20, **SINGLE))
    alone.run()
    assert alone.forwards > 10
    assert made.ess >= 15  # nearly all of the language is in one move


def test_cancelling_ends_it():
    class Soon:
        calls = 0

        def is_set(self):
            self.calls += 1
            return self.calls > 2

    result = mw.generate(
        MODEL, "x", mw.Regex("c{20}"), lookahead=mw.Lookahead(method="smc", **SINGLE), max_tokens=30, cancel=Soon()
    )
    assert result.finish_reason == "cancelled"
    assert not result.valid


def test_budgets_that_no_output_fits_into_are_refused_before_any_forward():
    model = TableModel(0)
    with pytest.raises(mw.GenerationError, match="max_tokens"):
        mw.generate(model, "x", mw.Regex("c{9}"), lookahead="smc", max_tokens=5)
    assert model.forwards == 0


# --- refusals


def test_a_model_that_gives_valid_outputs_no_probability():
    model = TableModel(0, tilt={0: -math.inf})
    with pytest.raises(mw.UnsatisfiableError, match="probability 0"):
        mw.generate(model, "x", mw.Regex("a"), lookahead="smc", max_tokens=3)


def test_what_a_twist_raises_ends_its_request_with_the_traceback():
    def wrong(text):
        raise KeyError(text)

    ahead = mw.Lookahead(method="smc", twist=wrong, **SINGLE)
    with pytest.raises(mw.GenerationError, match="twist raised KeyError") as caught:
        mw.generate(MODEL, "x", mw.Regex("a"), lookahead=ahead, max_tokens=5)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__cause__.__traceback__ is not None


def test_a_twist_that_is_no_number_is_refused():
    ahead = mw.Lookahead(method="smc", twist=lambda text: -math.inf, **SINGLE)
    with pytest.raises(mw.GenerationError, match="twist is -inf"):
        mw.generate(MODEL, "x", mw.Regex("ab"), lookahead=ahead, max_tokens=5)


@pytest.mark.parametrize("wrong", [{"twist": "best"}, {"block_nodes": 0}, {"checks": 0}, {"particles": 0}])
def test_settings_out_of_range(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        mw.Lookahead(method="smc", **wrong)
