"""Long calls into the core that Ctrl-C, or a cancelled compile, need not wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["interruptible"]

T = TypeVar("T")
_SLICE = 0.02  # seconds between two checks


def interruptible(work: Callable[[], T], check: Callable[[], object] | None = None) -> T:
    """Calls `work`, which lets go of the GIL, so that this thread can be interrupted meanwhile.

    Python handles signals in the main thread, between two of its own instructions; so there the work is done by another
    thread. What that one is doing when the wait ends early is finished and dropped, at the latest before exit.

    Args:
        work: has no effect but its result.
        check: called from time to time; may raise.

    Raises:
        BaseException: whatever `work`, `check` or a signal handler raises.
    """
    if check is None and threading.current_thread() is not threading.main_thread():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # handed on below, whatever it is
            errors.append(error)

    thread = threading.Thread(target=run, name="maskwright-core")
    thread.start()
    while thread.is_alive():
        thread.join(_SLICE)
        if check is not None:
            check()
    if errors:
        raise errors[0]
    return results[0]
