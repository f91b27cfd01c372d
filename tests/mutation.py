"""Damaged files, for readers that must survive them."""

from __future__ import annotations

import random


def mutated(data: bytes, choose: random.Random) -> bytes:
    """The data with one or two bytes, bits or stretches changed, cut off or repeated."""
    changed = bytearray(data)
    for _ in range(choose.randint(1, 2)):
        at = choose.randrange(len(changed))
        kind = choose.randrange(5)
        if kind == 0:
            changed[at] = choose.randrange(256)
        elif kind == 1:
            changed[at] ^= 1 << choose.randrange(8)
        elif kind == 2:
            changed[at : at + choose.randint(1, 9)] = choose.choice([b"", b"\xff" * 8, b"\0" * 8, changed[:9]])
        elif kind == 3:
            del changed[max(at, 4) :]
        else:
            changed[at:at] = changed[at : at + choose.randint(1, 30)]
    return bytes(changed)
