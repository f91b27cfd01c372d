"""Sessions of the sampler without the results around them, so that thousands of samples take seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import maskwright as mw
from engine.statistics import p_value
from maskwright.engine.lookahead import asap, certified, exact, reject
from maskwright.engine.lookahead.base import Base
from maskwright.engine.lookahead.session import Session
from maskwright.engine.requests import build_requests, compile_for, rules
from maskwright.engine.rng import Stream

# 17 strings; masking step by step overrates 00000, after whose first token nothing is left to be lost.
SKEWED = r"00000|1[01]{4}"
SAMPLERS = {"exact": exact.sample, "certified": certified.sample, "asap": asap.sample, "reject": reject.sample}

Sequences = list[tuple[int, ...]]
Law = Mapping[tuple[int, ...], float]


def session(
    model: Any,
    constraint: Any = SKEWED,
    max_tokens: int = 6,
    prompt: str = "0",
    sampling: mw.Sampling | None = None,
    drafts: bool = True,
    **settings: Any,
) -> Session:
    """A session that nobody else has anything to do with."""
    ahead = mw.Lookahead(**{"reuse": False, "budget_calls": 100_000, **settings})
    how = rules(lookahead=ahead, sampling=sampling, max_tokens=max_tokens, seed=0, drafts=drafts)
    grammar = compile_for(model, mw.Regex(constraint) if isinstance(constraint, str) else constraint)
    (request,) = build_requests(model, [prompt], [grammar], how)
    return Session(Base(model, request, how.sampling, ahead), how)


def one(current: Session, method: str, stream: Stream) -> tuple[int, ...]:
    """A sample."""
    current.calls = current.reader.calls
    current.trie.draws += 1
    leaf, _ = SAMPLERS[method](current, stream)
    current.trie.accepted = [*current.trie.accepted[-15:], tuple(leaf.output())]
    return tuple(leaf.output())


def drawn(current: Session, method: str, n: int, seed: int) -> Sequences:
    """Samples, one after the other from one session."""
    exact.read_finite([current])
    return [one(current, method, Stream(seed, at)) for at in range(n)]


def chi_square(samples: Sequence[tuple[int, ...]], law: Law) -> float:
    """The p-value of samples under a law (which is normalised)."""
    keys = list(law)
    counted = Counter(samples)
    assert set(counted) <= set(keys), "a sample is no valid output"
    p = np.array([law[key] for key in keys])
    return p_value(np.array([counted[key] for key in keys]), p / p.sum())


def largest_error(samples: Sequence[tuple[int, ...]], law: Law) -> float:
    """The greatest deviation of a frequency, in standard deviations."""
    counted, total, n = Counter(samples), sum(law.values()), len(samples)
    errors = []
    for key, mass in law.items():
        p = mass / total
        errors.append(abs(counted[key] - n * p) / max(np.sqrt(n * p * (1 - p)), 1.0))
    return float(max(errors))


def distance(one: Law, other: Law) -> float:
    """Total variation distance of two laws, both normalised first."""
    a, b = sum(one.values()), sum(other.values())
    return 0.5 * sum(abs(one.get(k, 0.0) / a - other.get(k, 0.0) / b) for k in {*one, *other})
