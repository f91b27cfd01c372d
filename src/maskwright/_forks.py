"""A fork waits until no other thread is importing a module of this package.

CPython keeps a lock per module while it is imported, and a forked child inherits those that other threads hold: an
import of the same module would wait there for ever. Names of this package are imported on first use, so that a thread
may be at it at any time. (The locks of the core are the business of the core.)
"""

from __future__ import annotations

import importlib
import os
import threading
import time

__all__ = ["install"]

_LONGEST = 10.0  # seconds; against an import that itself waits for the forking thread
_PAUSE = 0.001


def install() -> None:
    """Makes os.fork(), where there is one, wait."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_wait_for_imports)


def _wait_for_imports() -> None:
    """Returns once no other thread imports from this package, or after ten seconds."""
    end = time.monotonic() + _LONGEST
    while _is_importing_elsewhere() and time.monotonic() < end:
        time.sleep(_PAUSE)


def _is_importing_elsewhere() -> bool:
    # Not public; where it is missing or other than here (3.10 to 3.14), nothing is waited for.
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    me = threading.get_ident()
    for name, reference in list(locks.items()):
        lock = reference()
        if name.startswith("maskwright.") and getattr(lock, "owner", None) not in (None, me):
            return True
    return False
