"""How many tokens to draft: as many as pay.

With windows of g drafts, each accepted with probability a, a forward gives ``(1 - a^(g + 1)) / (1 - a)`` tokens. That
is set against what it costs: the time of a forward of g + 1 tokens and of drafting g. Where no window is better than
none, nothing is drafted but for a try now and then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from maskwright.engine.speculation.tally import predicted_tokens

__all__ = ["Costs", "Given", "Measured", "Pace"]

_LENGTHS = (1, 3, 7, 15, 31)
_FADES = 0.9  # what a window leaves of the weight of those before it
_FIRST_REST, _LONGEST_REST = 8, 64  # steps between tries where drafts do not pay


class Costs(Protocol):
    """What steps cost, in any unit."""

    def verify(self, tokens: int) -> float:
        """A forward that reads so many tokens of a row."""

    def draft(self, tokens: int) -> float:
        """Drafting so many tokens."""


@dataclass(frozen=True)
class Given:
    """Costs in decode steps of the model.

    Attributes:
        per_draft: of drafting a token.
        per_token: of verifying a further one.
    """

    per_draft: float = 0.1
    per_token: float = 0.1

    def verify(self, tokens: int) -> float:
        """See :class:`Costs`."""
        return 1 + self.per_token * (tokens - 1)

    def draft(self, tokens: int) -> float:
        """See :class:`Costs`."""
        return self.per_draft * tokens


class Measured:
    """Costs in seconds, as they turn out.

    Forwards are kept apart by how many tokens they read, in powers of two: on a CPU the second token may cost as much
    as the first, and the next six little.
    """

    def __init__(self) -> None:
        self._forwards: dict[int, float] = {}
        self._per_draft = 0.0

    def note_forward(self, tokens: int, seconds: float) -> None:
        """Takes the time of a step that read so many tokens of a row."""
        kind = (tokens - 1).bit_length()
        before = self._forwards.get(kind, seconds)
        # What is slower than usual is more often a busy machine than a slower step.
        self._forwards[kind] = before + (0.5 if seconds < before else 0.1) * (seconds - before)

    def note_drafts(self, tokens: int, seconds: float) -> None:
        """Takes the time that drafting so many tokens took."""
        self._per_draft += 0.2 * (seconds / max(1, tokens) - self._per_draft)

    def verify(self, tokens: int) -> float:
        """See :class:`Costs`."""
        kind = (tokens - 1).bit_length()
        if kind in self._forwards:
            return self._forwards[kind]
        # What was not seen yet: a little more than what is shorter, but the second token as much as the first.
        nearest = max((each for each in self._forwards if each < kind), default=0)
        steps = kind - nearest + (3 if nearest == 0 else 0)
        return self._forwards.get(nearest, 1.0) * (1 + 0.25 * steps)

    def draft(self, tokens: int) -> float:
        """See :class:`Costs`."""
        return self._per_draft * tokens


class Pace:
    """The length of the windows of one row.

    Args:
        costs: of steps.
        longest: the most drafts of a window.
    """

    def __init__(self, costs: Costs, longest: int) -> None:
        self._costs = costs
        self._lengths = [n for n in _LENGTHS if n < longest] + [longest]
        self._tested, self._accepted = 2.0, 1.0  # as if one of two had been accepted
        self._rest, self._until = _FIRST_REST, 0

    @property
    def acceptance(self) -> float:
        """The rate that is counted on."""
        return self._accepted / self._tested

    def length(self) -> int:
        """How many tokens to draft now."""
        best = max(self._lengths, key=self._gain)
        if self._gain(best) > 1 / self._costs.verify(1):
            self._rest, self._until = _FIRST_REST, _FIRST_REST
            return best
        self._until -= 1
        if self._until >= 0:
            return 0
        self._until, self._rest = self._rest, min(2 * self._rest, _LONGEST_REST)
        return self._lengths[1] if len(self._lengths) > 1 else best

    def _gain(self, length: int) -> float:
        """Tokens per unit of cost."""
        cost = self._costs.verify(length + 1) + self._costs.draft(length)
        return predicted_tokens(self.acceptance, length) / cost

    def note(self, tested: int, accepted: int) -> None:
        """Takes what became of a window."""
        self._tested = _FADES * self._tested + tested
        self._accepted = _FADES * self._accepted + accepted
