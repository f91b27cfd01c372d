"""Sampling by particles: ``lookahead="smc"``, for any constraint and for functions in place of one.

Results are never exact: the law of an output differs from the conditional one by a share that falls as 1/N. They carry
all particles with their weights, the estimate of Z (unbiased) and the effective number of particles.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from maskwright.engine.lookahead.base import Base
from maskwright.engine.lookahead.judge import Judge
from maskwright.engine.lookahead.particles import Particle, Particles
from maskwright.engine.lookahead.resampling import normalized
from maskwright.engine.lookahead.results import finished, unfinished
from maskwright.engine.lookahead.session import check_base
from maskwright.engine.lookahead.settings import LookaheadStats, Weighted
from maskwright.errors import GenerationError, UnsatisfiableError
from maskwright.grammar.predicate import Predicate

if TYPE_CHECKING:
    from maskwright.engine.lookahead.settings import Lookahead
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.outcome import Outcome
    from maskwright.engine.request import Request
    from maskwright.engine.requests import Rules
    from maskwright.engine.sampling import Sampling

__all__ = ["run"]


def run(
    model: LanguageModel, requests: Sequence[Request], how: Rules, sampling: Sampling, settings: Lookahead
) -> list[Outcome]:
    """Runs requests, each with particles of its own; what a caller's function raises ends its request alone."""
    bases = [Base(model, request, sampling, settings) for request in requests]
    for base in bases:
        check_base(base)
    return [_one(base, how) for base in bases]


def _one(base: Base, how: Rules) -> Outcome:
    started = time.perf_counter()
    judge = _judge_of(base)
    particles = Particles(base, judge, how.cancelled)
    try:
        particles.run()
        if not particles.cancelled and not math.isfinite(particles.log_Z):
            raise _lost(judge)
    except GenerationError as error:
        return unfinished(base, how, started, error)
    if particles.cancelled:
        return unfinished(base, how, started, None)
    return finished(base, particles.pick().draws, how, _stats(base, particles), started)


def _judge_of(base: Base) -> Judge | None:
    grammar = base.request.constraint
    constraint = None if grammar is None else grammar.constraint
    return Judge(constraint) if isinstance(constraint, Predicate) else None


def _lost(judge: Judge | None) -> GenerationError | UnsatisfiableError:
    if judge is None:
        return UnsatisfiableError(
            "the model gives probability 0 to every output that the particles could write",
            hint="Remove what suppresses tokens, or raise max_tokens",
        )
    return GenerationError(
        "no particle ended in a text that the Predicate accepts",
        location="lookahead",
        hint="Pass Lookahead(method='smc', particles=...) with more of them, or a prefix function, which refuses early",
    )


def _stats(base: Base, particles: Particles) -> LookaheadStats:
    weights = normalized(particles.log_weights).tolist()
    return LookaheadStats(
        method="smc",
        exact=False,
        calls=particles.forwards,
        nodes=particles.nodes,
        attempts=1,
        log_Z=particles.log_Z,
        ess=particles.ess,
        particles=tuple(
            _weighted(base, each, weight)
            for each, weight in zip(particles.particles, weights, strict=True)
            if weight > 0
        ),
    )


def _weighted(base: Base, particle: Particle, weight: float) -> Weighted:
    text = base.text_of(particle.tokens).decode("utf-8", "replace")
    return Weighted(text, particle.tokens, weight, math.fsum(draw.logprob for draw in particle.draws))
