"""Searches as values of ``strategy=``: what a beam search is, how its outputs are scored, what does not go with it.

Sources: length penalties, Wu et al., "Google's neural machine translation system", 2016, section 7 (GNMT); diverse
groups, Vijayakumar et al., "Diverse beam search", AAAI 2018; contrastive search, Su et al., "A contrastive framework
for neural text generation", NeurIPS 2022.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from maskwright._arguments import number, one_of, require, whole
from maskwright.engine.sampling import Sampling

__all__ = ["Beam", "Contrastive", "Search", "as_dict", "check_search"]


@dataclass(frozen=True, slots=True)
class Beam:
    """Beam search: the outputs of the greatest log-probability, among those that a limited search meets.

    The log-probability of an output is that of ``Result.logprob``: under the model before the mask, not renormalised
    over what the mask allows. Outputs are ordered by their score, log-probability over length penalty. With a
    constraint every output is complete within ``max_tokens``. Where ``width`` is at least the number of outputs
    that the constraint has within it (counted as sequences of tokens), the outputs are the best ones of all, exactly.

    Attributes:
        width: hypotheses kept at each step; with groups, of all groups together.
        length_penalty: divides the log-probability of an output of ``y`` tokens (those of prompt and prefix do not
            count, an EOS token does): ``"none"`` by 1, ``"power"`` by ``y ** alpha``, ``"gnmt"`` by
            ``((5 + y) / 6) ** alpha``.
        alpha: see there; above 0 favours long outputs, below 0 short ones.
        early_stopping: True stops once ``width`` outputs are found; ``"never"`` where none of those still written can
            be better than the worst of ``width`` found ones; False where none would be if it ended as long as it is
            now.
        groups: the beam is split into so many groups, each with its own hypotheses, that step one after the other.
        diversity: at each step a group ranks a token lower by this times the number of times that groups before it
            have chosen it at the same step. Scores stay those of the model.
        dedupe: ``"text"`` lists a text once, however its tokens cut it, and hypotheses of one text leave their places
            to those of others. None lists sequences of tokens.
        combine: the log-probability of a text that was found in several ways: ``"max"``, that of the best, or
            ``"logsumexp"``, that of all that were found.

    Raises:
        ValueError: for a value outside of its range.
        TypeError: for one of a wrong type.
    """

    width: int
    length_penalty: Literal["none", "power", "gnmt"] = "none"
    alpha: float = 1.0
    early_stopping: bool | Literal["never"] = "never"
    groups: int = 1
    diversity: float = 0.0
    dedupe: Literal["text"] | None = None
    combine: Literal["max", "logsumexp"] = "max"

    def __post_init__(self) -> None:
        whole("width", self.width, 1)
        one_of("length_penalty", self.length_penalty, ("none", "power", "gnmt"))
        number("alpha", self.alpha, -_STEEPEST, _STEEPEST)
        one_of("early_stopping", self.early_stopping, (True, False, "never"))
        whole("groups", self.groups, 1)
        require("groups", self.groups, self.width % self.groups == 0, f"a number that divides the width {self.width}")
        number("diversity", self.diversity, 0)
        alone = self.groups == 1 and self.diversity != 0
        require("diversity", self.diversity, not alone, "0 where there is one group; pass groups=2 or more")
        one_of("dedupe", self.dedupe, (None, "text"))
        one_of("combine", self.combine, ("max", "logsumexp"))
        apart = self.dedupe is None and self.combine != "max"
        require("combine", self.combine, not apart, "'max' unless dedupe='text' is given")

    def score(self, logprob: float, length: int) -> float:
        """What outputs are ordered by.

        Args:
            logprob: log-probability of the output in nats, at most 0.
            length: its number of tokens.
        """
        return logprob / self._penalty(length) if logprob else 0.0

    def best_attainable(self, logprob: float, length: int, most: int) -> float:
        """A score that no output beginning with a hypothesis exceeds, for ``early_stopping``.

        Args:
            logprob: of the hypothesis.
            length: its number of tokens; an output has at least one more.
            most: tokens that an output has at most.
        """
        if not self.early_stopping:
            return self.score(logprob, length)
        # Log-probabilities only fall. At most 0, they are best where what divides them is greatest.
        return self.score(logprob, most if self.alpha > 0 else length + 1)

    def _penalty(self, length: int) -> float:
        if self.length_penalty == "power":
            return float(length**self.alpha)
        return float(((5 + length) / 6) ** self.alpha) if self.length_penalty == "gnmt" else 1.0


@dataclass(frozen=True, slots=True)
class Contrastive:
    """Contrastive search: of the ``k`` most probable allowed tokens that which is likely and unlike what came before.

    A token ``v`` is worth ``(1 - alpha) p(v) - alpha max_j cos(h_v, h_j)``: its probability under the model (before the
    mask, not renormalised) against the greatest cosine between its hidden state in the last layer and those of all
    tokens before it, the prompt's included. The ``k`` candidates are read in one forward of ``k`` rows. The model must
    show hidden states: the packaged ones and :class:`TransformersModel` do.

    Attributes:
        k: candidates at each step.
        alpha: 0 is greedy decoding, 1 looks at the hidden states alone.

    Raises:
        ValueError: for a value outside of its range.
        TypeError: for one of a wrong type.
    """

    k: int = 4
    alpha: float = 0.6

    def __post_init__(self) -> None:
        whole("k", self.k, 1, 256)
        number("alpha", self.alpha, 0, 1)


Search = Beam | Contrastive


_STEEPEST = 10.0  # lengths to this power are still numbers


def check_search(strategy: Search, *, sampling: Sampling | None, n: int, **others: Any) -> None:
    """Refuses what does not go with a search.

    Args:
        strategy: the search.
        sampling: of the call.
        n: of the call.
        **others: arguments that must not be given.

    Raises:
        ValueError: naming the argument and what to write instead.
    """
    kind = type(strategy).__name__
    for name, value in others.items():
        if value is not None and value != ():
            raise ValueError(f"{name} does not go with strategy={kind}(...): {_INSTEAD[name]}")
    if sampling is not None and not (
        sampling.greedy and not (sampling.truncates or sampling.penalizes or sampling.lazy_mask)
    ):
        raise ValueError(
            f"strategy={kind}(...) draws nothing: leave sampling out, or pass Sampling(temperature=0, logit_bias=...)"
        )
    if isinstance(strategy, Beam) and n > strategy.width:
        raise ValueError(f"n is {n}, but a beam of width {strategy.width} has no more outputs; widen it")
    if isinstance(strategy, Contrastive) and n > 1:
        raise ValueError(f"n is {n}, but contrastive search has one output; pass sampling= or seed= instead of it")


_INSTEAD = {
    "seed": "it draws nothing; leave it out",
    "processor": "leave it out, or give bias as Sampling(temperature=0, logit_bias=...)",
    "logprobs": "leave it out; Result.fields and Result.regions have log-probabilities all the same",
    "stop": "pass stop tokens instead of strings, or write the end into the constraint, as Seq(..., Free(until=...))",
}


def as_dict(strategy: Search) -> dict[str, Any]:
    """For manifests: the name of the search and the arguments that make an equal one."""
    return {"name": type(strategy).__name__, **asdict(strategy)}
