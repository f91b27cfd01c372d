"""What a generation gives back: the output, its probability, what it cost and how to repeat it."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from maskwright.engine.draw import Draw
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.row import Row
    from maskwright.engine.sampling import Sampling

__all__ = ["Chunk", "FinishReason", "Result", "Stats", "environment", "result_of"]

FinishReason = Literal["eos", "stop", "length", "constraint", "cancelled"]


@dataclass(frozen=True, slots=True)
class Stats:
    """What one output cost. Times are in seconds, and of the whole batch where rows share a forward.

    Attributes:
        prompt_tokens: tokens of the prompt.
        model_calls: forwards that this row took part in, the prompt's included.
        drafted: tokens proposed without a decode step of their own (those the constraint determines).
        accepted: how many of them stayed.
        mask_seconds: time spent computing the masks of this row.
        first_token_seconds: from the start of the run to the first token; None where there is none.
        seconds: from the start of the run to the end of this row.
        token_seconds: average time per token after the first; None below two tokens.
        cached_tokens: tokens of the prompt whose keys and values were there already, from earlier prompts.
        tokens_per_second: tokens of this output, divided by `seconds`; None where there are none.
    """

    prompt_tokens: int
    model_calls: int
    drafted: int
    accepted: int
    mask_seconds: float
    first_token_seconds: float | None
    seconds: float
    token_seconds: float | None
    cached_tokens: int = 0
    tokens_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One output.

    Attributes:
        text: the output; without the stop string, unless ``include_stop`` was asked for.
        value: the text as the constraint's own kind of value (parsed JSON, the chosen item); the text itself where the
            constraint has none, None where the output is not complete.
        tokens: ids that were generated, the EOS, the stop token or the tokens of the stop string included; those of
            ``prefix`` are not among them.
        finish_reason: ``eos`` the model ended it; ``constraint`` nothing else could follow; ``stop`` a stop string
            came; ``length`` the budget ended it (valid all the same where there is a constraint); ``cancelled``.
        valid: the text is a complete output of the constraint (always True without one).
        logprob: log-probability of the tokens in nats under the model before masking and truncation, with logit bias
            and at the temperature of the draw (1 for greedy). Where the constraint ends the output, it needs no EOS
            and none is counted; nor are, where an output was cancelled, tokens that the model has not read.
        log_weight: sum of the logs of the probability mass that each mask left; 0 where masks removed nothing.
            ``exp(log_weight)`` averaged over samples estimates the probability that the model, unmasked, obeys the
            constraint within the budget; for one sample it is its importance weight.
        stats: what it cost.
        manifest: what is needed to repeat it: device, threads, versions, seed, parameters.
        logprobs: of each token, where ``logprobs=`` asked for them; shorter than `tokens` where the output was
            cancelled before the model read the last ones.
        warnings: what could not be done as asked (``min_tokens`` beyond the longest output, say).
    """

    text: str
    value: Any
    tokens: list[int]
    finish_reason: FinishReason
    valid: bool
    logprob: float
    log_weight: float
    stats: Stats
    manifest: Mapping[str, Any] = field(repr=False)
    logprobs: tuple[Draw, ...] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a streamed output. Joined, the texts and tokens of all chunks are those of the result.

    Attributes:
        text: new text; no later chunk takes it back.
        tokens: the ids that spell it.
        value: the value of the finished output in the last chunk. Before, for JSON, plain data: what is written of it
            so far, without numbers, literals and strings that are not closed; later chunks add to it and change
            nothing. In the last chunk of an output that is not complete it stays like that. None where there is
            nothing yet, and for other outputs.
        closed: JSON pointers of the values that are closed so far, in the order in which they were: each chunk has
            those of the chunk before and more. ``""`` is the whole, of whatever kind the output is.
        result: the whole result in the last chunk; None before.
    """

    text: str
    tokens: list[int]
    value: Any = None
    closed: tuple[str, ...] = ()
    result: Result | None = None


def environment(model: LanguageModel, sampling: Sampling) -> dict[str, Any]:
    """The part of a manifest that all outputs of a run share."""
    import numpy
    import torch

    import maskwright

    return {
        "model": model.name,
        "device": str(model.device),
        "threads": torch.get_num_threads(),
        "versions": {
            "maskwright": maskwright.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": numpy.__version__,
        },
        "sampling": sampling.as_dict(),
    }


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
    )
