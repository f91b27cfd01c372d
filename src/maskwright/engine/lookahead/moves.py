"""How a particle moves: by a token, along a cut of several, or by a token that a predicate accepts.

Every move draws from the model among what is allowed and tells the mass of that as its weight, or an unbiased estimate:
probability of the move times weight is then, in expectation, the model's probability of the tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.engine.draw import Draw
from maskwright.engine.lookahead.cuts import Cut, Spread, log_sum
from maskwright.engine.lookahead.weighted_rejection import weighted_rejection

if TYPE_CHECKING:
    from maskwright.engine.lookahead.base import Base
    from maskwright.engine.lookahead.judge import Judge
    from maskwright.engine.request import Guide
    from maskwright.engine.rng import Stream

__all__ = ["Move", "Place", "along_cut", "judged", "single"]

Floats = npt.NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Place:
    """A prefix that particles share.

    Attributes:
        tokens: of the output so far.
        data: the bytes of the text.
        guide: the matcher behind it.
        row: of the cache.
        unread: tokens at its end that the row does not hold.
        ids: what the mask allows, ascending.
        log_p: the model's log-probabilities of these.
        log_mass: log of the mass that a move keeps: their sum, or that of the cut where there is one.
        cut: the tree that the next move spans.
        spread: its probabilities.
        after: places that moves from here lead to, by the tokens between.
    """

    tokens: tuple[int, ...]
    data: bytes
    guide: Guide
    row: int = 0
    unread: list[int] = field(default_factory=list)
    ids: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    log_p: Floats = field(default_factory=lambda: np.zeros(0))
    log_mass: float = -math.inf
    cut: Cut | None = None
    spread: Spread | None = None
    after: dict[tuple[int, ...], Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """What follows a place.

    Attributes:
        draws: at least one.
        log_weight: log of the mass kept, or of its estimate.
        nodes: of the place's cut that the move passes, in the numbers of the tree that the model read.
    """

    draws: tuple[Draw, ...]
    log_weight: float
    nodes: list[int] = field(default_factory=list)


def single(place: Place, uniform: float) -> Move:
    """One token of those that the mask allows."""
    at = _by_mass(place.log_p, uniform)
    draw = Draw(int(place.ids[at]), float(place.log_p[at]), min(0.0, place.log_mass))
    return Move((draw,), place.log_mass)


def along_cut(place: Place, uniform: float) -> Move:
    """The tokens to one leaf of the place's cut."""
    cut, spread = place.cut, place.spread
    assert cut is not None and spread is not None
    leaf = _by_mass(spread.log_p, uniform)
    node, token, draws, nodes = int(spread.nodes[leaf]), int(spread.tokens[leaf]), [], []
    while node >= 0:
        step = float(spread.steps[node][cut.allowed[node].index(token)])
        draws.append(Draw(token, step, min(0.0, spread.kept[node])))
        if node > 0:
            nodes.append(node - 1)  # the place itself is no node of the tree that was read
        token, node = cut.tokens[node], cut.parents[node]
    return Move(tuple(draws[::-1]), spread.log_mass, nodes[::-1])


def judged(
    place: Place, judge: Judge, stream: Stream, step: int, ends: frozenset[int], base: Base, checks: int
) -> Move | None:
    """One token that the mask allows and a predicate accepts; None where there is none."""
    tokens, kinds = base.model.vocabulary.tokens, base.model.vocabulary.kinds

    def accepts(at: int) -> bool:
        token = int(place.ids[at])
        if token in ends:
            return judge.may_end(place.data)
        return judge.may_begin(place.data if kinds[token] else place.data + tokens[token])

    kept = log_sum(place.log_p)
    within = place.log_p - kept
    if judge.has_prefix:
        noise = stream.gumbels(step, place.ids.astype(np.int64))
        found = weighted_rejection(within, noise, accepts, checks)
    else:
        found = _all_but_ends(place, within, judge, ends, float(stream.uniforms(step, 1)[0]))
    if found is None:
        return None
    at, mass = found
    weight = kept + math.log(mass)
    return Move((Draw(int(place.ids[at]), float(place.log_p[at]), min(0.0, weight)),), weight)


def _all_but_ends(
    place: Place, within: Floats, judge: Judge, ends: frozenset[int], uniform: float
) -> tuple[int, float] | None:
    """Where beginnings are not asked about, one question tells all: whether the text may end here."""
    is_end = np.isin(place.ids, list(ends))
    good = within.copy()
    if is_end.any() and not judge.may_end(place.data):
        good[is_end] = -math.inf
    mass = log_sum(good)
    return None if mass == -math.inf else (_by_mass(good, uniform), min(1.0, math.exp(mass)))


def _by_mass(log_p: Floats, uniform: float) -> int:
    """An index in proportion to its probability, by inversion; never one of probability 0."""
    edges = np.exp(log_p - log_p.max()).cumsum()
    return int(np.searchsorted(edges, uniform * edges[-1], side="right"))
