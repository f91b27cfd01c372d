"""What a caller writes to have outputs drafted: ``strategy=Speculative(draft=...)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from maskwright._arguments import number, one_of, require, text, whole

if TYPE_CHECKING:
    import torch

    from maskwright.engine.model import LanguageModel

__all__ = ["Draft", "Heads", "NGram", "PromptLookup", "Speculative"]

# (state of the last token that the model has read before `tokens`, tokens after it) -> logits (V,) of what follows
# them, or None for no draft.
HeadFunction = Callable[["torch.Tensor", Sequence[int]], "torch.Tensor | None"]


# Every run of so many tokens is counted, and a forward verifies so many candidates: more is a slip.
_LONGEST_GRAM = 32
_WIDEST = 64


@dataclass(frozen=True)
class PromptLookup:
    """Drafts what followed the last tokens where they came before, in the prompt or the output (prompt lookup).

    Source: Saxena, "Prompt lookup decoding", 2023.

    Attributes:
        longest: how many of the last tokens to look for, at first.
        shortest: how many at least, where more are not found.
        text: another text to look in, before the prompt.
    """

    longest: int = 4
    shortest: int = 2
    text: str = ""

    def __post_init__(self) -> None:
        whole("longest", self.longest, 1)
        whole("shortest", self.shortest, 1)
        require("shortest", self.shortest, self.shortest <= self.longest, f"at most longest, which is {self.longest}")
        text("text", self.text)


@dataclass(frozen=True)
class NGram:
    """Drafts from counts of how tokens follow each other: a trigram model, say.

    Orders are interpolated down to the uniform distribution (Witten and Bell, "The zero-frequency problem", 1991), so
    that every token has a probability.

    Attributes:
        order: the longest run that is counted, 3 for trigrams.
        text: what to count; None for the prompt and the output so far.
    """

    order: int = 3
    text: str | None = None
    counted: dict[int, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("order", self.order, 1, _LONGEST_GRAM)
        if self.text is not None:
            text("text", self.text)


@dataclass(frozen=True)
class Heads:
    """Drafts from heads over the model's own hidden state.

    Attributes:
        function: given the state ``(E,)`` of the last token that the model has read before some tokens, and these
            tokens (at least one), the logits ``(V,)`` of what follows them, or None where it does not reach so far.
            Medusa's head for a distance is ``heads[len(tokens) - 1]`` of the state (Cai et al., ICML 2024); an
            autoregressive head reads the tokens too (EAGLE, Li et al., ICML 2024).
    """

    function: HeadFunction

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function is {self.function!r}; it must take a state and tokens, and give logits")


Draft: TypeAlias = "LanguageModel | PromptLookup | NGram | Heads"


@dataclass(frozen=True)
class Speculative:
    """Speculative decoding: tokens are drafted, and the model verifies several in one forward.

    The law of the output is that without drafts, under every constraint and rule of sampling; greedy outputs are the
    same token by token, as are those of prompt lookup and of variant ``"coupled"`` under the same seed.

    Attributes:
        draft: a smaller model with the same vocabulary; :class:`PromptLookup`, :class:`NGram` or :class:`Heads`.
        gamma: how many tokens to draft at a time. ``"auto"`` chooses from what was accepted and what steps cost, and
            drafts nothing where it does not pay.
        variant: what drafts are drawn from. ``"both"``: the draft's distribution under the mask. ``"target"``: without
            the mask; drafts outside of it are refused. ``"coupled"``: under the mask, with the random numbers of the
            output itself: fewer drafts are accepted, and the output does not depend on the draft at all.
        width: how many candidates for the first token of a draft, each continued, verified as a tree.
        longest: the most tokens that ``"auto"`` drafts.
        costs: for ``"auto"``, what drafting a token and verifying a further one cost, in decode steps of the model.
            None: measured where the output cannot depend on it, else (0.1, 0.1).
    """

    draft: Draft = PromptLookup()
    gamma: int | Literal["auto"] = "auto"
    variant: Literal["both", "target", "coupled"] = "both"
    width: int = 1
    longest: int = 15
    costs: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        from maskwright.engine.model import LanguageModel

        if not isinstance(self.draft, PromptLookup | NGram | Heads | LanguageModel):
            raise TypeError(
                f"draft is {type(self.draft).__name__}; pass a language model, PromptLookup(), NGram() or Heads(...)"
            )
        one_of("variant", self.variant, ("both", "target", "coupled"))
        if self.gamma != "auto":
            require("gamma", self.gamma, not isinstance(self.gamma, str), "'auto' or a whole number")
            whole("gamma", self.gamma, 0)
        whole("width", self.width, 1, _WIDEST)
        whole("longest", self.longest, 1)
        if self.costs is not None:
            self._check_costs(self.costs)

    def _check_costs(self, costs: object) -> None:
        if not isinstance(costs, tuple | list) or len(costs) != 2:
            raise ValueError(f"costs are {costs!r}; give two numbers")
        for at, cost in enumerate(costs):
            number(f"costs[{at}]", cost, 0)

    def as_dict(self) -> dict[str, Any]:
        """For the manifest of a run."""
        plain = isinstance(self.draft, PromptLookup | NGram | Heads)
        draft = repr(self.draft) if plain else getattr(self.draft, "name", "")
        names = ("gamma", "variant", "width", "longest", "costs")
        return {"name": "speculative", "draft": draft} | {name: getattr(self, name) for name in names}
