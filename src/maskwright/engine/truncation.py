"""Rules that remove tokens: pure functions on rows of logits.

All take logits of shape ``(rows, V)`` in which ``-inf`` stands for tokens that are gone, and give a tensor of
the same shape with more of them; probabilities are the softmax of the row that is given. At least one token stays. Rows
are independent of each other. On a device other than the CPU nothing here waits for it: no number is read back.

Sources: nucleus sampling, Holtzman et al., "The curious case of neural text degeneration", ICLR 2020; min-p, Nguyen et
al., "Turning up the heat", 2024; typical sampling, Meister et al., "Locally typical sampling", TACL 2023; epsilon and
eta sampling, Hewitt et al., "Truncation sampling as language model desmoothing", EMNLP 2022.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from maskwright.engine.sampling import Sampling

__all__ = ["entropy", "keep_epsilon", "keep_eta", "keep_min_p", "keep_top_k", "keep_top_p", "keep_typical", "log_mass"]
__all__ += ["greatest", "on_host", "scale", "truncate"]

_NUCLEUS_GUESS = 1024  # a nucleus is rarely larger; sorting this many costs a tenth of sorting a vocabulary


def on_host(tensor: torch.Tensor) -> bool:
    """Whether reading a number of this tensor costs nothing."""
    return tensor.device.type == "cpu"


def scale(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """Divides by the temperature, greatest logit of the row first moved to 0 so that nothing overflows.

    Args:
        logits: float32, shape ``(rows, V)``; ``-inf`` stays.
        temperature: greater than 0.

    Returns:
        New tensor of the same shape, its greatest entry per row 0 (rows without a finite entry stay ``-inf``).
    """
    top = logits.amax(dim=-1, keepdim=True)
    return (logits - top.nan_to_num(neginf=0.0)) / temperature


def log_mass(logits: torch.Tensor) -> torch.Tensor:
    """Log of the summed exponentials of each row, float64 of shape ``(rows,)``; ``-inf`` for an empty row."""
    import torch

    top = logits.amax(dim=-1, keepdim=True).nan_to_num(nan=math.nan, neginf=0.0)
    return (logits - top).exp().sum(-1, dtype=torch.float64).log() + top.squeeze(-1)


def entropy(logits: torch.Tensor) -> torch.Tensor:
    """Entropy of each row's softmax in nats, float64 of shape ``(rows,)``."""
    logp = logits.double() - log_mass(logits).unsqueeze(-1)
    return -(logp.exp() * logp.clamp(min=-1e300)).sum(-1)


def keep_top_k(logits: torch.Tensor, k: int) -> torch.Tensor:
    """Keeps the ``k`` greatest entries of each row, exactly that many, ties by lowest id; others become ``-inf``."""
    k = min(k, logits.shape[-1])
    return _keep_greatest(logits, logits.topk(k, dim=-1).values[:, -1:], k)


def greatest(row: torch.Tensor, count: int) -> torch.Tensor:
    """Indices of the ``count`` greatest entries of a vector, or of fewer: ``-inf`` is none; ties by lowest index."""
    least = row.topk(min(count, len(row))).values[-1]
    # All that equal the last one stay for now: topk takes any of them.
    index = ((row >= least) & (row > -math.inf)).nonzero().squeeze(-1)
    return index[row[index].sort(descending=True, stable=True).indices[:count]]


def _keep_greatest(logits: torch.Tensor, threshold: torch.Tensor, counts: torch.Tensor | int) -> torch.Tensor:
    """Keeps ``counts`` entries of each row, all above the threshold ``(rows, 1)`` and the first few equal to it."""
    kept = logits >= threshold
    if not on_host(logits) or bool((kept.sum(-1) > counts).any()):
        # torch.topk breaks ties as it likes: of those equal to the last value kept, the first few by id stay.
        above, equal = logits > threshold, logits == threshold
        room = (counts - above.sum(-1)).unsqueeze(-1)
        kept = above | (equal & (equal.cumsum(-1) <= room))
    return logits.masked_fill(~kept, -math.inf)


def keep_top_p(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    """Keeps the smallest set of most probable tokens whose mass is at least ``top_p`` (Holtzman et al. 2020).

    A token goes if the tokens before it, in order of probability and then id, already hold ``top_p``: the one that
    crosses the line stays, and there is always one.
    """
    if top_p >= 1:
        return logits
    width = min(_NUCLEUS_GUESS, logits.shape[-1]) if on_host(logits) else logits.shape[-1]
    largest = logits.topk(width, dim=-1).values
    counts = _nucleus_size(largest, log_mass(logits), top_p)
    if width < logits.shape[-1] and bool((counts > width).any()):
        largest = logits.topk(logits.shape[-1], dim=-1).values
        counts = _nucleus_size(largest, log_mass(logits), top_p)
    counts = counts.clamp(max=largest.shape[-1])
    return _keep_greatest(logits, largest.gather(-1, (counts - 1).unsqueeze(-1)), counts)


def _nucleus_size(ordered: torch.Tensor, mass: torch.Tensor, share: float) -> torch.Tensor:
    """How many of the ordered logits ``(rows, n)`` it takes to hold a share; ``n + 1`` stands for more than all."""
    before = (ordered.double() - mass.unsqueeze(-1)).exp().cumsum(-1)
    return 1 + (before < share).sum(-1)


def keep_min_p(logits: torch.Tensor, min_p: float) -> torch.Tensor:
    """Keeps tokens at least ``min_p`` times as probable as the most probable one (Nguyen et al. 2024)."""
    if min_p <= 0:
        return logits
    top = logits.amax(dim=-1, keepdim=True).double()
    return logits.masked_fill(logits.double() < top + math.log(min_p), -math.inf)


def keep_typical(logits: torch.Tensor, typical_p: float) -> torch.Tensor:
    """Keeps the tokens of most typical surprise that together hold ``typical_p`` (Meister et al. 2023).

    Tokens are ordered by how far ``-log p`` is from the entropy, ties by lowest id; the one that crosses the line
    stays.
    """
    import torch

    if typical_p >= 1:
        return logits
    logp = logits.double() - log_mass(logits).unsqueeze(-1)
    distance = (logp + entropy(logits).unsqueeze(-1)).abs()
    order = distance.sort(dim=-1, stable=True).indices
    ordered = logp.gather(-1, order).exp()
    kept = torch.empty_like(ordered, dtype=torch.bool)
    kept.scatter_(-1, order, ordered.cumsum(-1) - ordered < typical_p)
    return logits.masked_fill(~kept, -math.inf)


def keep_epsilon(logits: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Keeps tokens of probability ``epsilon`` or more, and the most probable ones (Hewitt et al. 2022)."""
    return logits if epsilon <= 0 else _keep_above(logits, math.log(epsilon))


def keep_eta(logits: torch.Tensor, eta: float) -> torch.Tensor:
    """Keeps tokens of probability ``min(eta, sqrt(eta) exp(-entropy))`` or more, and the most probable (ibid.)."""
    if eta <= 0:
        return logits
    return _keep_above(logits, (0.5 * math.log(eta) - entropy(logits)).clamp(max=math.log(eta)).unsqueeze(-1))


def _keep_above(logits: torch.Tensor, least: torch.Tensor | float) -> torch.Tensor:
    logp = logits.double() - log_mass(logits).unsqueeze(-1)
    return logits.masked_fill((logp < least) & (logits < logits.amax(dim=-1, keepdim=True)), -math.inf)


def truncate(logits: torch.Tensor, sampling: Sampling, rules: tuple[str, ...]) -> torch.Tensor:
    """The named rules, in this order, on masked logits of shape ``(rows, V)``."""
    for rule in rules:
        if rule == "temperature":
            logits = scale(logits, sampling.temperature or 1.0)
        elif rule == "top_k":
            logits = keep_top_k(logits, sampling.top_k) if sampling.top_k else logits
        elif rule == "top_p":
            logits = keep_top_p(logits, sampling.top_p)
        elif rule == "min_p":
            logits = keep_min_p(logits, sampling.min_p)
        elif rule == "typical_p":
            logits = keep_typical(logits, sampling.typical_p)
        elif rule == "eta":
            logits = keep_eta(logits, sampling.eta)
        else:
            logits = keep_epsilon(logits, sampling.epsilon)
    return logits
