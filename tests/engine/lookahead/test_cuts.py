"""Cuts: every output passes one leaf, and the mass of the leaves is that of the outputs behind them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.engine.lookahead.random_tables import EOS, TOKENS, TableModel, language

import maskwright as mw
from maskwright.engine.lookahead.cuts import grow, log_sum, spread

MODEL = TableModel(1, scale=1.0)
TEXTS = [*TOKENS, b""]
PATTERNS = ["(ab|c)*a|bc{0,3}", "abcabc", "[abc]{2}", "a|b|c|ab|bc", "(abc)*"]


def cut_of(pattern, most=12, left=6, widest=64, prefix=()):
    guide = mw.compile(mw.Regex(pattern), MODEL.vocabulary).matcher()
    for token in prefix:
        assert guide.accept(token)
    return grow(guide, guide.allowed_tokens(left), left, frozenset([EOS]), TEXTS, most, widest)


def leaves(cut):
    """The token sequences of the leaves."""
    return [
        (*cut.path(node), token)
        for node, allowed in enumerate(cut.allowed)
        for token in allowed
        if token not in cut.children[node]
    ]


@pytest.mark.parametrize("most", [2, 5, 12, 200])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_output_passes_exactly_one_leaf(pattern, most):
    cut = cut_of(pattern, most)
    found = leaves(cut)
    assert len(cut.tokens) <= most
    for output in language(MODEL, pattern, 6):
        assert sum(output[: len(leaf)] == leaf for leaf in found) == 1


@pytest.mark.parametrize("most", [2, 12, 200])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_probabilities_are_those_of_the_tokens_on_the_way(pattern, most):
    cut = cut_of(pattern, most)
    found = spread(cut, [MODEL.log_p(tuple(cut.path(node)))[cut.allowed[node]] for node in range(len(cut.tokens))])
    total = 0.0
    for node, token, log_p in zip(found.nodes, found.tokens, found.log_p, strict=True):
        path = (*cut.path(int(node)), int(token))
        expected = sum(MODEL.log_p(path[:at])[each] for at, each in enumerate(path))
        assert log_p == pytest.approx(expected)
        total += math.exp(expected)
    assert found.log_mass == pytest.approx(math.log(total))
    assert len(set(zip(found.nodes.tolist(), found.tokens.tolist(), strict=True))) == len(leaves(cut))


def test_a_tree_that_holds_a_language_has_its_mass():
    cut = cut_of("[abc]{2}", most=500)
    found = spread(cut, [MODEL.log_p(tuple(cut.path(node)))[cut.allowed[node]] for node in range(len(cut.tokens))])
    assert set(found.tokens.tolist()) == {EOS}
    assert math.exp(found.log_mass) == pytest.approx(sum(language(MODEL, "[abc]{2}", 6).values()))


def test_wide_places_and_single_steps_have_no_cut():
    assert cut_of("[abc]{2}", widest=3) is None
    assert cut_of("[abc]{2}", most=1) is None
    assert cut_of("ab?", prefix=(0,), left=1) is None  # only EOS fits
    assert cut_of("[abc]{2}") is not None


def test_wide_nodes_stay_leaves():
    cut = cut_of("c[abc]{2}", widest=3)
    assert cut is None  # below the first token five tokens are allowed
    cut = cut_of("cc[abc]{2}", widest=3)
    assert [cut.path(node) for node in range(len(cut.tokens))] == [[], [2]]


def test_long_tokens_come_first():
    cut = cut_of("[ab]{4}", most=2)
    assert cut.path(1) == [TOKENS.index(b"ab")]


def test_log_sum_of_nothing():
    assert log_sum(np.zeros(0)) == -math.inf
    assert log_sum(np.array([-math.inf])) == -math.inf
    assert log_sum(np.log([0.25, 0.5])) == pytest.approx(math.log(0.75))
