"""The draft of a row: tokens that may follow it, as a tree, each with the mask of the place after it.

Nodes are numbered with parents before children; -1 is the row itself, before any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from maskwright.engine.bitsets import Words
    from maskwright.engine.request import Guide
    from maskwright.engine.row import Row

__all__ = ["Trial", "Window"]


@dataclass(frozen=True, slots=True)
class Trial:
    """Tokens that were drawn from a draft's distribution, independently, to be accepted or refused at their place.

    Attributes:
        tokens: to be tried in this order.
        q: the distribution, float64 of shape ``(V,)``.
    """

    tokens: tuple[int, ...]
    q: torch.Tensor


class Window:
    """What is drafted behind a row.

    Args:
        row: running; it must not change before the window is verified.
        most: nodes that it may have; None for as many as the output may have tokens.

    Attributes:
        tokens: of the nodes, as the model is to read them.
        parents: of the nodes.
        trials: by place (the node before it), what was drawn from a draft's distribution there.
    """

    def __init__(self, row: Row, most: int | None = None) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.trials: dict[int, Trial] = {}
        self._row = row
        self._most = row.request.max_tokens if most is None else most
        self._masks: list[Words | None] = []
        self._guides: list[Guide | None] = []

    @property
    def is_chain(self) -> bool:
        """Whether no two nodes follow the same one."""
        return self.parents == list(range(-1, len(self.parents) - 1))

    @property
    def depth(self) -> int:
        """The most tokens of it that the output can take."""
        places = [*self.trials, *self.parents]
        return max((len(self.path(place)) + 1 for place in places), default=0)

    def mask(self, node: int) -> Words | None:
        """What may follow a node."""
        return self._row.mask if node < 0 else self._masks[node]

    def path(self, node: int) -> list[int]:
        """The tokens from the row down to a node, that of the node included."""
        found = []
        while node >= 0:
            found.append(self.tokens[node])
            node = self.parents[node]
        return found[::-1]

    def room(self, node: int) -> bool:
        """Whether anything can be drafted after a node. Never depends on what the draft would be."""
        row = self._row
        if row.matcher is not None and (row.lazy or not self._guides_on(node)):
            return False
        # Before an output of which only one token is left, that is EOS.
        least = 1 if row.matcher is None else 2
        return row.running and self._left(node) >= least

    def _guides_on(self, node: int) -> bool:
        """Whether the output can go on after a node with something else than its end."""
        mask = self.mask(node)
        return mask is not None and bool((mask & ~self._row.ends).any())

    def _left(self, node: int) -> int:
        """How many tokens the output may still have after a child of a node."""
        return self._row.request.max_tokens - len(self._row.tokens) - len(self.path(node)) - 1

    def add(self, node: int, token: int) -> int | None:
        """The child of a node with this token; None where it is not allowed, ends the output, or finds no room."""
        there = self.child(node, token)
        if there is not None or not self.room(node) or self._row.is_end(token) or len(self.tokens) >= self._most:
            return there
        mask, guide = self.mask(node), self._guide(node)
        if mask is not None and not int(mask[token >> 5]) >> (token & 31) & 1:
            return None
        if guide is not None:
            guide = guide.fork()
            if not guide.accept(token):
                return None
        self._masks.append(self._row.mask_ahead(guide, self._left(node)))
        self.tokens.append(token)
        self.parents.append(node)
        self._guides.append(guide)
        return len(self.tokens) - 1

    def _guide(self, node: int) -> Guide | None:
        return self._row.matcher if node < 0 else self._guides[node]

    def child(self, node: int, token: int) -> int | None:
        """The child of a node with this token, if there is one."""
        for at, (parent, each) in enumerate(zip(self.parents, self.tokens, strict=True)):
            if parent == node and each == token:
                return at
        return None

    def candidates(self, node: int) -> set[int]:
        """The tokens that were drafted at the place after a node, those included that the model need not read."""
        found = {token for parent, token in zip(self.parents, self.tokens, strict=True) if parent == node}
        return found | set(self.trials[node].tokens) if node in self.trials else found
