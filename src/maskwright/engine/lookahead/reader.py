"""Asking the model for the distributions at nodes of a trie, wherever they are, in few forwards.

The keys and values of the prompt are kept, and behind them those of one path of the trie. To read some nodes, the path
is cut where they part from it, and what is missing is read as one tree; then the path to one of the nodes is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from maskwright.engine.trees import extend_tree

if TYPE_CHECKING:
    from maskwright.engine.lookahead.base import Base
    from maskwright.engine.lookahead.trie import Node, Trie
    from maskwright.engine.model import Cache

__all__ = ["Branches", "Reader", "chunk_size", "learn"]

# Logits of this many tokens are held at a time, over all nodes that a forward reads.
_LOGITS = 1 << 24


def chunk_size(width: int, rows: int = 1) -> int:
    """How many nodes of a tree one forward reads for each of some rows."""
    return max(16, min(512, _LOGITS // (width * rows)))


class Branches:
    """Nodes below a common prefix, with the nodes on the way to them, in the form that `extend_tree` takes.

    Args:
        nodes: at least one, all of them deeper than `depth`.
        depth: length of the common prefix.

    Attributes:
        tokens: of each node.
        parents: index of each node's parent, -1 below the prefix.
        places: index of each of the nodes that were asked for.
    """

    def __init__(self, nodes: Sequence[Node], depth: int) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self._at: dict[int, int] = {}
        self.places = [self._add(node, depth) for node in nodes]

    def _add(self, node: Node, depth: int) -> int:
        way = []
        while node.depth > depth and id(node) not in self._at:
            way.append(node)
            assert node.parent is not None
            node = node.parent
        at = self._at[id(node)] if node.depth > depth else -1
        for each in reversed(way):
            self.parents.append(at)
            self.tokens.append(each.token)
            at = self._at[id(each)] = len(self.tokens) - 1
        return at

    @property
    def is_chain(self) -> bool:
        """Whether each node follows the one before."""
        return self.parents == list(range(-1, len(self.parents) - 1))

    def path(self, place: int) -> list[int]:
        """The indices on the way to a node, itself included."""
        found = []
        while place >= 0:
            found.append(place)
            place = self.parents[place]
        return found[::-1]


class Reader:
    """Reads nodes behind one prompt.

    Args:
        base: whose prompt it is.
        trie: whose nodes are read.

    Attributes:
        calls: forwards so far, the prompt's included.
        nodes: distributions so far.
    """

    def __init__(self, base: Base, trie: Trie) -> None:
        self._base, self._trie = base, trie
        self._cache: Cache | None = None
        self._prompt = len(base.request.read_first)
        self._path: list[int] = []
        self.calls = self.nodes = 0

    def read(self, nodes: Sequence[Node], keep: Node | None = None) -> None:
        """Learns the distributions at some nodes, parents before children.

        Args:
            nodes: known ones are passed over.
            keep: the one of them whose path is kept; the first where there is none.
        """
        cache = self._prefill()
        wanted = [node for node in nodes if not node.known]
        size = chunk_size(self._base.width)
        for at in range(0, len(wanted), size):
            self._read(wanted[at : at + size], cache, keep)

    def restart(self, trie: Trie) -> None:
        """Goes on with another trie of the same prompt, about which nothing is known but its root."""
        old, self._trie = self._trie, trie
        assert old.root.logp is not None
        trie.learn([trie.root], [old.root.logp])

    def _prefill(self) -> Cache:
        if self._cache is None:
            self._cache = self._base.model.new_cache(1)
            logits = self._base.model.forward([self._base.request.read_first], self._cache)
            self.calls += 1
            if not self._trie.root.known:
                self._learn([self._trie.root], logits)
        return self._cache

    def _read(self, nodes: Sequence[Node], cache: Cache, keep: Node | None) -> None:
        depth = self._shared(nodes)
        branches = Branches(nodes, depth)
        if self._prompt + depth + len(branches.tokens) > self._base.model.context_length and len(nodes) > 1:
            half = len(nodes) // 2  # one path fits, as the request was checked; several may not
            self._read(nodes[:half], cache, keep)
            self._read(nodes[half:], cache, keep)
            return
        cache.truncate([self._prompt + depth])
        self.calls += 1
        if branches.is_chain:
            read = self._base.model.forward_all([branches.tokens], cache)[0]
            kept = nodes[-1]
        else:
            tree = extend_tree(self._base.model, [branches.tokens], [branches.parents], cache)
            read, kept = tree.logits[0], keep if keep is not None and keep in nodes else nodes[0]
            tree.commit([branches.path(branches.places[nodes.index(kept)])])
        self._path = kept.output()
        self._learn(nodes, read[branches.places])

    def _shared(self, nodes: Sequence[Node]) -> int:
        """How many tokens of the kept path come before all of the nodes."""
        depth = len(self._path)
        for node in nodes:
            pairs = zip(self._path[:depth], node.output()[:-1], strict=False)
            depth = next((at for at, (a, b) in enumerate(pairs) if a != b), min(depth, node.depth - 1))
        return depth

    def _learn(self, nodes: Sequence[Node], logits: torch.Tensor) -> None:
        self.nodes += len(nodes)
        learn(self._base, self._trie, nodes, logits)


def learn(base: Base, trie: Trie, nodes: Sequence[Node], logits: torch.Tensor) -> None:
    """Puts what a forward says into a trie.

    Args:
        base: the law of the trie.
        trie: of the nodes.
        nodes: parents before children.
        logits: shape ``(nodes, width)``.
    """
    outputs = [node.output() for node in nodes]
    trie.learn(nodes, base.log_p_at(logits, outputs, [node.ids for node in nodes]))
