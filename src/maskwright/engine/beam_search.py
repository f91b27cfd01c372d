"""Beam search: hypotheses that share their beginnings, the prompt and the rows of one cache.

A step reads the logits after every hypothesis and ranks all ways to go on by log-probability. Hypotheses never change;
one more token makes a new one that points to it, with a fork of its matcher, which costs the same however long it is.
What is not possible is not there: where there are fewer ways to go on than the beam is wide it has fewer hypotheses,
and no made-up scores fill it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import torch

from maskwright.engine.beam import Beam
from maskwright.engine.decode import bitmask, checked_row
from maskwright.engine.draw import Draw, mask_logits, why_not
from maskwright.engine.penalties import add_bias
from maskwright.engine.truncation import greatest, log_mass
from maskwright.errors import GenerationError, MaskwrightError

if TYPE_CHECKING:
    from torch import Tensor

    from maskwright.engine.bitsets import Words
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.request import Guide, Request
    from maskwright.engine.row import Row
    from maskwright.engine.sampling import Sampling

__all__ = ["BeamSearch", "Found", "Hypothesis", "run_beams"]

# Ways to go on that a step looks at, per hypothesis of the beam. More than `width` matter only where better ones end.
_LOOKED_AT = 8

Spelled = tuple[bytes, tuple[tuple[int, int], ...]]  # text, and the special tokens in it with their offsets


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """Some tokens of an output.

    Attributes:
        before: all but the last; None for none at all.
        draw: what is known of the last.
        logprob: of all, in nats.
        length: number of tokens.
        guide: after them; None where there is no constraint.
        mask: what may follow; None for anything.
        may_end: whether the output may end here.
        ended: whether it did.
        spelled: their text, where it is asked for.
    """

    before: Hypothesis | None
    draw: Draw | None
    logprob: float
    length: int
    guide: Guide | None
    mask: Words | None
    may_end: bool
    ended: bool
    spelled: Spelled

    def draws(self) -> list[Draw]:
        """What is known of each token, from the first on."""
        found, at = [], self
        while at.draw is not None and at.before is not None:
            found.append(at.draw)
            at = at.before
        return found[::-1]


class Found(NamedTuple):
    """An output and its score."""

    score: float
    hypothesis: Hypothesis


class _Way(NamedTuple):
    """A way to go on: from which hypothesis of a group, with which token, at which log-probability in all."""

    at: int
    token: int
    logprob: float


@dataclass
class _Group:
    """Hypotheses that compete with each other."""

    running: list[Hypothesis]
    ended: list[Hypothesis]


class BeamSearch:
    """The beam of one request.

    Args:
        model: the language model.
        request: what is asked.
        beam: how to search.
        sampling: for logit bias.
        started: when the run started.

    Attributes:
        request: without forced runs: hypotheses of a beam are equally long.
        sampling: for logit bias.
        ends: tokens that end an output where it may end.
        error: why it failed, if it did.
        cancelled: whether it was ended before it was through.
        mask_seconds, model_calls, cached_tokens: as in ``Stats``.

    Raises:
        GenerationError: as :func:`maskwright.engine.decode.checked_row`.
    """

    def __init__(
        self, model: LanguageModel, request: Request, beam: Beam, sampling: Sampling, started: float
    ) -> None:
        self.request = replace(request, forced_runs=False)
        self.beam = beam
        self.error: GenerationError | None = None
        self.cancelled = False
        self.mask_seconds = 0.0
        self.model_calls = self.cached_tokens = 0
        self.sampling = sampling
        self._model, self._started = model, started
        self._width = beam.width // beam.groups
        self._row = row = self.fresh_row()
        self._tokens, self._kinds = model.vocabulary.tokens, model.vocabulary.kinds
        self.ends = sorted({*model.vocabulary.eos_ids, *request.stop_ids})
        self._ends = frozenset(self.ends)
        mask, may_end, ended = row.place(row.matcher, request.max_tokens)
        root = Hypothesis(None, None, 0.0, 0, row.matcher, mask, may_end, ended, (b"", ()))
        self.groups = [_Group([] if ended else [root], [root] if ended else []) for _ in range(beam.groups)]

    def fresh_row(self) -> Row:
        """The row of the request, before any token."""
        return checked_row(self._model, self.request, self.sampling, self._started)

    @property
    def running(self) -> list[Hypothesis]:
        """The hypotheses that go on, group by group: the order of the rows of logits that `step` takes."""
        return [each for group in self.groups for each in group.running]

    @property
    def is_empty(self) -> bool:
        """Whether it has neither hypotheses nor outputs."""
        return not any(group.running or group.ended for group in self.groups)

    @property
    def length(self) -> int:
        """How many tokens the longest hypothesis has."""
        return max((one.length for one in self.running), default=0)

    def fail(self, error: GenerationError) -> None:
        """Ends the search with an error."""
        self.error = error
        for group in self.groups:
            group.running = []

    def step(self, scores: Tensor, kept: Sequence[float]) -> list[tuple[int, int]]:
        """Goes on by a token.

        Args:
            scores: log-probability of each running hypothesis with each token after it, float64 ``(hypotheses, V)``;
                ``-inf`` where it may not come.
            kept: log of the mass that each mask kept.

        Returns:
            ``(which, token)`` of the hypotheses that go on, in the order of `running`; ``which`` counts those before.
        """
        moves, begin, chosen = list[tuple[int, int]](), 0, Counter[int]()
        for group in self.groups:
            rows = slice(begin, begin + len(group.running))
            if group.running:
                ways = _ranked(scores[rows], _LOOKED_AT * self._width, chosen, self.beam.diversity)
                going, ending = self._go_on(group, ways, kept[rows])
                chosen.update(way.token for way in (*going, *ending))
                moves += [(begin + way.at, way.token) for way in going if group.running]
            begin = rows.stop
        return moves

    def _go_on(self, group: _Group, ways: Sequence[_Way], kept: Sequence[float]) -> tuple[list[_Way], list[_Way]]:
        """Takes the best ways of a group: those that go on, and those that ended an output."""
        width, dedupe = self._width, self.beam.dedupe is not None
        taken, ending, again = list[tuple[_Way, Hypothesis]](), list[_Way](), list[tuple[_Way, Hypothesis]]()
        seen: set[tuple[Spelled, bool]] = set()
        rank = 0
        for way in ways:
            if len(taken) == width:
                break
            one = self._extended(group.running[way.at], way, kept[way.at])
            repeats = dedupe and (one.spelled, one.ended) in seen
            if not one.ended:
                (again if repeats else taken).append((way, one))
            elif rank < width:
                group.ended.append(one)
                ending.append(way)
            if not repeats:
                seen.add((one.spelled, one.ended))
                rank += 1
        taken += again[: width - len(taken)]
        group.running = [one for _, one in taken]
        if self._is_through(group):
            group.running = []
        return [way for way, _ in taken], ending

    def _extended(self, one: Hypothesis, way: _Way, kept: float) -> Hypothesis:
        """A hypothesis with one more token."""
        draw, length = Draw(way.token, way.logprob - one.logprob, min(kept, 0.0)), one.length + 1
        if one.may_end and way.token in self._ends:
            return Hypothesis(one, draw, way.logprob, length, None, None, False, True, one.spelled)
        guide = None if one.guide is None else one.guide.fork()
        if guide is not None and not guide.accept(way.token):
            raise GenerationError(f"the matcher refuses token {way.token}, which its own mask allows")
        begin = time.perf_counter()
        mask, may_end, ended = self._row.place(guide, self.request.max_tokens - length)
        self.mask_seconds += time.perf_counter() - begin
        spelled = one.spelled if self.beam.dedupe is None else self._spelled(one.spelled, way.token)
        return Hypothesis(one, draw, way.logprob, length, guide, mask, may_end, ended, spelled)

    def _spelled(self, before: Spelled, token: int) -> Spelled:
        text, special = before
        if self._kinds[token]:
            return text, (*special, (len(text), token))
        return text + self._tokens[token], special

    def _is_through(self, group: _Group) -> bool:
        """Whether what a group still writes cannot change what it has found."""
        if not group.running or len(group.ended) < self._width:
            return False
        found = self._best(group.ended)
        if len(found) < self._width or self.beam.early_stopping is True:
            return len(found) >= self._width
        if self.beam.combine == "logsumexp":  # all of them may turn out to be ways to write one text
            together = _log_sum(one.logprob for one in group.running)
            reach = [(min(together, 0.0), group.running[0].length)]
        else:
            reach = [(one.logprob, one.length) for one in group.running]
        best = max(self.beam.best_attainable(*each, self.request.max_tokens) for each in reach)
        return best <= found[self._width - 1].score

    def found(self) -> list[Found]:
        """The outputs, the best first; where the search was cancelled before it had any, what it had of one."""
        kept = [one for group in self.groups for one in self._kept(group)]
        if not kept and self.cancelled:
            return self._best(self.running)[:1]
        once = {tuple(draw.token for draw in one.draws()): one for one in kept}
        return self._best(list(once.values()))

    def _kept(self, group: _Group) -> list[Hypothesis]:
        """The best outputs of a group, as many as it is wide; of texts all ways in which they were found."""
        best = [each.hypothesis for each in self._best(group.ended)[: self._width]]
        if self.beam.dedupe is None:
            return best
        texts = {one.spelled for one in best}
        return [one for one in group.ended if one.spelled in texts]

    def _best(self, ended: Sequence[Hypothesis]) -> list[Found]:
        """Outputs with their scores, best first; of texts that were found in several ways the best one."""
        by_text: dict[object, list[Hypothesis]] = {}
        for one in ended:
            by_text.setdefault(one if self.beam.dedupe is None else one.spelled, []).append(one)
        found = []
        for same in by_text.values():
            best = max(same, key=lambda one: self.beam.score(one.logprob, one.length))
            total = best.logprob if self.beam.combine == "max" else _log_sum(one.logprob for one in same)
            found.append(Found(self.beam.score(total, best.length), best))
        return sorted(found, key=lambda each: -each.score)


def _log_sum(values: Iterable[float]) -> float:
    """Log of the summed exponentials."""
    terms = list(values)
    top = max(terms)
    return top + math.log(math.fsum(math.exp(each - top) for each in terms))


def _ranked(scores: Tensor, count: int, chosen: Counter[int], diversity: float) -> list[_Way]:
    """The best ways to go on, at most so many, best first; ties by hypothesis, then by token."""
    shown = scores
    if diversity and chosen:
        shown = scores.clone()
        times = torch.tensor(list(chosen.values()), dtype=scores.dtype, device=scores.device)
        shown[:, list(chosen)] -= diversity * times
    index = greatest(shown.flatten(), count)
    width = scores.shape[-1]
    pairs = zip(index.tolist(), scores.flatten()[index].tolist(), strict=True)
    return [_Way(at // width, at % width, logprob) for at, logprob in pairs]


def run_beams(model: LanguageModel, searches: Sequence[BeamSearch], cancelled: Callable[[], bool]) -> None:
    """Runs searches to their ends; their hypotheses share forwards."""
    live = [search for search in searches if search.running]
    if not live or _cancel(live, cancelled):
        return
    cache = model.new_cache(len(live))
    logits = model.forward([search.request.read_first for search in live], cache)
    for search, cached in zip(live, getattr(cache, "cached_tokens", (0,) * len(live)), strict=True):
        search.model_calls, search.cached_tokens = 1, cached
    spread = [at for at, search in enumerate(live) for _ in search.running]
    cache.select(spread)
    logits = logits[spread]
    while True:
        moves = _step(live, logits[:, : model.vocabulary.size].float())
        live = [search for search in live if search.running]
        if not live or _cancel(live, cancelled):
            return
        cache.select([which for which, _ in moves])
        logits = model.forward([[token] for _, token in moves], cache)
        for search in live:
            search.model_calls += 1


def _cancel(live: Sequence[BeamSearch], cancelled: Callable[[], bool]) -> bool:
    if not cancelled():
        return False
    for search in live:
        search.cancelled = True
    return True


def _step(searches: Sequence[BeamSearch], logits: Tensor) -> list[tuple[int, int]]:
    """A step of all searches, from the logits ``(rows, V)`` after their hypotheses; see `BeamSearch.step`."""
    hypotheses = [one for search in searches for one in search.running]
    free = add_bias(logits, searches[0].sampling.logit_bias)
    allowed = bitmask([one.mask for one in hypotheses], free.shape[-1])
    masked = free if allowed is None else mask_logits(free, allowed)
    mass = log_mass(free)
    kept: list[float] = (log_mass(masked) - mass).tolist()
    before = torch.tensor([one.logprob for one in hypotheses], dtype=torch.float64, device=mass.device)
    scores = masked.double() + (before - mass).unsqueeze(-1)
    one_end(scores, [at for at, one in enumerate(hypotheses) if one.may_end], searches[0].ends)
    usable = mass.isfinite().tolist()
    moves, begin = list[tuple[int, int]](), 0
    for search in searches:
        rows = slice(begin, begin + len(search.running))
        broken = next((at for at in range(rows.start, rows.stop) if not usable[at]), None)
        try:
            if broken is None:
                moves += [(begin + which, token) for which, token in search.step(scores[rows], kept[rows])]
        except MaskwrightError as error:
            search.fail(GenerationError(f"the masks after token {search.length} failed: {error}"))
        if search.error is None and (broken is not None or search.is_empty):
            at = rows.start if broken is None else broken
            search.fail(why_not(logits[at], free[at], None if allowed is None else allowed[at]))
        begin = rows.stop
    return moves


def one_end(scores: Tensor, rows: Sequence[int], ends: Sequence[int]) -> None:
    """Leaves in these rows, of the tokens that end an output, the most probable: the others end the same one."""
    if not rows or len(ends) < 2:
        return
    at, ids = (torch.tensor(list(each), device=scores.device) for each in (rows, ends))
    values, best = scores[at.unsqueeze(-1), ids].max(-1)
    scores[at.unsqueeze(-1), ids] = -math.inf
    scores[at, ids[best]] = values
