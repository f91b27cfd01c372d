"""How tokens are drawn: the rules as one checked value, and the errors of rows from which nothing can be drawn.

The rules themselves are pure functions on rows of logits: `penalties`, `truncation`; `draw` puts them in order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from maskwright._arguments import flag, number, one_of, whole
from maskwright.errors import GenerationError

__all__ = ["BiasError", "DeadConstraintError", "NonFiniteLogitsError", "ORDER", "Sampling", "TRUNCATIONS"]

# Bias and penalties add finite numbers and come before the mask; what looks at ranks or total mass comes after it: a
# nucleus chosen before the mask can lose all its tokens to it.
TRUNCATIONS: Final = ("top_k", "top_p", "min_p", "typical_p", "eta", "epsilon")
ORDER: Final = ("logit_bias", "penalties", "mask", "temperature", *TRUNCATIONS)


class DeadConstraintError(GenerationError):
    """The mask of a row allows no token at all."""


class BiasError(GenerationError):
    """Logit bias forbids every token that the mask allows."""


class NonFiniteLogitsError(GenerationError):
    """The model's logits hold NaN or +inf, or give probability zero to every allowed token."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. Immutable; checked when made.

    Attributes:
        temperature: logits are divided by it; 0 takes the most probable allowed token (lowest id on ties), whatever the
            truncating rules say.
        top_k: only the ``top_k`` most probable allowed tokens stay (ties by lowest id); 0 keeps all.
        top_p: the smallest set of most probable tokens whose mass reaches ``top_p`` stays, the token that crosses the
            line included; 1 keeps all.
        min_p: tokens less probable than ``min_p`` times the most probable one go; 0 keeps all.
        logit_bias: token id -> number added to its logit; ``-inf`` forbids it. Never revives what the mask forbids.
        typical_p: of the tokens whose surprise is nearest to the entropy, as many stay as reach this mass; 1 keeps all.
        eta: tokens less probable than ``min(eta, sqrt(eta) exp(-entropy))`` go; 0 keeps all.
        epsilon: tokens less probable than this go; 0 keeps all. The most probable token always stays (eta too).
        repetition_penalty: positive logits of tokens seen before are divided by it, others multiplied; 1 is none.
        frequency_penalty: times the number of occurrences, taken from the logit of a token.
        presence_penalty: taken from the logit of a token seen before.
        penalty_scope: what counts as seen: the ``"output"``, or ``"all"``, the prompt too.
        penalty_space: what the repetition penalty scales: the ``"logit"`` (as published: it depends on a constant that
            a model may add to all its logits) or the ``"logprob"`` (it does not).
        penalty_exempt: ids that are never penalised.
        order: the rules in the order in which they are applied. Bias and penalties come before the mask, truncating
            rules after it; rules that are off may be left out.
        lazy_mask: draw first, and compute a mask only where the token drawn is not allowed. The tokens are the same;
            ``log_weight`` is NaN, as the mass that masks remove is not looked at. Not with truncating rules.

    Raises:
        ValueError: for a value outside of its range.
        TypeError: for one of a wrong type.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    typical_p: float = 1.0
    eta: float = 0.0
    epsilon: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_scope: Literal["output", "all"] = "output"
    penalty_space: Literal["logit", "logprob"] = "logit"
    penalty_exempt: Collection[int] = ()
    order: Sequence[str] = ORDER
    lazy_mask: bool = False

    def __post_init__(self) -> None:
        number("temperature", self.temperature, 0)
        whole("top_k", self.top_k, 0)
        number("top_p", self.top_p, above=0, most=1)
        number("min_p", self.min_p, 0, 1)
        number("typical_p", self.typical_p, above=0, most=1)
        number("eta", self.eta, 0, below=1)
        number("epsilon", self.epsilon, 0, below=1)
        number("repetition_penalty", self.repetition_penalty, above=0)
        number("frequency_penalty", self.frequency_penalty)
        number("presence_penalty", self.presence_penalty)
        one_of("penalty_scope", self.penalty_scope, ("output", "all"))
        one_of("penalty_space", self.penalty_space, ("logit", "logprob"))
        flag("lazy_mask", self.lazy_mask)
        object.__setattr__(self, "logit_bias", _bias(self.logit_bias))
        object.__setattr__(self, "penalty_exempt", tuple(sorted(_exempt(self.penalty_exempt))))
        object.__setattr__(self, "order", tuple(self.order))
        self._check_order()
        if self.lazy_mask and self.truncates:
            raise ValueError("lazy_mask draws before the mask, but truncating rules need it first: use one of them")

    def _check_order(self) -> None:
        order = tuple(self.order)
        unknown = [name for name in order if name not in ORDER]
        if unknown or len(set(order)) < len(order):
            raise ValueError(f"order is {order!r}; it must name some of {', '.join(ORDER)}, each once")
        missing = [name for name in ORDER if name not in order and (name == "mask" or self._is_on(name))]
        if missing:
            raise ValueError(f"order is {order!r}; it leaves out {', '.join(missing)}, which this sampling uses")
        mask = order.index("mask")
        late = [name for name in ("logit_bias", "penalties") if name in order[mask:]]
        early = [name for name in TRUNCATIONS if name in order[:mask]]
        if late or early:
            raise ValueError(
                f"order is {order!r}; logit_bias and penalties come before the mask, {', '.join(TRUNCATIONS)} after it"
            )

    def _is_on(self, name: str) -> bool:
        if name == "penalties":
            return self.penalizes
        # `temperature` is always on: a 1 divides by nothing, but a greedy call may be drawn again at another one.
        return name == "temperature" or bool(getattr(self, name) != _DEFAULTS[name])

    def __hash__(self) -> int:
        values = (getattr(self, each.name) for each in fields(self) if each.name != "logit_bias")
        return hash((*values, tuple(self.logit_bias.items())))

    @property
    def greedy(self) -> bool:
        """Whether nothing is drawn: temperature 0."""
        return self.temperature == 0

    @property
    def penalizes(self) -> bool:
        """Whether tokens seen before are treated in another way."""
        return (self.repetition_penalty, self.frequency_penalty, self.presence_penalty) != (1, 0, 0)

    @property
    def truncates(self) -> bool:
        """Whether some rule removes tokens that the mask allows."""
        return any(self._is_on(name) for name in TRUNCATIONS)

    def as_dict(self) -> dict[str, Any]:
        """The arguments that make an equal value, as JSON data except that ids are ints and bias may be -inf."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return values | {
            "logit_bias": dict(self.logit_bias),
            "penalty_exempt": list(self.penalty_exempt),
            "order": list(self.order),
        }


_DEFAULTS: Final = {
    "logit_bias": {}, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0, "eta": 0.0, "epsilon": 0.0,
}  # fmt: skip


def _bias(bias: Mapping[int, float]) -> dict[int, float]:
    """A copy, in the order of the ids."""
    if not isinstance(bias, Mapping):
        raise TypeError(f"logit_bias is {bias!r}; it must be a dict of token id to number")
    for token, value in bias.items():
        whole("an id of logit_bias", token, 0)
        if value != -math.inf:
            number(f"logit_bias[{token}]", value)
    return {operator.index(token): float(bias[token]) for token in sorted(bias)}


def _exempt(ids: Collection[int]) -> list[int]:
    if isinstance(ids, str) or not isinstance(ids, Collection):
        raise TypeError(f"penalty_exempt is {ids!r}; it must be a list of token ids")
    return [whole("an id of penalty_exempt", token, 0) for token in ids]
