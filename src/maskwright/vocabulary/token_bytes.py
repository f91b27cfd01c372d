"""The bytes of all tokens in one piece: what the core takes, and what is kept on disk."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate

__all__ = ["TokenBytes", "little_endian"]


class TokenBytes:
    """All tokens one after the other. Immutable.

    Attributes:
        blob: the bytes of token 0, then those of token 1, and so on.
        lengths: how many bytes each token has, 32 bits each.
    """

    __slots__ = ("_offsets", "blob", "lengths")

    def __init__(self, blob: bytes, lengths: array[int]) -> None:
        self.blob = blob
        self.lengths = lengths
        self._offsets: array[int] | None = None

    @classmethod
    def join(cls, tokens: Sequence[bytes]) -> TokenBytes:
        """From the bytes of each token."""
        return cls(b"".join(tokens), array("I", map(len, tokens)))

    @property
    def offsets(self) -> array[int]:
        """Where each token begins, and where the last one ends; 32 bits each."""
        if self._offsets is None:
            self._offsets = array("I", accumulate(self.lengths, initial=0))
        return self._offsets

    def split(self) -> tuple[bytes, ...]:
        """The bytes of each token."""
        offsets = self.offsets
        return tuple(map(self.blob.__getitem__, map(slice, offsets, offsets[1:])))


def little_endian(numbers: array[int]) -> bytes:
    """The numbers as bytes, least significant first."""
    if sys.byteorder == "little":
        return numbers.tobytes()
    swapped = numbers[:]
    swapped.byteswap()
    return swapped.tobytes()
