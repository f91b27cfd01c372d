"""What every LanguageModel owes: its cache verbs change nothing but the work."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch

from maskwright.engine.model import Cache, LanguageModel

Reference = Callable[[list[int]], torch.Tensor]


def check_random_operations(
    model: LanguageModel, reference: Reference, seed: int, steps: int, highest: int, tolerance: float = 1e-3
) -> None:
    """Random forwards, forks, selections and truncations against one reading from the start per row.

    Args:
        model: what is tested.
        reference: logits ``(n, width)`` after every token of a sequence, without a cache.
        seed: of the operations.
        steps: how many of them.
        highest: token ids below this are used.
        tolerance: absolute, on logits.
    """
    random_ = random.Random(seed)
    rows: list[list[int]] = [[] for _ in range(random_.randint(1, 4))]
    cache = model.new_cache(len(rows))
    for _ in range(steps):
        room = min(model.context_length - len(row) for row in rows)
        choice = random_.choice(["forward", "forward", "forward_all", "fork", "select", "truncate"])
        if choice in ("forward", "forward_all") and room > 0:
            new = [[random_.randrange(highest) for _ in range(random_.randint(1, min(room, 9)))] for _ in rows]
            if random_.random() < 0.5:
                new = [row[:1] for row in new]
            _check_forward(model, reference, cache, rows, new, choice == "forward_all", tolerance)
        elif choice == "truncate" or room <= 0:
            lengths = [random_.randint(0, len(row)) for row in rows]
            cache.truncate(lengths)
            rows = [row[:length] for row, length in zip(rows, lengths, strict=True)]
        else:
            picked = [random_.randrange(len(rows)) for _ in range(random_.randint(1, 5))]
            if choice == "fork":
                before = cache.lengths
                twin = cache.fork(picked)
                _check_forward(
                    model, reference, cache, [list(row) for row in rows], [[1]] * len(rows), False, tolerance
                )
                cache.truncate(before)
                cache = twin
            else:
                cache.select(picked)
            rows = [list(rows[row]) for row in picked]
        assert cache.lengths == tuple(map(len, rows))


def _check_forward(
    model: LanguageModel,
    reference: Reference,
    cache: Cache,
    rows: list[list[int]],
    new: list[list[int]],
    every: bool,
    tolerance: float,
) -> None:
    got = model.forward_all(new, cache) if every else model.forward(new, cache).split(1)
    for row, added, logits in zip(rows, new, got, strict=True):
        row.extend(added)
        expected = reference(row)[-len(added) :] if every else reference(row)[-1:]
        width = expected.shape[1]
        assert logits.dtype == torch.float32
        assert torch.allclose(logits[:, :width], expected, atol=tolerance), (logits - expected).abs().max()
