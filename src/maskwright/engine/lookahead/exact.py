"""``method="exact"``: samples from the model conditioned on the constraint, from the first one on.

A language with few prefixes is computed as a whole; any other is searched by a race (`search`), which reads what it
needs and keeps it for the samples that follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from maskwright.engine.lookahead.guesses import Guesses
from maskwright.engine.lookahead.language import draw_down, enumerated, read_languages
from maskwright.engine.lookahead.search import Leaf, Race, Search
from maskwright.engine.lookahead.session import Session, no_output, run_sessions

if TYPE_CHECKING:
    from maskwright.engine.lookahead.settings import Lookahead, LookaheadStats
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.outcome import Outcome
    from maskwright.engine.request import Request
    from maskwright.engine.requests import Rules
    from maskwright.engine.rng import Stream
    from maskwright.engine.sampling import Sampling

__all__ = ["read_finite", "run", "sample"]


def run(
    model: LanguageModel, requests: Sequence[Request], how: Rules, sampling: Sampling, settings: Lookahead
) -> list[Outcome]:
    """See `maskwright.engine.lookahead.run`."""
    return run_sessions(model, requests, how, sampling, settings, sample, read_finite)


def read_finite(sessions: Sequence[Session]) -> None:
    """Reads the languages that are to be computed as a whole, those of several prompts together."""
    finite = _finite(sessions)
    while finite and not finite[0].how.cancelled():
        size = finite[0].how.batch_size
        grammar = finite[0].base.request.constraint
        batch = [session for session in finite if session.base.request.constraint is grammar][:size]
        finite = [session for session in finite if session not in batch]
        costs = read_languages([session.base for session in batch], [session.trie for session in batch])
        for session, cost in zip(batch, costs, strict=True):
            session.ahead = cost


def _finite(sessions: Sequence[Session]) -> list[Session]:
    """Those whose language is small enough."""
    found: list[Session] = []
    large = set()  # further prompts of the same request need not count again
    for session in sessions:
        request = session.base.request
        key = (id(request.constraint), request.prefix, request.max_tokens)
        if key not in large and enumerated(session.base, session.trie, session.settings.enumerate_nodes):
            found.append(session)
        else:
            large.add(key)
    return found


def sample(session: Session, stream: Stream) -> tuple[Leaf, LookaheadStats]:
    """One exact sample.

    Raises:
        OutOfBudget: it took more forwards than it was allowed.
        UnsatisfiableError: there is no valid output of positive probability.
    """
    if session.trie.finite:
        if session.trie.root.log_lower == -float("inf"):
            raise no_output()
        leaf, texts = draw_down(session.trie, stream), session.texts
        mode = texts.texts[0].decode(errors="replace")
        return leaf, session.stats("enumerate", True, 1, tv_bound=0.0, entropy=texts.entropy, mode=mode)
    invalid: list[float] = []
    drafter = Guesses(session.base, session.trie) if session.how.drafts else None
    search = Search(
        session.base,
        session.trie,
        session.reader,
        lambda node, time: Race(node, time, stream, invalid),
        session.settings.frontier,
        drafter,
    )
    found = search.next(session.may_read)
    if found is None:
        raise no_output()
    attempts = 1 + sum(time < search.time for time in invalid)
    return found, session.stats("exact", True, attempts, tv_bound=0.0)
