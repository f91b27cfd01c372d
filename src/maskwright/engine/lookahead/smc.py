"""Sampling by particles: ``lookahead="smc"``, for any constraint and for functions in place of one.

Results are never exact: the law of an output differs from the conditional one by a share that falls as 1/N. They carry
all particles with their weights, the estimate of Z (unbiased) and the effective number of particles.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from maskwright.engine.lookahead.base import Base
from maskwright.engine.lookahead.judge import Judge
from maskwright.engine.lookahead.particles import Particle, Particles
from maskwright.engine.lookahead.resampling import normalized
from maskwright.engine.lookahead.results import finished
from maskwright.engine.lookahead.settings import LookaheadStats, Weighted
from maskwright.engine.outcome import Outcome, outcome
from maskwright.engine.result import environment
from maskwright.engine.row import Row
from maskwright.errors import GenerationError, UnsatisfiableError
from maskwright.grammar.predicate import Predicate

if TYPE_CHECKING:
    from maskwright.engine.draw import Draw
    from maskwright.engine.lookahead.settings import Lookahead
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.request import Request
    from maskwright.engine.requests import Rules
    from maskwright.engine.sampling import Sampling

__all__ = ["run"]


def run(
    model: LanguageModel, requests: Sequence[Request], how: Rules, sampling: Sampling, settings: Lookahead
) -> list[Outcome]:
    """Runs requests, each with particles of its own; what a caller's function raises ends its request alone."""
    return [_one(Base(model, request, sampling, settings), how) for request in requests]


def _one(base: Base, how: Rules) -> Outcome:
    started = time.perf_counter()
    judge = _judge_of(base)
    particles = Particles(base, judge, how.cancelled)
    try:
        particles.run()
        if not particles.cancelled and not math.isfinite(particles.log_Z):
            raise _lost(judge)
    except GenerationError as error:
        return _unfinished(base, how, (), started, error)
    chosen = particles.pick()
    if particles.cancelled:
        return _unfinished(base, how, chosen.draws, started)
    return finished(base, chosen.draws, how, _stats(base, particles), started)


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


def _unfinished(
    base: Base, how: Rules, draws: Sequence[Draw], started: float, error: GenerationError | None = None
) -> Outcome:
    """The outcome of a request that failed, or was cancelled as it stood."""
    row = Row(replace(base.request, forced_runs=False), base.model.vocabulary, started)
    for draw in draws:
        if row.running:
            row.take([draw], {})
    if error is not None:
        row.fail(error)
    elif row.running:
        row.end("cancelled")
    return outcome(row, environment(base.model, base.sampling), how)
