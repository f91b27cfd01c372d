"""Which schemas of a set hold: their formulas over what is known of each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..model import ALWAYS, Group
from .nodes import Ids, Nodes

Truth = dict[int, bool]


def evaluate(nodes: Nodes, closure: Ids, local: Callable[[int, Truth], bool]) -> Truth:
    """Whether each node of a closure holds.

    Args:
        nodes: all nodes.
        closure: the ones asked for, each after those it depends on.
        local: whether a node holds by itself, given the truth of those before it.
    """
    truth: Truth = {}
    for number in closure:
        holds = local(number, truth) and all(part_holds(part, truth) for part in nodes[number].parts)
        truth[number] = holds
    return truth


def part_holds(part: Group, truth: Truth) -> bool:
    """Whether a group holds."""
    values = [_value(b, truth) for b in part.branches]
    if part.kind == "all":
        return all(values)
    if part.kind == "any":
        return any(values)
    if part.kind == "one":
        return sum(values) == 1
    if part.kind == "not":
        return not values[0]
    return values[1] if values[0] else values[2]  # if, then, else


def _value(number: int, truth: Truth) -> bool:
    return number == ALWAYS or truth.get(number, False)


def reached(nodes: Nodes, number: int, truth: Truth) -> Iterator[int]:
    """The nodes in place below a true one whose annotations reach it: through true ones alone, never through `not`."""
    stack = [number]
    while stack:
        for part in nodes[stack.pop()].parts:
            for below in _annotating(part, truth):
                if below >= 0 and truth[below]:
                    yield below
                    stack.append(below)


def _annotating(part: Group, truth: Truth) -> Ids:
    if part.kind == "not":
        return ()
    if part.kind == "if":
        condition, then, other = part.branches
        return (condition, then) if _value(condition, truth) else (other,)
    return part.branches


def annotating(nodes: Nodes, number: int) -> set[int]:
    """All nodes in place below one that may ever annotate for it."""
    found: set[int] = set()
    stack = [number]
    while stack:
        for part in nodes[stack.pop()].parts:
            if part.kind != "not":
                new = {b for b in part.branches if b >= 0} - found
                found |= new
                stack.extend(new)
    return found


def certain(nodes: Nodes, must: Ids) -> frozenset[int]:
    """The nodes that hold wherever all of `must` do, by their formulas alone."""
    found = set(must)
    stack = list(must)
    while stack:
        for part in nodes[stack.pop()].parts:
            if part.kind == "all" or (part.kind in ("any", "one") and len(part.branches) == 1):
                new = {b for b in part.branches if b != ALWAYS} - found
                found |= new
                stack.extend(b for b in new if b >= 0)
    return frozenset(found)
