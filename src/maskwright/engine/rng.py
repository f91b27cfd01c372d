"""Random numbers by address: a draw depends on (seed, request, position) and on nothing that ran before it.

The generator is Philox 4x64-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
a keyed bijection of a counter. The key is a hash of the seed, the counter holds request, position and token id. A
request draws the same tokens alone, in a batch, in any order and after any neighbour left, and no state must be saved
to repeat one of its steps.

Tokens are drawn by the Gumbel-max rule (argmax of log p + noise, one noise value per token id). The noise of an id
does not depend on which other ids are allowed, so that a mask changes a draw only where it forbids the winner.
"""

from __future__ import annotations

import hashlib
import operator
import secrets
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["Stream", "derive", "fresh_seed"]

_WORD = (1 << 64) - 1


def fresh_seed() -> int:
    """A seed from the operating system (63 bits), for requests that were given none; results record it."""
    return secrets.randbits(63)


def derive(seed: int, index: int) -> int:
    """The seed of sample ``index`` of a request for several; sample 0 has the request's own seed.

    Args:
        seed: the seed of the request.
        index: which of its ``n`` samples.

    Returns:
        ``seed`` for index 0, else 63 bits that depend on both.
    """
    if index == 0:
        return seed
    digest = hashlib.blake2b(f"{seed}/{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


@dataclass(frozen=True)
class Stream:
    """The random numbers of one request.

    Attributes:
        seed: any integer.
        request: index of the request among those that share the seed.
        channel: what for: 0 for the draws of outputs; others are independent of them.
    """

    seed: int
    request: int = 0
    channel: int = 0

    @cached_property
    def _key(self) -> npt.NDArray[np.uint64]:
        digest = hashlib.blake2b(str(operator.index(self.seed)).encode(), digest_size=16).digest()
        return np.frombuffer(digest, dtype="<u8").astype(np.uint64)

    def uniforms(self, position: int, count: int) -> npt.NDArray[np.float64]:
        """Numbers strictly between 0 and 1, for the ids ``0 .. count - 1`` at a position of the output.

        Args:
            position: index of the token to draw.
            count: how many numbers; entry ``i`` does not depend on it.

        Returns:
            float64 array of shape ``(count,)``.
        """
        # The lowest word counts blocks of four numbers, so streams of different addresses never overlap.
        address = [0, self.channel, position & _WORD, self.request & _WORD]
        counter = np.array(address, dtype=np.uint64)
        raw = np.random.Philox(key=self._key, counter=counter).random_raw(count)
        # 52 bits and a half: neither 0 nor 1 can come out, whose logarithms are infinite or zero.
        uniform: npt.NDArray[np.float64] = ((raw >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        return uniform

    def gumbels(self, position: int, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Standard Gumbel noise of some token ids at a position of the output.

        Args:
            position: index of the token to draw.
            ids: token ids, shape ``(k,)``.

        Returns:
            float64 array of shape ``(k,)``, finite.
        """
        if len(ids) == 0:
            return np.zeros(0)
        noise: npt.NDArray[np.float64] = -np.log(-np.log(self.uniforms(position, int(ids.max()) + 1)[ids]))
        return noise
