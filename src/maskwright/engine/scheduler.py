"""Continuous batching: which rows and how much of which prompt a step reads.

A step first gives every row that is being generated its forward, then spends what is left of its token budget on
prompts, in the order in which they came: a long prompt is read in chunks, beside the others' tokens. Rows join when
their prompt has been read and leave, with their keys and values, in the step in which they end or are cancelled.

Sources: Orca, Yu et al., OSDI 2022 (scheduling by iteration); Sarathi-Serve, Agrawal et al., OSDI 2024 (prompts in
chunks). Here prompts and rows take a forward each: on a CPU nothing is gained from one that reads both, and models
that want rectangles of tokens would read mostly padding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from maskwright.engine.blocks import load_prefixes, store_prefixes
from maskwright.engine.drafts import drafter_for
from maskwright.engine.row import LONGEST_RUN
from maskwright.engine.step import Read, Stepper
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    import torch

    from maskwright.engine.blocks import BlockStore
    from maskwright.engine.model import Cache, LanguageModel
    from maskwright.engine.row import Row

__all__ = ["Job", "Scheduler"]


@dataclass(eq=False)
class Job:
    """A row and who waits for it.

    Attributes:
        row: what is generated.
        cancelled: asked before every step; True ends the row as it is.
        moved: called after each step that may have given it tokens, and once it has ended.
    """

    row: Row
    cancelled: Callable[[], bool]
    moved: Callable[[], None]

    @property
    def leaves(self) -> bool:
        """Whether no forward has anything to tell about the row."""
        return not (self.row.running or self.row.owes)


@dataclass(eq=False)
class _Prompt:
    """A prompt that is being read, once for all who wait for it; `read` of its tokens are."""

    tokens: tuple[int, ...]
    jobs: list[Job]
    read: int = 0


@dataclass(eq=False)
class _Prompts:
    """Prompts that share a cache; all but the last are read in one forward."""

    cache: Cache
    prompts: list[_Prompt]


@dataclass(eq=False)
class _Lane:
    """Jobs that share a cache, and so forwards; more than one only where caches cannot be joined."""

    cache: Cache
    jobs: list[Job] = field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        return [job.row for job in self.jobs]

    def keep(self, staying: Sequence[int]) -> None:
        """Drops the others. The last rows take the places of those that left, so that few are moved."""
        if len(staying) == len(self.jobs):
            return
        if not staying:
            self.jobs = []  # and the lane goes, with its cache
            return
        kept = set(staying)
        late = [at for at in staying if at >= len(staying)]
        order = [at if at in kept else late.pop() for at in range(len(staying))]
        self.cache.select(order)
        self.jobs = [self.jobs[at] for at in order]


class Scheduler:
    """Rows of any number of requests, step by step; not thread-safe, but for its counters.

    Args:
        model: the language model.
        token_budget: the most tokens that a step reads.
        max_rows: the most rows at a time.
    """

    def __init__(self, model: LanguageModel, token_budget: int, max_rows: int) -> None:
        self._model = model
        self._budget = token_budget
        self._max_rows = max_rows
        # So that all rows together, and a prompt, find room in a budget.
        self._longest_run = min(LONGEST_RUN, token_budget // max_rows)
        self._stepper = Stepper(model, drafter_for(model))
        self._waiting: deque[Job] = deque()
        self._partial: _Prompts | None = None
        self._lanes: list[_Lane] = []

    @property
    def waiting(self) -> int:
        """Jobs whose prompt nobody has begun to read."""
        return len(self._waiting)

    @property
    def rows(self) -> int:
        """Jobs that take part in steps."""
        return sum(1 for _ in self._started())

    @property
    def cached_tokens(self) -> int:
        """Tokens whose keys and values are held for these rows."""
        partial = self._partial
        caches = [lane.cache for lane in self._lanes] + ([partial.cache] if partial else [])
        return sum(sum(cache.lengths) for cache in caches)

    def add(self, job: Job) -> None:
        """Puts a job behind all others."""
        job.row.longest_run = self._longest_run
        self._waiting.append(job)

    def step(self) -> bool:
        """Gives every row its forward, and prompts what is left of the budget; whether anything is left to do."""
        self._drop_cancelled()
        spent = sum(self._decode(lane) for lane in self._lanes)
        self._drop_ended()
        self._read_prompts(self._budget - spent)
        self._drop_ended()
        for lane in self._lanes:
            for job in lane.jobs:
                job.moved()
        return bool(self._waiting or self._partial or self._lanes)

    def fail(self, error: BaseException) -> None:
        """Ends all jobs with an error."""
        self._fail(self._clear(), error)

    def cancel(self) -> None:
        """Ends all jobs as they are."""
        for job in self._clear():
            self._end(job, cancelled=True)

    def _clear(self) -> list[Job]:
        jobs = [*self._started(), *self._waiting]
        self._waiting.clear()
        self._partial, self._lanes = None, []
        return jobs

    # --- rows

    def _started(self) -> Iterator[Job]:
        partial = self._partial
        for lane in self._lanes:
            yield from lane.jobs
        for prompt in partial.prompts if partial else []:
            yield from prompt.jobs

    def _decode(self, lane: _Lane) -> int:
        """One step of the rows of a lane; how many tokens it read."""
        before = sum(lane.cache.lengths)
        try:
            read = self._stepper.forward(lane.rows, lane.cache)
            spent = sum(lane.cache.lengths) - before
            self._stepper.advance(lane.rows, read, lane.cache)
        except Exception as error:  # of the model: these rows are lost, the others are not
            self._fail_rows(lane.rows, error)
            return 0
        return spent

    def _join(self, lane: _Lane) -> None:
        """Puts new rows beside those that are there."""
        lane.keep([at for at, job in enumerate(lane.jobs) if not self._finish(job)])
        if not lane.jobs:
            return
        join: Any = getattr(self._lanes[0].cache, "join", None) if self._lanes else None
        if join is None:
            self._lanes.append(lane)
            return
        join(lane.cache)
        self._lanes[0].jobs += lane.jobs

    def _finish(self, job: Job) -> bool:
        """Whether a job leaves; says so to who waits for it."""
        if job.leaves:
            self._end(job)
        return job.leaves

    def _end(self, job: Job, cancelled: bool = False) -> None:
        if cancelled and job.row.running:
            job.row.end("cancelled")
        try:
            self._stepper.settle(job.row)
        except Exception as error:
            self._fail_rows([job.row], error)
        job.moved()

    def _drop_ended(self) -> None:
        for lane in self._lanes:
            lane.keep([at for at, job in enumerate(lane.jobs) if not self._finish(job)])
        self._lanes = [lane for lane in self._lanes if lane.jobs]

    def _drop_cancelled(self) -> None:
        for lane in self._lanes:
            lane.keep([at for at, job in enumerate(lane.jobs) if not self._cancel(job)])
        self._lanes = [lane for lane in self._lanes if lane.jobs]
        self._waiting = deque([job for job in self._waiting if not self._cancel(job)])
        if self._partial is not None:
            (prompt,) = self._partial.prompts
            prompt.jobs = [job for job in prompt.jobs if not self._cancel(job)]
            if not prompt.jobs:
                self._partial = None

    def _cancel(self, job: Job) -> bool:
        cancelled = job.cancelled()
        if cancelled:
            self._end(job, cancelled)
        return cancelled

    # --- prompts

    def _read_prompts(self, left: int) -> None:
        """Reads so many tokens of prompts at most, the one that was begun first."""
        if self._partial is not None:
            left -= self._read(self._partial, left)
        if self._partial is None:
            admitted = self._admit(left)
            if admitted is not None:
                self._read(admitted, left)

    def _admit(self, left: int) -> _Prompts | None:
        """New prompts, of which so many tokens can be read; the last may be cut."""
        found: dict[tuple[int, ...], _Prompt] = {}
        rows, room = self.rows, left
        while self._waiting and rows < self._max_rows:
            job = self._waiting[0]
            tokens = job.row.request.read_first
            if tokens not in found:
                if room <= 0:
                    break
                found[tokens] = _Prompt(tokens, [])
                room -= len(tokens)
            found[tokens].jobs.append(self._waiting.popleft())
            rows += 1
        if not found:
            return None
        prompts = list(found.values())
        try:
            return _Prompts(self._new_cache(prompts), prompts)
        except Exception as error:
            self._fail([job for prompt in prompts for job in prompt.jobs], error)
            return None

    def _new_cache(self, prompts: list[_Prompt]) -> Cache:
        """A cache for prompts, with what is known of their beginnings."""
        cache = self._model.new_cache(len(prompts))
        store: BlockStore | None = getattr(self._model, "blocks", None)
        if store is not None and hasattr(cache, "load_blocks"):
            for prompt, count in zip(prompts, load_prefixes(store, [p.tokens for p in prompts], cache), strict=True):
                prompt.read = count
                for job in prompt.jobs:
                    job.row.cached_tokens = count
        return cache

    def _read(self, reading: _Prompts, left: int) -> int:
        """Reads so many tokens at most; prompts that are read to their end become rows. How many it were."""
        prompts, spent, chunks = reading.prompts, 0, []
        for prompt in prompts:
            take = min(len(prompt.tokens) - prompt.read, left - spent)
            chunks.append(prompt.tokens[prompt.read : prompt.read + take])
            spent += take
        jobs = [job for prompt in prompts for job in prompt.jobs]
        try:
            logits = self._model.forward(chunks, reading.cache)
            self._begin(reading, [len(chunk) for chunk in chunks], logits)
        except Exception as error:
            self._partial = None
            self._fail(jobs, error)
        return spent

    def _begin(self, reading: _Prompts, counts: list[int], logits: torch.Tensor) -> None:
        prompts, cache = reading.prompts, reading.cache
        for prompt, count in zip(prompts, counts, strict=True):
            prompt.read += count
            for job in prompt.jobs:
                job.row.model_calls += 1
        if getattr(cache, "holds", None) is not None:
            store_prefixes([prompt.tokens[: prompt.read] for prompt in prompts], cache)
        whole = [at for at, prompt in enumerate(prompts) if prompt.read == len(prompt.tokens)]
        if len(whole) == len(prompts):
            self._partial = None
        else:
            last = len(prompts) - 1
            self._partial = _Prompts(cache if last == 0 else cache.fork([last]), prompts[last:])
        if whole:
            self._start(prompts, whole, cache, logits)

    def _start(self, prompts: list[_Prompt], whole: list[int], cache: Cache, logits: torch.Tensor) -> None:
        """The first tokens of the rows whose prompts are read."""
        jobs = [job for at in whole for job in prompts[at].jobs]
        spread = [at for at in whole for _ in prompts[at].jobs]
        cache.select(spread)
        lane = _Lane(cache, jobs)
        self._stepper.advance(lane.rows, Read([logits[at : at + 1] for at in spread]), cache)
        self._join(lane)

    # --- failures

    def _fail(self, jobs: Sequence[Job], error: BaseException) -> None:
        self._fail_rows([job.row for job in jobs], error)
        for job in jobs:
            job.moved()

    def _fail_rows(self, rows: Sequence[Row], error: BaseException) -> None:
        for row in rows:
            if row.error is None:
                row.fail(_of_model(error))


def _of_model(error: BaseException) -> GenerationError:
    wrapped = GenerationError(f"the model raised {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
