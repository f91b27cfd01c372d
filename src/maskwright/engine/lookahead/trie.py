"""What is known of a model at the prefixes of one language: distributions, and bounds on what can become valid.

``U(u)`` and ``L(u)`` bound the probability that the model, unmasked, completes the prefix ``u`` to a valid output from
above and from below. At a node whose distribution is known,

    U(u) = p(EOS) + sum over known children p(t) U(ut) + mass of the other allowed tokens,
    L(u) = p(EOS) + sum over known children p(t) L(ut),

both where the mask allows the token; before, ``U = 1`` and ``L = 0``. They are kept as logarithms: long outputs have
probabilities below the least double. They are worked out when they are asked for: a search that reads one node after
the other would otherwise walk up to the root after each.

Source: the trie of Park et al., "Grammar-aligned decoding", NeurIPS 2024 (arXiv:2405.21047), with sums per node in
place of its sums over all nodes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from maskwright.engine.lookahead.base import Base, Floats, Ids
    from maskwright.engine.request import Guide

__all__ = ["Node", "Trie", "log_sum"]

# The mass of unknown children is kept by subtraction until so much has gone that rounding would show.
_RESUM = 1e-3
_LARGE = 4096
_TINY = 1e-250


class Node:
    """A prefix.

    Attributes:
        parent: None for the empty prefix.
        token: its last token; -1 for the empty prefix.
        depth: number of its tokens.
        guide: of the constraint, after it.
        ids: the tokens allowed after it, int32, ascending.
        logp: their ``log p``, float64; None while the model has not read the prefix.
        log_mass: log of their summed probability.
        children: the nodes that exist, by token; never an EOS.
        ends: the places of EOS tokens in `ids`.
        place: where its token is in its parent's `ids`.
        dead: whether nothing valid begins with it, as far as is known.
        used: when it was last needed, in draws of its trie.
    """

    __slots__ = (
        "_cumulative", "_eos", "_key", "_log_path", "_lower", "_open", "_stale", "_summed", "_upper", "children",
        "dead", "depth", "ends", "guide", "ids", "log_mass", "logp", "parent", "place", "token", "used",
    )  # fmt: skip

    def __init__(self, parent: Node | None, token: int, guide: Guide, ids: Ids, eos: Sequence[int]) -> None:
        self.parent, self.token, self.guide = parent, token, guide
        self.place = -1 if parent is None else parent.place_of(token)
        self.restrict(ids, eos)
        self.depth: int = 0 if parent is None else parent.depth + 1
        self._log_path = 0.0 if parent is None else None
        self.logp: Floats | None = None
        self.log_mass = 0.0
        self.children: dict[int, Node] = {}
        # Where nothing may follow (no budget is left, or no spelling is canonical), nothing can become valid.
        self.dead = not len(ids)
        self._upper = 0.0 if len(ids) else -math.inf
        self._lower = -math.inf
        self._stale = False  # where it is True, it is so at all nodes above
        self.used = 0
        self._eos = -math.inf
        self._open = self._summed = 1.0
        self._key: int | None = None
        self._cumulative: Floats | None = None

    @property
    def known(self) -> bool:
        """Whether the model has read it."""
        return self.logp is not None

    @property
    def log_path(self) -> float:
        """Log of its probability; all nodes above it must be known."""
        if self._log_path is None:
            assert self.parent is not None
            self._log_path = self.parent.log_path + self.log_edge
        return self._log_path

    @property
    def log_edge(self) -> float:
        """``log p`` of its token; its parent must be known."""
        assert self.parent is not None
        assert self.parent.logp is not None
        return float(self.parent.logp[self.place])

    @property
    def log_upper(self) -> float:
        """Log of ``U``."""
        self._refresh()
        return self._upper

    @property
    def log_lower(self) -> float:
        """Log of ``L``."""
        self._refresh()
        return self._lower

    def output(self) -> list[int]:
        """Its tokens."""
        tokens, node = [], self
        while node.parent is not None:
            tokens.append(node.token)
            node = node.parent
        return tokens[::-1]

    def restrict(self, ids: Ids, eos: Sequence[int]) -> None:
        """Sets which tokens may follow; no node may be below."""
        self.ids = ids
        places = zip(ids.searchsorted(eos).tolist(), eos, strict=True)
        self.ends = np.array([at for at, token in places if at < len(ids) and ids[at] == token], dtype=np.int64)

    def place_of(self, token: int) -> int:
        """Where an allowed token is in `ids`."""
        return int(self.ids.searchsorted(token))

    def logp_of(self, token: int) -> float:
        """``log p`` of an allowed token."""
        assert self.logp is not None
        return float(self.logp[self.place_of(token)])

    @property
    def key(self) -> int:
        """64 bits that tell this prefix from others: the address of its random numbers."""
        if self._key is None:
            above = b"" if self.parent is None else self.parent.key.to_bytes(8, "little")
            digest = hashlib.blake2b(above + self.token.to_bytes(4, "little", signed=True), digest_size=8).digest()
            self._key = int.from_bytes(digest, "little")
        return self._key

    def cumulative(self) -> tuple[Floats, float]:
        """Cumulated probabilities of the allowed tokens over that of the likeliest; and the log of this one."""
        assert self.logp is not None
        top = float(self.logp.max())
        if self._cumulative is not None:
            return self._cumulative, top
        found: Floats = np.cumsum(np.exp(self.logp - top))
        # Where much is allowed, as inside a string, memory counts for more than the time of another sum.
        self._cumulative = found if len(found) <= _LARGE else None
        return found, top

    def learn(self, logp: Floats) -> None:
        """Takes the distribution, ``log p`` of each of `ids`."""
        self.logp = logp
        self._eos = log_sum(logp[self.ends])
        total = self.sum_open()
        # Below, the sum of the probabilities themselves has no digits left.
        self.log_mass = min(math.log(total) if total > _TINY else log_sum(logp), 0.0)

    def sum_open(self) -> float:
        """Sums the mass of allowed tokens without a known child, EOS left out; that of all allowed tokens."""
        assert self.logp is not None
        masses = np.exp(self.logp)
        total = float(masses.sum())
        masses[self.ends] = 0.0
        masses[[child.place for child in self.children.values() if child.known or child.dead]] = 0.0
        self._open = self._summed = float(masses.sum())
        return total

    def close(self, child: Node) -> None:
        """Notes that a child is known from now on, or known to be dead."""
        self._open -= math.exp(child.log_edge)
        if self._open < _RESUM * self._summed:
            self.sum_open()

    def touch(self) -> None:
        """Notes that the bounds have changed here, and so above."""
        node: Node | None = self
        while node is not None and not node._stale:
            node._stale = True
            node = node.parent

    def bury(self) -> None:
        """Notes that nothing valid begins here, which may be so of the nodes above too."""
        self.touch()
        node: Node | None = self
        while node is not None and (node is self or node.is_exhausted()):
            node.dead, node._upper, node._lower = True, -math.inf, -math.inf
            node = node.parent

    def is_exhausted(self) -> bool:
        """Whether all is known of what may follow, and none of it becomes valid."""
        if not self.known or self.log_mass == -math.inf:
            return self.known
        return self._eos == -math.inf and self._open <= 0 and all(child.dead for child in self.children.values())

    def forget(self) -> None:
        """Starts again from the distribution alone, after descendants were forgotten; those left are up to date."""
        self.sum_open()
        self.dead, self._upper = self.is_exhausted(), 0.0
        self._settle()

    def _refresh(self) -> None:
        """Brings the bounds here and below up to date."""
        if not self._stale:
            return
        stale, at = [self], 0
        while at < len(stale):
            stale += [child for child in stale[at].children.values() if child._stale]
            at += 1
        for node in reversed(stale):
            node._settle()

    def _settle(self) -> None:
        """Recomputes both bounds from those of the children."""
        self._stale = False
        if not self.known:
            return
        inner = [(child.log_edge, child) for child in self.children.values() if child.known or child.dead]
        rest = math.log(self._open) if self._open > 0 else -math.inf
        upper = log_sum([self._eos, rest, *(p + child._upper for p, child in inner)])
        lower = log_sum([self._eos, *(p + child._lower for p, child in inner)])
        # What was bounded once stays bounded; rounding must not say otherwise.
        self._upper = min(self._upper, self.log_mass, upper)
        self._lower = min(self._upper, lower)


class Trie:
    """The prefixes of one language under one distribution.

    Attributes:
        root: the empty prefix.
        entries: how many probabilities are held; 12 bytes each with their ids.
        nodes: how many prefixes are known.
        finite: whether all prefixes were listed (`enumerated`); None while nobody has tried.
        draws: counts the outputs drawn, as a clock for forgetting.
        accepted: the last outputs, the newest last.
    """

    def __init__(self, base: Base) -> None:
        guide = base.start()
        self.eos = tuple(sorted(base.model.eos_ids))
        self.root = Node(None, -1, guide, base.allowed(guide, ()), self.eos)
        self.entries = self.nodes = self.draws = 0
        self.finite: bool | None = None
        self.accepted: list[tuple[int, ...]] = []

    def child(self, base: Base, node: Node, token: int) -> Node:
        """The child of a known node by an allowed token, made where there is none."""
        found = node.children.get(token)
        if found is None:
            guide = base.advance(node.guide, token)
            found = Node(node, token, guide, base.allowed(guide, [*node.output(), token]), self.eos)
            node.children[token] = found
            if found.dead and node.known:
                node.close(found)
                found.bury()
        found.used = node.used = self.draws
        return found

    def learn(self, nodes: Sequence[Node], rows: Sequence[Floats]) -> None:
        """Takes the distributions at some nodes, parents before children; the bounds above them are tighter then."""
        for node, logp in zip(nodes, rows, strict=True):
            node.learn(logp)
            self.entries += len(logp)
            self.nodes += 1
            if node.parent is not None:
                node.parent.close(node)
        for node in nodes:
            node.touch()
            if node.is_exhausted():
                node.bury()

    def known(self) -> Iterator[Node]:
        """All nodes whose distribution is known, parents first."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            if node.known:
                yield node
            stack += reversed([node.children[t] for t in sorted(node.children)])

    def shrink(self, entries: int) -> None:
        """Forgets nodes, those unused for longest first and children before parents, until few enough are left.

        This is sound: a child that is not known has the bounds 0 and 1.
        """
        if self.entries <= entries:
            return
        self.finite = None
        order = sorted(self.known(), key=lambda node: (node.used, -node.depth))
        for node in order:
            if self.entries <= entries:
                break
            if node.parent is None or any(child.known for child in node.children.values()):
                continue
            assert node.logp is not None
            del node.parent.children[node.token]
            self.entries -= len(node.logp)
            self.nodes -= 1
        for node in reversed(list(self.known())):
            node.forget()


def log_sum(values: Floats | Sequence[float]) -> float:
    """Log of the sum of exponentials; ``-inf`` of nothing."""
    if len(values) > 32:
        array = np.asarray(values)
        top = float(array.max())
        return top if top == -math.inf else top + math.log(float(np.exp(array - top).sum()))
    top = max(map(float, values), default=-math.inf)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(value - top) for value in values))
