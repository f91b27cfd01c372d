"""Trees of tokens behind the rows of a cache: several continuations of a text in one forward.

The nodes of a row's tree are listed with parents before children; ``parents[i]`` is the index of node ``i``'s parent
in that list, -1 for a node that follows the row itself. A node sees the row and its own ancestors.

Models that have ``forward_tree``, and whose caches have ``keep``, read a tree as it is; for others each path from the
row to a leaf becomes a row of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from maskwright.engine.model import Cache, LanguageModel

__all__ = ["Tree", "ancestors", "check_parents", "depths", "extend_tree", "visible"]


class Tree(Protocol):
    """What a model says of a tree that is not part of its cache yet.

    Attributes:
        logits: per row, float32 of shape ``(nodes, width)``: what follows each node.
    """

    logits: list[Tensor]

    def commit(self, paths: Sequence[Sequence[int]]) -> None:
        """Appends a path of nodes to each row of the cache and forgets the others; must be called, and once.

        Args:
            paths: per row the indices of its nodes, from a child of the row downwards; may be empty.
        """


def extend_tree(
    model: LanguageModel,
    tokens: Sequence[Sequence[int]],
    parents: Sequence[Sequence[int]],
    cache: Cache,
    states: bool = False,
) -> Tree:
    """Reads a tree of tokens behind every row of a cache.

    Args:
        model: the model of the cache.
        tokens: the nodes of each row's tree, at least one.
        parents: see the module.
        cache: not to be used until the tree is committed.
        states: give states ``(nodes, E)`` in place of logits, which needs ``forward_tree_states``.

    Raises:
        ValueError: parents that do not come first.
        GenerationError: a tree does not fit into the context (all of its nodes count).
    """
    check_parents(tokens, parents)
    reader: Any = getattr(model, "forward_tree_states" if states else "forward_tree", None)
    if reader is not None and getattr(model, "reads_trees", True):
        return _Whole(reader(tokens, parents, cache), cache, parents)
    return _Paths(model, tokens, parents, cache)


class _Whole:
    """A tree that the model reads at once."""

    def __init__(self, logits: list[Tensor], cache: Any, parents: Sequence[Sequence[int]]) -> None:
        self.logits = logits
        self._cache = cache
        self._parents = parents

    def commit(self, paths: Sequence[Sequence[int]]) -> None:
        _check_paths(paths, self._parents)
        self._cache.keep(paths)


class _Paths:
    """A tree as one row per leaf."""

    def __init__(
        self, model: LanguageModel, tokens: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: Cache
    ) -> None:
        self._cache = cache
        self._parents = parents
        self._lengths = cache.lengths
        self._leaves = [
            (row, ancestors(tree, leaf))
            for row, tree in enumerate(parents)
            for leaf in sorted(set(range(len(tree))) - set(tree))
        ]
        cache.select([row for row, _ in self._leaves])
        read = model.forward_all([[tokens[row][node] for node in path] for row, path in self._leaves], cache)
        found: list[dict[int, Tensor]] = [{} for _ in tokens]
        for (row, path), logits in zip(self._leaves, read, strict=True):
            found[row].update({node: logits[at] for at, node in enumerate(path)})
        self.logits = [torch.stack([nodes[i] for i in range(len(nodes))]) for nodes in found]

    def commit(self, paths: Sequence[Sequence[int]]) -> None:
        _check_paths(paths, self._parents)
        chosen = [
            next(at for at, (r, leaf) in enumerate(self._leaves) if r == row and leaf[: len(path)] == list(path))
            for row, path in enumerate(paths)
        ]
        self._cache.select(chosen)
        self._cache.truncate([held + len(path) for held, path in zip(self._lengths, paths, strict=True)])


def ancestors(parents: Sequence[int], node: int) -> list[int]:
    """The path to a node, from the top, the node included."""
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


def depths(parents: Sequence[int]) -> list[int]:
    """How many ancestors each node has."""
    found: list[int] = []
    for parent in parents:
        found.append(0 if parent < 0 else found[parent] + 1)
    return found


def visible(parents: Sequence[int]) -> Tensor:
    """Which nodes (columns) each node (row) sees: its ancestors and itself; bool ``(n, n)``."""
    seen = torch.eye(len(parents), dtype=torch.bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            seen[node] |= seen[parent]
    return seen


def check_parents(tokens: Sequence[Sequence[int]], parents: Sequence[Sequence[int]]) -> None:
    """Raises ValueError where trees are not listed with parents before children."""
    if len(tokens) != len(parents):
        raise ValueError(f"got trees for {len(tokens)} rows and parents for {len(parents)}")
    for row, (nodes, tree) in enumerate(zip(tokens, parents, strict=True)):
        if len(nodes) != len(tree):
            raise ValueError(f"row {row} has {len(nodes)} nodes and {len(tree)} parents")
        for node, parent in enumerate(tree):
            if not -1 <= parent < node:
                raise ValueError(f"node {node} of row {row} has the parent {parent}; parents come before children")


def _check_paths(paths: Sequence[Sequence[int]], parents: Sequence[Sequence[int]]) -> None:
    if len(paths) != len(parents):
        raise ValueError(f"got {len(paths)} paths for {len(parents)} rows")
    for path, tree in zip(paths, parents, strict=True):
        if [-1, *path][:-1] != [tree[node] for node in path]:
            raise ValueError(f"{list(path)} is no path from the row downwards")
