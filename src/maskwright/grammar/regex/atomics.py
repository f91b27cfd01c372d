"""Atomic groups and possessive quantifiers, where they are provably no different from plain ones; refused elsewhere.

An atomic part keeps the first match that the engine finds and never tries another. That is no loss

- where from any place it has one match at most: all its texts are of one length, or none is the beginning of another;
- where the parts that have more are greedy repeats whose iterations have one match at most, and what follows can begin
  with nothing that an iteration begins with: after fewer iterations than possible, it would have to match there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from maskwright.errors import LimitError, RegexError
from maskwright.grammar.automata import automaton
from maskwright.grammar.ir import (
    ALL,
    ANY,
    Alt,
    Cat,
    Chars,
    Ir,
    Ranges,
    Repeat,
    concat,
    intersect,
    intersect_ranges,
    merge_ranges,
)
from maskwright.grammar.regex.ast import (
    Anchor,
    At,
    Atomic,
    Branch,
    Capture,
    Conditional,
    Look,
    Loop,
    Node,
    Reference,
    Seq,
    children,
    fold,
    walk,
    widths,
    with_children,
)

_MOST_DEPTH = 100
_MOST_STATES = 5000
_MOST_SIZE = 2000  # nodes of a term that is asked whether one of its texts begins another


class First(NamedTuple):
    """How a part can begin: with which characters, with none at all, with an assertion about its surroundings."""

    ranges: Ranges
    nullable: bool
    asserts: bool

    def then(self, rest: First) -> First:
        """How this and what follows it can begin."""
        if not self.nullable:
            return self
        return First(merge_ranges([*self.ranges, *rest.ranges]), rest.nullable, self.asserts or rest.asserts)

    def alternatively(self, other: First) -> First:
        """How one of the two can begin."""
        ranges = merge_ranges([*self.ranges, *other.ranges])
        return First(ranges, self.nullable or other.nullable, self.asserts or other.asserts)


_NOTHING = First((), True, False)
_UNKNOWN = First(ANY.ranges, True, True)


def without_atomics(tree: Node) -> Node:
    """The same language without atomic groups. Raises RegexError with the offset of one that is refused."""
    if not any(isinstance(n, Atomic) for n in walk(tree)):
        return tree
    return _settle(tree, _NOTHING, 0)


def _settle(node: Node, follow: First, depth: int) -> Node:
    if depth > _MOST_DEPTH:
        message = f"an atomic group is nested deeper than the limit of {_MOST_DEPTH} groups"
        raise LimitError(message, location="offset 0", hint="Write it with fewer groups")
    if not any(isinstance(n, Atomic) for n in walk(node)):
        return node
    if isinstance(node, Seq):
        items: list[Node] = []
        for item in reversed(node.items):
            items.append(_settle(item, follow, depth + 1))
            follow = first_of(items[-1]).then(follow)
        return with_children(node, items[::-1])
    if isinstance(node, Atomic):
        return _plain(node, _settle(node.body, _NOTHING, depth + 1), follow)
    if isinstance(node, Loop):
        follow = first_of(node.body).alternatively(follow)
    elif isinstance(node, Look):
        follow = _NOTHING if node.ahead else _UNKNOWN
    return with_children(node, [_settle(child, follow, depth + 1) for child in children(node)])


def _plain(node: Atomic, body: Node, follow: First) -> Node:
    """The body of an atomic group, where that makes no difference."""
    captures = any(isinstance(n, Capture | Reference | Conditional) for n in walk(body))
    low, high = widths(body)
    if not captures and (low == high or (isinstance(body, Ir) and _has_one_match(body))):
        return body
    if node.greedy and isinstance(body, Ir):
        parts = body.parts if isinstance(body, Cat) else (body,)
        if all(_takes_all(p, first_of(concat(*parts[i + 1 :])).then(follow)) for i, p in enumerate(parts)):
            return body
    what = "atomic group" if node.text == "(?>" else "possessive quantifier"
    hint = "Write the plain one, or let nothing follow it that it could match itself"
    message = f"the {what} {node.text!r} here is not supported in the Python regex"
    raise RegexError(message, location=f"offset {node.offset}", hint=hint)


def _takes_all(part: Ir, follow: First) -> bool:
    """Whether nothing can follow a greedy part after another match of it than the first one."""
    if _has_one_match(part):
        return True
    if follow.asserts or not isinstance(part, Repeat) or not _has_one_match(part.body):
        return False
    return not intersect_ranges(first_of(part.body).ranges, follow.ranges)


@lru_cache(maxsize=256)
def _has_one_match(term: Ir) -> bool:
    """Whether no text of the language is the beginning of another one; false where that is not soon settled."""
    if isinstance(term, Chars):
        return True
    if term.nullable or term.size > _MOST_SIZE:
        return False
    longer = intersect(term, concat(term, ANY, ALL))
    return automaton(longer).is_empty_within(_MOST_STATES) > 0


def first_of(tree: Node) -> First:
    """How the texts of a tree can begin."""
    return fold(tree, _first)


def _first(node: Node, parts: list[First]) -> First:
    if isinstance(node, Ir):
        return First(_letters(node), node.nullable, False)
    if isinstance(node, Anchor):
        return First((), True, node.at not in (At.END, At.END_OR_NEWLINE))
    if isinstance(node, Look | Reference):
        return First(ANY.ranges if isinstance(node, Reference) else (), True, isinstance(node, Look))
    if isinstance(node, Branch | Conditional):
        found = parts[0]
        for part in parts[1:]:
            found = found.alternatively(part)
        return found
    if isinstance(node, Loop):
        return First(parts[0].ranges, parts[0].nullable or node.least == 0, parts[0].asserts)
    found = _NOTHING
    for part in reversed(parts):
        found = part.then(found)
    return found


def _letters(term: Ir) -> Ranges:
    """The characters that the texts of a term can begin with; iterative."""
    found: list[tuple[int, int]] = []
    stack: list[Ir] = [term]
    while stack:
        node = stack.pop()
        if isinstance(node, Chars):
            found.extend(node.ranges)
        elif isinstance(node, Cat):
            for part in node.parts:
                stack.append(part)
                if not part.nullable:
                    break
        elif isinstance(node, Alt | Repeat):
            stack.extend(node.children)
        else:  # the parsers make no other terms
            return ANY.ranges
    return merge_ranges(found)
