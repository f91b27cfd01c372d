"""What a call asks of the lookahead sampler, and what its results say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, cast

from maskwright._arguments import flag, number, one_of, require, whole

__all__ = ["METHODS", "Lookahead", "LookaheadStats", "Method", "as_lookahead"]

Method = Literal["exact", "certified", "smc", "asap", "reject"]
METHODS: Final = ("exact", "certified", "smc", "asap", "reject")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookahead:
    """How outputs are drawn from the model conditioned on the constraint. Immutable; checked when made.

    Attributes:
        method: ``"exact"``: the law is the model's own, given that the output is valid, from the first sample on.
            ``"certified"``: at most `epsilon` away from it in total variation, with the bound in the result.
            ``"smc"``: particles; biased by a share that falls with their number. ``"asap"`` (a bias that falls with the
            number of outputs drawn before) and ``"reject"`` (exact, by trying until an output happens to be valid)
            are here to be compared with.
        budget_calls: the most forwards that one output may take, the prompt's not counted.
        epsilon: of ``"certified"``.
        particles: of ``"smc"``.
        ess_threshold: of ``"smc"``: particles are resampled where their effective number falls below this share.
        twist: of ``"smc"``: what takes part in resampling beside the weights. ``"one-step"``: the mass that the next
            mask keeps, at no cost; None; or a function that gives the log of a positive number for the text so far: a
            guess of how likely the model is to end it validly.
        block_nodes: of ``"smc"``: the most prefixes below a particle that one move takes in at once, where the
            constraint leaves little choice; 1 for moves of one token.
        checks: of ``"smc"`` with a Predicate: questions per token beyond those that find one; more of them make weights
            less noisy.
        fallback: what happens where the budget ends: ``"raise"`` a BudgetError, draw with ``"smc"``, or by masking
            step by step (``"local"``); the last two give results that say ``exact=False``.
        tokenization: ``"all"``: every spelling of a text in tokens counts, each with the probability that the model
            gives it. ``"canonical"``: only the tokenizer's own.
        frontier: prefixes that share a forward. More of them are faster where a batch costs little more than a row;
            outputs do not depend on it.
        enumerate_nodes: languages with at most so many prefixes are computed as a whole.
        truncation: whether the truncating rules of ``sampling`` may be part of the distribution. They then act before
            the mask, and may leave no valid output.
        reuse: whether what was learnt of (model, prompt, constraint, rules) is kept for calls that follow.

    Raises:
        ValueError: a value out of its range.
        TypeError: one of a wrong type.
    """

    method: Method = "exact"
    budget_calls: int = 256
    epsilon: float = 0.05
    particles: int = 16
    ess_threshold: float = 0.5
    twist: Literal["one-step"] | Callable[[str], float] | None = "one-step"
    block_nodes: int = 32
    checks: int = 1
    fallback: Literal["raise", "smc", "local"] = "raise"
    tokenization: Literal["all", "canonical"] = "all"
    frontier: int = 4
    enumerate_nodes: int = 4096
    truncation: bool = False
    reuse: bool = True

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        number("epsilon", self.epsilon, above=0, below=1)
        number("ess_threshold", self.ess_threshold, 0, 1)
        one_of("fallback", self.fallback, ("raise", "smc", "local"))
        one_of("tokenization", self.tokenization, ("all", "canonical"))
        if not callable(self.twist):
            require("twist", self.twist, self.twist in (None, "one-step"), "'one-step', None or a function")
        for name in ("budget_calls", "particles", "block_nodes", "checks", "frontier"):
            whole(name, getattr(self, name), 1)
        whole("enumerate_nodes", self.enumerate_nodes, 0)
        flag("truncation", self.truncation)
        flag("reuse", self.reuse)


def as_lookahead(value: Lookahead | str | None) -> Lookahead | None:
    """The settings that a caller's ``lookahead=`` stands for.

    Raises:
        ValueError: an unknown method.
        TypeError: something else than settings, a method or None.
    """
    if value is None or isinstance(value, Lookahead):
        return value
    if not isinstance(value, str):
        raise TypeError(f"lookahead is {value!r}; pass a method such as 'exact', or maskwright.Lookahead(...)")
    return Lookahead(method=cast("Method", value))


@dataclass(frozen=True, slots=True)
class Weighted:
    """A particle at its end.

    Attributes:
        text: of the output.
        tokens: the EOS is the last.
        weight: its share; those of all particles sum to 1.
        logprob: log of the model's probability of the tokens.
    """

    text: str
    tokens: tuple[int, ...]
    weight: float
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LookaheadStats:
    """What is known of the law that an output was drawn from, and what it cost.

    Attributes:
        method: by which it was drawn: that of the settings; ``"enumerate"`` where the language was computed as a whole;
            that of the fallback.
        exact: whether the output was drawn from the model conditioned on the constraint itself.
        calls: forwards made for this output, those of the prompt included; 0 where all was known.
        nodes: prefixes whose next-token distribution was computed for it.
        attempts: outputs, or beginnings of outputs, that were looked at: 1 where the first was good.
        log_Z: log of the probability that the model, unmasked, writes a valid output and ends it within
            ``max_tokens``: a number where it is known or estimated, ``(low, high)`` where it is bounded.
        ess: effective number of particles at the end; None without particles.
        tv_bound: bound on the total variation distance between the law of this output and the exact one; 0 where exact,
            None where there is no bound.
        entropy: of the exact law in nats; None unless the language was computed as a whole.
        mode: text of the most probable output, tokenisations summed; None unless the language was computed as a whole.
        particles: all that ended with a weight, of which the output is one; None without particles.
    """

    method: str
    exact: bool
    calls: int
    nodes: int
    attempts: int
    log_Z: float | tuple[float, float]
    ess: float | None = None
    tv_bound: float | None = None
    entropy: float | None = None
    mode: str | None = None
    particles: tuple[Weighted, ...] | None = None
