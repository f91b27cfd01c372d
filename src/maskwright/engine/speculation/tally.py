"""What became of drafts, and what the acceptance rate alone would predict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskwright.engine.speculation.window import Window

__all__ = ["Tally", "predicted_tokens"]


def predicted_tokens(rate: float, length: int) -> float:
    """Tokens per forward with windows of so many drafts, each accepted with this probability, independently.

    ``(1 - a^(g + 1)) / (1 - a)``: Leviathan et al., "Fast inference from transformers via speculative decoding", ICML
    2023, equation 1.
    """
    return sum(rate**i for i in range(length + 1))


@dataclass
class Tally:
    """Counts over the drafts of an output; those of the grammar itself are not among them.

    Attributes:
        windows: forwards that verified a draft.
        tokens: what they added to the output.
        tested: places of drafts that were reached: all before them was accepted.
        accepted: how many of these took a drafted token.
        lengths: how many windows could take so many drafts.
    """

    windows: int = 0
    tokens: int = 0
    tested: int = 0
    accepted: int = 0
    lengths: Counter[int] = field(default_factory=Counter)

    def note(self, window: Window, path: Sequence[int], tokens: Sequence[int]) -> tuple[int, int]:
        """Counts a verified window: the nodes that stay, the tokens that came. How many places were tested, accepted.

        The last token comes from the place after the last node of the path.
        """
        tested = accepted = 0
        for node, token in zip((-1, *path), tokens, strict=False):
            candidates = window.candidates(node)
            tested += bool(candidates)
            accepted += token in candidates
        self.windows += 1
        self.tokens += len(tokens)
        self.tested += tested
        self.accepted += accepted
        self.lengths[window.depth] += 1
        return tested, accepted

    @property
    def acceptance(self) -> float | None:
        """The share of tested places that took their draft; None where none was tested."""
        return self.accepted / self.tested if self.tested else None

    @property
    def tokens_per_window(self) -> float | None:
        """Tokens per forward that verified a draft, its own token included; None where there was none."""
        return self.tokens / self.windows if self.windows else None

    @property
    def predicted(self) -> float | None:
        """What `tokens_per_window` would be if drafts were accepted independently, at the same rate."""
        rate = self.acceptance
        if rate is None:
            return None
        return sum(n * predicted_tokens(rate, length) for length, n in self.lengths.items()) / self.windows
