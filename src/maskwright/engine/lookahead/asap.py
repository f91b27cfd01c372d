"""``method="asap"``: adaptive sampling with approximate expected futures, to be compared with.

Every sample walks down by ``p(t) U(ut)``, with the upper bounds that the samples before it have left. All samples are
valid; their law tends to the exact one as their number grows, and is that of masking step by step for the first.

Source: Park et al., "Grammar-aligned decoding", NeurIPS 2024 (arXiv:2405.21047), section 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from maskwright.engine.lookahead.search import Leaf, OutOfBudget
from maskwright.engine.lookahead.session import Session, no_output, run_sessions

if TYPE_CHECKING:
    from maskwright.engine.lookahead.base import Floats
    from maskwright.engine.lookahead.settings import Lookahead, LookaheadStats
    from maskwright.engine.lookahead.trie import Node
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
        UnsatisfiableError: there is no valid output of positive probability.
    """
    attempts = 0
    while True:
        attempts += 1
        leaf = _walk(session, stream, attempts)
        if leaf is not None:
            return leaf, session.stats("asap", False, attempts)
        if session.trie.root.dead:
            raise no_output()


def _walk(session: Session, stream: Stream, attempt: int) -> Leaf | None:
    """Walks down to an output; None where what seemed to lead to one does not."""
    node, trie = session.trie.root, session.trie
    while not node.dead:
        if not node.known:
            if not session.may_read():
                raise OutOfBudget
            session.reader.read([node])
        weights = _envelope(node)
        if node.dead or weights.max() == -math.inf:
            return None
        sums = np.cumsum(np.exp(weights - weights.max()))
        uniform = float(stream.uniforms(node.key, attempt)[-1])
        token = int(node.ids[min(int(np.searchsorted(sums, uniform * sums[-1], side="right")), len(sums) - 1)])
        if token in trie.eos:
            return Leaf(node, token)
        node = trie.child(session.base, node, token)
    return None


def _envelope(node: Node) -> Floats:
    """``log p(t) U(ut)`` of every allowed token."""
    assert node.logp is not None
    weights = node.logp.copy()
    for child in node.children.values():
        weights[child.place] += child.log_upper
    return weights
