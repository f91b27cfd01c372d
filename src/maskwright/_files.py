"""Files that are kept between runs: where they lie, and how they are written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

__all__ = ["cache_directory", "write_atomically"]


def cache_directory() -> Path:
    """``$MASKWRIGHT_CACHE``, by default ``~/.cache/maskwright``; it need not exist.

    Raises:
        RuntimeError: the variable is not set, and the user has no home.
    """
    chosen = os.environ.get("MASKWRIGHT_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "maskwright"


def write_atomically(place: Path, parts: Iterable[bytes]) -> None:
    """Write a file whole or not at all: readers and other writers see the old one or the new one.

    Raises:
        OSError: it cannot be written; the old one, if any, is as it was.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(prefix=place.stem, suffix=".tmp", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        Path(scratch).replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(scratch).unlink()
        raise
