"""Sequential Monte Carlo over the outputs of a constraint.

N particles grow side by side. Where a particle has the prefix u, a move draws what follows from the model among what
the mask allows and multiplies the particle's weight by the mass of that, m(u): weight times proposal is then the
model's own probability. Where the weights have become too unequal, ancestors are drawn in proportion to them. The mean
weight of finished particles is an unbiased estimate of Z, the probability that the model writes a valid output; a
particle drawn by weight is nearly one from the conditional distribution, with a bias of the order 1/N.

Particles with the same prefix share a row of the cache: a forward has as many rows as there are different prefixes.

A *twist* psi(u) > 0 guesses how much of the model's mass after u will be valid. It takes part in resampling and is
divided out: unfinished particles are resampled by weight times psi, and their weights are divided by psi afterwards.
``"one-step"`` is psi(u) = m(u), which the next forward tells anyway: resampling waits for it, and so happens before the
draw whose weight it knows, at no further cost.

Sources: Del Moral, Doucet and Jasra, "Sequential Monte Carlo samplers", JRSS B 2006; Pitt and Shephard, "Filtering via
simulation: auxiliary particle filters", JASA 1999 (the one-step twist); Zhao et al., "Probabilistic inference in
language models via twisted sequential Monte Carlo", ICML 2024 (arXiv:2404.17546).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.engine.draw import Draw
from maskwright.engine.lookahead.cuts import grow, spread
from maskwright.engine.lookahead.judge import Judge
from maskwright.engine.lookahead.moves import Move, Place, along_cut, judged, single, without_ends
from maskwright.engine.lookahead.resampling import Floats, draw_one, effective_size, log_mean, systematic
from maskwright.engine.rng import Stream, derive
from maskwright.engine.trees import extend_tree
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    import torch

    from maskwright.engine.lookahead.base import Base
    from maskwright.engine.model import Cache

__all__ = ["Particle", "Particles", "TwistError"]

_WIDEST = 64  # tokens allowed at an inner node of a cut
# Addresses of random numbers, away from those of samples (from 0 up) and retries (small negative ones).
_RESAMPLING, _PICK, _MOVES, _SLOTS = -(1 << 40), -(1 << 40) - 1, -(1 << 40) - 2, -(1 << 41)


class TwistError(GenerationError):
    """A twist function raised or gave what is no finite number: `__cause__` is what it raised."""


@dataclass(frozen=True, slots=True)
class Particle:
    """An output in the making.

    Attributes:
        draws: its tokens so far, each with its ``log p`` and the log of the mass that its mask kept.
        log_weight: of its importance weight.
        place: its prefix; None once it has ended.
    """

    draws: tuple[Draw, ...]
    log_weight: float
    place: Place | None

    @property
    def tokens(self) -> tuple[int, ...]:
        """Of the output so far."""
        return tuple(draw.token for draw in self.draws)

    @property
    def log_twisted(self) -> float:
        """Its weight times psi, which is 1 once it has ended."""
        return self.log_weight + (self.place.log_twist if self.place is not None else 0.0)


class Particles:
    """The particles of one request.

    Args:
        base: the law.
        judge: what says which of the masked tokens are good; None where masks say all.
        cancelled: asked before every forward.

    Attributes:
        particles: in their slots.
        forwards: made so far, the prompt's included.
        nodes: prefixes whose next-token distribution was computed.
        resampled: how often.
        cancelled: whether they were, before their end.
    """

    def __init__(self, base: Base, judge: Judge | None = None, cancelled: Callable[[], bool] = lambda: False) -> None:
        self.forwards = self.nodes = self.resampled = 0
        self.cancelled = False
        self._base = base
        self._settings = base.settings
        self._judge = judge
        self._is_cancelled = cancelled
        self._step = 0
        root = Place((), base.text_of(()), base.start())
        self.particles = [Particle((), 0.0, root)] * base.settings.particles
        self._ends = frozenset(base.model.eos_ids)

    # --- what they say

    @property
    def log_weights(self) -> Floats:
        """Shape ``(N,)``."""
        return np.array([each.log_weight for each in self.particles])

    @property
    def log_Z(self) -> float:
        """Log of the mean weight; its exponential is unbiased."""
        return log_mean(self.log_weights)

    @property
    def ess(self) -> float:
        """Effective number of particles; 0 where none has weight."""
        return effective_size(self.log_weights) if math.isfinite(self.log_Z) else 0.0

    def pick(self) -> Particle:
        """One of them, drawn by weight."""
        return self.particles[draw_one(self.log_weights, self._uniforms(_PICK, 1)[0])]

    def _uniforms(self, address: int, count: int) -> list[float]:
        """Random numbers of this step for one purpose; entry ``i`` is that of slot ``i``."""
        stream = self._base.request.stream
        found: list[float] = Stream(derive(stream.seed, address), stream.request).uniforms(self._step, count).tolist()
        return found

    # --- the loop

    def run(self) -> None:
        """Runs all particles to their ends; some may lose all weight."""
        cache = self._base.model.new_cache(1)
        unread = [list(self._base.request.read_first)]
        while unread:
            if self._is_cancelled():
                self.cancelled = True
                return
            logits = self._base.model.forward(unread, cache)
            self.forwards += 1
            tree = self._read(logits, cache)
            if self._settings.twist == "one-step":
                self._resample()
            moved = self._move()
            if tree is not None:
                tree.commit(self._agreed(moved, len(unread)))
            if self._settings.twist != "one-step":
                self._resample()
            self._step += 1
            unread = self._advance(cache)

    def _places(self) -> list[Place]:
        """Where particles stand, each place once, by rows of the cache."""
        found = {id(each.place): each.place for each in self.particles if each.place is not None}
        return sorted(found.values(), key=lambda place: place.row)

    def _read(self, logits: torch.Tensor, cache: Cache) -> Any:
        """Learns what may follow each place, and how likely; a tree that must be committed where there are cuts."""
        places = self._places()
        self.nodes += len(places)
        rows = self._base.log_p(logits, [place.tokens for place in places]).cpu().numpy()
        for place, row in zip(places, rows, strict=True):
            place.ids = self._base.allowed(place.guide, place.tokens)
            place.weigh(row[place.ids])
            if self._judge is not None and not self._judge.has_prefix:
                without_ends(place, self._judge, self._ends)
        tree = self._read_cuts(places, cache)
        if self._settings.twist == "one-step":
            for place in places:
                place.log_twist = place.log_mass
        return tree

    def _read_cuts(self, places: list[Place], cache: Cache) -> Any:
        most = self._settings.block_nodes
        room = self._base.model.context_length - max(cache.lengths)
        if self._judge is not None or self._settings.tokenization != "all" or most < 2 or room < most:
            return None
        texts = self._base.model.vocabulary.tokens
        for place in places:
            left = self._base.request.max_tokens - len(place.tokens)
            if math.isfinite(place.log_mass) and len(place.ids) <= _WIDEST:
                place.cut = grow(place.guide, place.ids.tolist(), left, self._ends, texts, most, _WIDEST)
        if all(place.cut is None for place in places):
            return None
        # Every row needs a tree; one that has no cut reads some token, which is forgotten.
        tokens = [place.cut.tokens[1:] if place.cut else [0] for place in places]
        parents = [[at - 1 for at in place.cut.parents[1:]] if place.cut else [-1] for place in places]
        tree = extend_tree(self._base.model, tokens, parents, cache)
        self.forwards += 1
        for place, logits in zip(places, tree.logits, strict=True):
            if place.cut is not None:
                self.nodes += len(place.cut.tokens) - 1
                outputs = [(*place.tokens, *place.cut.path(node)) for node in range(1, len(place.cut.tokens))]
                below = self._base.log_p(logits, outputs).cpu().numpy()
                inner = [row[allowed] for row, allowed in zip(below, place.cut.allowed[1:], strict=True)]
                place.span(spread(place.cut, [place.log_p, *inner]))
        return tree

    # --- moves

    def _move(self) -> list[tuple[Place, Move]]:
        """Moves all particles that have not ended; the moves of those that still have not."""
        moved = []
        uniforms = self._uniforms(_MOVES, len(self.particles))
        for slot, (particle, uniform) in enumerate(zip(self.particles, uniforms, strict=True)):
            place = particle.place
            if place is None:
                continue
            move = self._draw(place, slot, uniform)
            if move is None:
                self.particles[slot] = Particle(particle.draws, -math.inf, None)
                continue
            after = None if move.draws[-1].token in self._ends else self._place_after(place, move)
            self.particles[slot] = Particle(
                (*particle.draws, *move.draws), particle.log_weight + move.log_weight, after
            )
            if after is not None:
                moved.append((place, move))
        return moved

    def _draw(self, place: Place, slot: int, uniform: float) -> Move | None:
        if not math.isfinite(place.log_mass):
            return None
        if self._judge is None or not self._judge.has_prefix:
            return single(place, uniform) if place.spread is None else along_cut(place, uniform)
        stream = self._base.request.stream
        own = Stream(derive(stream.seed, _SLOTS - slot), stream.request)
        return judged(place, self._judge, own, self._step, self._ends, self._base)

    def _place_after(self, place: Place, move: Move) -> Place:
        tokens = tuple(draw.token for draw in move.draws)
        found = place.after.get(tokens)
        if found is None:
            guide = place.guide
            for token in tokens:
                guide = self._base.advance(guide, token)
            output = (*place.tokens, *tokens)
            found = place.after[tokens] = Place(output, self._base.text_of(output), guide, row=place.row)
            found.unread = list(tokens)
            twist = self._settings.twist
            found.log_twist = _psi(twist, found) if callable(twist) else 0.0
        return found

    def _agreed(self, moved: list[tuple[Place, Move]], rows: int) -> list[list[int]]:
        """Per row the nodes of its cut that all moves from there share: they stay in the cache."""
        paths: dict[int, list[list[int]]] = {}
        for place, move in moved:
            paths.setdefault(place.row, []).append(move.nodes)
        shared = [_common(paths.get(row, [])) for row in range(rows)]
        for place, _ in moved:
            for after in place.after.values():
                held = len(shared[place.row])
                after.unread = list(after.tokens[len(place.tokens) + held :])
        return shared

    def _advance(self, cache: Cache) -> list[list[int]]:
        """Turns the rows of the cache into those of the new places; what these have not read."""
        places = self._places()
        if not places:
            return []
        cache.select([place.row for place in places])
        for row, place in enumerate(places):
            place.row = row
        return [place.unread for place in places]

    # --- resampling

    def _resample(self) -> None:
        """Draws ancestors where weights times twists are too unequal; ended particles take part with psi = 1."""
        twisted = np.array([each.log_twisted for each in self.particles])
        if not np.isfinite(twisted).any() or all(each.place is None for each in self.particles):
            return
        if effective_size(twisted) >= self._settings.ess_threshold * len(twisted):
            return
        self.resampled += 1
        mean, old = log_mean(twisted), list(self.particles)
        for slot, at in enumerate(systematic(twisted, self._uniforms(_RESAMPLING, 1)[0]).tolist()):
            chosen = old[at]
            weight = mean - (chosen.log_twisted - chosen.log_weight)
            self.particles[slot] = Particle(chosen.draws, weight, chosen.place)


def _common(paths: Sequence[list[int]]) -> list[int]:
    """The longest beginning that all paths share."""
    shared: list[int] = []
    for nodes in zip(*paths, strict=False):
        if len(set(nodes)) > 1:
            break
        shared.append(nodes[0])
    return shared


def _psi(twist: Callable[[str], float], place: Place) -> float:
    """What a caller's twist says of a place."""
    text = place.data.decode("utf-8", "ignore")
    where = f"text {text[-40:]!r}"
    try:
        found = float(twist(text))
    except Exception as error:
        raise TwistError(f"the twist raised {type(error).__name__}: {error}", location=where) from error
    if not math.isfinite(found):
        raise TwistError(f"the twist is {found!r}", location=where, hint="Return the log of a number above 0")
    return found
