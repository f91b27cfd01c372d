"""What the core worked out about a vocabulary, kept on disk and mapped: a few milliseconds instead of sixty.

A file of the cache holds an image of the core's tables; its name is made from the vocabulary's fingerprint. The core
finds out, by a key and a checksum inside, whether it is one that it can use; one that it cannot is written anew.
"""

from __future__ import annotations

import contextlib
import mmap
from pathlib import Path

from maskwright._files import cache_directory, write_atomically

__all__ = ["load", "store"]


def load(fingerprint: str) -> mmap.mmap | None:
    """The file kept for a vocabulary, mapped; None where there is none. It may hold anything."""
    place = _place(fingerprint)
    if place is None:
        return None
    try:
        with place.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # missing, or empty
        return None


def store(fingerprint: str, image: bytes) -> None:
    """Keeps an image; where it cannot be written, the next process makes it again."""
    place = _place(fingerprint)
    if place is not None:
        with contextlib.suppress(OSError):
            write_atomically(place, [image])


def _place(fingerprint: str) -> Path | None:
    try:
        return cache_directory() / f"tables-{fingerprint[:24]}.bin"
    except RuntimeError:  # no home
        return None
