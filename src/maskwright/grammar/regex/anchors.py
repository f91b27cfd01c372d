r"""Anchors of the ends of the text, wherever they stand, by contexts.

Whether an anchor holds depends on what surrounds the part of the text that a subpattern matches. All that matters is
whether the part begins where the text does (s = 1), and what follows it: nothing (e = 2), one newline and nothing more
(e = 1; Python's ``$`` holds there too), anything else (e = 0). So every subtree is lowered to a table of six languages
r[s, e]. Holding is monotone in s and in e: r[0, e] is a part of r[1, e], and r[s, 0] of r[s, 1] of r[s, 2]; hence the
rules below may join a weaker context wherever a stronger one would do. For a sequence ``a b``:

    (a b)[s, e] = a[s, 0] b[0, e]                         both match something, or need no more than that
                | b[s, e]        if "" in a[s, 0]          a matches nothing: b begins where the text may
                | a[s, e]        if "" in b[0, e]          b matches nothing: a ends where the text may
                | ""             if "" in a[s, e] and in b[s, e]
                | a[s, 1] \n     if e = 2 and \n in b[0, 2]

and likewise for repeats, where iterations that match nothing can fill up the least count. Subtrees without anchors
have one language in all contexts, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from maskwright.grammar.ir import EMPTY, EPSILON, And, Cat, Chars, Ir, Not, Repeat, concat, literal, repeat, union
from maskwright.grammar.regex.ast import Anchor, At, Branch, Loop, Node, Seq, fold

Table = tuple[Ir, ...]  # the language in context (s, e) at 3 * s + e
_CONTEXTS = tuple((s, e) for s in (0, 1) for e in (0, 1, 2))
_NEWLINE = literal("\n")
_HOLDS: dict[At, Callable[[int, int], bool]] = {
    At.START: lambda s, e: s == 1,
    At.END: lambda s, e: e == 2,
    At.END_OR_NEWLINE: lambda s, e: e >= 1,
}


def tables(tree: Node) -> Table:
    """The table of a tree, from the leaves up and without recursion."""
    return fold(tree, _combine)


def _combine(node: Node, parts: list[Table]) -> Table:
    if isinstance(node, Ir):
        return (node,) * 6
    if isinstance(node, Seq):
        table = parts[-1]
        for left in reversed(parts[:-1]):
            table = _sequence(left, table)
        return table
    if isinstance(node, Branch):
        return _shared(lambda s, e: union(*(t[3 * s + e] for t in parts)), lambda s, e: [t[3 * s + e] for t in parts])
    if isinstance(node, Loop):
        return _repetition(parts[0], node.least, node.most)
    assert isinstance(node, Anchor)  # the others are for assertions.py
    return tuple(EPSILON if _HOLDS[node.at](s, e) else EMPTY for s, e in _CONTEXTS)


def _shared(make: Callable[[int, int], Ir], inputs: Callable[[int, int], list[Ir]]) -> Table:
    """One language per context, made once for contexts with the same inputs."""
    memo: dict[tuple[int, ...], Ir] = {}
    out = []
    for s, e in _CONTEXTS:
        key = tuple(map(id, inputs(s, e)))
        if key not in memo:
            memo[key] = make(s, e)
        out.append(memo[key])
    return tuple(out)


def _sequence(a: Table, b: Table) -> Table:
    """The table of ``a b``."""
    newline = a[0] is not a[1] or a[3] is not a[4]

    def make(s: int, e: int) -> Ir:
        here, there = 3 * s, 3 * s + e
        parts = [concat(a[here], b[e])]
        if a[here].nullable:
            parts += [b[there]] if b[there] is not b[e] else []
        else:
            parts += [EPSILON] if a[there].nullable and b[there].nullable else []
            parts += [_NEWLINE] if e == 2 and a[here + 1].nullable and holds_newline(b[there]) else []
        if b[e].nullable and a[there] is not a[here]:
            parts.append(a[there])
        if e == 2 and a[here + 1] is not a[here] and holds_newline(b[2]):
            parts.append(concat(a[here + 1], _NEWLINE))
        return union(*parts)

    def inputs(s: int, e: int) -> list[Ir]:
        context = [EPSILON if newline and e == 2 else EMPTY]
        return [*context, a[3 * s], a[3 * s + 1], a[3 * s + e], b[e], b[3 * s + e]]

    return _shared(make, inputs)


def _repetition(r: Table, least: int, most: int | None) -> Table:
    """The table of ``r{least,most}``."""
    newline = r[0] is not r[1] or r[3] is not r[4]

    def make(s: int, e: int) -> Ir:
        first, whole, last = r[3 * s], r[3 * s + e], r[e]
        parts: list[Ir] = [EPSILON] if least == 0 or whole.nullable else []
        # Iterations that match nothing, before or after the others, fill up the count.
        low = 1 if first.nullable or last.nullable else max(least, 1)
        # Where one end does not matter, one iteration less stands apart: terms would grow exponentially with nesting.
        if whole is first and last is r[0]:
            parts.append(concat(first, _others(r, low - 1, most, 1)))
        elif whole is last and first is r[0]:
            parts.append(concat(_others(r, low - 1, most, 1), last))
        else:
            parts += [whole] if low == 1 else []
            parts.append(concat(first, _others(r, low - 2, most, 2), last))
        if newline and e == 2:
            parts += _before_newline(r, s, low, most)
        return union(*parts) if most != 0 else EPSILON

    def inputs(s: int, e: int) -> list[Ir]:
        return [EPSILON if newline and e == 2 else EMPTY, r[3 * s], r[3 * s + 1], r[3 * s + e], r[e]]

    return _shared(make, inputs)


def _others(r: Table, least: int, most: int | None, spent: int) -> Ir:
    """The iterations in the middle, where `spent` of them stand outside; EMPTY where that is already too many."""
    if most is not None and most < spent:
        return EMPTY
    return repeat(r[0], max(least, 0), None if most is None else most - spent)


def _before_newline(r: Table, s: int, low: int, most: int | None) -> list[Ir]:
    r"""Texts whose last iteration that matches something is the ``\n`` at the end: the one before it sees e = 1."""
    parts: list[Ir] = []
    if r[3 * s + 1].nullable and holds_newline(r[3 * s + 2]):
        parts.append(_NEWLINE)
    if holds_newline(r[2]):
        if low <= 2 and (most is None or most >= 2):
            parts.append(concat(r[3 * s + 1], _NEWLINE))
        parts.append(concat(r[3 * s], _others(r, low - 3, most, 3), r[1], _NEWLINE))
    return parts


def holds_newline(term: Ir) -> bool:
    r"""Whether the language has the text ``\n``; iterative, in O(size)."""
    done: list[bool] = []
    stack: list[tuple[Ir, bool]] = [(term, False)]
    while stack:
        node, ready = stack.pop()
        if not ready and node.children:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
            continue
        start = len(done) - len(node.children)
        parts = done[start:]
        del done[start:]
        done.append(_newline_of(node, parts))
    return done[0]


def _newline_of(node: Ir, parts: list[bool]) -> bool:
    if isinstance(node, Chars):
        return any(lo <= 10 <= hi for lo, hi in node.ranges)
    if isinstance(node, Cat):
        solid = [p for p, child in zip(parts, node.children, strict=True) if not child.nullable]
        return any(parts) if not solid else len(solid) == 1 and solid[0]
    if isinstance(node, Repeat):
        return parts[0] and (node.min <= 1 or node.body.nullable)
    if isinstance(node, Not):
        return not parts[0]
    return all(parts) if isinstance(node, And) else any(parts)
