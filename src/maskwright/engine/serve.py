"""An engine for many requests that come and go: continuous batching behind futures, streams and asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from maskwright._arguments import require, whole
from maskwright.engine.decode import checked_row
from maskwright.engine.handle import Handle
from maskwright.engine.model import check_model
from maskwright.engine.requests import Prompt, build_requests, compile_for, is_one_prompt, rules
from maskwright.engine.result import Chunk, Result, environment
from maskwright.engine.scheduler import Job, Scheduler

if TYPE_CHECKING:
    from typing_extensions import Self

    from maskwright.compiler import CompiledGrammar
    from maskwright.engine.model import LanguageModel
    from maskwright.grammar.plan import Constraint

__all__ = ["Engine"]


class Engine:
    """Generates for any number of requests at a time, each with a constraint, rules and random numbers of its own.

    Requests join and leave at any step. Each has the tokens that :func:`maskwright.generate` gives it alone (in
    float32; narrower types may round differently in other company). Methods may be called from any thread.

    With a thread of its own (``with Engine(model) as engine:``, ``async with``, or :meth:`start`) the engine works
    whenever there is something to do. Without, :meth:`step`, :meth:`run` and ``Handle.result()`` make the steps.

    Args:
        model: the language model; nobody else may use it meanwhile.
        token_budget: the most tokens that a step reads: those of all rows, and of prompts what is left. A prompt that
            is longer is read in several steps, between which the others go on.
        max_rows: the most outputs in the making; others wait, in the order in which they came.

    Raises:
        ValueError: ``max_rows`` below 1, or a budget that is not enough for a token of each row.
        TypeError: an argument of a wrong type.
    """

    def __init__(self, model: LanguageModel, *, token_budget: int = 512, max_rows: int = 32) -> None:
        check_model(model)
        whole("max_rows", max_rows, 1)
        whole("token_budget", token_budget, 1)
        enough = token_budget >= max_rows
        require("token_budget", token_budget, enough, f"at least max_rows, which is {max_rows}")
        self.model = model
        self._scheduler = Scheduler(model, token_budget, max_rows)
        self._stepping = threading.Lock()
        self._news = threading.Condition()
        self._incoming: deque[Job] = deque()
        self._thread: threading.Thread | None = None
        self._closed = self._woken = self._busy = False

    # --- requests

    def submit(
        self,
        prompt: Prompt,
        constraint: Constraint | CompiledGrammar | None = None,
        *,
        partial_strings: bool = False,
        **options: Any,
    ) -> Handle:
        """Asks for one output.

        Everything that can be refused is refused here, before any forward.

        Args:
            prompt: one text or chat.
            constraint: as in :func:`maskwright.generate`.
            partial_strings: as in :func:`maskwright.stream`.
            **options: as in :func:`maskwright.generate`, with ``n`` 1; ``batch_size`` has no meaning here.

        Returns:
            A :class:`Handle`.

        Raises:
            ConstraintError, GenerationError, ValueError, TypeError: as :func:`maskwright.generate`.
            RuntimeError: the engine is closed.
        """
        _check_one(options)
        (handle,) = self._submit(prompt, constraint, partial_strings, options)
        return handle

    async def generate(
        self, prompt: Prompt, constraint: Constraint | CompiledGrammar | None = None, **options: Any
    ) -> Any:
        """:func:`maskwright.generate` of one prompt, beside whatever else the engine works on; starts its thread.

        Cancelling the task ends the outputs within a step.

        Returns:
            A :class:`Result`; a list of ``n`` where ``n > 1``.

        Raises:
            As :meth:`submit`; GenerationError also where a row fails.
        """
        handles = await self._submitted(prompt, constraint, False, options)
        try:
            results: list[Result] = [await handle for handle in handles]
        finally:
            for handle in handles:
                handle.cancel()
        return results if options.get("n", 1) > 1 else results[0]

    async def stream(
        self,
        prompt: Prompt,
        constraint: Constraint | CompiledGrammar | None = None,
        *,
        partial_strings: bool = False,
        **options: Any,
    ) -> AsyncIterator[Chunk]:
        """:func:`maskwright.stream` beside whatever else the engine works on; starts its thread.

        Closing the iterator, or cancelling the task, ends the output within a step.
        """
        _check_one(options)
        (handle,) = await self._submitted(prompt, constraint, partial_strings, options)
        try:
            async with aclosing(handle.__aiter__()) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    yield chunk
        finally:
            handle.cancel()

    async def _submitted(
        self, prompt: Prompt, constraint: Any, partial_strings: bool, options: dict[str, Any]
    ) -> list[Handle]:
        """Submits from a thread, as compiling may take a while; a task that is cancelled meanwhile leaves nothing."""
        task = asyncio.ensure_future(asyncio.to_thread(self._submit, prompt, constraint, partial_strings, options))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_cancel_all)
            raise

    def _submit(self, prompt: Prompt, constraint: Any, partial_strings: bool, options: dict[str, Any]) -> list[Handle]:
        if not is_one_prompt(prompt):
            raise TypeError("an engine takes one prompt at a time; submit each of a list")
        _check_drawn(options)
        started, how = time.perf_counter(), rules(**options)
        compiled = compile_for(self.model, constraint, how.thinking)
        requests = build_requests(self.model, [prompt], [compiled], how)
        manifest = environment(self.model, how.sampling)
        rows = [checked_row(self.model, request, how.sampling, started, how.logprobs) for request in requests]
        handles = [Handle(row, how, manifest, partial_strings, self) for row in rows]
        self._enqueue(
            [Job(row, lambda handle=handle: handle.is_cancelled, handle.moved)  # type: ignore[misc]
             for row, handle in zip(rows, handles, strict=True)]
        )  # fmt: skip
        return handles

    def _enqueue(self, jobs: list[Job]) -> None:
        with self._news:
            if self._closed:
                raise RuntimeError("the engine is closed")
            # Some outputs have ended before they began: those that the constraint leaves no choice.
            self._incoming += [job for job in jobs if job.row.running]
            self._news.notify_all()
        for job in jobs:
            job.moved()

    # --- steps

    def step(self) -> bool:
        """Makes one step; whether anything is left to do."""
        with self._stepping:
            while self._incoming:
                self._scheduler.add(self._incoming.popleft())
            try:
                self._busy = self._scheduler.step()
            except BaseException as error:  # a step that was cut off cannot be gone on with: who waits is told
                self._scheduler.fail(error)
                self._busy = False
                raise
            return self._busy or bool(self._incoming)

    def run(self) -> None:
        """Makes steps until nothing is left to do."""
        while self.step():
            pass

    @property
    def rows(self) -> int:
        """Outputs in the making."""
        return self._scheduler.rows

    @property
    def waiting(self) -> int:
        """Requests whose prompt nobody has begun to read."""
        return self._scheduler.waiting + len(self._incoming)

    @property
    def cached_tokens(self) -> int:
        """Tokens whose keys and values are held for the outputs in the making."""
        return self._scheduler.cached_tokens

    # --- the thread

    def start(self) -> None:
        """Works in a thread from now on; nothing happens where it does already.

        Raises:
            RuntimeError: the engine is closed.
        """
        with self._news:
            if self._closed:
                raise RuntimeError("the engine is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="maskwright-engine", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Ends what is in the making as cancelled, and the thread; requests are refused from now on."""
        with self._news:
            self._closed = True
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join()
        with self._stepping:
            while self._incoming:
                self._scheduler.add(self._incoming.popleft())
            self._scheduler.cancel()

    def wake(self) -> None:
        """Tells the thread that a handle was cancelled."""
        with self._news:
            self._woken = True
            self._news.notify_all()

    def help(self) -> bool:
        """Makes a step for a handle that waits, unless the thread does; whether it was made."""
        if self._thread is not None or self._closed:
            return False
        self.step()
        return True

    def _work(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._busy or self._closed or self._woken or bool(self._incoming))
                self._woken = False
                if self._closed:
                    return
            with suppress(Exception):  # who waits has been told, and the next may do better
                self.step()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)


def _cancel_all(task: asyncio.Task[list[Handle]]) -> None:
    if not task.cancelled() and task.exception() is None:
        for handle in task.result():
            handle.cancel()


def _check_one(options: Mapping[str, Any]) -> None:
    if options.get("n", 1) != 1:
        raise ValueError(f"n is {options['n']}; this asks for one output, and Engine.generate for several")


def _check_drawn(options: Mapping[str, Any]) -> None:
    """Refuses what is more than drawing one token after the other."""
    strategy = options.get("strategy")
    if strategy not in (None, "sample", "greedy"):
        raise TypeError(f"strategy is {strategy!r}; an engine samples or is greedy: pass others to generate()")
    if options.get("lookahead") is not None:
        raise TypeError("an engine has no lookahead: pass it to generate()")
