"""Token bitmasks: int32 rows, bit i of word w is token 32*w+i; 1 = allowed. The layout that xgrammar and vLLM use."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maskwright import _core
from maskwright.matcher import Matcher
from maskwright.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

__all__ = ["allocate_bitmask", "apply_bitmask", "apply_bitmask_", "fill_bitmask"]


def allocate_bitmask(batch: int, vocab: Vocabulary | int) -> NDArray[np.int32]:
    """A bitmask that allows everything, of shape ``(batch, ceil(V / 32))``, int32.

    Args:
        batch: number of rows.
        vocab: the vocabulary, or the number of its ids (then of any model width).
    """
    size = vocab.size if isinstance(vocab, Vocabulary) else int(vocab)
    return np.full((batch, (size + 31) // 32), -1, dtype=np.int32)


def fill_bitmask(
    matchers: Sequence[Matcher | None],
    bitmask: Any,
    indices: Sequence[int] | None = None,
    max_tokens: int | Sequence[int | None] | None = None,
) -> None:
    """Fills rows of a bitmask, in parallel, with the GIL released.

    Args:
        matchers: one a row; None allows everything there.
        bitmask: int32 or uint32, shape ``(rows, words)``, contiguous: numpy, or a CPU tensor.
        indices: the row of each matcher; by default 0, 1, 2, ...
        max_tokens: tokens left, EOS included, for all or for each: then only tokens after which the text can still be
            finished are set.

    Raises:
        ValueError: shapes that do not fit.
        MaskwrightError: a matcher is in use by another thread.
    """
    matchers = list(matchers)
    rows = list(range(len(matchers))) if indices is None else [int(i) for i in indices]
    if len(rows) != len(matchers):
        raise ValueError(f"{len(matchers)} matchers but {len(rows)} indices")
    if len(set(rows)) != len(rows):
        raise ValueError("two matchers have the same row")
    limits = max_tokens if isinstance(max_tokens, Sequence) else [max_tokens] * len(matchers)
    if len(limits) != len(matchers):
        raise ValueError(f"{len(matchers)} matchers but {len(limits)} budgets")
    _core.fill_batch(matchers, bitmask, rows, [-1 if n is None else max(int(n), 0) for n in limits])


def _rows(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) == 1:
        return 1, shape[0]
    if len(shape) == 2:
        return shape[0], shape[1]
    raise ValueError(f"logits have the shape (rows, width), not {shape}")


def apply_bitmask(logits: NDArray[Any], bitmask: Any) -> NDArray[Any]:
    """A copy of the logits with minus infinity where the mask says no, and beyond the mask's width.

    Args:
        logits: float16, float32 or float64, shape ``(rows, width)`` or ``(width,)``.
        bitmask: int32, shape ``(rows, words)`` or ``(words,)``.
    """
    if logits.dtype.kind != "f":
        raise TypeError(f"logits are floats, not {logits.dtype}")
    out = np.ascontiguousarray(logits).copy()
    rows, width = _rows(out.shape)
    infinity = int.from_bytes(np.array(-np.inf, dtype=out.dtype).tobytes(), sys.byteorder)
    mask = np.ascontiguousarray(bitmask).reshape(rows, -1)
    _core.apply_rows(out.ctypes.data, rows, width, width, out.itemsize, mask, infinity)
    return out


def apply_bitmask_(logits: torch.Tensor, bitmask: Any) -> torch.Tensor:
    """Sets logits to minus infinity, in place, where the mask says no, and beyond the mask's width.

    Args:
        logits: float tensor of shape ``(rows, width)`` or ``(width,)``, on any device.
        bitmask: int32, shape ``(rows, words)`` or ``(words,)``: numpy or tensor; off the CPU a tensor
            there avoids a copy. Under `torch.compile` a tensor: the call is one opaque operator there.
    """
    import torch

    rows, width = _rows(tuple(logits.shape))
    table = bitmask if isinstance(bitmask, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(bitmask))
    table = table.reshape(rows, -1)
    if torch.compiler.is_compiling():
        torch.ops.maskwright.apply_bitmask(logits, table)
        return logits
    _apply(logits, table, rows, width)
    return logits


def _apply(logits: torch.Tensor, table: torch.Tensor, rows: int, width: int) -> None:
    import torch

    if logits.device.type == "cpu" and table.device.type == "cpu" and (width == 0 or logits.stride(-1) == 1):
        _apply_on_cpu(logits, table, rows, width)
        return
    table = table.to(logits.device, non_blocking=True)
    bits = torch.arange(32, device=logits.device, dtype=table.dtype)
    denied = ((table.unsqueeze(-1) >> bits) & 1).eq(0).reshape(rows, -1)[:, :width].reshape(*logits.shape[:-1], -1)
    logits[..., : denied.shape[-1]].masked_fill_(denied, float("-inf"))
    logits[..., denied.shape[-1] :] = float("-inf")


def _apply_on_cpu(logits: torch.Tensor, table: torch.Tensor, rows: int, width: int) -> None:
    import torch

    patterns = {
        torch.float32: (4, 0xFF800000),
        torch.float16: (2, 0xFC00),
        torch.bfloat16: (2, 0xFF80),
        torch.float64: (8, 0xFFF0000000000000),
    }
    if logits.dtype not in patterns:
        raise TypeError(f"logits are floats, not {logits.dtype}")
    size, infinity = patterns[logits.dtype]
    stride = logits.stride(0) if logits.dim() == 2 else width
    mask = table.contiguous().numpy().view(np.uint32)
    _core.apply_rows(logits.data_ptr(), rows, width, stride, size, mask, infinity)


def _register_operator() -> None:
    """Makes the call an operator of torch, `maskwright::apply_bitmask`, for traced code."""
    import torch

    def apply_bitmask(logits: torch.Tensor, bitmask: torch.Tensor) -> None:
        rows, width = _rows(tuple(logits.shape))
        _apply(logits, bitmask, rows, width)

    annotations = {"logits": torch.Tensor, "bitmask": torch.Tensor, "return": None}
    apply_bitmask.__annotations__ = annotations  # they are strings in this file, which torch cannot read
    made = torch.library.custom_op("maskwright::apply_bitmask", apply_bitmask, mutates_args=("logits",))
    made.register_fake(lambda logits, bitmask: None)


if "torch" in sys.modules:  # whoever traces has imported it; nobody else should have to
    _register_operator()
