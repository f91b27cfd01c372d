"""``method="reject"``: unmasked sampling, from the start again wherever a token is not allowed, to be compared with.

Exact, and the price is what the model charges: on average ``1 / Z`` attempts, of which none knows of those before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from maskwright.engine.lookahead.search import Leaf, OutOfBudget
from maskwright.engine.lookahead.session import Session, no_output, run_sessions
from maskwright.engine.lookahead.trie import Trie

if TYPE_CHECKING:
    from maskwright.engine.lookahead.settings import Lookahead, LookaheadStats
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.outcome import Outcome
    from maskwright.engine.request import Request
    from maskwright.engine.requests import Rules
    from maskwright.engine.rng import Stream
    from maskwright.engine.sampling import Sampling

__all__ = ["run", "sample"]


def run(
    model: LanguageModel, requests: Sequence[Request], how: Rules, sampling: Sampling, settings: Lookahead
) -> list[Outcome]:
    """See `maskwright.engine.lookahead.run`."""
    return run_sessions(model, requests, how, sampling, settings, sample)


def sample(session: Session, stream: Stream) -> tuple[Leaf, LookaheadStats]:
    """One sample.

    Raises:
        OutOfBudget: it took more forwards than it was allowed.
        UnsatisfiableError: the model gives probability 0 to every first token.
    """
    if not session.trie.root.known:
        if not session.may_read():
            raise OutOfBudget
        session.reader.read([session.trie.root])
    if session.trie.root.dead:
        raise no_output()
    attempts = 0
    while True:
        attempts += 1
        leaf = _attempt(session, stream, attempts)
        if leaf is not None:
            return leaf, session.stats("reject", True, attempts, tv_bound=0.0)


def _attempt(session: Session, stream: Stream, attempt: int) -> Leaf | None:
    """Samples token by token without a mask; None at the first that is not allowed. What is read is forgotten."""
    if not session.may_read():
        raise OutOfBudget
    trie = Trie(session.base)
    session.reader.restart(trie)
    node = trie.root
    while len(node.ids):
        if not node.known:
            if not session.may_read():
                raise OutOfBudget
            session.reader.read([node])
        assert node.logp is not None
        kind, which = stream.uniforms(node.key, 2 * attempt)[-2:]
        if kind >= math.exp(node.log_mass):
            return None
        sums, _ = node.cumulative()
        token = int(node.ids[min(int(np.searchsorted(sums, which * sums[-1], side="right")), len(sums) - 1)])
        if token in trie.eos:
            return Leaf(node, token)
        node = trie.child(session.base, node, token)
    return None
