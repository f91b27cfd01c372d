"""The syntax tree both dialects are parsed into.

A subtree without assertions *is* its language, so the parsers build the IR for it at once; only what holds an assertion
stays a tree, to be lowered by `lower.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from maskwright.grammar.ir import Alt, Chars, Ir, Ranges, Repeat, concat, repeat, union

_FLATTEN_WIDTH = 32  # wider sequences stay whole in others: copying them at every level would be quadratic


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


Node = Ir | Anchor | Look | Seq | Branch | Loop


def children(node: Node) -> tuple[Node, ...]:
    """The parts of a tree; the pure ones are leaves."""
    if isinstance(node, Seq):
        return node.items
    if isinstance(node, Branch):
        return node.options
    return (node.body,) if isinstance(node, Loop | Look) else ()


def widths(tree: Node) -> tuple[int, int | None]:
    """The least and the most code points that a tree matches; None has no bound. Iterative."""
    done: list[tuple[int, int | None]] = []
    stack: list[tuple[Node, bool]] = [(tree, False)]
    while stack:
        node, ready = stack.pop()
        below = () if isinstance(node, Look) else node.children if isinstance(node, Ir) else children(node)
        if not ready and below:
            stack.append((node, True))
            stack.extend((child, False) for child in below)
            continue
        start = len(done) - len(below)
        parts = done[start:]
        del done[start:]
        done.append(_width(node, parts))
    return done[0]


def _width(node: Node, parts: list[tuple[int, int | None]]) -> tuple[int, int | None]:
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    if isinstance(node, Chars):
        return 1, 1
    if isinstance(node, Alt | Branch):
        return min(lows, default=0), None if None in highs else max((h for h in highs if h is not None), default=0)
    if isinstance(node, Repeat | Loop):
        least, most = (node.min, node.max) if isinstance(node, Repeat) else (node.least, node.most)
        high = None if most is None or highs[0] is None else most * highs[0]
        return least * lows[0], 0 if highs[0] == 0 else high
    return sum(lows), None if None in highs else sum(h for h in highs if h is not None)


def seq(items: Sequence[Node]) -> Node:
    """A sequence; runs of pure items become one, sequences in it are taken apart."""
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
