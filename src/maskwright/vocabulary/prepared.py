"""Vocabularies kept on disk, so that a tokenizer's own files are read once.

A file of the cache holds the tokens, whether an id is there and whether it is special,
and the declared end-of-text ids. Its name is made from the path of the tokenizer; inside
stand the size and time of all files that were consulted, and a digest of everything. A
file that is damaged, of another release or another tokenizer, or out of date is as good
as none: it is written anew. A cache that cannot be written costs time, nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import struct
import sys
import time
from array import array
from dataclasses import dataclass
from pathlib import Path

from maskwright._files import cache_directory, write_atomically
from maskwright.errors import VocabularyError
from maskwright.vocabulary.paths import CONSULTED
from maskwright.vocabulary.source import Source
from maskwright.vocabulary.sources import read_source
from maskwright.vocabulary.token_bytes import TokenBytes, little_endian

__all__ = ["Prepared", "read_prepared"]

# Raised whenever a tokenizer is read differently or the layout below changes.
_FORMAT = b"maskwright prepared vocabulary 1\n"
_HEAD = struct.Struct("<32sIII")  # key, number of tokens, of end-of-text ids, of bytes
_DIGEST = hashlib.sha256
_PRESENT, _SPECIAL = 1, 2  # flags of a token
_SETTLED_NS = 2_000_000_000  # a younger file may change again without a new time stamp


@dataclass
class Prepared:
    """A vocabulary before it is known which tokens the caller wants to be special or to end a text.

    Attributes:
        tokens: the bytes of all tokens.
        present: by id, true where there is such a token.
        special: the ids that never match text.
        eos_ids: what ends a text; empty where nothing usable is declared.
        source: what was read, or None for a vocabulary from the cache.
        path: where from.
        is_lasting: it lies in the cache, so that the next process will read the same.
    """

    tokens: TokenBytes
    present: bytes
    special: set[int]
    eos_ids: list[int]
    source: Source | None
    path: object
    is_lasting: bool = False

    def need_eos(self) -> list[int]:
        """The declared ids.

        Raises:
            VocabularyError: none is declared, or one that does not exist.
        """
        if self.eos_ids:
            return self.eos_ids
        # The error names a likely token; that takes the tokenizer itself.
        return (self.source or read_source(self.path)).need_eos()


def read_prepared(tokenizer: object) -> Prepared:
    """Read any supported tokenizer; one at a path, from the cache if it has it.

    Raises:
        VocabularyError: see :func:`read_source`.
        TypeError: see :func:`read_source`.
    """
    if not isinstance(tokenizer, (str, os.PathLike)):
        return _prepare(tokenizer)
    path = Path(tokenizer)
    place = _place(path)
    stamp = _stamp(path)
    if place is None or stamp is None:
        return _prepare(tokenizer)
    found = _load(place, stamp.key)
    if found is None:
        found = _prepare(tokenizer)
        if stamp.newest < time.time_ns() - _SETTLED_NS and stamp == _stamp(path):
            found.is_lasting = _store(place, stamp.key, found)
    else:
        found.is_lasting = True
    found.path = path
    return found


def _prepare(tokenizer: object) -> Prepared:
    source = read_source(tokenizer)
    table = source.table
    eos_ids: list[int] = []
    with contextlib.suppress(VocabularyError):  # for need_eos, if it is asked
        eos_ids = source.need_eos()
    return Prepared(TokenBytes.join(table.tokens), bytes(table.present), table.special, eos_ids, source, tokenizer)


@dataclass(frozen=True)
class _Stamp:
    """What the files of a tokenizer looked like."""

    key: bytes
    newest: int  # in nanoseconds


def _stamp(path: Path) -> _Stamp | None:
    """None where the path does not name a file or folder."""
    try:
        where = str(path.absolute())
        folder = path if path.is_dir() else path.parent
        looked = [(name, _size_and_time(folder / name)) for name in CONSULTED]
        looked.append((".", None if path.is_dir() else _size_and_time(path)))
    except (OSError, ValueError):
        return None
    if not path.exists():
        return None
    newest = max((found[1] for _, found in looked if found), default=0)
    return _Stamp(_DIGEST(_FORMAT + repr((where, looked)).encode(errors="surrogateescape")).digest(), newest)


def _size_and_time(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def _place(path: Path) -> Path | None:
    try:
        name = _DIGEST(str(path.absolute()).encode(errors="surrogateescape")).hexdigest()[:24]
        return cache_directory() / f"vocabulary-{name}.bin"
    except (OSError, RuntimeError, ValueError):  # no current folder, no home, a NUL in the path
        return None


def _store(place: Path, key: bytes, prepared: Prepared) -> bool:
    """Whether it could be written."""
    tokens = prepared.tokens
    flags = bytearray(prepared.present)
    for i in prepared.special:
        if i < len(flags):
            flags[i] |= _SPECIAL
    parts = [
        _FORMAT,
        _HEAD.pack(key, len(flags), len(prepared.eos_ids), len(tokens.blob)),
        little_endian(array("I", prepared.eos_ids)),
        little_endian(tokens.lengths),
        bytes(flags),
        tokens.blob,
    ]
    try:
        write_atomically(place, [*parts, _digest(b"".join(parts))])
    except OSError:
        return False
    return True


def _load(place: Path, key: bytes) -> Prepared | None:
    """What a file of the cache holds; None where it is missing, damaged or not for this key."""
    try:
        data = place.read_bytes()
    except OSError:
        return None
    start, end = len(_FORMAT) + _HEAD.size, len(data) - _DIGEST().digest_size
    if start > end or not data.startswith(_FORMAT) or _digest(memoryview(data)[:end]) != data[end:]:
        return None
    made_for, size, eos_count, blob_size = _HEAD.unpack_from(data, len(_FORMAT))
    if made_for != key or start + 4 * eos_count + 5 * size + blob_size != end:
        return None
    lengths = start + 4 * eos_count
    flags = data[lengths + 4 * size : lengths + 5 * size]
    return Prepared(
        TokenBytes(data[lengths + 5 * size : end], _numbers(data[lengths : lengths + 4 * size])),
        flags.translate(_IS_PRESENT),
        {found.start() for found in _SPECIALS.finditer(flags)},
        _numbers(data[start:lengths]).tolist(),
        None,
        None,
    )


_IS_PRESENT = bytes(flag & _PRESENT for flag in range(256))
_SPECIALS = re.compile(b"[" + bytes(flag for flag in range(4) if flag & _SPECIAL) + b"]")


def _digest(data: bytes | memoryview) -> bytes:
    return _DIGEST(data).digest()


def _numbers(data: bytes) -> array[int]:
    numbers = array("I", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
