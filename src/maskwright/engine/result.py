"""What a generation gives back: the output, its probability, what it cost and how to repeat it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from maskwright.engine.text import Offsets

if TYPE_CHECKING:
    from maskwright.engine.draw import Draw
    from maskwright.engine.lookahead.settings import LookaheadStats
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.regions import Field, Region
    from maskwright.engine.sampling import Sampling
    from maskwright.engine.speculation.tally import Tally

__all__ = ["Chunk", "FinishReason", "Result", "Stats", "environment"]

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
        tokens_per_call: tokens of this output, divided by `model_calls`; None where there were none.
        speculation: what became of the drafts of ``strategy=Speculative(...)``, and what their acceptance rate alone
            would predict; None without.
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
    tokens_per_call: float | None = None
    speculation: Tally | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One output.

    Attributes:
        text: the output; without the stop string, unless ``include_stop`` was asked for.
        value: the text as the constraint's own kind of value (parsed JSON, the chosen item); with ``thinking=`` that of
            the answer; of an output with captures, their values by name; the text itself where the constraint has
            none, None where the output is not complete.
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
        regions: the captured parts of the output by name, with ``thinking=`` the ``thinking`` and the ``answer``.
        lookahead: of what law the output is a sample, with ``lookahead=``; its tokens then end with the EOS, which
            `logprob` counts. None without.
        trace: what is known of each token, and where in the text it is; for `fields`.
        score: of a beam search, what it orders outputs by: log-probability over length penalty; None elsewhere.
        alternatives: of the best output of a beam search all others that it found, best first.
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
    regions: Mapping[str, Region] = field(default_factory=dict)
    lookahead: LookaheadStats | None = None
    trace: tuple[tuple[Draw, ...], Offsets] = field(default=((), Offsets()), repr=False)
    score: float | None = None
    alternatives: tuple[Result, ...] = field(default=(), repr=False)

    @property
    def fields(self) -> dict[str, Field]:
        """The values inside a JSON output (with ``thinking=``, inside the answer), by their pointers; ``""`` is all.

        Raises:
            ValueError: the output is no complete JSON.
        """
        from maskwright.engine.regions import fields_of

        draws, offsets = self.trace
        answer = self.regions.get("answer")
        if answer is not None:
            return fields_of(answer.text, answer.start, draws, offsets)
        return fields_of(self.text, 0, draws, offsets)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a streamed output. Joined, the texts and tokens of all chunks are those of the result.

    Attributes:
        text: new text; no later chunk takes it back.
        tokens: the ids that spell it.
        value: the value of the finished output in the last chunk. Before, for JSON, plain data: what is written of it
            so far, without numbers, literals and strings that are not closed; later chunks add to it and change
            nothing. In the last chunk of an output that is not complete it stays like that. With ``thinking=`` it is
            that of the answer; with captures, a dict of the first one that is JSON, where what comes before it has a
            certain end. None where there is nothing yet, and for other outputs.
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
