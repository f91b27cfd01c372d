"""From sampled sequences of tokens to outcomes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from maskwright.engine.outcome import Outcome, outcome
from maskwright.engine.result import environment
from maskwright.engine.row import Row

if TYPE_CHECKING:
    from maskwright.engine.draw import Draw
    from maskwright.engine.lookahead.base import Base
    from maskwright.engine.lookahead.settings import LookaheadStats
    from maskwright.engine.requests import Rules
    from maskwright.errors import GenerationError

__all__ = ["finished", "unfinished"]


def finished(base: Base, draws: Sequence[Draw], how: Rules, stats: LookaheadStats, started: float) -> Outcome:
    """The outcome of a sampled sequence.

    Args:
        base: what it was sampled from.
        draws: its tokens, the EOS last, each with its ``log p`` and the log of the mass of its mask.
        how: the rules of the call.
        stats: of the lookahead.
        started: when the sampling began, on the clock of ``time.perf_counter``.
    """
    request = replace(base.request, forced_runs=False)
    row = Row(request, base.model.vocabulary, started)
    for draw in draws:
        if row.running:
            row.take([draw], {})
        elif row.error is None:
            # Where nothing but EOS may follow, a row ends by itself; in L it ends by this token.
            row.tokens.append(draw.token)
            row.draws.append(draw)
    if row.error is None:
        row.finish_reason = "eos"
    row.ended, row.model_calls = time.perf_counter(), stats.calls
    out = outcome(row, environment(base.model, base.sampling), how)
    return replace(out, result=replace(out.result, lookahead=stats))


def unfinished(base: Base, how: Rules, started: float, error: GenerationError | None) -> Outcome:
    """The outcome of a request without an output: it failed, or, where there is no error, was cancelled."""
    row = Row(replace(base.request, forced_runs=False), base.model.vocabulary, started)
    if row.running:
        row.end("cancelled")
    row.error = error
    return outcome(row, environment(base.model, base.sampling), how)
