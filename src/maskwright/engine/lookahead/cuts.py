"""Several tokens in one move: a cut through what may follow a place.

From a place on, a constraint that leaves little choice (a key, an enum, a small number) spans a narrow tree of tokens.
Its leaves form a *cut*: every output that goes on from the place passes through exactly one of them. One forward reads
the tree; a leaf is then drawn in proportion to its probability, and the weight of the draw is the mass of all leaves,
P(cut | place). That is exact whatever the cut is, as long as it does not depend on the draw: forced text is the cut
with one leaf, a finite field the cut that holds all of its values, in all their tokenisations. Where a field is larger
than the tree, its remainder is drawn by moves that follow.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from maskwright.engine.request import Guide

__all__ = ["Cut", "Spread", "grow", "spread"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Cut:
    """The inner nodes of a tree behind a place, parents first; node 0 is the place itself.

    Attributes:
        tokens: of each node; -1 for the place.
        parents: index of each node's parent; -1 for the place.
        allowed: ids that may follow each node, ascending. Those that are no inner node are leaves.
        children: per node the inner nodes below it, by token.
    """

    tokens: list[int]
    parents: list[int]
    allowed: list[list[int]]
    children: list[dict[int, int]] = field(default_factory=list)

    def path(self, node: int) -> list[int]:
        """The tokens from the place to a node."""
        found = []
        while node > 0:
            found.append(self.tokens[node])
            node = self.parents[node]
        return found[::-1]


def grow(
    guide: Guide,
    first: list[int],
    left: int,
    ends: frozenset[int],
    texts: Sequence[bytes],
    most: int,
    widest: int,
) -> Cut | None:
    """The cut below a place; None where it is a single step or the place is too wide.

    Args:
        guide: at the place; not changed.
        first: ids allowed there.
        left: tokens left there, EOS included.
        ends: EOS ids.
        texts: bytes of the tokens.
        most: inner nodes at most, the place included.
        widest: only nodes that allow at most so many tokens become inner nodes.
    """
    if len(first) > widest or most < 2:
        return None
    cut = Cut([-1], [-1], [first], [{}])
    # The shallow first; among those of a depth, the long tokens, which tokenizers prefer.
    queue: list[tuple[int, int, int, int]] = []
    guides = {0: guide}
    _push(queue, cut, 0, 1, ends, texts)
    while queue and len(cut.tokens) < most:
        depth, _, token, parent = heapq.heappop(queue)
        below = guides[parent].fork()
        if not below.accept(token):
            raise AssertionError(f"the matcher refuses token {token}, which its own mask allows")
        allowed = _few(below, left - depth, len(texts), widest)
        if allowed is None:
            continue
        node = len(cut.tokens)
        cut.tokens.append(token)
        cut.parents.append(parent)
        cut.allowed.append(allowed)
        cut.children.append({})
        cut.children[parent][token] = node
        guides[node] = below
        _push(queue, cut, node, depth + 1, ends, texts)
    return cut if len(cut.tokens) > 1 else None


def _few(guide: Guide, left: int, size: int, most: int) -> list[int] | None:
    """The tokens that may follow, ascending; None where they are more than some. A wide mask is not listed."""
    words = np.zeros((size + 31) // 32, dtype=np.uint32)
    guide.fill_mask(words, left)
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return None if int(bits.sum(dtype=np.int64)) > most else np.flatnonzero(bits).tolist()


def _push(
    queue: list[tuple[int, int, int, int]],
    cut: Cut,
    node: int,
    depth: int,
    ends: frozenset[int],
    texts: Sequence[bytes],
) -> None:
    for token in cut.allowed[node]:
        if token not in ends:
            heapq.heappush(queue, (depth, -len(texts[token]), token, node))


@dataclass(frozen=True, slots=True)
class Spread:
    """The leaves of a cut with their probabilities.

    Attributes:
        nodes: the inner node above each leaf, shape ``(L,)``.
        tokens: of each leaf.
        log_p: ``log P(leaf | place)``.
        log_mass: log of their sum, the probability of the cut.
        kept: per inner node the log of the mass that its mask keeps.
        steps: per inner node the log-probabilities of the tokens in ``Cut.allowed``.
    """

    nodes: Ints
    tokens: Ints
    log_p: Floats
    log_mass: float
    kept: list[float]
    steps: list[Floats]


def spread(cut: Cut, log_p: Sequence[Floats]) -> Spread:
    """The probabilities of a cut's leaves, given those of the tokens allowed at each of its nodes."""
    above = [0.0] * len(cut.tokens)
    nodes, tokens, found, kept = [], [], [], []
    for node, (allowed, here) in enumerate(zip(cut.allowed, log_p, strict=True)):
        kept.append(log_sum(here))
        for token, step in zip(allowed, here.tolist(), strict=True):
            inner = cut.children[node].get(token)
            if inner is not None:
                above[inner] = above[node] + step
                continue
            nodes.append(node)
            tokens.append(token)
            found.append(above[node] + step)
    leaves = np.array(found)
    return Spread(
        np.array(nodes, dtype=np.int64), np.array(tokens, dtype=np.int64), leaves, log_sum(leaves), kept, list(log_p)
    )


def log_sum(log_p: Floats) -> float:
    """Log of a sum of probabilities; ``-inf`` for none."""
    top = float(log_p.max()) if len(log_p) else -math.inf
    return top + math.log(float(np.exp(log_p - top).sum())) if math.isfinite(top) else -math.inf
