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
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.engine.draw import Draw, Seen, draw
from maskwright.engine.heads import Split
from maskwright.engine.model import check_context
from maskwright.engine.request import Request
from maskwright.engine.row import Expected, Row
from maskwright.engine.sampling import Sampling
from maskwright.engine.trees import Tree, extend_tree
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    import torch

    from maskwright.engine.model import Cache, LanguageModel
    from maskwright.engine.rng import Stream
    from maskwright.engine.row import Drafter, Words
    from maskwright.engine.speculation.window import Trial, Window

__all__ = ["Decoder", "bitmask", "count_seen"]

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
        self.rows = [checked_row(model, request, sampling, started) for request in requests]
        self._model = model
        self._sampling = sampling
        self._cancelled = cancelled
        self._drafter = drafter
        self._details = details
        plain = details is None and not sampling.penalizes and not sampling.lazy_mask
        splits = plain and getattr(model, "splits_head", False) and all(each.processor is None for each in requests)
        self._rows_with_drafts = _ROWS_WITH_DRAFTS
        self._wants_states = splits
        self._has_states = False  # whether the last forward gave states in place of logits
        self._tree: Tree | None = None  # what the last forward read, until its nodes are kept or dropped
        self._split = Split(model, model.vocabulary.size, sampling) if splits else None

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
                if self._split is not None:
                    self._split.settle(row)

    def _steps(self, live: list[Row]) -> Iterator[None]:
        if not live or self._cancelled():
            return
        cache, blocks = self._prefill(live)
        while True:
            self._advance(live, blocks, cache)
            yield
            staying = [at for at, row in enumerate(live) if row.running or row.owes]
            if not staying or self._cancelled():
                return
            if len(staying) < len(live):
                cache.select(staying)
                live = [live[at] for at in staying]
            blocks = self._forward(live, cache)

    def _prefill(self, rows: list[Row]) -> tuple[Cache, list[torch.Tensor]]:
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
        return cache, [logits[at : at + 1] for at in range(len(rows))]

    def _forward(self, rows: list[Row], cache: Cache) -> list[torch.Tensor]:
        """Lets the model read what it has not seen, and drafts; logits after each of these tokens, per row."""
        for row in rows:
            row.model_calls += 1
        self._propose(rows)
        return self._read(rows, cache)

    def _propose(self, rows: list[Row]) -> None:
        """Gives rows drafts of what is likely to follow."""
        if self._drafter is None or len(rows) > self._rows_with_drafts:
            return
        for row in rows:
            if row.request.forced_runs and row.matcher is not None and row.running:
                row.propose(self._drafter(row))

    def _read(self, rows: list[Row], cache: Cache) -> list[torch.Tensor]:
        new = [[*row.unseen, *row.draft] for row in rows]
        if any(row.window is not None and not row.window.is_chain for row in rows):
            self._has_states = self._wants_states
            self._tree = extend_tree(self._model, new, [_parents(row) for row in rows], cache, self._wants_states)
            return self._tree.logits
        if self._wants_states:
            self._has_states = True
            return self._states(new, cache)
        if all(len(tokens) == 1 for tokens in new):
            logits = self._model.forward(new, cache)
            return [logits[at : at + 1] for at in range(len(rows))]
        return self._model.forward_all(new, cache)

    def _states(self, new: Sequence[Sequence[int]], cache: Cache) -> list[torch.Tensor]:
        model: Any = self._model
        states: list[torch.Tensor] = model.forward_states(new, cache)
        return states

    def _logits_of(self, states: torch.Tensor) -> torch.Tensor:
        model: Any = self._model
        logits: torch.Tensor = model.logits_of(states)[:, : self._model.vocabulary.size]
        return logits

    def _advance(self, rows: list[Row], blocks: list[torch.Tensor], cache: Cache) -> None:
        """Draws from the logits that answer the last forward; forgets the drafts that were not kept."""
        import torch

        places = [row.expected for row in rows]
        used = [block[: len(here)] for block, here in zip(blocks, places, strict=True)]
        masks = [place.mask for here in places for place in here]
        joined, few = torch.cat(used), set[int]()
        if self._split is not None and self._has_states:
            logits, few = self._split.logits(joined, masks)
        elif self._has_states:
            logits = self._logits_of(joined)
        else:
            logits = joined[:, : self._model.vocabulary.size]
        failed = self._process(rows, places, logits)
        draws = self._draw(rows, places, logits)
        if self._split is not None and few:
            self._split.postpone(draws, few, joined, masks)
        kept, begin = [], 0
        for row, here, block in zip(rows, places, blocks, strict=True):
            window, seen = row.window, len(row.unseen)
            if row in failed:
                row.fail(failed[row])
            mine = row.settle(draws[begin : begin + len(here)])
            begin += len(here)
            path = row.take(mine, self._sampling.logit_bias) if row.running else []
            kept.append((seen, len(window.tokens) if window is not None else 0, path))
            self._note(row, window, path, block[len(here) - len(mine) :])
        self._forget(kept, cache)

    def _note(self, row: Row, window: Window | None, path: list[int], block: torch.Tensor) -> None:
        """Told what became of each draft, and what the model gave from the first drawn place on."""

    def _forget(self, kept: Sequence[tuple[int, int, list[int]]], cache: Cache) -> None:
        """Drops the drafted tokens that do not stay: per row the tokens read before them, how many, and which stay."""
        if self._tree is not None:
            self._tree.commit([[*range(seen), *(seen + node for node in path)] for seen, _, path in kept])
            self._tree = None
        elif any(drafted > len(path) for _, drafted, path in kept):
            lengths = zip(cache.lengths, kept, strict=True)
            cache.truncate([length - drafted + len(path) for length, (_, drafted, path) in lengths])

    def _draw(
        self, rows: list[Row], places: list[list[Expected]], logits: torch.Tensor
    ) -> list[Draw | GenerationError]:
        flat = [(row, place) for row, here in zip(rows, places, strict=True) for place in here]
        seen = [each for row, here in zip(rows, places, strict=True) for each in self._seen(row, here)]
        streams = [row.request.stream for row, _ in flat]
        positions = [place.position for _, place in flat]
        masks = [place.mask for _, place in flat]
        if not flat:
            return []
        trials = [place.trial for _, place in flat]
        draws = self._draw_from(logits, masks, streams, positions, seen, trials if any(trials) else None)
        again = [
            at
            for at, (row, _) in enumerate(flat)
            if row.lazy and isinstance(token := draws[at], Draw) and not row.admits(token.token)
        ]
        for at in again:
            row = flat[at][0]
            row.fill()
            one = slice(at, at + 1)
            draws[one] = self._draw_from(logits[one], [row.mask], streams[one], positions[one], seen[one])
        if self._sampling.lazy_mask:
            draws = [_unweighed(each) for each in draws]
        return draws

    def _draw_from(
        self,
        logits: torch.Tensor,
        masks: Sequence[Words | None],
        streams: Sequence[Stream],
        positions: list[int],
        seen: list[Seen],
        trials: Sequence[Trial | None] | None = None,
    ) -> list[Draw | GenerationError]:
        mask = bitmask(masks, logits.shape[-1])
        return draw(logits, self._sampling, mask, streams, positions, seen or None, self._details, trials)

    def _seen(self, row: Row, places: list[Expected]) -> list[Seen]:
        """How often each token came before each place, for penalties; nothing where there are none."""
        if not self._sampling.penalizes:
            return []
        return [count_seen(row, row.before(place), self._sampling) for place in places]

    def _process(
        self, rows: list[Row], places: list[list[Expected]], logits: torch.Tensor
    ) -> dict[Row, GenerationError]:
        """Lets the processors of the callers change the logits, in place; what they raise stays in its row."""
        failed, at = {}, 0
        for row, here in zip(rows, places, strict=True):
            change = row.request.processor
            for i, place in enumerate(here) if change is not None else []:
                assert change is not None
                try:
                    logits[at + i] = change(row.before(place), logits[at + i].clone())
                except Exception as error:  # whatever a caller's function raises ends its own request alone
                    failed[row] = _failure(error)
                    break
            at += len(here)
        return failed


def count_seen(row: Row, output: Sequence[int], sampling: Sampling) -> Seen:
    """What penalties count after these tokens of a row's output."""
    counts = Counter(output)
    if sampling.penalty_scope == "all":
        counts.update(row.request.prompt)
    return dict(counts)


def _parents(row: Row) -> list[int]:
    """The tree that the model is to read: the unseen tokens as a chain, the draft behind it."""
    last = len(row.unseen) - 1
    drafted = [] if row.window is None else row.window.parents
    return [*range(-1, last), *(last + 1 + parent if parent >= 0 else last for parent in drafted)]


def _failure(error: Exception) -> GenerationError:
    wrapped = GenerationError(f"the processor of this request raised {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def _unweighed(each: Draw | GenerationError) -> Draw | GenerationError:
    if isinstance(each, GenerationError):
        return each
    nan = float("nan")
    return Draw(each.token, each.logprob, nan, each.raw, nan, each.processed, each.alternatives)


def checked_row(model: LanguageModel, request: Request, sampling: Sampling, started: float) -> Row:
    """The row of a request that can be generated.

    Raises:
        GenerationError: empty prompt; more tokens than the context holds; a prefix that the constraint refuses; a
            budget that no output fits into, naming the least that would do.
    """
    if not request.prompt:
        raise GenerationError("the prompt has no tokens", hint="Pass a prompt that is not empty")
    check_context(model, len(request.read_first), request.max_tokens)
    row = Row(request, model.vocabulary, started, sampling.lazy_mask)
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
