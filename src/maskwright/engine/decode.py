"""The step loop: rows that share forwards, each with a constraint, a budget and random numbers of its own.

A step reads logits, draws a token for every row, advances the matchers and gives the model what it has not seen.
Rows leave when they end. Text that a constraint determines takes no decode step of its own:

- Where a mask holds a single token that is not EOS, its probability under the masked distribution is 1: it is appended
  at once and read together with the token before it; the logits of that forward give its probability.
- Where it does not, but a text is likely to follow (a key, say, which several sequences of tokens spell), its tokens
  are read as a draft. The logits after each are drawn from under their own masks and with their own random numbers, as
  without a draft, and the draft is kept as far as the draws agree with it. The output is the same in every case.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maskwright.engine.draw import Draw, Seen, draw
from maskwright.engine.heads import Split
from maskwright.engine.model import check_context
from maskwright.engine.request import Request
from maskwright.engine.row import Expected, Row
from maskwright.engine.sampling import Sampling
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    import torch

    from maskwright.engine.model import Cache, LanguageModel
    from maskwright.engine.row import Drafter, Words

__all__ = ["Decoder", "Read", "Stepper", "check_room", "checked_row"]

# Reading a draft costs little while few rows share a forward.
_ROWS_WITH_DRAFTS = 4


class Decoder:
    """Generates for some requests at a time.

    Args:
        model: the language model.
        requests: one per row.
        sampling: the rules, shared by the rows.
        cancelled: asked before every step; once it says True, rows end as they are.
        drafter: says which tokens are likely to follow in a row; None for no drafts.
        details: see :func:`maskwright.engine.draw.draw`.

    Attributes:
        rows: the state of each request, in order.

    Raises:
        GenerationError: before any forward, if a request does not fit into the context, has an empty prompt, or
            has a budget that its constraint cannot be finished in.
    """

    def __init__(
        self,
        model: LanguageModel,
        requests: Sequence[Request],
        sampling: Sampling,
        cancelled: Callable[[], bool] = lambda: False,
        drafter: Drafter | None = None,
        details: int | None = None,
    ) -> None:
        started = time.perf_counter()
        self.rows = [checked_row(model, request, sampling, started, details) for request in requests]
        self._cancelled = cancelled
        self._stepper = Stepper(model, drafter)

    def run(self) -> None:
        """Runs all rows to their ends."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Runs step by step: yields when rows have new tokens. Closing the iterator ends the rows as cancelled."""
        live = [row for row in self.rows if row.running]
        try:
            yield from self._steps(live)
        finally:
            for row in self.rows:
                if row.running:
                    row.end("cancelled")
                self._stepper.settle(row)

    def _steps(self, live: list[Row]) -> Iterator[None]:
        if not live or self._cancelled():
            return
        cache, read = self._stepper.prefill(live)
        while True:
            self._stepper.advance(live, read, cache)
            yield
            staying = [at for at, row in enumerate(live) if row.running or row.owes]
            if not staying or self._cancelled():
                return
            if len(staying) < len(live):
                cache.select(staying)
                live = [live[at] for at in staying]
            read = self._stepper.forward(live, cache)


class Read(NamedTuple):
    """What a forward gave for the places of each row: logits, or states that the head has not seen."""

    blocks: list[torch.Tensor]
    are_states: bool = False


class Stepper:
    """The parts of a step, for rows of any requests that share a cache.

    Args:
        model: the language model.
        drafter: as of a :class:`Decoder`.
    """

    def __init__(self, model: LanguageModel, drafter: Drafter | None = None) -> None:
        self._model = model
        self._drafter = drafter
        self._split = Split(model, model.vocabulary.size) if getattr(model, "splits_head", False) else None

    def settle(self, row: Row) -> None:
        """Learns what was put off until the end of a row."""
        if self._split is not None:
            self._split.settle(row)

    def prefill(self, rows: list[Row]) -> tuple[Cache, Read]:
        """Reads the prompts, each once however many rows share it."""
        prompts = list(dict.fromkeys(row.request.read_first for row in rows))
        cache = self._model.new_cache(len(prompts))
        logits = self._model.forward(prompts, cache)
        cached = getattr(cache, "cached_tokens", (0,) * len(prompts))
        place = {prompt: at for at, prompt in enumerate(prompts)}
        spread = [place[row.request.read_first] for row in rows]
        for row, at in zip(rows, spread, strict=True):
            row.model_calls += 1
            row.cached_tokens = cached[at]
        if len(prompts) < len(rows):
            cache, logits = cache.fork(spread), logits[spread]
        return cache, Read([logits[at : at + 1] for at in range(len(rows))])

    def forward(self, rows: list[Row], cache: Cache) -> Read:
        """Lets the model read what it has not seen, and drafts; logits after each of these tokens, per row."""
        drafting = self._drafter is not None and len(rows) <= _ROWS_WITH_DRAFTS
        for row in rows:
            row.model_calls += 1
            if drafting and self._drafter is not None and row.request.forced_runs:
                with _inside(row, "the drafter"):
                    row.propose(self._drafter(row))
        new = [[*row.unseen, *row.draft] for row in rows]
        if self._split is not None and any(row.plain for row in rows):
            return Read(self._states(new, cache), are_states=True)
        if all(len(tokens) == 1 for tokens in new):
            logits = self._model.forward(new, cache)
            return Read([logits[at : at + 1] for at in range(len(rows))])
        return Read(self._model.forward_all(new, cache))

    def _states(self, new: Sequence[Sequence[int]], cache: Cache) -> list[torch.Tensor]:
        model: Any = self._model
        states: list[torch.Tensor] = model.forward_states(new, cache)
        return states

    def advance(self, rows: list[Row], read: Read, cache: Cache) -> None:
        """Draws from the logits that answer the last forward; forgets the drafts that were not kept."""
        import torch

        places = [row.expected for row in rows]
        used = [block[: len(here)] for block, here in zip(read.blocks, places, strict=True)]
        # Rules that look at all logits need them all.
        masks = [place.mask if row.plain else None for row, here in zip(rows, places, strict=True) for place in here]
        joined, few = torch.cat(used), set[int]()
        if self._split is not None and read.are_states:
            logits, few = self._split.logits(joined, masks)
        else:
            logits = joined[:, : self._model.vocabulary.size]
        failed = self._process(rows, places, logits)
        draws = self._draw(rows, places, logits)
        if self._split is not None and few:
            self._split.postpone(draws, few, joined, masks)
        dropped, begin = [], 0
        for row, here in zip(rows, places, strict=True):
            drafted = len(row.draft)
            if row in failed:
                row.fail(failed[row])
            mine = row.settle(draws[begin : begin + len(here)])
            begin += len(here)
            kept = 0
            with _inside(row, "the constraint"):
                kept = row.take(mine, row.sampling.logit_bias) if row.running else 0
            dropped.append(drafted - kept)
        if any(dropped):
            cache.truncate([length - n for length, n in zip(cache.lengths, dropped, strict=True)])

    def _draw(
        self, rows: list[Row], places: list[list[Expected]], logits: torch.Tensor
    ) -> list[Draw | GenerationError]:
        flat = [(row, place) for row, here in zip(rows, places, strict=True) for place in here]
        seen = [each for row, here in zip(rows, places, strict=True) for each in self._seen(row, here)]
        masks = [place.mask for _, place in flat]
        if not flat:
            return []
        draws = self._draw_from(logits, flat, masks, seen)
        again = [
            at
            for at, (row, _) in enumerate(flat)
            if row.lazy and isinstance(token := draws[at], Draw) and not row.admits(token.token)
        ]
        for at in again:
            row = flat[at][0]
            row.fill()
            one = slice(at, at + 1)
            draws[one] = self._draw_from(logits[one], flat[one], [row.mask], seen[one])
        lazy = [row.sampling.lazy_mask for row, _ in flat]
        return [_unweighed(each) if put_off else each for each, put_off in zip(draws, lazy, strict=True)]

    def _draw_from(
        self,
        logits: torch.Tensor,
        flat: Sequence[tuple[Row, Expected]],
        masks: Sequence[Words | None],
        seen: Sequence[Seen],
    ) -> list[Draw | GenerationError]:
        """Draws at places of rows, those of rows with the same rules together."""
        found: dict[int, Draw | GenerationError] = {}
        for group in _by_rules([row for row, _ in flat]):
            first = flat[group[0]][0]
            some = logits if len(group) == len(flat) else logits[group]
            mask = bitmask([masks[at] for at in group], logits.shape[-1])
            streams = [flat[at][0].request.stream for at in group]
            positions = [flat[at][1].position for at in group]
            counts = [seen[at] for at in group] if first.sampling.penalizes else None
            draws = draw(some, first.sampling, mask, streams, positions, counts, first.details)
            found.update(zip(group, draws, strict=True))
        return [found[at] for at in range(len(flat))]

    def _seen(self, row: Row, places: list[Expected]) -> list[Seen]:
        """How often each token came before each place, for penalties; of no use where there are none."""
        if not row.sampling.penalizes or not places:
            return [{} for _ in places]
        output = [*row.request.prefix, *row.tokens, *row.draft]
        counts = Counter(output[: places[0].position])
        if row.sampling.penalty_scope == "all":
            counts.update(row.request.prompt)
        found: list[Seen] = []
        for place in places:
            if place is not places[0]:
                counts[output[place.position - 1]] += 1
            found.append(dict(counts))
        return found

    def _process(
        self, rows: list[Row], places: list[list[Expected]], logits: torch.Tensor
    ) -> dict[Row, GenerationError]:
        """Lets the processors of the callers change the logits, in place; what they raise stays in its row."""
        failed, at = {}, 0
        for row, here in zip(rows, places, strict=True):
            change = row.request.processor
            output = [*row.request.prefix, *row.tokens, *row.draft]
            for place in here if change is not None else []:
                assert change is not None
                try:
                    logits[at + place.position - here[0].position] = change(
                        output[: place.position], logits[at + place.position - here[0].position].clone()
                    )
                except Exception as error:  # whatever a caller's function raises ends its own request alone
                    failed[row] = _failure("the processor", error)
                    break
            at += len(here)
        return failed


def _by_rules(rows: Sequence[Row]) -> list[list[int]]:
    """Indices of rows, those with the same rules together, in the order of the first of each."""
    groups: list[list[int]] = []
    for at, row in enumerate(rows):
        same = (group for group in groups if row.has_rules_of(rows[group[0]]))
        group = next(same, None)
        if group is None:
            groups.append([at])
        else:
            group.append(at)
    return groups


@contextmanager
def _inside(row: Row, what: str) -> Iterator[None]:
    """What is raised inside ends this row alone."""
    try:
        yield
    except Exception as error:
        row.fail(_failure(what, error))


def _failure(what: str, error: Exception) -> GenerationError:
    wrapped = GenerationError(f"{what} of this request raised {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def _unweighed(each: Draw | GenerationError) -> Draw | GenerationError:
    if isinstance(each, GenerationError):
        return each
    nan = float("nan")
    return Draw(each.token, each.logprob, nan, each.raw, nan, each.processed, each.alternatives)


def checked_row(
    model: LanguageModel, request: Request, sampling: Sampling, started: float, details: int | None = None
) -> Row:
    """The row of a request that can be generated.

    Raises:
        GenerationError: empty prompt; more tokens than the context holds; a prefix that the constraint refuses; a
            budget that no output fits into, naming the least that would do.
    """
    if not request.prompt:
        raise GenerationError("the prompt has no tokens", hint="Pass a prompt that is not empty")
    check_context(model, len(request.read_first), request.max_tokens)
    row = Row(request, model.vocabulary, started, sampling, details)
    if row.matcher is not None:
        check_room(row.matcher.min_tokens_to_accept() + 1, request.max_tokens)
    return row


def check_room(enough: int, max_tokens: int) -> None:
    """Refuses a budget in which an output cannot be finished.

    Raises:
        GenerationError: naming a number of tokens that would do.
    """
    if max_tokens < enough:
        raise GenerationError(
            f"max_tokens is {max_tokens}, too few to finish an output of this constraint: "
            f"it takes {enough}, EOS included",
            hint=f"Allow max_tokens={enough} or more",
        )


def bitmask(masks: Sequence[Words | None], width: int) -> torch.Tensor | None:
    """Masks as int32 of shape ``(rows, ceil(width / 32))``; None where no row has one."""
    import torch

    if all(mask is None for mask in masks):
        return None
    everything = np.full((width + 31) // 32, 0xFFFFFFFF, dtype=np.uint32)
    table = np.stack([everything if mask is None else mask for mask in masks])
    return torch.from_numpy(table.view(np.int32))
