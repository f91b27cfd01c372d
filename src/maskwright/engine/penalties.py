"""What is added to logits before the mask: logit bias, and penalties for tokens seen before.

Sources: the repetition penalty, Keskar et al., "CTRL", 2019; frequency and presence penalties as in OpenAI's API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from maskwright.engine.truncation import log_mass

if TYPE_CHECKING:
    import torch

    from maskwright.engine.sampling import Sampling

__all__ = ["add_bias", "penalize"]


def add_bias(logits: torch.Tensor, bias: Mapping[int, float]) -> torch.Tensor:
    """Adds logit bias.

    Args:
        logits: float32, shape ``(rows, V)``.
        bias: token id -> addend, in order of ids; may be ``-inf``.

    Returns:
        The sum; the same tensor where there is no bias.

    Raises:
        ValueError: if an id is not in the vocabulary.
    """
    import torch

    if not bias:
        return logits
    ids = list(bias)
    if ids[-1] >= logits.shape[-1]:
        raise ValueError(f"logit_bias names token {ids[-1]}; the vocabulary has {logits.shape[-1]}")
    out = logits.clone()
    out[:, ids] += torch.tensor(list(bias.values()), dtype=out.dtype, device=out.device)
    return out


def penalize(logits: torch.Tensor, seen: Sequence[Mapping[int, int]], sampling: Sampling) -> torch.Tensor:
    """Applies the repetition penalty, then the frequency and presence penalties.

    Args:
        logits: float32, shape ``(rows, V)``.
        seen: per row, how often each token occurred.
        sampling: the strengths.

    Returns:
        The penalised logits; the same tensor where no token was seen.
    """
    import torch

    exempt = set(sampling.penalty_exempt)
    pairs = [(row, *pair) for row, counts in enumerate(seen) for pair in counts.items() if pair[0] not in exempt]
    if not pairs:
        return logits
    rows, ids, counts = torch.tensor(pairs, device=logits.device).unbind(-1)
    base = logits
    if sampling.penalty_space == "logprob" and sampling.repetition_penalty != 1:
        base = logits - log_mass(logits).unsqueeze(-1).to(logits.dtype)
    found = base[rows, ids]
    strength = sampling.repetition_penalty
    scaled = torch.where(found > 0, found / strength, found * strength)
    out = base.clone()
    out[rows, ids] = scaled - sampling.frequency_penalty * counts - sampling.presence_penalty
    return out
