"""How a particle moves: by a token, along a cut of several, or by a token that a predicate accepts.

Every move draws from the model among what is allowed and tells the mass of that as its weight, or an unbiased estimate:
probability of the move times weight is then, in expectation, the model's probability of the tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.engine.draw import Draw
from maskwright.engine.lookahead.cuts import Cut, Spread
from maskwright.engine.lookahead.resampling import edges_of, index_at
from maskwright.engine.lookahead.weighted_rejection import weighted_rejection

if TYPE_CHECKING:
    from maskwright.engine.lookahead.base import Base
    from maskwright.engine.lookahead.judge import Judge
    from maskwright.engine.request import Guide
    from maskwright.engine.rng import Stream

__all__ = ["Move", "Place", "along_cut", "judged", "single", "without_ends"]

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
        log_twist: of psi.
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
    log_twist: float = 0.0
    cut: Cut | None = None
    spread: Spread | None = None
    after: dict[tuple[int, ...], Place] = field(default_factory=dict)
    _edges: Floats = field(default_factory=lambda: np.zeros(0))
    _moves: dict[int, Move] = field(default_factory=dict)

    def weigh(self, log_p: Floats) -> None:
        """Takes the log-probabilities of `ids`; one pass serves both their mass and the draws."""
        self.log_p, self.log_mass = log_p, -math.inf
        top = float(log_p.max()) if len(log_p) else -math.inf
        if top > -math.inf:
            self._edges = edges_of(log_p)
            self.log_mass = top + math.log(float(self._edges[-1]))

    def span(self, spread: Spread) -> None:
        """Takes the probabilities of the leaves of `cut` in their place."""
        self.spread, self.log_mass = spread, spread.log_mass
        self._edges = edges_of(spread.log_p)

    def draw(self, uniform: float, move: Callable[[int], Move]) -> Move:
        """A move, drawn by inversion; particles share the work."""
        at = index_at(self._edges, uniform)
        if at not in self._moves:
            self._moves[at] = move(at)
        return self._moves[at]


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

    def move(at: int) -> Move:
        draw = Draw(int(place.ids[at]), float(place.log_p[at]), min(0.0, place.log_mass))
        return Move((draw,), place.log_mass)

    return place.draw(uniform, move)


def along_cut(place: Place, uniform: float) -> Move:
    """The tokens to one leaf of the place's cut."""
    cut, spread = place.cut, place.spread
    assert cut is not None and spread is not None
    return place.draw(uniform, lambda leaf: _to_leaf(cut, spread, leaf))


def _to_leaf(cut: Cut, spread: Spread, leaf: int) -> Move:
    node, token, draws, nodes = int(spread.nodes[leaf]), int(spread.tokens[leaf]), [], []
    while node >= 0:
        step = float(spread.steps[node][cut.allowed[node].index(token)])
        draws.append(Draw(token, step, min(0.0, spread.kept[node])))
        if node > 0:
            nodes.append(node - 1)  # the place itself is no node of the tree that was read
        token, node = cut.tokens[node], cut.parents[node]
    return Move(tuple(draws[::-1]), spread.log_mass, nodes[::-1])


def judged(place: Place, judge: Judge, stream: Stream, step: int, ends: frozenset[int], base: Base) -> Move | None:
    """One token that the mask allows and a predicate accepts; None where there is none."""
    tokens, kinds = base.model.vocabulary.tokens, base.model.vocabulary.kinds

    def accepts(at: int) -> bool:
        token = int(place.ids[at])
        if token in ends:
            return judge.may_end(place.data)
        return judge.may_begin(place.data if kinds[token] else place.data + tokens[token])

    noise = stream.gumbels(step, place.ids.astype(np.int64))
    found = weighted_rejection(place.log_p - place.log_mass, noise, accepts, base.settings.checks)
    if found is None:
        return None
    at, mass = found
    weight = place.log_mass + math.log(mass)
    return Move((Draw(int(place.ids[at]), float(place.log_p[at]), min(0.0, weight)),), weight)


def without_ends(place: Place, judge: Judge, ends: frozenset[int]) -> None:
    """Where beginnings are not asked about, one question tells all: takes the EOS out where the text may not end."""
    is_end = np.isin(place.ids, list(ends))
    if is_end.any() and not judge.may_end(place.data):
        place.ids = place.ids[~is_end]
        place.weigh(place.log_p[~is_end])
