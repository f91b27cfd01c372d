"""Constrained adaptive rejection sampling that restarts after every rejection, as published, to count its model calls.

Source: arXiv:2510.01902 (CARS). An attempt starts at the root again and asks the model at every prefix that it comes
through; what is remembered is which prefixes are ruled out and how much mass that leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class RestartCars:
    """Draws from one law.

    Args:
        base: the law (`maskwright.engine.lookahead.base.Base`).
        rng: random numbers.
        known: distributions that were computed already, by prefix; shared between samplers to save time, never calls.

    Attributes:
        calls: next-token distributions asked for so far.
        nodes: how many different ones.
    """

    def __init__(self, base: Any, rng: np.random.Generator, known: dict[tuple[int, ...], Any]) -> None:
        self.calls = self.nodes = 0
        self._base, self._rng, self._known = base, rng, known
        self._trie: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def draw(self) -> tuple[int, ...]:
        """One exact sample."""
        while True:
            path, end = self._attempt()
            self._tighten(path)
            if end is not None:
                return end

    def _attempt(self) -> tuple[list[tuple[tuple[int, ...], int]], tuple[int, ...] | None]:
        """The nodes that an attempt came through, with the index of what it drew there; the output if it is valid."""
        prefix: tuple[int, ...] = ()
        path = []
        while True:
            self.calls += 1
            new = prefix not in self._trie
            if new:
                ids, p = self._look(prefix)
                self.nodes += 1
                self._trie[prefix] = ids, p, np.ones(len(ids))
            ids, p, theta = self._trie[prefix]
            weights = p * theta
            # A node seen for the first time is drawn from without its mask.
            total = 1.0 if new else weights.sum()
            edges = weights.cumsum()
            at = int(np.searchsorted(edges, self._rng.random() * total, side="right"))
            if at >= len(ids):
                return [*path, (prefix, -1)], None
            path.append((prefix, at))
            token = int(ids[at])
            if token in self._base.model.eos_ids:
                return path, (*prefix, token)
            prefix = (*prefix, token)

    def _tighten(self, path: list[tuple[tuple[int, ...], int]]) -> None:
        for (above, at), (below, _) in zip(path[-2::-1], path[:0:-1], strict=True):
            _, p, theta = self._trie[below]
            self._trie[above][2][at] = (p * theta).sum()

    def _look(self, prefix: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        found = self._known.get(prefix)
        if found is None:
            guide = self._base.start()
            for token in prefix:
                guide = self._base.advance(guide, token)
            ids = self._base.allowed(guide, prefix)
            cache = self._base.model.new_cache(1)
            logits = self._base.model.forward([[*self._base.request.read_first, *prefix]], cache)
            found = ids, np.exp(self._base.log_p(logits, [prefix])[0].numpy()[ids])
            self._known[prefix] = found
        return found
