"""Which schemas of a set hold: their formulas over what is known of each by itself."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from ..model import ALWAYS, NEVER, Group
from .nodes import Ids, Nodes

Truth = dict[int, bool]
_NO_CHECKS: Mapping[int, Callable[[Truth], bool]] = {}


def evaluate(
    nodes: Nodes, closure: Ids, failing: Container[int], checks: Mapping[int, Callable[[Truth], bool]] = _NO_CHECKS
) -> Truth:
    """Whether each node of a closure holds.

    Args:
        nodes: all nodes.
        closure: the ones asked for, each after those it depends on.
        failing: those that do not hold by themselves.
        checks: for some, a further condition, given the truth of those before.
    """
    truth: Truth = {}
    for number, parts in nodes.formulas(closure):
        holds = number not in failing
        if holds and parts:
            holds = all([part_holds(part, truth) for part in parts])
        truth[number] = holds
        if holds and number in checks:
            truth[number] = checks[number](truth)
    return truth


def part_holds(part: Group, truth: Truth) -> bool:
    """Whether a group holds."""
    branches = part.branches
    if part.kind == "all":
        return all([truth.get(b, b == ALWAYS) for b in branches])
    if part.kind == "any":
        return any([truth.get(b, b == ALWAYS) for b in branches])
    values = [truth.get(b, b == ALWAYS) for b in branches]
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


def settle(nodes: Nodes, closure: Ids, must: Ids, failing: Iterable[int]) -> tuple[frozenset[int], frozenset[int]]:
    """The nodes of a closure that hold wherever `must` and not `failing` do, and those that then cannot."""
    false = {NEVER, *failing}
    for number, parts in nodes.formulas(closure):
        if number not in false and any(_is_false(part, false) for part in parts):
            false.add(number)
    found = set(must)
    stack = [n for n in must if n >= 0]
    while stack:
        for part in nodes[stack.pop()].parts:
            new = set(_implied(part, false, found)) - found - {ALWAYS}
            found |= new
            stack.extend(n for n in new if n >= 0)
    return frozenset(found), frozenset(false)


def _is_false(part: Group, false: set[int]) -> bool:
    branches = part.branches
    if part.kind == "all":
        return any(b in false for b in branches)
    if part.kind in ("any", "one"):
        return all(b in false for b in branches)
    if part.kind == "not":
        return branches[0] == ALWAYS
    condition, then, other = branches
    if condition in false:
        return other in false
    return then in false and (condition == ALWAYS or other in false)


def _implied(part: Group, false: set[int], true: set[int]) -> Ids:
    """The branches that hold where the part does."""
    if part.kind == "all":
        return part.branches
    if part.kind in ("any", "one"):
        alive = tuple(b for b in part.branches if b not in false)
        return alive if len(alive) == 1 else ()
    if part.kind == "if":
        condition, then, other = part.branches
        if condition in false:
            return (other,)
        if condition == ALWAYS or condition in true:
            return (then,)
    return ()


def relevant(nodes: Nodes, roots: Ids, false: frozenset[int]) -> frozenset[int]:
    """The nodes whose truth can make a difference to that of the roots, where some are known to be false."""
    found = {n for n in roots if n >= 0 and n not in false}
    stack = list(found)
    while stack:
        node = nodes[stack.pop()]
        below = [*node.constants]
        for part in node.parts:
            if part.kind == "if" and part.branches[0] in false:
                below.append(part.branches[2])
            elif part.kind != "any" or ALWAYS not in part.branches:
                below += part.branches
        new = {n for n in below if n >= 0 and n not in false} - found
        found |= new
        stack.extend(new)
    return frozenset(found)
