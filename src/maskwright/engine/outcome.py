"""From an ended row to its result."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from maskwright.engine.regions import regions_of
from maskwright.engine.result import Result, Stats
from maskwright.engine.speculation.options import Speculative

if TYPE_CHECKING:
    from maskwright.engine.requests import Rules
    from maskwright.engine.row import Row
    from maskwright.errors import GenerationError

__all__ = ["Outcome", "outcome", "result_of", "with_results"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request.

    Attributes:
        result: the output.
        error: why its row failed; None if it did not.
        refusal: what a check that no mask can make (a validator function) says against the value; None if nothing.
    """

    result: Result
    error: GenerationError | None
    refusal: ValueError | None


def with_results(error: GenerationError, failed: Outcome, outcomes: Sequence[Outcome]) -> GenerationError:
    """The error with what was generated all the same."""
    error.result, error.results = failed.result, tuple(out.result for out in outcomes)
    return error


def outcome(row: Row, manifest: Mapping[str, Any], how: Rules) -> Outcome:
    """The outcome of an ended row, with the value that its text stands for."""
    if isinstance(how.strategy, Speculative):
        manifest = {**manifest, "strategy": how.strategy.as_dict()}
    result = result_of(row, manifest, how.logprobs is not None)
    text = result.text
    part: Any = None if row.request.constraint is None else row.request.constraint.constraint
    if how.thinking is not None and "answer" in result.regions:
        text, part = result.regions["answer"].text, part.parts[1].parts[0]
        result = replace(result, value=text if result.valid else None)
    elif result.regions and result.valid:
        result = replace(result, value={name: region.value for name, region in result.regions.items()})
    parse = getattr(part, "parse", None)
    if not result.valid or parse is None:
        return Outcome(result, row.error, None)
    try:
        return Outcome(replace(result, value=parse(text)), None, None)
    except ValueError as refusal:
        return Outcome(replace(result, valid=False, value=_plain(text)), None, refusal)
    except RecursionError:
        too_deep = ValueError("the value is nested too deeply to be parsed; the text is complete")
        return Outcome(replace(result, valid=False, value=None), None, too_deep)


def _plain(text: str) -> Any:
    """The refused value as plain data, where it is JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def result_of(row: Row, manifest: Mapping[str, Any], details: bool = False) -> Result:
    """What a row has generated, with the value still the text.

    Args:
        row: ended.
        manifest: of :func:`environment`.
        details: whether the result tells about each token.
    """
    text, request = row.final_text, row.request
    grammar = request.constraint
    return Result(
        text=text,
        value=text if row.valid else None,
        tokens=list(row.tokens),
        finish_reason=row.finish_reason or "cancelled",
        valid=row.valid,
        logprob=math.fsum(draw.logprob for draw in row.draws),
        log_weight=math.fsum(draw.kept for draw in row.draws),
        stats=_stats(row),
        manifest={
            **manifest,
            "seed": request.stream.seed,
            "request": request.stream.request,
            "max_tokens": request.max_tokens,
            "min_tokens": request.min_tokens,
            "stop": [*request.stops, *request.stop_ids],
            "prefix": list(request.prefix),
            "constraint": grammar and grammar.constraint.fingerprint(),
        },
        logprobs=tuple(row.draws) if details else None,
        warnings=tuple(row.warnings),
        regions=regions_of(row) if row.error is None else {},
        trace=(tuple(row.draws), row.text.offsets),
    )


def _stats(row: Row) -> Stats:
    count, seconds = len(row.tokens), row.ended - row.started
    return Stats(
        prompt_tokens=len(row.request.prompt),
        model_calls=row.model_calls,
        drafted=row.drafted,
        accepted=row.accepted,
        mask_seconds=row.mask_seconds,
        first_token_seconds=row.first - row.started if count else None,
        seconds=seconds,
        token_seconds=(row.ended - row.first) / (count - 1) if count > 1 else None,
        cached_tokens=row.cached_tokens,
        tokens_per_second=count / seconds if count and seconds > 0 else None,
        tokens_per_call=count / row.model_calls if row.model_calls else None,
        speculation=row.tally,
    )
