"""Files that are kept between runs: where they lie, and how they are written."""

from __future__ import annotations

import contextlib
import os
import secrets
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
    scratch = place.parent / f".{secrets.token_hex(8)}.tmp"  # mkstemp's would be for the user's eyes only
    try:
        with scratch.open("xb") as file:
            file.writelines(parts)
        scratch.replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise
