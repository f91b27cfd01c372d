"""Running any number of requests: some rows at a time, values parsed, refused values drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from maskwright.engine.beam import Beam, Contrastive
from maskwright.engine.decode import Decoder
from maskwright.engine.drafts import drafter_for
from maskwright.engine.outcome import Outcome, outcome
from maskwright.engine.requests import Rules
from maskwright.engine.result import environment
from maskwright.engine.rng import Stream, derive
from maskwright.engine.sampling import Sampling
from maskwright.engine.searches import run_searches
from maskwright.engine.speculation.decoder import SpeculativeDecoder
from maskwright.engine.speculation.options import Speculative

if TYPE_CHECKING:
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.request import Request

__all__ = ["decoder_for", "run_groups", "run_requests"]


def run_groups(model: LanguageModel, requests: Sequence[Request], how: Rules, retries: int = 0) -> list[list[Outcome]]:
    """:func:`run_requests`, or the search that the rules ask for, with the outputs of each prompt as a list.

    Args:
        model: the language model.
        requests: of :func:`build_requests`.
        how: the rules of the call.
        retries: as for :func:`run_requests`.

    Returns:
        Per prompt its ``n`` outcomes; those of a beam, best first, can be fewer.
    """
    if isinstance(how.strategy, Beam | Contrastive):
        return run_searches(model, requests, how, retries)
    outcomes = run_requests(model, requests, how, retries)
    return [outcomes[at : at + how.n] for at in range(0, len(outcomes), how.n)]


def run_requests(model: LanguageModel, requests: Sequence[Request], how: Rules, retries: int = 0) -> list[Outcome]:
    """Runs requests to their ends.

    Args:
        model: the language model.
        requests: any number.
        how: the rules of the call.
        retries: how often to draw an output again whose value is refused; at temperature 1 if the call is greedy.

    Returns:
        One outcome per request, in order.

    Raises:
        GenerationError: a request can not be generated; raised before any runs.
    """
    outcomes = _run(model, requests, how, how.sampling)
    again = replace(how.sampling, temperature=1.0) if how.sampling.greedy else how.sampling
    for attempt in range(1, retries + 1):
        refused = [at for at, out in enumerate(outcomes) if out.refusal is not None]
        if not refused or how.cancelled():
            break
        fresh = _run(model, [_reseeded(requests[at], attempt) for at in refused], how, again)
        for at, out in zip(refused, fresh, strict=True):
            outcomes[at] = out
    return outcomes


def _reseeded(request: Request, attempt: int) -> Request:
    """The request with other random numbers; negative indices are never those of samples."""
    stream = request.stream
    return replace(request, stream=Stream(derive(stream.seed, -attempt), stream.request))


def _run(model: LanguageModel, requests: Sequence[Request], how: Rules, sampling: Sampling) -> list[Outcome]:
    if how.lookahead is not None:
        from maskwright.engine.lookahead.run import run

        return run(model, requests, how, sampling)
    size = how.batch_size
    # All are checked before any runs: the last of a long list must not fail after an hour.
    decoders = [
        decoder_for(model, requests[at : at + size], how, sampling) for at in range(0, len(requests), size)
    ]
    manifest, outcomes = environment(model, sampling), []
    for decoder in decoders:
        decoder.run()
        outcomes += [outcome(row, manifest, how) for row in decoder.rows]
    return outcomes


def decoder_for(model: LanguageModel, requests: Sequence[Request], how: Rules, sampling: Sampling) -> Decoder:
    """A decoder of some requests under the rules of a call."""
    spans = drafter_for(model) if how.drafts else None
    if isinstance(how.strategy, Speculative):
        return SpeculativeDecoder(model, requests, sampling, how.strategy, how.cancelled, spans, how.logprobs)
    return Decoder(model, requests, sampling, how.cancelled, spans, how.logprobs)
