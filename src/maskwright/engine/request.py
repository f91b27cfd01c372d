"""What is asked of one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from maskwright.engine.rng import Stream

__all__ = ["Grammar", "Guide", "Processor", "Request"]

# (tokens of the output so far, logits of shape (V,)) -> logits of the same shape
Processor = Callable[[Sequence[int], "torch.Tensor"], "torch.Tensor"]


class Guide(Protocol):
    """What a row asks of a matcher: one of the core, or one that leads through regions."""

    def fill_mask(self, row: Any, max_tokens: int | None = None) -> None:
        """Sets the bits of the tokens that may follow, within a budget of tokens that counts EOS."""

    def accept(self, token: int) -> bool:
        """Appends a token; False, and nothing changed, where it is not allowed."""

    def accept_text(self, text: str | bytes) -> bool:
        """Appends text."""

    def fork(self) -> Guide:
        """A copy."""

    def min_tokens_to_accept(self) -> int:
        """Tokens that suffice to complete the text."""

    def can_finish_within(self, max_tokens: int) -> bool:
        """Whether these are at most so many."""

    def allowed_tokens(self, max_tokens: int | None = None) -> list[int]:
        """The ids that may follow, ascending."""

    @property
    def is_accepting(self) -> bool:
        """Whether the text is complete."""

    @property
    def is_finished(self) -> bool:
        """Whether an EOS token was accepted."""


class Grammar(Protocol):
    """What a row asks of a compiled constraint."""

    @property
    def constraint(self) -> Any:
        """What was compiled."""

    def matcher(self) -> Any:
        """A guide at the start."""


@dataclass(frozen=True)
class Request:
    """What is asked of one row.

    Attributes:
        prompt: token ids, at least one.
        constraint: compiled for the model's vocabulary; None for free text.
        stream: its random numbers.
        max_tokens: the most tokens to generate, EOS included.
        stops: strings that end the text; where there is a constraint, only where the text is complete.
        include_stop: whether the text keeps the stop string, or the text of the stop token.
        forced_runs: whether tokens that the constraint determines skip their decode step, and spans that it nearly
            determines are drafted (never changes the output).
        stop_ids: tokens that end the text, where EOS could.
        prefix: tokens of the output that are there already.
        min_tokens: before so many, the output does not end where it could go on.
        processor: changes the logits of each step before anything else.
    """

    prompt: tuple[int, ...]
    constraint: Grammar | None
    stream: Stream
    max_tokens: int
    stops: tuple[str, ...] = ()
    include_stop: bool = False
    forced_runs: bool = True
    stop_ids: tuple[int, ...] = ()
    prefix: tuple[int, ...] = ()
    min_tokens: int = 0
    processor: Processor | None = None

    @property
    def read_first(self) -> tuple[int, ...]:
        """What the model reads before the first draw."""
        return self.prompt + self.prefix
