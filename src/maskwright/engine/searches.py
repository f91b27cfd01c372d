"""Running requests by a search instead of by draws: some at a time, with values and scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from maskwright.engine.beam import Beam, Contrastive, as_dict
from maskwright.engine.decode import checked_row
from maskwright.engine.outcome import Outcome, outcome
from maskwright.engine.result import environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from maskwright.engine.beam_search import BeamSearch, Hypothesis
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.request import Request
    from maskwright.engine.requests import Rules
    from maskwright.engine.row import Row

__all__ = ["run_searches"]


def run_searches(
    model: LanguageModel, requests: Sequence[Request], how: Rules, retries: int = 0
) -> list[list[Outcome]]:
    """Runs requests to their ends by the strategy of a call.

    Args:
        model: the language model.
        requests: any number, one per prompt.
        how: the rules, with a search as their strategy.
        retries: must be 0.

    Returns:
        Per request its outputs, the best first: at least one, and of a beam at most ``n``. The first has the others
        that were found as ``alternatives``.

    Raises:
        GenerationError: a request can not be generated; raised before any runs.
        ValueError: retries.
    """
    if retries:
        raise ValueError(
            f"retries is {retries}, but a search finds the same outputs again: leave it out, and look at the "
            ".result.alternatives of the error"
        )
    strategy = how.strategy
    assert isinstance(strategy, Beam | Contrastive)
    manifest = {**environment(model, how.sampling), "strategy": as_dict(strategy)}
    if isinstance(strategy, Contrastive):
        return [[out] for out in _contrastive(model, requests, how, strategy, manifest)]
    return _beams(model, requests, how, strategy, manifest)


def _beams(
    model: LanguageModel, requests: Sequence[Request], how: Rules, beam: Beam, manifest: Mapping[str, Any]
) -> list[list[Outcome]]:
    from maskwright.engine.beam_search import BeamSearch, run_beams

    started, size = time.perf_counter(), max(1, how.batch_size // beam.width)
    # All are checked before any runs: the last of a long list must not fail after an hour.
    searches = [BeamSearch(model, request, beam, how.sampling, started) for request in requests]
    for at in range(0, len(searches), size):
        run_beams(model, searches[at : at + size], how.cancelled)
    return [_outputs(search, manifest, how) for search in searches]


def _outputs(search: BeamSearch, manifest: Mapping[str, Any], how: Rules) -> list[Outcome]:
    """The outputs of a search that is through."""
    if search.error is not None or not search.found():
        row = _with_costs(search.fresh_row(), search)
        if search.error is not None:
            row.fail(search.error)
        elif row.running:
            row.end("cancelled")
        return [outcome(row, manifest, how)]
    outcomes = []
    for score, hypothesis in search.found():
        out = outcome(_written(search, hypothesis), manifest, how)
        outcomes.append(replace(out, result=replace(out.result, score=score)))
    others = tuple(out.result for out in outcomes[1:])
    outcomes[0] = replace(outcomes[0], result=replace(outcomes[0].result, alternatives=others))
    return outcomes[: how.n]


def _written(search: BeamSearch, hypothesis: Hypothesis) -> Row:
    """The row that has drawn the tokens of a hypothesis."""
    row = search.fresh_row()
    for draw in hypothesis.draws():
        row.take([draw], {})
    if row.running:
        row.end("cancelled")
    return _with_costs(row, search)


def _with_costs(row: Row, search: BeamSearch) -> Row:
    row.model_calls, row.cached_tokens, row.mask_seconds = search.model_calls, search.cached_tokens, search.mask_seconds
    return row


def _contrastive(
    model: LanguageModel, requests: Sequence[Request], how: Rules, search: Contrastive, manifest: Mapping[str, Any]
) -> list[Outcome]:
    from maskwright.engine.contrastive import check_states, run_contrastive

    check_states(model)
    started, size = time.perf_counter(), max(1, how.batch_size // search.k)
    rows = [checked_row(model, replace(each, forced_runs=False), how.sampling, started) for each in requests]
    for at in range(0, len(rows), size):
        run_contrastive(model, rows[at : at + size], search, how.sampling, how.cancelled)
    return [outcome(row, manifest, how) for row in rows]
