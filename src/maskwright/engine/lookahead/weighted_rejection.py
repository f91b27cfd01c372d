"""Adaptive weighted rejection: a token that a predicate accepts, and how much mass it accepts, from few questions.

Tokens are drawn without replacement from p and asked about, one after the other. The first that is accepted is a draw
from p among the accepted ones. The mass of those, p(S), is estimated from the same sequence: after x_1 .. x_{j-1},

    t_j = sum of p(x_i) over accepted x_i, i < j  +  [x_j accepted] (1 - sum of p(x_i), i < j)

is unbiased for p(S), given what came before (Des Raj, "Some estimators in sampling with varying probabilities without
replacement", JASA 1956). The mean of t_j over the questions *after* the first accepted token is therefore unbiased
given that token, which is what an importance weight needs: E[weight; token = t] = p(t). t_j up to there would not do:
those estimates depend on the token.

Source of the idea, with two other estimators: Lipkin et al., "Fast controlled generation from language models with
adaptive weighted rejection sampling", 2025 (arXiv:2504.05410). With one further question this one is their recursive
estimator with the accepted token's own mass counted, so that it is never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

__all__ = ["weighted_rejection"]

_FIRST = 64  # candidates that are sorted before all others


def weighted_rejection(
    log_p: npt.NDArray[np.float64],
    noise: npt.NDArray[np.float64],
    accepts: Callable[[int], bool],
    further: int = 1,
) -> tuple[int, float] | None:
    """Draws an index that is accepted.

    Args:
        log_p: logs of probabilities that sum to 1, shape ``(k,)``; ``-inf`` is never drawn.
        noise: standard Gumbel noise, shape ``(k,)``.
        accepts: whether an index is accepted; asked about each index at most once.
        further: questions after the first accepted index, at least 1; more make the estimate better.

    Returns:
        The index and an unbiased estimate of the accepted mass, in ``(0, 1]``; None where nothing is accepted.
    """
    order = _descending(log_p + noise)
    seen = accepted = 0.0
    chosen = None
    for at in order:
        p = float(np.exp(log_p[at]))
        seen += p
        if accepts(at):
            chosen, accepted = at, p
            break
    if chosen is None:
        return None
    estimates: list[float] = []
    for at in order:
        if len(estimates) == further:
            break
        good, p = accepts(at), float(np.exp(log_p[at]))
        estimates.append(accepted + max(0.0, 1.0 - seen) * good)
        seen, accepted = seen + p, accepted + p * good
    # All indices were asked about where the estimates ran out: the mass is known.
    exact = len(estimates) < further
    return chosen, min(1.0, accepted if exact else float(np.mean(estimates)))


def _descending(keys: npt.NDArray[np.float64]) -> Iterator[int]:
    """The indices of finite keys, greatest first, sorted as far as they are asked for."""
    first = np.argpartition(-keys, _FIRST)[:_FIRST] if len(keys) > _FIRST else np.arange(len(keys))
    first = first[np.argsort(-keys[first], kind="stable")]
    yield from (int(at) for at in first if keys[at] > -np.inf)
    if len(keys) > _FIRST:
        rest = np.setdiff1d(np.arange(len(keys)), first)
        rest = rest[np.argsort(-keys[rest], kind="stable")]
        yield from (int(at) for at in rest if keys[at] > -np.inf)
