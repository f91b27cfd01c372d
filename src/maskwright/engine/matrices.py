"""Products with weights: as they are, or rounded to 8 bits for decoding on a CPU.

A decode step reads every weight once and does little else: its time is that of the memory they take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Int8Matrix", "Matrix", "multiply"]

# From so many rows on, the product is worth a copy of the weights in bfloat16.
_MANY_ROWS = 32
# With few rows MKL is faster with the weights on the left (2025, with AVX-512): 54 ms against 98 for two tokens of
# SmolLM2-135M, 74 against 99 for four; from six on it is not.
_FEW_ROWS = 4
_MKL: bool = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]


class Int8Matrix:
    """A weight matrix of ``(out, in)`` with 8 bits per weight and a scale per output.

    Args:
        weight: float32.
    """

    def __init__(self, weight: Tensor) -> None:
        self.shape = weight.shape
        scale = weight.abs().amax(dim=1).clamp(min=1e-30) / 127
        self.weight = (weight / scale.unsqueeze(1)).round_().to(torch.int8)
        self.scale = scale
        self._ones = torch.ones(weight.shape[0], dtype=torch.bfloat16)

    def __call__(self, states: Tensor) -> Tensor:
        """The product with ``(n, in)``, float32 of ``(n, out)``."""
        rounded = states.bfloat16()
        if len(states) < _MANY_ROWS:
            # Scaled here, in float32: the kernel would round the scales to bfloat16.
            product = torch.ops.aten._weight_int8pack_mm(rounded, self.weight, self._ones)
        else:
            product = functional.linear(rounded, self.weight.bfloat16())
        scaled: Tensor = product.float() * self.scale
        return scaled


Matrix: TypeAlias = "Tensor | Int8Matrix"


def multiply(states: Tensor, matrix: Matrix) -> Tensor:
    """``states @ matrix.T`` for states of ``(n, in)``."""
    if isinstance(matrix, Int8Matrix):
        return matrix(states)
    if _MKL and 1 < len(states) <= _FEW_ROWS and states.dtype == torch.float32 and states.device.type == "cpu":
        return (matrix @ states.T).T.contiguous()
    return functional.linear(states, matrix)
