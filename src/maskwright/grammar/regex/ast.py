"""The syntax tree both dialects are parsed into.

A subtree without assertions *is* its language, so the parsers build the IR for it at once; only what holds an assertion
stays a tree, to be lowered by `lower.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from maskwright.grammar.ir import Ir, Ranges, concat, repeat, union


class At(Enum):
    """Where an anchor holds."""

    START = "at the start of the text"
    END = "at the end of the text"
    END_OR_NEWLINE = "at the end of the text or before a newline that ends it"
    LINE_START = "at the start of the text or after a newline"
    LINE_END = "at the end of the text or before a newline"
    BOUNDARY = "between a word character and none"
    NO_BOUNDARY = "not between a word character and none"


@dataclass(frozen=True, eq=False, slots=True)
class Anchor:
    """A zero-width assertion: its kind, how it is written, where, and the word characters of the boundary kinds."""

    at: At
    text: str
    offset: int
    word: Ranges = ()


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


def seq(items: Sequence[Node]) -> Node:
    """A sequence; runs of pure items become one."""
    pure: list[Ir] = []
    out: list[Node] = []
    for item in items:
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
