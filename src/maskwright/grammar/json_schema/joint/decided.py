"""Truth values that are known before the end: which nodes hold or fail whatever comes, and what else still matters.

Two states that differ only in what cannot matter any more are one, and a state in which something has failed that has
to hold is dead at once. Without that, n independent conditions would make 2^n states.
"""

from __future__ import annotations

from collections.abc import Container

from ..model import ALWAYS, Group
from .nodes import Ids, Nodes

Known = dict[int, bool | None]  # by node; None: not decided


def known(nodes: Nodes, closure: Ids, failed: Container[int], closed: Container[int]) -> Known:
    """What is decided of each node of a closure.

    Args:
        nodes: all nodes.
        closure: the nodes, each after those it depends on.
        failed: those that do not hold by themselves.
        closed: those that cannot fail by themselves any more.
    """
    values: Known = {}
    for number, parts in nodes.formulas(closure):
        value: bool | None = False if number in failed else True if number in closed else None
        if value is not False and parts:
            value = _all([value, *[_part(part, values) for part in parts]])
        values[number] = value
    return values


def _part(part: Group, values: Known) -> bool | None:
    branches = [values.get(b, b == ALWAYS) for b in part.branches]
    if part.kind == "all":
        return _all(branches)
    if part.kind == "any":
        return _not(_all([_not(b) for b in branches]))
    if part.kind == "one":
        return False if branches.count(True) > 1 else None if None in branches else branches.count(True) == 1
    if part.kind == "not":
        return _not(branches[0])
    condition, then, other = branches
    if condition is None:
        return then if then is other else None
    return then if condition else other


def _all(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def essential(nodes: Nodes, roots: Ids, values: Known) -> frozenset[int]:
    """The failed nodes that still decide about the roots, by what is known."""
    failed = set[int]()
    seen = set[int]()
    stack = [n for n in roots if n >= 0]
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        if values[number] is False:
            failed.add(number)
            continue
        stack.extend(nodes[number].constants)
        for part in nodes[number].parts:
            below = [b for b in part.branches if b >= 0]
            if part.kind == "any" and _part(part, values):
                below = [b for b in below if values[b]]  # one that holds is enough
            stack.extend(below)
    return frozenset(failed)
