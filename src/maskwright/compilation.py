"""Many compiles at once, and compiles for asyncio."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from typing import Literal, overload

from maskwright.compiler import CompiledGrammar, cached, compile
from maskwright.errors import ConstraintError, LimitError
from maskwright.grammar.plan import Cancel, CompileLimits, Constraint
from maskwright.vocabulary import Vocabulary

__all__ = ["acompile", "compile_many"]

_LONG = 100  # constraints from which on a progress bar is shown
_THREADS = 2

_Outcome = CompiledGrammar | ConstraintError
_Outcomes = Generator[_Outcome, None, None]
_CompileOne = Callable[[Constraint, Cancel], _Outcome]


class _AnyOf:
    """Set once the caller's own event is, or ours."""

    def __init__(self, theirs: Cancel | None) -> None:
        self._theirs = theirs
        self._ours = threading.Event()

    def set(self) -> None:
        self._ours.set()

    def is_set(self) -> bool:
        return self._ours.is_set() or (self._theirs is not None and self._theirs.is_set())


@overload
def compile_many(
    constraints: Iterable[Constraint],
    vocabulary: Vocabulary,
    limits: CompileLimits | None = None,
    cancel: Cancel | None = None,
    banned_ids: Sequence[int] = (),
    *,
    errors: Literal["raise"] = "raise",
    threads: int | None = None,
    progress: bool | None = None,
) -> list[CompiledGrammar]: ...


@overload
def compile_many(
    constraints: Iterable[Constraint],
    vocabulary: Vocabulary,
    limits: CompileLimits | None = None,
    cancel: Cancel | None = None,
    banned_ids: Sequence[int] = (),
    *,
    errors: Literal["collect"],
    threads: int | None = None,
    progress: bool | None = None,
) -> list[CompiledGrammar | ConstraintError]: ...


def compile_many(
    constraints: Iterable[Constraint],
    vocabulary: Vocabulary,
    limits: CompileLimits | None = None,
    cancel: Cancel | None = None,
    banned_ids: Sequence[int] = (),
    *,
    errors: Literal["raise", "collect"] = "raise",
    threads: int | None = None,
    progress: bool | None = None,
) -> list[CompiledGrammar] | list[CompiledGrammar | ConstraintError]:
    """Compiles constraints for one vocabulary; equal ones once.

    Args:
        constraints: what to compile.
        vocabulary: the tokens of the model.
        limits: of each compile.
        cancel: anything with `is_set()`; ends the whole call with a LimitError.
        banned_ids: token ids that must never be produced.
        errors: "raise": the error of the first constraint that has one ends the call, its message says which it was;
            "collect": such errors stand in the list, in place of what could not be compiled.
        threads: compiles at the same time, by default 2. Most of a compile is Python, one thread at a time: more
            threads help where it takes long to decide whether patterns contradict each other.
        progress: show a bar on standard error; by default for 100 or more constraints, if that is a terminal.

    Returns:
        The compiled grammars, in the order of the constraints.

    Raises:
        ConstraintError: see `errors`. Of several constraints that have one, the first counts, whichever thread was
            faster.
        LimitError: the call was cancelled.
        VocabularyError: as `compile`.
        TypeError: an item is no constraint; nothing was compiled then.
    """
    items = _checked(constraints, errors, threads)
    unique = list(dict.fromkeys(items))
    done: dict[Constraint, CompiledGrammar | ConstraintError] = {}

    def compile_one(constraint: Constraint, stop: Cancel) -> CompiledGrammar | ConstraintError:
        try:
            return compile(constraint, vocabulary, limits, stop, banned_ids)
        except ConstraintError as error:
            return error

    outcomes = _outcomes(unique, compile_one, min(threads or _THREADS, len(unique)), _AnyOf(cancel))
    with closing(outcomes), _bar(len(unique), progress) as advance:
        for item, made in zip(unique, outcomes, strict=True):
            if cancel is not None and cancel.is_set():
                raise LimitError("the compile was cancelled", location=f"constraint {items.index(item)}")
            if isinstance(made, ConstraintError) and errors == "raise":
                made.message = f"constraint {items.index(item)}: {made.message}"
                raise made
            done[item] = made
            advance()
    return [done[item] for item in items]


def _checked(constraints: Iterable[Constraint], errors: str, threads: int | None) -> list[Constraint]:
    if errors not in ("raise", "collect"):
        raise ValueError(f"errors is 'raise' or 'collect', not {errors!r}")
    if threads is not None and threads < 1:
        raise ValueError(f"threads is positive, not {threads}")
    items = list(constraints)
    for at, item in enumerate(items):
        if not isinstance(item, Constraint):
            raise TypeError(f"constraint {at} is a Regex, Choice, JsonSchema, ..., not {type(item).__name__}")
    return items


def _outcomes(items: list[Constraint], compile_one: _CompileOne, threads: int, stop: _AnyOf) -> _Outcomes:
    """The outcomes in the order of the items; what is left is stopped when the caller has enough."""
    if threads <= 1:  # in this thread, where Ctrl-C comes through of itself
        yield from (compile_one(item, stop) for item in items)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="maskwright-compile")
    try:
        for future in [pool.submit(compile_one, item, stop) for item in items]:
            yield future.result()
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _bar(total: int, progress: bool | None) -> Iterator[Callable[[], object]]:
    """What to call after each of `total` steps."""
    if progress is None:
        progress = total >= _LONG and sys.stderr is not None and sys.stderr.isatty()
    if not progress:
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(total=total, desc="compile", unit="") as bar:
        yield bar.update


async def acompile(
    constraint: Constraint,
    vocabulary: Vocabulary,
    limits: CompileLimits | None = None,
    cancel: Cancel | None = None,
    banned_ids: Sequence[int] = (),
) -> CompiledGrammar:
    """`compile` for asyncio: in another thread, so that the event loop goes on.

    Cancelling the task ends the compile too. Arguments and errors are those of `compile`.
    """
    limits = limits or CompileLimits()
    found = cached(constraint, vocabulary, limits, banned_ids)
    if found is not None:
        return found
    stop = _AnyOf(cancel)
    work = partial(compile, constraint, vocabulary, limits, stop, banned_ids)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, work)
    except asyncio.CancelledError:
        stop.set()
        raise
