"""Exact samples by a race: the first valid output to arrive is one from the model conditioned on the constraint.

Give every sequence ``x`` of tokens a clock of rate ``P(x)``. The first to ring among the valid ones is ``x`` with
probability ``P(x) / Z``, the next is a sample without replacement, and so on. The race is run from the top: the first
to ring below a prefix ``u`` rings at a time ``T(u)``; one of its children ``ut``, drawn by ``p``, has the same time,
and those of the others follow by the clocks of what is left. Beginnings that no valid output has are dropped as soon as
they ring, which costs nothing. The prefix with the least time is looked at next, and needs one distribution if it has
not been looked at before. Random numbers are keyed by prefix, so that neither the number of prefixes that share a
forward nor what is known already changes a sample. Times are kept as logarithms.

Sources: the race is the top-down sampling of Gumbel maxima (Maddison, Tarlow and Minka, "A* sampling", NIPS 2014; Kool,
van Hoof and Welling, "Stochastic beams and where to find them", ICML 2019, arXiv:1903.06059) with minus the log of a
time for a Gumbel; that dropping what is invalid leaves the law exact is rejection sampling with a growing set of known
rejects (arXiv:2510.01902).
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from maskwright.engine.lookahead.base import Base
    from maskwright.engine.lookahead.reader import Reader
    from maskwright.engine.lookahead.trie import Node, Trie
    from maskwright.engine.rng import Stream

__all__ = ["Arrivals", "ByMass", "Children", "Drafter", "Leaf", "OutOfBudget", "Race", "Search"]

Drafter = Callable[["Node"], Sequence[int]]
_REBASE = 1e-3


class OutOfBudget(Exception):
    """A search made all the forwards that it was allowed."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A valid output: a prefix and the EOS that ends it."""

    node: Node
    token: int

    def output(self) -> list[int]:
        """Its tokens, the EOS included."""
        return [*self.node.output(), self.token]

    @property
    def logprob(self) -> float:
        """Log of its probability."""
        return self.node.log_path + self.node.logp_of(self.token)


class Children(Protocol):
    """Gives the children of a known node one by one, with priorities that do not fall."""

    def next(self) -> tuple[float, int] | None:
        """The priority of the next child and its index in ``ids``; None after the last."""


class Race:
    """The children of a node in the order in which their clocks ring.

    Args:
        node: known.
        time: log of when the first of them rings.
        stream: the random numbers; those of this node are at the address of its prefix.
        invalid: gets the time when what is not allowed here rings.
    """

    def __init__(self, node: Node, time: float, stream: Stream, invalid: list[float] | None = None) -> None:
        self._node, self._time, self._stream = node, time, stream
        self._times = [] if invalid is None else invalid
        self._invalid = -math.expm1(node.log_mass) if node.log_mass < 0 else 0.0
        self._noise = stream.uniforms(node.key, 12)
        self._round = 0
        self._gone: list[int] = []  # given since the last rebase, ascending
        self._all_gone: list[int] = []
        self._empty = node.dead or not len(node.ids) or node.log_mass == -math.inf
        if not self._empty:
            self._cumulative, self._unit = node.cumulative()
            self._left = self._start = float(self._cumulative[-1])

    def next(self) -> tuple[float, int] | None:
        """See `Children`."""
        while not self._empty:
            wait, kind, which = self._uniforms()
            valid = self._unit + math.log(self._left)
            invalid = math.log(self._invalid) if self._invalid > 0 else -math.inf
            rate = float(np.logaddexp(valid, invalid))
            if self._round > 1:
                ring = math.log(-math.log(wait)) - rate - self._node.log_path
                self._time = float(np.logaddexp(self._time, ring))
            if kind < math.exp(invalid - rate):
                self._invalid = 0.0
                self._times.append(self._time)
                continue
            return self._time, self._take(which)
        return None

    def _uniforms(self) -> tuple[float, float, float]:
        at, self._round = 3 * self._round, self._round + 1
        if at + 3 > len(self._noise):
            self._noise = self._stream.uniforms(self._node.key, 4 * len(self._noise))
        return float(self._noise[at]), float(self._noise[at + 1]), float(self._noise[at + 2])

    def _take(self, uniform: float) -> int:
        """Draws one of the tokens that are left, and removes it."""
        mass, sums = uniform * self._left, self._cumulative
        for index in self._gone:
            before = float(sums[index - 1]) if index else 0.0
            if mass < before:
                break
            mass += float(sums[index]) - before
        index = min(int(np.searchsorted(sums, mass, side="right")), len(sums) - 1)
        if index in self._gone or self._width(index) <= 0:  # rounding at the border of two tokens
            index = next(
                i for i in [*range(index - 1, -1, -1), *range(index + 1, len(sums))]
                if i not in self._gone and self._width(i) > 0
            )  # fmt: skip
        insort(self._gone, index)
        self._all_gone.append(index)
        self._left -= self._width(index)
        if self._left < _REBASE * self._start or len(self._gone) > 64:
            self._rebase()
        return index

    def _width(self, index: int) -> float:
        return float(self._cumulative[index] - (self._cumulative[index - 1] if index else 0.0))

    def _rebase(self) -> None:
        """Sums what is left anew, in a unit of its own size: differences of sums have lost their digits."""
        assert self._node.logp is not None
        logp = self._node.logp.copy()
        logp[self._all_gone] = -math.inf
        self._unit = float(logp.max())
        self._empty = self._unit == -math.inf
        if not self._empty:
            self._cumulative = np.cumsum(np.exp(logp - self._unit))
            self._gone, self._left = [], float(self._cumulative[-1])
            self._start = self._left


class ByMass:
    """The children of a node, the most probable first; priorities are minus the log of their probability."""

    def __init__(self, node: Node, time: float = 0.0) -> None:
        assert node.logp is not None
        self._node, self._logp = node, node.logp
        self._order = self._largest(64)
        self._at = 0

    def _largest(self, n: int) -> npt.NDArray[np.int64]:
        least = len(self._logp) - min(n, len(self._logp))
        top = np.argpartition(self._logp, least)[least:] if least else np.arange(len(self._logp))
        # Equal ones by id: which of them argpartition takes is nobody's promise.
        if least:
            top = np.flatnonzero(self._logp >= self._logp[top].min())
        order: npt.NDArray[np.int64] = top[np.argsort(-self._logp[top], kind="stable")]
        return order

    def next(self) -> tuple[float, int] | None:
        """See `Children`."""
        if self._at == len(self._order) < len(self._logp):
            self._order = self._largest(len(self._logp))
        if self._at == len(self._order):
            return None
        index = int(self._order[self._at])
        self._at += 1
        logp = float(self._logp[index])
        return None if logp == -math.inf else (-(self._node.log_path + logp), index)


Arrivals = Callable[["Node", float], Children]


@dataclass(order=True, slots=True)
class _Entry:
    time: float
    order: int
    node: Node = field(compare=False)
    index: int = field(compare=False)
    siblings: Children | None = field(compare=False)  # None once the next sibling is in the queue too


class Search:
    """Valid outputs one after the other, in the order of their priorities.

    Args:
        base: the law.
        trie: what is known of it.
        reader: asks the model.
        arrivals: the order of a node's children: a `Race` for samples, `ByMass` for the most probable.
        frontier: how many prefixes share a forward.
        drafter: tokens that are likely to follow a prefix; they are read with it.

    Attributes:
        time: priority of the last output.
    """

    def __init__(
        self,
        base: Base,
        trie: Trie,
        reader: Reader,
        arrivals: Arrivals,
        frontier: int = 1,
        drafter: Drafter | None = None,
    ) -> None:
        self._base, self._trie, self._reader = base, trie, reader
        self._arrivals, self._frontier, self._drafter = arrivals, frontier, drafter
        self._heap: list[_Entry] = []
        self._order = count()
        self._begun = False
        self.time = 0.0

    def next(self, may_read: Callable[[], bool] = lambda: True) -> Leaf | None:
        """The next valid output; None where there is no further one.

        Args:
            may_read: asked before every forward.

        Raises:
            OutOfBudget: it said no; the search can be gone on with.
        """
        self._begin(may_read)
        while True:
            unknown = self._advance()
            if not unknown:
                return self._pop()
            self._read(unknown, may_read)

    def step(self, may_read: Callable[[], bool]) -> bool:
        """One forward, or one output passed by; False where nothing is left."""
        self._begin(may_read)
        unknown = self._advance()
        if unknown:
            self._read(unknown, may_read)
        return bool(unknown) or self._pop() is not None

    def _pop(self) -> Leaf | None:
        if not self._heap:
            return None
        top = heapq.heappop(self._heap)
        self._follow(top)
        self.time = top.time
        return Leaf(top.node, int(top.node.ids[top.index]))

    def _begin(self, may_read: Callable[[], bool]) -> None:
        root = self._trie.root
        if not root.known and not root.dead:
            self._read([root], may_read)
        if not self._begun and not root.dead:
            self._enter(root, 0.0)
        self._begun = True

    def _read(self, nodes: Sequence[Node], may_read: Callable[[], bool]) -> None:
        if not may_read():
            raise OutOfBudget
        drafts = self._drafts(nodes[0])
        self._reader.read([*nodes, *drafts], drafts[-1] if drafts else nodes[0])

    def _drafts(self, node: Node) -> list[Node]:
        """Nodes that are likely to be needed after one."""
        found: list[Node] = []
        for token in self._drafter(node) if self._drafter is not None else ():
            at = node.place_of(token)
            if at == len(node.ids) or node.ids[at] != token or token in self._trie.eos:
                break
            node = self._trie.child(self._base, node, token)
            if node.dead:
                break
            found.append(node)
        return found

    def _advance(self) -> list[Node]:
        """Goes as far as what is known goes; the prefixes, first needed first, that the model must read to go on.

        Empty where the head of the queue is an output, or nothing is left.
        """
        aside: list[_Entry] = []
        unknown: list[Node] = []
        while self._heap and len(unknown) < self._frontier:
            top = heapq.heappop(self._heap)
            token = int(top.node.ids[top.index])
            if token in self._trie.eos:
                aside.append(top)
                break
            child = self._trie.child(self._base, top.node, token)
            self._follow(top)
            if child.dead:
                continue
            if child.known:
                self._enter(child, top.time)
            else:
                unknown.append(child)
                aside.append(top)
        for entry in aside:
            heapq.heappush(self._heap, entry)
        return unknown

    def _follow(self, entry: _Entry) -> None:
        """Puts the next sibling into the queue."""
        if entry.siblings is not None:
            self._push(entry.node, entry.siblings)
            entry.siblings = None

    def _enter(self, node: Node, time: float) -> None:
        self._push(node, self._arrivals(node, time))

    def _push(self, node: Node, children: Children) -> None:
        found = children.next()
        if found is not None:
            heapq.heappush(self._heap, _Entry(found[0], next(self._order), node, found[1], children))
