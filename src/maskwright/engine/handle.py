"""What a caller holds of a request that an engine works on."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from maskwright.engine.outcome import outcome, with_results
from maskwright.engine.progress import Chunker
from maskwright.engine.result import Chunk, Result
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from maskwright.engine.requests import Rules
    from maskwright.engine.row import Row

__all__ = ["Handle"]


class _Driver(Protocol):
    """What a handle asks of its engine."""

    def start(self) -> None: ...
    def wake(self) -> None: ...
    def help(self) -> bool: ...


class Handle:
    """One output that is being generated.

    A handle is a future (``result()``, or ``await``), an iterator of :class:`Chunk` (``for`` or ``async for``; what was
    generated before comes in one piece), and the way to cancel. Iterators of one handle share its chunks.

    Args:
        row: not to be touched by anybody but the engine until it has ended.
        how: the rules of the call.
        manifest: of the result.
        partial_strings: as in :func:`maskwright.stream`.
        engine: who generates.
    """

    def __init__(
        self, row: Row, how: Rules, manifest: Mapping[str, Any], partial_strings: bool, engine: _Driver
    ) -> None:
        self._row = row
        self._how = how
        self._manifest = manifest
        self._engine = engine
        self._future: Future[Result] = Future()
        self._future.set_running_or_notify_cancel()  # cancelling is for cancel() alone
        self._changed = threading.Condition()
        self._chunker = Chunker(row, partial_strings, how.thinking is not None)
        self._streamed = False
        self._chunks: list[Chunk] = []
        self._listeners: list[Callable[[], None]] = []
        self._cancelled = False

    # --- for callers

    @property
    def done(self) -> bool:
        """Whether the output has ended."""
        return self._future.done()

    def cancel(self) -> None:
        """Ends the output as it is, before the next step; its result has the finish_reason ``cancelled``."""
        self._cancelled = True
        self._engine.wake()

    def result(self, timeout: float | None = None) -> Result:
        """Waits for the result; where the engine does not run in a thread of its own, steps are made here.

        Args:
            timeout: seconds; None for no end. A step that was begun here is brought to its end.

        Raises:
            GenerationError: the row failed; ``.result`` is what there is of it.
            TimeoutError: it took longer.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not self.done and time.monotonic() < end and self._engine.help():
            pass
        return self._future.result(None if timeout is None else max(0.0, end - time.monotonic()))

    def __await__(self) -> Generator[Any, None, Result]:
        """The result, for asyncio; starts the engine's thread."""
        self._engine.start()
        return asyncio.wrap_future(self._future).__await__()

    def __iter__(self) -> Iterator[Chunk]:
        """The output piece by piece; the last chunk carries the result."""
        self._open()
        at = 0
        while True:
            with self._changed:
                new = self._chunks[at:]
                if not new and self.done:
                    break
            at += len(new)
            yield from new
            if not new and not self._engine.help():
                self._wait(at)
        self._future.result()

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        """The same for asyncio; starts the engine's thread."""
        self._open()
        self._engine.start()
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        at = 0

        def listener() -> None:
            loop.call_soon_threadsafe(news.set)

        with self._changed:
            self._listeners.append(listener)
        try:
            while True:
                news.clear()
                with self._changed:
                    new = self._chunks[at:]
                    if not new and self.done:
                        break
                at += len(new)
                for chunk in new:
                    yield chunk
                if not new:
                    await news.wait()
        finally:
            with self._changed:
                self._listeners.remove(listener)
        self._future.result()

    # --- for the engine

    @property
    def is_cancelled(self) -> bool:
        """Whether anybody wants no more of it."""
        return self._cancelled or self._how.cancelled()

    def moved(self) -> None:
        """Takes what a step has added to the row; ends with it."""
        row = self._row
        with self._changed:
            if self.done:
                return
            if row.running or (row.owes and row.finish_reason != "cancelled"):
                self._push(self._chunker.take() if self._streamed else None)
                return
            self._finish()

    # --- inside

    def _finish(self) -> None:
        try:
            out = outcome(self._row, self._manifest, self._how)
        except Exception as error:  # whatever a caller's types raise
            failure = GenerationError(f"the value of the output could not be made: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._future.set_exception(failure)
        else:
            if out.error is not None:
                self._future.set_exception(with_results(out.error, out, [out]))
            else:
                self._future.set_result(out.result)
                if self._streamed:
                    self._chunks.append(self._chunker.last(out.result))
        self._tell()

    def _open(self) -> None:
        with self._changed:
            if not self._streamed and self.done and self._future.exception() is None:
                self._chunks.append(self._chunker.last(self._future.result()))
            self._streamed = True

    def _push(self, chunk: Chunk | None) -> None:
        if chunk is not None:
            self._chunks.append(chunk)
            self._tell()

    def _tell(self) -> None:
        self._changed.notify_all()
        for listener in self._listeners:
            try:
                listener()
            except RuntimeError:  # its loop is closed: nobody listens any more
                continue

    def _wait(self, at: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._chunks) > at or self.done)
