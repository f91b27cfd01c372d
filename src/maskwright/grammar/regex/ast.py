"""The syntax tree both dialects are parsed into.

A subtree without assertions *is* its language, so the parsers build the IR for it at once; only what holds an assertion
stays a tree, to be lowered by `lower.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar, cast

from maskwright.grammar.ir import EMPTY, Alt, Chars, Ir, Ranges, Repeat, concat, repeat, union

T = TypeVar("T")
_FLATTEN_WIDTH = 32  # wider sequences stay whole in others: copying them at every level would be quadratic
_LETTERS = frozenset({Chars})


class At(Enum):
    """Where an anchor holds."""

    START = "at the start of the text"
    END = "at the end of the text"
    END_OR_NEWLINE = "at the end of the text or before a newline that ends it"
    LINE_START = "at the start of the text or after a newline"
    LINE_END = "at the end of the text or before a newline"
    BOUNDARY = "between a word character and none"
    NO_BOUNDARY = "not between a word character and none"
    INSIDE = "the same, in a text that is not empty"

    @property
    def is_local(self) -> bool:
        """Whether it asks for the characters around it, not just for the ends of the text."""
        return self not in (At.START, At.END, At.END_OR_NEWLINE)


BOUNDARIES = (At.BOUNDARY, At.NO_BOUNDARY, At.INSIDE)


@dataclass(frozen=True, eq=False, slots=True)
class Anchor:
    """A zero-width assertion: its kind, how it is written, where, and the word characters of the boundary kinds."""

    at: At
    text: str
    offset: int
    word: Ranges = field(default=(), repr=False)


@dataclass(frozen=True, eq=False, slots=True)
class Look:
    """A lookahead or lookbehind: how it is opened, where, and what it looks for."""

    body: Node
    ahead: bool
    negative: bool
    text: str
    offset: int


@dataclass(frozen=True, eq=False, slots=True)
class Seq:
    """The items one after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Branch:
    """Any of the options."""

    options: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Loop:
    """`body` between `least` and `most` times (None: no bound)."""

    body: Node
    least: int
    most: int | None


@dataclass(frozen=True, eq=False, slots=True)
class Capture:
    """A numbered group, kept where a pattern has references; `references.py` takes it out again."""

    body: Node
    number: int


@dataclass(frozen=True, eq=False, slots=True)
class Reference:
    """A back-reference: to which group, how it is written, where, and the flags i and a there."""

    number: int
    text: str
    offset: int
    ignore_case: bool = False
    ascii_only: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Conditional:
    """`then` where the group took part in the match, `other` where it did not."""

    then: Node
    other: Node
    number: int
    text: str
    offset: int


@dataclass(frozen=True, eq=False, slots=True)
class Atomic:
    """The first match of the body that the engine finds, never another one; `greedy`: nothing in it is lazy."""

    body: Node
    greedy: bool
    text: str
    offset: int


Node = Ir | Anchor | Look | Seq | Branch | Loop | Capture | Reference | Conditional | Atomic


def children(node: Node) -> tuple[Node, ...]:
    """The parts of a tree; the pure ones are leaves."""
    if isinstance(node, Seq):
        return node.items
    if isinstance(node, Branch):
        return node.options
    if isinstance(node, Conditional):
        return node.then, node.other
    return (node.body,) if isinstance(node, Loop | Look | Capture | Atomic) else ()


def with_children(node: Node, parts: Sequence[Node]) -> Node:
    """A tree with other parts, in normal form."""
    if isinstance(node, Seq):
        return EMPTY if EMPTY in parts else seq(parts)
    if isinstance(node, Branch):
        return branch(parts)
    if isinstance(node, Conditional):
        return Conditional(parts[0], parts[1], node.number, node.text, node.offset)
    if isinstance(node, Loop):
        return loop(parts[0], node.least, node.most)
    if isinstance(node, Look):
        return Look(parts[0], node.ahead, node.negative, node.text, node.offset)
    if isinstance(node, Capture):
        return Capture(parts[0], node.number)
    return Atomic(parts[0], node.greedy, node.text, node.offset) if isinstance(node, Atomic) else node


def walk(tree: Node) -> Iterator[Node]:
    """All nodes of a tree, in the order of the pattern's text."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def fold(tree: Node, combine: Callable[[Node, list[T]], T]) -> T:
    """A value from the leaves up: `combine` gets a node and the values of its parts. Iterative."""
    done: list[T] = []
    stack: list[tuple[Node, bool]] = [(tree, False)]
    while stack:
        node, ready = stack.pop()
        below = children(node)
        if not ready and below:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(below))
            continue
        start = len(done) - len(below)
        parts = done[start:]
        del done[start:]
        done.append(combine(node, parts))
    return done[0]


def widths(tree: Node, captured: dict[int, Node] | None = None) -> tuple[int, int | None]:
    """The least and the most code points that a tree matches; None has no bound. Iterative.

    `captured` are the groups that back-references in it may refer to.
    """
    done: list[tuple[int, int | None]] = []
    stack: list[tuple[Node, bool]] = [(tree, False)]
    known: dict[int, tuple[int, int | None]] = {}
    while stack:
        node, ready = stack.pop()
        below = () if isinstance(node, Look) else node.children if isinstance(node, Ir) else children(node)
        if isinstance(node, Reference) and captured and node.number in captured:
            if node.number in known:
                done.append(known[node.number])
                continue
            below = (captured[node.number],)
        if not ready and below:
            stack.append((node, True))
            stack.extend((child, False) for child in below)
            continue
        start = len(done) - len(below)
        parts = done[start:]
        del done[start:]
        done.append(_width(node, parts))
        if isinstance(node, Reference):
            known[node.number] = done[-1]
    return done[0]


def _width(node: Node, parts: list[tuple[int, int | None]]) -> tuple[int, int | None]:
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    if isinstance(node, Chars):
        return 1, 1
    if isinstance(node, Alt | Branch | Conditional):
        return min(lows, default=0), None if None in highs else max((h for h in highs if h is not None), default=0)
    if isinstance(node, Repeat | Loop):
        least, most = (node.min, node.max) if isinstance(node, Repeat) else (node.least, node.most)
        high = None if most is None or highs[0] is None else most * highs[0]
        return least * lows[0], 0 if highs[0] == 0 else high
    if isinstance(node, Reference):
        return parts[0] if parts else (0, None)
    return sum(lows), None if None in highs else sum(h for h in highs if h is not None)


def seq(items: Sequence[Node]) -> Node:
    """A sequence; runs of pure items become one, sequences in it are taken apart."""
    if _LETTERS.issuperset(map(type, items)):
        return concat(*cast(Sequence[Ir], items))
    pure: list[Ir] = []
    out: list[Node] = []
    for item in _flat(items):
        if isinstance(item, Ir):
            pure.append(item)
            continue
        if pure:
            out.append(concat(*pure))
            pure = []
        out.append(item)
    if not out:
        return concat(*pure)
    if pure:
        out.append(concat(*pure))
    return out[0] if len(out) == 1 else Seq(tuple(out))


def _flat(items: Sequence[Node]) -> Iterator[Node]:
    for item in items:
        if isinstance(item, Seq) and len(item.items) <= _FLATTEN_WIDTH:
            yield from item.items
        else:
            yield item


def branch(options: Sequence[Node]) -> Node:
    """An alternation; the pure options become one."""
    if len(options) == 1:
        return options[0]
    pure = [o for o in options if isinstance(o, Ir)]
    rest = [o for o in options if not isinstance(o, Ir)]
    if not rest:
        return union(*pure)
    return Branch((union(*pure), *rest) if pure else tuple(rest))


def loop(body: Node, least: int, most: int | None) -> Node:
    """A repetition."""
    return repeat(body, least, most) if isinstance(body, Ir) else Loop(body, least, most)
