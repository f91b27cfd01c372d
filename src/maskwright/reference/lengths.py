"""The length of the shortest text of a language: where a search for a completion looks first."""

from __future__ import annotations

from math import inf

from maskwright.reference.language import (
    EMPTY,
    EPSILON,
    Alt,
    And,
    ByteSet,
    Cat,
    Lazy,
    Member,
    Node,
    Not,
    Repeat,
    derive,
)


class Lengths:
    """Lengths in bytes. Recursion makes them a system of equations, iterated from infinity down."""

    def __init__(self) -> None:
        self._lazy: dict[Lazy, float] = {}
        self._solved: set[Lazy] = set()
        self._regular: dict[Node, float] = {}

    def of(self, node: Node) -> float:
        """The length of the shortest text; infinite where there is none."""
        while True:
            size = len(self._lazy)
            length = self._measure(node)
            open_ones = [lazy for lazy in self._lazy if lazy not in self._solved]
            found = {lazy: self._measure(lazy.expand()) for lazy in open_ones}
            better = {lazy: new for lazy, new in found.items() if new < self._lazy[lazy]}
            self._lazy.update(better)
            if not better and len(self._lazy) == size:
                self._solved.update(open_ones)
                return length

    def _measure(self, node: Node) -> float:
        if isinstance(node, Lazy):
            return self._lazy.setdefault(node, inf)
        if isinstance(node, Member):
            return self._measure(node.keys) + self._measure(node.after(None))
        if isinstance(node, Cat):
            return self._measure(node.first) + self._measure(node.rest)
        if isinstance(node, Alt):
            return min(self._measure(part) for part in node.parts)
        if node not in self._regular:
            self._regular[node] = self._of_regular(node)
        return self._regular[node]

    def _of_regular(self, node: Node) -> float:
        if isinstance(node, Repeat):
            return node.low * self._measure(node.body)
        if isinstance(node, And | Not):
            return _breadth_first(node)
        return 1 if isinstance(node, ByteSet) else 0 if node is EPSILON else inf


def _breadth_first(node: Node) -> float:
    level, seen = {node}, {node}
    length = 0
    while level:
        if any(at.nullable for at in level):
            return length
        firsts = [(at, part & -part) for at in level for part in at.classes()]
        level = {derive(at, bytes((bit.bit_length() - 1,))) for at, bit in firsts} - seen - {EMPTY}
        seen |= level
        length += 1
    return inf
