"""Rows of bits, one for each token: bit i of word w is token 32 * w + i."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Words", "bits", "only_bit"]

Words = npt.NDArray[np.uint32]


def bits(ids: Sequence[int], size: int) -> Words:
    """A bitset row of ``ceil(size / 32)`` words with these ids set."""
    row = np.zeros((size + 31) // 32, dtype=np.uint32)
    for i in ids:
        row[i >> 5] |= np.uint32(1 << (i & 31))
    return row


def only_bit(row: Words) -> int | None:
    """The one id that a bitset row holds; None if it holds none or several."""
    words = np.flatnonzero(row)
    if len(words) != 1:
        return None
    word = int(row[words[0]])
    return None if word & (word - 1) else int(words[0]) * 32 + word.bit_length() - 1
