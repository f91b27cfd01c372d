"""Reads the head of a GGUF file: its version, its counts and its metadata.

The format (version 2 and 3, little-endian) is that of ggml's ``docs/gguf.md``. Only what
a file declares is trusted, and only after it has been compared with the size of the
file: a truncated or malformed file raises a :class:`~maskwright.MaskwrightError` that
names the byte.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from maskwright.errors import MaskwrightError

__all__ = ["MAGIC", "GgufReader", "map_file", "read_metadata", "read_preamble"]

MAGIC: Final = b"GGUF"
# Value type -> letter of the struct and array modules.
_SCALARS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_STRUCTS: Final = {code: struct.Struct("<" + letter) for code, letter in _SCALARS.items()}
_LENGTH: Final = _STRUCTS[10]
_BOOL: Final = 7
_STRING: Final = 8
_ARRAY: Final = 9
_MAX_NESTING: Final = 8  # of arrays; real files have one level


def map_file(path: str | os.PathLike[str]) -> memoryview:
    """The bytes of a file, mapped into memory.

    Raises:
        MaskwrightError: it cannot be read.
    """
    shown = os.fspath(path)
    try:
        with Path(shown).open("rb") as opened:
            empty = os.fstat(opened.fileno()).st_size == 0  # which cannot be mapped
            return memoryview(b"" if empty else mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise MaskwrightError(f"cannot read {shown}: {error.strerror}", location="the file") from error


class GgufReader:
    """A cursor over the bytes of a file that refuses to leave them."""

    def __init__(self, data: memoryview, name: str) -> None:
        self.data = data
        self.name = name
        self.offset = 0

    def fail(self, message: str, offset: int | None = None) -> MaskwrightError:
        """The error to raise, at the cursor or at ``offset``."""
        where = self.offset if offset is None else offset
        return MaskwrightError(f"{self.name} is not a usable GGUF file: {message}", location=f"byte {where}")

    def need(self, count: int) -> None:
        """Refuse to go on where fewer bytes than this are left."""
        if count > len(self.data) - self.offset:
            left = len(self.data) - self.offset
            raise self.fail(f"{count} more bytes are announced, {left} are there (truncated?)")

    def scalar(self, code: int) -> int | float:
        """A number of this value type."""
        form = _STRUCTS[code]
        self.need(form.size)
        (value,) = form.unpack_from(self.data, self.offset)
        self.offset += form.size
        return value  # type: ignore[no-any-return]

    def u32(self) -> int:
        """A count or a code."""
        return int(self.scalar(4))

    def u64(self) -> int:
        """A size."""
        return int(self.scalar(10))

    def string(self) -> str:
        """A string with its length before it."""
        return self.strings(1)[0]

    def strings(self, count: int) -> list[str]:
        """That many strings, one after the other."""
        data, offset, end, unpack = self.data, self.offset, len(self.data), _LENGTH.unpack_from
        found = []
        try:
            for _ in range(count):
                start = offset + 8
                offset = start + unpack(data, offset)[0]
                if offset > end:
                    self.offset = start
                    self.need(offset - start)
                found.append(str(data[start:offset], "utf-8"))
        except UnicodeDecodeError:
            raise self.fail("a string is not UTF-8", start) from None
        except struct.error:
            self.offset = offset
            raise self.fail(f"8 more bytes are announced, {end - offset} are there (truncated?)") from None
        self.offset = offset
        return found

    def skip_strings(self, count: int) -> None:
        """Go past that many strings, whatever they hold."""
        data, offset, end, unpack = self.data, self.offset, len(self.data), _LENGTH.unpack_from
        for _ in range(count):
            if offset + 8 > end:
                break
            offset += 8 + unpack(data, offset)[0]
        self.need(offset - self.offset)
        self.offset = offset


def read_preamble(reader: GgufReader) -> tuple[int, int]:
    """The number of tensors and of metadata keys.

    Raises:
        MaskwrightError: the file is not GGUF of version 2 or 3.
    """
    reader.need(len(MAGIC))
    if bytes(reader.data[: len(MAGIC)]) != MAGIC:
        raise reader.fail("it does not begin with 'GGUF'")
    reader.offset = len(MAGIC)
    version = reader.u32()
    if version not in (2, 3):
        hint = " (big-endian files are not read)" if version & 0xFFFF == 0 else ""
        raise reader.fail(f"version {version} is not 2 or 3{hint}", len(MAGIC))
    return reader.u64(), reader.u64()


def read_metadata(reader: GgufReader, count: int, wanted: Callable[[str], bool] | None = None) -> dict[str, Any]:
    """Keys and values; the cursor then stands at the first tensor.

    Args:
        reader: stands behind the preamble.
        count: of keys.
        wanted: which lists are worth reading; the others are gone past and left out.

    Raises:
        MaskwrightError: the file is malformed.
    """
    metadata: dict[str, Any] = {}
    for _ in range(count):
        start = reader.offset
        key = reader.string()
        if key in metadata:
            raise reader.fail(f"the key {key!r} occurs twice", start)
        code = reader.u32()
        if code == _ARRAY and wanted is not None and not wanted(key):
            _skip_array(reader)
        else:
            metadata[key] = _read_value(reader, code, 0)
    return metadata


def _skip_array(reader: GgufReader) -> None:
    start = reader.offset
    code, count = reader.u32(), reader.u64()
    if code == _STRING:
        reader.skip_strings(count)
    elif code in _SCALARS:
        reader.need(count * _STRUCTS[code].size)
        reader.offset += count * _STRUCTS[code].size
    else:
        reader.offset = start
        _read_array(reader, 0)


def _read_value(reader: GgufReader, code: int, depth: int) -> Any:
    if code == _STRING:
        return reader.string()
    if code == _ARRAY:
        return _read_array(reader, depth)
    if code not in _SCALARS:
        raise reader.fail(f"unknown value type {code}")
    value = reader.scalar(code)
    return bool(value) if code == _BOOL else value


def _read_array(reader: GgufReader, depth: int) -> list[Any]:
    if depth >= _MAX_NESTING:
        raise reader.fail(f"arrays nested deeper than {_MAX_NESTING}")
    code, count = reader.u32(), reader.u64()
    if code not in _SCALARS:
        # An element takes at least its length or header, so that a forged count cannot
        # make this loop outlast the file.
        reader.need(8 * count)
        if code == _STRING:
            return reader.strings(count)
        return [_read_value(reader, code, depth + 1) for _ in range(count)]
    size = count * _STRUCTS[code].size
    reader.need(size)
    values = array(_SCALARS[code])
    values.frombytes(reader.data[reader.offset : reader.offset + size])
    if sys.byteorder == "big":
        values.byteswap()
    reader.offset += size
    return [bool(value) for value in values] if code == _BOOL else values.tolist()
