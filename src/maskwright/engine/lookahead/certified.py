"""``method="certified"``: samples within ``epsilon`` of the model conditioned on the constraint, with the proof.

Prefixes are read, the most probable first, until the valid outputs found so far hold all but a share of ``epsilon`` of
what the valid ones can hold. The sample is drawn from those that were found. With ``L <= Z <= U`` for the mass of valid
outputs, the law of such samples differs from the exact one by at most ``1 - L / U`` in total variation: the exact law
gives an output found the probability ``P(x) / Z``, this one ``P(x) / L``, and what is missing is ``1 - L / Z``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from maskwright.engine.lookahead.guesses import Guesses
from maskwright.engine.lookahead.language import draw_down
from maskwright.engine.lookahead.search import ByMass, Leaf, Search
from maskwright.engine.lookahead.session import Session, no_output, run_sessions

if TYPE_CHECKING:
    from maskwright.engine.lookahead.settings import Lookahead, LookaheadStats
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.outcome import Outcome
    from maskwright.engine.request import Request
    from maskwright.engine.requests import Rules
    from maskwright.engine.rng import Stream
    from maskwright.engine.sampling import Sampling

__all__ = ["distance", "run", "sample", "tighten"]


def run(
    model: LanguageModel, requests: Sequence[Request], how: Rules, sampling: Sampling, settings: Lookahead
) -> list[Outcome]:
    """See `maskwright.engine.lookahead.run`."""
    return run_sessions(model, requests, how, sampling, settings, sample)


def distance(log_bounds: tuple[float, float]) -> float:
    """The bound on the total variation distance that bounds on ``log Z`` give; 1 where nothing valid is known."""
    low, high = log_bounds
    return 1.0 if low == -math.inf else max(0.0, -math.expm1(low - high))


def sample(session: Session, stream: Stream) -> tuple[Leaf, LookaheadStats]:
    """One sample, once enough is known.

    Raises:
        OutOfBudget: it took more forwards than it was allowed.
        UnsatisfiableError: there is no valid output of positive probability.
    """
    bound = tighten(session)
    return draw_down(session.trie, stream), session.stats("certified", bound == 0.0, 1, tv_bound=bound)


def tighten(session: Session) -> float:
    """Reads prefixes, the most probable first, until the bound is at most ``epsilon``; the bound.

    Raises:
        OutOfBudget: it took more forwards than it was allowed.
        UnsatisfiableError: there is no valid output of positive probability.
    """
    drafter = Guesses(session.base, session.trie) if session.how.drafts else None
    search = Search(session.base, session.trie, session.reader, ByMass, session.settings.frontier, drafter)
    left = True
    while left and distance(session.log_bounds) > session.settings.epsilon:
        left = search.step(session.may_read)
    if session.log_bounds[0] == -math.inf:
        raise no_output()
    return distance(session.log_bounds)
