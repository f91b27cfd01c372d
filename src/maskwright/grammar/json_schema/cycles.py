"""Cycles of the reference graph, found by depth-first search with an explicit stack.

A cycle of schemas that apply to the *same* value consumes nothing: whether it holds is not defined (JSON Schema Core
2020-12, 9.4.1), so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from maskwright.errors import SchemaError

if TYPE_CHECKING:
    from .scan import Scan


def find_cycles(scan: Scan) -> None:
    """Refuses in-place cycles.

    Raises:
        SchemaError: schemas apply to the same value in a circle.
    """
    edges: dict[int, list[int]] = {}
    for of in (scan.groups, scan.parts):
        for i, groups in of.items():
            below = [b for group in groups for b in group.branches if b in scan.groups or b in scan.parts]
            if below:
                edges[i] = edges.get(i, []) + below
    closing = _cycle(edges) if edges else None
    if closing is not None:
        keyword = next(g.keyword for g in scan.parts_of(closing[0]) if closing[1] in g.branches)
        raise SchemaError(
            f"{keyword} leads back to the same schema without going into a value",
            location=scan.where(closing[0], keyword),
            hint="Put the reference under properties or items, or remove it",
        )


def _cycle(edges: Mapping[int, Iterable[int]]) -> tuple[int, int] | None:
    """An edge that closes a cycle, or None. O(nodes + edges)."""
    new, open_, done = 0, 1, 2
    state: dict[int, int] = {}
    for start in edges:
        if start in state:
            continue
        stack = [(start, iter(edges[start]))]
        state[start] = open_
        while stack:
            node, rest = stack[-1]
            for after in rest:
                now = state.get(after, new)
                if now == open_:
                    return node, after
                if now == new:
                    state[after] = open_
                    stack.append((after, iter(edges.get(after, ()))))
                    break
            else:
                state[node] = done
                stack.pop()
    return None
