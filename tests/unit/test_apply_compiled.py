"""`apply_bitmask_` under torch.compile: one operator, no break of the graph, the same logits as without."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import maskwright as mw  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_apply_bitmask_compiles_to_one_graph(dtype: torch.dtype) -> None:
    width, rows = 1000, 3
    logits = torch.linspace(-4, 4, rows * width).reshape(rows, width).to(dtype)
    bitmask = torch.from_numpy(np.random.default_rng(1).integers(-(2**31), 2**31, (rows, 31), dtype=np.int32))

    def masked(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return mw.apply_bitmask_(scores * 2, mask) + 1

    expected = masked(logits, bitmask)
    assert torch.isinf(expected).any()
    assert not torch.isinf(expected).all()
    graphs = []

    def count(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(masked, fullgraph=True, backend=count)
    assert torch.equal(compiled(logits, bitmask), expected)
    assert len(graphs) == 1
