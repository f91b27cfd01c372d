"""The places of an output that the logits of a forward are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maskwright.engine.bitsets import Words
    from maskwright.engine.speculation.window import Trial

__all__ = ["Expected"]


@dataclass(frozen=True, slots=True)
class Expected:
    """A place of the output about which the logits of a forward say something.

    Attributes:
        mask: what may stand there; None for anything, or where a lazy mask was not needed so far.
        position: how many tokens of the output come before it, the prefix included.
        draft: the last of them, which are drafted.
        trial: what was drawn from a draft's distribution for this place.
    """

    mask: Words | None
    position: int
    draft: tuple[int, ...] = ()
    trial: Trial | None = None
