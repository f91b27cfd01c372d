"""The parts of a step, for rows of any requests that share a cache: a forward, draws, what stays of drafts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maskwright.engine.draw import Draw, Seen, draw
from maskwright.engine.expected import Expected
from maskwright.engine.heads import Split
from maskwright.engine.row import Row
from maskwright.engine.sampling import Sampling
from maskwright.engine.trees import Tree, extend_tree
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    import torch

    from maskwright.engine.bitsets import Words
    from maskwright.engine.model import Cache, LanguageModel
    from maskwright.engine.row import Drafter
    from maskwright.engine.speculation.window import Window

__all__ = ["Read", "Stepper", "bitmask", "count_seen"]

# Reading a draft costs little while few rows share a forward.
_ROWS_WITH_DRAFTS = 4


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
        self._rows_with_drafts = _ROWS_WITH_DRAFTS
        self._wants_states = False  # whatever the rows' rules
        self._tree: Tree | None = None  # what the last forward read, until its nodes are kept or dropped
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
                with _inside(row, "the drafter"):
                    row.propose(self._drafter(row))

    def _read(self, rows: list[Row], cache: Cache) -> Read:
        new = [[*row.unseen, *row.draft] for row in rows]
        states = self._wants_states or (self._split is not None and any(row.plain for row in rows))
        if any(row.window is not None and not row.window.is_chain for row in rows):
            self._tree = extend_tree(self._model, new, [_parents(row) for row in rows], cache, states)
            return Read(self._tree.logits, states)
        if states:
            return Read(self._states(new, cache), are_states=True)
        if all(len(tokens) == 1 for tokens in new):
            logits = self._model.forward(new, cache)
            return Read([logits[at : at + 1] for at in range(len(rows))])
        return Read(self._model.forward_all(new, cache))

    def _states(self, new: Sequence[Sequence[int]], cache: Cache) -> list[torch.Tensor]:
        model: Any = self._model
        states: list[torch.Tensor] = model.forward_states(new, cache)
        return states

    def _logits_of(self, states: torch.Tensor) -> torch.Tensor:
        model: Any = self._model
        logits: torch.Tensor = model.logits_of(states)[:, : self._model.vocabulary.size]
        return logits

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
        elif read.are_states:
            logits = self._logits_of(joined)
        else:
            logits = joined[:, : self._model.vocabulary.size]
        failed = self._process(rows, places, logits)
        draws = self._draw(rows, places, logits)
        if self._split is not None and few:
            self._split.postpone(draws, few, joined, masks)
        kept, begin = [], 0
        for row, here, block in zip(rows, places, read.blocks, strict=True):
            window, seen = row.window, len(row.unseen)
            if row in failed:
                row.fail(failed[row])
            mine = row.settle(draws[begin : begin + len(here)])
            begin += len(here)
            path: list[int] = []
            with _inside(row, "the constraint"):
                path = row.take(mine, row.sampling.logit_bias) if row.running else []
            kept.append((seen, len(window.tokens) if window is not None else 0, path))
            self._note(row, window, path, Read([block[len(here) - len(mine) :]], read.are_states))
        self._forget(kept, cache)

    def _note(self, row: Row, window: Window | None, path: list[int], read: Read) -> None:
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
            trials = [flat[at][1].trial for at in group]
            tried = trials if any(trials) else None
            draws = draw(some, first.sampling, mask, streams, positions, counts, first.details, tried)
            found.update(zip(group, draws, strict=True))
        return [found[at] for at in range(len(flat))]

    def _seen(self, row: Row, places: list[Expected]) -> list[Seen]:
        """How often each token came before each place, for penalties; of no use where there are none."""
        if not row.sampling.penalizes:
            return [{} for _ in places]
        return [count_seen(row, row.before(place), row.sampling) for place in places]

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
                    failed[row] = _failure("the processor", error)
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


def bitmask(masks: Sequence[Words | None], width: int) -> torch.Tensor | None:
    """Masks as int32 of shape ``(rows, ceil(width / 32))``; None where no row has one."""
    import torch

    if all(mask is None for mask in masks):
        return None
    everything = np.full((width + 31) // 32, 0xFFFFFFFF, dtype=np.uint32)
    table = np.stack([everything if mask is None else mask for mask in masks])
    return torch.from_numpy(table.view(np.int32))
