"""Filling the windows of rows from a source of drafts.

A draft is drawn under the rules of the output: bias, penalties with the drafted tokens counted, the mask of its place,
temperature and truncation. Whether a place gets a draft never depends on what the draft would be, so that the law of
the output stays that of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import torch

from maskwright.engine.draw import processed
from maskwright.engine.speculation.verify import DRAFT
from maskwright.engine.speculation.window import Trial, Window

if TYPE_CHECKING:
    from torch import Tensor

    from maskwright.engine.bitsets import Words
    from maskwright.engine.row import Row
    from maskwright.engine.sampling import Sampling
    from maskwright.engine.speculation.sources import Source

__all__ = ["Drafting"]


@dataclass(frozen=True, slots=True)
class _Text:
    """A row, and a node of its window from which to go on."""

    row: Row
    window: Window
    node: int

    @property
    def output(self) -> list[int]:
        """The tokens of the output so far, the prefix and drafted ones included."""
        return [*self.row.request.prefix, *self.row.tokens, *self.window.path(self.node)]


class Drafting:
    """Draws drafts.

    Args:
        source: what they are drawn from.
        sampling: the rules of the output.
        variant: see :class:`maskwright.engine.speculation.options.Speculative`.
        width: candidates for the first token of a draft.
        room: the most tokens that a row and its window may have together.
        size: of the vocabulary.
    """

    def __init__(
        self,
        source: Source,
        sampling: Sampling,
        variant: Literal["both", "target", "coupled"],
        width: int,
        room: int,
        size: int,
    ) -> None:
        self._source = source
        self._sampling = sampling
        self._masked = variant != "target"
        # A greedy draft has a distribution of one token: it stays where the output's is the same.
        self._tried = variant != "coupled" and not sampling.greedy
        self._width = width
        self._room = room
        self._size = size

    def fill(self, lengths: Mapping[Row, int]) -> None:
        """Gives each row a window with drafts of up to so many tokens."""
        texts = [_Text(row, Window(row, self._nodes(row)), -1) for row, length in lengths.items() if length > 0]
        windows = {text.row: text.window for text in texts}
        logits = self._source.begin(list(windows)) if texts else []
        depth = 0
        while texts:
            depth += 1
            picked, following = self._round(texts, logits)
            # The last tokens of a draft are not read by the draft itself.
            more = [at for at, text in enumerate(following) if depth < lengths[text.row]]
            texts = [following[at] for at in more]
            tokens = [text.window.tokens[text.node] for text in texts]
            logits = self._source.extend([picked[at] for at in more], tokens) if texts else []
        for row, window in windows.items():
            if row.running:
                row.watch(window)

    def _round(self, texts: Sequence[_Text], logits: Sequence[Tensor | None]) -> tuple[list[int], list[_Text]]:
        """Drafts after each text: which texts go on, and with what."""
        asked = [at for at, text in enumerate(texts) if logits[at] is not None and text.window.room(text.node)]
        picked, following = [], []
        drawn = self._draw([texts[at] for at in asked], [logits[at] for at in asked])
        for at, nodes in zip(asked, drawn, strict=True):
            picked += [at] * len(nodes)
            following += [replace(texts[at], node=node) for node in nodes]
        return picked, following

    def _nodes(self, row: Row) -> int:
        return max(0, self._room - len(row.request.read_first) - len(row.tokens))

    def _draw(self, texts: Sequence[_Text], logits: Sequence[Tensor | None]) -> list[list[int]]:
        """Drafts a token, or some, after each text: the new nodes."""
        from maskwright.engine.step import bitmask, count_seen

        if not texts:
            return []
        rows = torch.stack([each[: self._size] for each in logits if each is not None])
        masks: list[Words | None] = [text.window.mask(text.node) if self._masked else None for text in texts]
        penalizes = self._sampling.penalizes
        seen = [count_seen(text.row, text.output, self._sampling) for text in texts if penalizes]
        final = processed(rows, self._sampling, bitmask(masks, self._size), seen or None).double().cpu()
        return [self._nodes_of(text, row) for text, row in zip(texts, final, strict=True)]

    def _nodes_of(self, text: _Text, logits: Tensor) -> list[int]:
        if not bool(logits.max().isfinite()):
            return []  # nothing can be drawn from the draft here: the place goes without
        width = self._width if text.node < 0 else 1
        tokens = self._several(text, logits, width) if self._tried else self._greatest(text, logits, width)
        nodes = [text.window.add(text.node, token) for token in tokens]
        return list(dict.fromkeys(node for node in nodes if node is not None))

    def _several(self, text: _Text, logits: Tensor, width: int) -> list[int]:
        """Independent draws, to be tried in this order."""
        q, ids = torch.softmax(logits, -1), np.flatnonzero(logits.numpy() > -np.inf)
        tokens = [int(ids[self._noisy(text, logits, ids, DRAFT + at).argmax()]) for at in range(width)]
        text.window.trials[text.node] = Trial(tuple(tokens), q)
        return tokens

    def _greatest(self, text: _Text, logits: Tensor, width: int) -> list[int]:
        """What the output would be if the model were the draft, and the next best."""
        ids = np.flatnonzero(logits.numpy() > -np.inf)
        values = logits.numpy()[ids] if self._sampling.greedy else self._noisy(text, logits, ids, 0)
        return [int(ids[at]) for at in np.argsort(-values, kind="stable")[:width]]

    def _noisy(self, text: _Text, logits: Tensor, ids: npt.NDArray[np.int64], channel: int) -> npt.NDArray[np.float64]:
        stream = replace(text.row.request.stream, channel=channel)
        noisy: npt.NDArray[np.float64] = logits.numpy()[ids] + stream.gumbels(len(text.output), ids)
        return noisy
