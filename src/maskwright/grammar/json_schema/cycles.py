"""Cycles of the reference graph, found by depth-first search with an explicit stack.

A cycle of schemas that apply to the *same* value consumes nothing: whether it holds is not defined (JSON Schema Core
2020-12, 9.4.1), so it is refused. A cycle of values that *require* each other may have no finite value: only
suspected here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from maskwright.errors import SchemaError

from .model import NEVER

if TYPE_CHECKING:
    from .scan import Scan


def find_cycles(scan: Scan) -> None:
    """Refuses in-place cycles and raises the suspicion where values require each other in a circle.

    Raises:
        SchemaError: schemas apply to the same value in a circle.
    """

    def in_place(i: int) -> Iterable[int]:
        return (b for group in scan.parts_of(i) for b in group.branches if b >= 0)

    closing = _cycle([*scan.groups, *scan.parts], in_place)
    if closing is not None:
        keyword = next(g.keyword for g in scan.parts_of(closing[0]) if closing[1] in g.branches)
        raise SchemaError(
            f"{keyword} leads back to the same schema without going into a value",
            location=scan.where(closing[0], keyword),
            hint="Put the reference under properties or items, or remove it",
        )
    if not scan.suspect:
        needy = {i for i, schema in enumerate(scan.schemas) if "required" in schema or "minItems" in schema}
        needy.update(scan.groups)
        scan.suspect = _cycle(needy, lambda i: (n for n in _needs(scan, i) if n in needy)) is not None


def _needs(scan: Scan, i: int) -> Iterable[int]:
    """The schemas whose values a value of schema `i` may have to hold, and those that apply in place."""
    schema = scan.schemas[i]
    for group in scan.groups.get(i, ()):
        yield from (b for b in group.branches if b >= 0)
    if scan.draft <= 7 and "$ref" in schema:
        return  # its neighbours are not looked at
    below = []
    required = schema.get("required")
    if isinstance(required, list) and required:
        properties = schema.get("properties", {})
        below += [properties.get(name, schema.get("additionalProperties")) for name in required]
    if schema.get("minItems"):
        items = schema.get("items")
        below += schema.get("prefixItems", []) if isinstance(schema.get("prefixItems"), list) else []
        below += items if isinstance(items, list) else [items, schema.get("additionalItems")]
    for value in below:
        number = scan.index.get(id(value), NEVER)
        if number >= 0:
            yield number


def _cycle(starts: Iterable[int], successors: Callable[[int], Iterable[int]]) -> tuple[int, int] | None:
    """An edge that closes a cycle among what is reached from `starts`, or None. O(nodes + edges)."""
    new, open_, done = 0, 1, 2
    state: dict[int, int] = {}
    for start in starts:
        if start in state:
            continue
        stack = [(start, iter(successors(start)))]
        state[start] = open_
        while stack:
            node, rest = stack[-1]
            for after in rest:
                now = state.get(after, new)
                if now == open_:
                    return node, after
                if now == new:
                    state[after] = open_
                    stack.append((after, iter(successors(after))))
                    break
            else:
                state[node] = done
                stack.pop()
    return None
