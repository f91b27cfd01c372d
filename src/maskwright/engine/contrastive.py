"""Contrastive search: see :class:`maskwright.engine.beam.Contrastive`.

A step reads the candidates of all rows in one forward, each behind a copy of its row, and keeps one candidate per row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from maskwright.engine.decode import bitmask
from maskwright.engine.draw import Draw, mask_logits, why_not
from maskwright.engine.penalties import add_bias
from maskwright.engine.truncation import greatest, log_mass
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    from torch import Tensor

    from maskwright.engine.beam import Contrastive
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.row import Row
    from maskwright.engine.sampling import Sampling

__all__ = ["check_states", "run_contrastive"]


def check_states(model: LanguageModel) -> None:
    """Refuses models that do not show hidden states.

    Raises:
        GenerationError: the model has no ``forward_with_states``.
    """
    if not hasattr(model, "forward_with_states"):
        raise GenerationError(
            f"contrastive search needs hidden states, which {model.name} does not show",
            hint="Use load_model, TransformersModel, or give the model a method forward_with_states(tokens, cache)",
        )


def run_contrastive(
    model: LanguageModel, rows: Sequence[Row], how: Contrastive, sampling: Sampling, cancelled: Callable[[], bool]
) -> None:
    """Runs rows, made without forced runs, to their ends.

    Args:
        model: one with ``forward_with_states(tokens, cache)``: as ``forward_all``, with the hidden states after every
            token beside the logits, ``(len(tokens[r]), E)`` per row.
        rows: share forwards.
        how: the search.
        sampling: for logit bias.
        cancelled: asked before every forward.
    """
    live = [row for row in rows if row.running]
    if live and not cancelled():
        _run(model, live, how, sampling, cancelled)
    for row in rows:
        if row.running:
            row.end("cancelled")


def _run(
    model: LanguageModel, live: list[Row], how: Contrastive, sampling: Sampling, cancelled: Callable[[], bool]
) -> None:
    cache = model.new_cache(len(live))
    logits, states = _read(model, [row.request.read_first for row in live], cache, live)
    last = torch.stack([each[-1] for each in logits])
    seen = [_unit(each) for each in states]  # per row, (tokens, E)
    while True:
        ways = _candidates(live, last[:, : model.vocabulary.size], how.k, sampling)
        staying = [at for at, row in enumerate(live) if row.running]
        live, seen, ways = [live[at] for at in staying], [seen[at] for at in staying], [ways[at] for at in staying]
        if not live or cancelled():
            return
        owners = [at for at, mine in enumerate(ways) for _ in mine]
        cache.select([staying[at] for at in owners])
        logits, states = _read(model, [[way.token] for mine in ways for way in mine], cache, live)
        units = _unit(torch.cat(states))
        chosen, begin = list[int](), 0
        for at, (row, mine) in enumerate(zip(live, ways, strict=True)):
            best = begin + _best(mine, units[begin : begin + len(mine)], seen[at], how.alpha)
            row.take([mine[best - begin]], {})
            seen[at] = torch.cat([seen[at], units[best : best + 1]])
            chosen.append(best)
            begin += len(mine)
        going = [at for at, row in enumerate(live) if row.running]
        if not going:
            return
        cache.select([chosen[at] for at in going])
        last = torch.cat([logits[chosen[at]] for at in going])
        live, seen = [live[at] for at in going], [seen[at] for at in going]


def _read(
    model: Any, tokens: Sequence[Sequence[int]], cache: Any, rows: Sequence[Row]
) -> tuple[list[Tensor], list[Tensor]]:
    for row in rows:
        row.model_calls += 1
    logits, states = model.forward_with_states(tokens, cache)
    return logits, states


def _unit(states: Tensor) -> Tensor:
    return functional.normalize(states.float(), dim=-1)


def _candidates(rows: Sequence[Row], logits: Tensor, k: int, sampling: Sampling) -> list[list[Draw]]:
    """The most probable allowed tokens of each row, ties by lowest id; rows without any fail."""
    free = add_bias(logits.float(), sampling.logit_bias)
    allowed = bitmask([row.mask for row in rows], free.shape[-1])
    masked = free if allowed is None else mask_logits(free, allowed)
    mass, found = log_mass(free), list[list[Draw]]()
    kept: list[float] = (log_mass(masked) - mass).tolist()
    for at, row in enumerate(rows):
        line, total = masked[at], float(mass[at])
        ids = greatest(line, k)
        usable = math.isfinite(total) and len(ids) > 0
        if not usable:
            row.fail(why_not(logits[at], free[at], None if allowed is None else allowed[at]))
        pairs = zip(ids.tolist(), (line[ids].double() - total).tolist(), strict=True)
        found.append([Draw(token, logprob, min(kept[at], 0.0)) for token, logprob in pairs] if usable else [])
    return found


def _best(ways: Sequence[Draw], units: Tensor, seen: Tensor, alpha: float) -> int:
    """Which candidate is worth most; of equal ones the most probable."""
    alike = (units @ seen.T).amax(-1).double().cpu()
    likely = torch.tensor([way.logprob for way in ways], dtype=torch.float64)
    # At alpha 0 the greatest logprob decides: probabilities of very improbable tokens are all zero.
    worth = likely if alpha == 0 else (1 - alpha) * likely.exp() - alpha * alike
    return int(worth.argmax())
