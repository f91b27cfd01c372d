"""Where a constraint fights the model: the probability mass that masks remove, by step and by field.

A prompt is good where the model would keep to the format by itself. What each mask kept of the model's distribution is
part of every result; here it is summed over the fields of some outputs of one prompt, and the steps that lost most are
shown with what the model wanted to write there.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maskwright.engine.lookahead.resampling import effective_size, log_mean

if TYPE_CHECKING:
    from maskwright.engine.draw import Draw
    from maskwright.engine.result import Result
    from maskwright.vocabulary import Vocabulary

__all__ = ["Diagnosis", "FieldLoss", "Output", "Step", "diagnose"]

_BEFORE = 24  # characters that are shown before a step
_WANTED = 3
_PLACES = 8


@dataclass(frozen=True, slots=True)
class Step:
    """A token of an output.

    Attributes:
        text: that it spells.
        before: the end of the output before it.
        field: JSON pointer of the innermost value that it spells, name of a capture, or ``""`` for all else (keys and
            punctuation of JSON).
        kept: log of the mass that the mask kept, at most 0.
        wanted: the most probable tokens that the mask forbade, with their probabilities, where ``logprobs=`` tells.
    """

    text: str
    before: str
    field: str
    kept: float
    wanted: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Output:
    """An output, token by token.

    Attributes:
        text: of the result.
        log_weight: sum of what its masks kept.
        steps: its tokens.
    """

    text: str
    log_weight: float
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class FieldLoss:
    """What masks kept within a field.

    Attributes:
        field: see `Step`.
        log_kept: sum over the field's tokens, averaged over the outputs that have the field.
        outputs: how many these are.
        tokens: of the field, on average.
    """

    field: str
    log_kept: float
    outputs: int
    tokens: float


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """How far a model and a constraint agree, from some outputs that were drawn by masking.

    Attributes:
        outputs: token by token.
        fields: the ones that lost most first.
        places: the steps that lost most, each place once, with how many outputs came through it.
        log_Z: log of the estimated probability that the model keeps to the format by itself.
        ess: effective number of outputs behind the estimate: where it is near 1, one output made it.
    """

    outputs: tuple[Output, ...]
    fields: tuple[FieldLoss, ...]
    places: tuple[tuple[Step, int], ...]
    log_Z: float
    ess: float

    def __str__(self) -> str:
        return "\n".join([*self._summary(), "", *self._by_field(), "", *self._by_place()]).rstrip()

    def _summary(self) -> list[str]:
        lines = [
            f"unmasked, the model keeps to the format with a probability of about {math.exp(self.log_Z):.2g}",
            f"({len(self.outputs)} outputs drawn by masking, effective number {self.ess:.1f})",
        ]
        if len(self.outputs) > 1 and self.ess < 2:
            lines.append("one output dominates the estimate: draw more of them")
        return lines

    def _by_field(self) -> list[str]:
        lines = ["mass kept, field by field (1: the masks removed nothing)"]
        width = max((len(name_of(each.field)) for each in self.fields), default=0)
        for each in self.fields:
            many = f"in {each.outputs} of {len(self.outputs)} outputs, {each.tokens:.1f} tokens"
            lines.append(f"  {math.exp(each.log_kept):8.2g}  {name_of(each.field):<{width}}  {many}")
        return lines

    def _by_place(self) -> list[str]:
        lines = ["where most was removed"] if self.places else []
        for step, count in self.places:
            lines.append(
                f"  kept {math.exp(step.kept):.2g} in {name_of(step.field)} after {step.before!r}: wrote {step.text!r}"
                f"{_wanted(step)}{f' ({count} outputs)' if count > 1 else ''}"
            )
        return lines

    def html(self, title: str = "Where the format fights the model") -> str:
        """A page with plots: one file, no scripts, every text escaped."""
        from maskwright.engine.diagnosis_page import page

        return page(self, title)


def name_of(field: str) -> str:
    """How a field is called for people."""
    return field or "(keys, punctuation, all else)"


def _wanted(step: Step) -> str:
    if not step.wanted:
        return ""
    return ", the model wanted " + ", ".join(f"{text!r} {p:.2f}" for text, p in step.wanted)


def diagnose(results: Sequence[Result] | Result, vocabulary: Vocabulary) -> Diagnosis:
    """Tells where masks removed the model's mass.

    Args:
        results: outputs of one prompt and constraint, as ``generate(..., n=8, seed=0, logprobs=8)`` gives them. More of
            them make the estimate better; ``logprobs=`` shows what the model wanted instead.
        vocabulary: of the model.

    Raises:
        ValueError: no results, or some whose masks were not looked at (``lazy_mask``).
        TypeError: something else than results, or a list of lists of them.
    """
    from maskwright.engine.result import Result

    given = [results] if isinstance(results, Result) else list(results)
    for each in given:
        if not isinstance(each, Result):
            raise TypeError(f"results holds a {type(each).__name__}; pass a Result or a list of those of one prompt")
    if not given:
        raise ValueError("diagnose needs at least one result")
    if any(math.isnan(each.log_weight) for each in given):
        raise ValueError("the results do not tell what their masks kept: draw them without lazy_mask")
    outputs = tuple(_output(each, vocabulary) for each in given)
    weights = np.array([each.log_weight for each in outputs])
    log_z = log_mean(weights)
    return Diagnosis(
        outputs, _fields(outputs), _places(outputs), log_z, effective_size(weights) if math.isfinite(log_z) else 0.0
    )


def _output(result: Result, vocabulary: Vocabulary) -> Output:
    draws, offsets = result.trace
    owners = _owners(result, len(draws))
    steps = []
    for at, draw in enumerate(draws):
        start = offsets.starts[at] if at < len(offsets.starts) else len(result.text)
        before = result.text[max(0, start - _BEFORE) : start]
        steps.append(Step(_text(vocabulary, draw.token), before, owners[at], draw.kept, _forbidden(draw, vocabulary)))
    return Output(result.text, math.fsum(draw.kept for draw in draws), tuple(steps))


def _owners(result: Result, count: int) -> list[str]:
    """The field of each token: the smallest that it spells a part of, so that every token counts once."""
    spans = {name: region.tokens for name, region in result.regions.items()}
    with contextlib.suppress(ValueError):  # no JSON
        spans |= {pointer: field.tokens for pointer, field in result.fields.items() if pointer}
    owners, sizes = [""] * count, [count + 1] * count
    for name, (first, end) in spans.items():
        for at in range(first, min(end, count)):
            # At a border, a token may spell the end of one value and the beginning of another: the later one has it.
            if end - first <= sizes[at]:
                owners[at], sizes[at] = name, end - first
    return owners


def _text(vocabulary: Vocabulary, token: int) -> str:
    return vocabulary.tokens[token].decode("utf-8", "replace")


def _forbidden(draw: Draw, vocabulary: Vocabulary) -> tuple[tuple[str, float], ...]:
    found = [each for each in draw.alternatives if each.masked == -math.inf]
    return tuple((_text(vocabulary, each.token), math.exp(each.raw)) for each in found[:_WANTED])


def _fields(outputs: Sequence[Output]) -> tuple[FieldLoss, ...]:
    found: dict[str, list[tuple[float, int]]] = {}
    for output in outputs:
        here: dict[str, list[float]] = {}
        for step in output.steps:
            here.setdefault(step.field, []).append(step.kept)
        for name, kept in here.items():
            found.setdefault(name, []).append((math.fsum(kept), len(kept)))
    losses = [
        FieldLoss(name, math.fsum(k for k, _ in each) / len(each), len(each), sum(n for _, n in each) / len(each))
        for name, each in found.items()
    ]
    return tuple(sorted(losses, key=lambda loss: (loss.log_kept, loss.field)))


def _places(outputs: Sequence[Output]) -> tuple[tuple[Step, int], ...]:
    """The steps that lost most; outputs that write the same after the same text count together."""
    found: dict[tuple[str, str, str], tuple[Step, int]] = {}
    for output in outputs:
        for step in output.steps:
            key = (step.field, step.before, step.text)
            first, count = found.get(key, (step, 0))
            found[key] = (first, count + 1)
    lost = [each for each in found.values() if each[0].kept < math.log(0.9)]
    return tuple(sorted(lost, key=lambda each: each[0].kept)[:_PLACES])
