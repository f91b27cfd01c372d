"""What the methods that work on a trie share: a session for each prompt, and what becomes of its samples."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from maskwright.engine.draw import Draw
from maskwright.engine.lookahead.base import Base
from maskwright.engine.lookahead.language import Texts, texts_of
from maskwright.engine.lookahead.reader import Reader
from maskwright.engine.lookahead.results import finished, unfinished
from maskwright.engine.lookahead.search import Leaf, OutOfBudget
from maskwright.engine.lookahead.settings import LookaheadStats
from maskwright.engine.lookahead.store import ENTRIES, put, take
from maskwright.errors import BudgetError, GenerationError, UnsatisfiableError

if TYPE_CHECKING:
    from maskwright.engine.lookahead.settings import Lookahead
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.outcome import Outcome
    from maskwright.engine.request import Request
    from maskwright.engine.requests import Rules
    from maskwright.engine.result import Result
    from maskwright.engine.rng import Stream
    from maskwright.engine.sampling import Sampling

    Sampler = Callable[["Session", Stream], tuple["Leaf", LookaheadStats]]

__all__ = ["Session", "budget_error", "check_base", "draws_of", "no_output", "run_sessions"]

_BEST = 5  # outputs that a BudgetError lists


class _Cancelled(Exception):
    """The caller's signal."""


class Session:
    """One prompt of a call.

    Attributes:
        base: its law.
        how: the rules of the call.
        trie: what is known.
        reader: asks the model.
        calls: forwards before the present sample; `nodes` distributions. What was read for all samples at once is added
            to those of the first.
    """

    def __init__(self, base: Base, how: Rules) -> None:
        self.base, self.how = base, how
        self.trie = take(base)
        self.reader = Reader(base, self.trie)
        self.calls = self.nodes = 0
        self.ahead = (0, 0)

    @property
    def settings(self) -> Lookahead:
        """Of the lookahead."""
        return self.base.settings

    @cached_property
    def texts(self) -> Texts:
        """The texts of a language that is known as a whole."""
        return texts_of(self.base, self.trie)

    @property
    def log_bounds(self) -> tuple[float, float]:
        """Bounds on ``log Z`` as they are now."""
        return self.trie.root.log_lower, self.trie.root.log_upper

    def may_read(self) -> bool:
        """Whether the present sample may take another forward."""
        if self.how.cancelled():
            raise _Cancelled
        # The prompt's forward comes with the first read.
        return self.reader.calls - self.calls < self.settings.budget_calls + (self.calls == 0)

    def stats(self, method: str, exact: bool, attempts: int, **more: Any) -> LookaheadStats:
        """What the present sample took."""
        low, high = self.log_bounds
        return LookaheadStats(
            method=method,
            exact=exact,
            calls=self.reader.calls - self.calls + self.ahead[0],
            nodes=self.reader.nodes - self.nodes + self.ahead[1],
            attempts=attempts,
            log_Z=high if low == high else (low, high),
            **more,
        )

    def outcomes(self, request: Request, sampler: Sampler) -> Outcome:
        """Draws one sample."""
        started = time.perf_counter()
        self.calls, self.nodes = self.reader.calls, self.reader.nodes
        self.trie.draws += 1
        try:
            if self.how.cancelled():
                raise _Cancelled
            leaf, stats = sampler(self, request.stream)
        except OutOfBudget:
            return self._fall_back(request, started)
        except _Cancelled:
            return unfinished(self._of(request), self.how, started, None)
        except GenerationError as error:
            return unfinished(self._of(request), self.how, started, error)
        finally:
            self.ahead = (0, 0)
            if self.trie.entries > ENTRIES and not self.trie.finite:
                self.trie.shrink(ENTRIES // 2)
        self.trie.accepted = [*self.trie.accepted[-15:], tuple(leaf.output())]
        return finished(self._of(request), draws_of(leaf), self.how, stats, started)

    def _of(self, request: Request) -> Base:
        return replace(self.base, request=request)

    def _fall_back(self, request: Request, started: float) -> Outcome:
        fallback, stats = self.settings.fallback, self.stats(self.settings.method, False, 1)
        if fallback == "raise":
            return unfinished(self._of(request), self.how, started, self._error(request, stats, started))
        if fallback == "smc":
            module = import_module(f"{__package__}.smc")
            settings = replace(self.settings, method="smc")
            how = replace(self.how, lookahead=settings)
            (out,) = module.run(self.base.model, [request], how, self.base.sampling, settings)
            return _costing(out, stats.calls, stats.nodes)
        from maskwright.engine.batch import run_requests

        how = replace(self.how, lookahead=None, sampling=self.base.sampling)
        (out,) = run_requests(self.base.model, [request], how)
        local = replace(stats, method="local", exact=False)
        out = replace(out, result=replace(out.result, lookahead=local))
        return _costing(out, out.result.stats.model_calls, len(out.result.tokens))

    def _error(self, request: Request, stats: LookaheadStats, started: float) -> BudgetError:
        leaves = heapq.nlargest(_BEST, _leaves(self), key=lambda leaf: leaf.logprob)
        found = [finished(self._of(request), draws_of(leaf), self.how, stats, started) for leaf in leaves]
        return budget_error(self, "had no sample to give", [out.result for out in found])


def budget_error(session: Session, found: str, best: Sequence[Result]) -> BudgetError:
    """The error of a budget that has ended."""
    low, high = session.log_bounds
    return BudgetError(
        f"after {session.settings.budget_calls} forwards lookahead {found}; the model obeys the constraint with a "
        f"probability between {math.exp(low):.2g} and {math.exp(high):.2g}",
        log_Z=(low, high),
        best=best,
        hint="Ask for the format in the prompt, raise budget_calls, or allow a fallback",
    )


def _costing(out: Outcome, calls: int, nodes: int) -> Outcome:
    """An outcome whose cost is greater by so many forwards and distributions."""
    stats = out.result.lookahead
    if stats is None:
        return out
    stats = replace(stats, calls=stats.calls + calls, nodes=stats.nodes + nodes, exact=False)
    return replace(out, result=replace(out.result, lookahead=stats))


def _leaves(session: Session) -> list[Leaf]:
    found = []
    for node in session.trie.known():
        assert node.logp is not None
        found += [Leaf(node, int(node.ids[at])) for at in node.ends if node.logp[at] > -math.inf]
    return found


def draws_of(leaf: Leaf) -> list[Draw]:
    """What is known of each token of an output."""
    node, token, found = leaf.node, leaf.token, []
    while True:
        found.append(Draw(token, node.logp_of(token), node.log_mass))
        if node.parent is None:
            return found[::-1]
        node, token = node.parent, node.token


@dataclass(frozen=True)
class _Group:
    session: Session
    requests: list[Request]


def check_base(base: Base) -> None:
    """Refuses a request that no output fits into, before any forward.

    Raises:
        GenerationError: empty prompt; more tokens than the context holds; a prefix that the constraint refuses; a
            budget that no output fits into.
    """
    from maskwright.engine.decode import checked_row

    checked_row(base.model, base.request, base.sampling, time.perf_counter())


def run_sessions(
    model: LanguageModel,
    requests: Sequence[Request],
    how: Rules,
    sampling: Sampling,
    settings: Lookahead,
    sampler: Sampler,
    prepare: Callable[[Sequence[Session]], None] = lambda sessions: None,
) -> list[Outcome]:
    """Draws a sample for every request.

    Args:
        model: the language model.
        requests: the samples of a prompt next to each other.
        how: the rules of the call.
        sampling: the rules of drawing.
        settings: of the lookahead.
        sampler: draws one.
        prepare: sees all prompts before any sample is drawn.

    Returns:
        One outcome per request, in order.

    Raises:
        UnsatisfiableError: the model gives probability 0 to all valid outputs.
    """
    groups: list[_Group] = []
    for request in requests:
        if groups and _same(groups[-1].requests[0], request):
            groups[-1].requests.append(request)
            continue
        base = Base(model, request, sampling, settings)
        check_base(base)
        groups.append(_Group(Session(base, how), [request]))
    try:
        prepare([group.session for group in groups])
        return [group.session.outcomes(request, sampler) for group in groups for request in group.requests]
    finally:
        for group in groups:
            put(group.session.base, group.session.trie)


def _same(one: Request, other: Request) -> bool:
    """Whether two requests are samples of the same law."""
    return replace(one, stream=other.stream) == other


def no_output() -> UnsatisfiableError:
    """The error of a language that the model gives probability 0."""
    return UnsatisfiableError(
        "the model gives probability 0 to every output of the constraint that fits into max_tokens",
        hint="Remove logit_bias, penalties or truncating rules that forbid them",
    )
