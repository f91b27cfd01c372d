"""What the parsers of the two dialects share: a cursor, an explicit stack of open groups, quantifiers, errors.

The stack makes nesting depth a matter of memory, not of Python's recursion limit; parsing is linear in the pattern.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from maskwright.errors import LimitError, RegexError
from maskwright.grammar.ir import Ir, Ranges, chars
from maskwright.grammar.regex.ast import Atomic, Capture, Look, Node, branch, loop, seq

MAX_COUNT = 2**32 - 2  # the largest repetition count of Python's re; the core counts in 64 bits
LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
NOTHING, ATOM, REPEATED = range(3)  # what a quantifier would find before it
# What may be a reference to a group; only then are the groups kept in the tree.
_REFERENCE = re.compile(r"\\[1-9k]|\(\?(?:P=|\()")
PLAIN = re.compile(r"[^()|\[\]\\.^$*+?{}\s#]+")  # characters without a meaning in any mode of either dialect
DIGITS = frozenset("0123456789")
HEX = frozenset("0123456789abcdefABCDEF")


@lru_cache(maxsize=4096)
def single(code_point: int) -> Ir:
    """The language of one code point; nothing for a surrogate."""
    return chars([(code_point, code_point)])


@lru_cache(maxsize=1024)
def of_ranges(ranges: Ranges) -> Ir:
    """The language of one code point of merged ranges."""
    return chars(ranges)


@dataclass(slots=True)
class Group:
    """An open group: how and where it was opened, the alternatives before the current one, the current one's items."""

    opening: str
    offset: int
    flags: int = 0
    options: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    last: int = NOTHING
    number: int = 0  # of a group that captures
    condition: int = 0  # the group that a conditional asks for
    groups_before: int = 0  # how many groups were opened before it


class Parser(ABC):
    """A cursor over one pattern. Subclasses say what single characters, escapes, classes and groups mean."""

    dialect: ClassVar[str]
    after_look: ClassVar[int] = ATOM  # whether a quantifier may follow a lookaround

    def __init__(self, text: str, flags: int = 0) -> None:
        self.text = text
        self.at = 0
        self.flags = flags
        self.stack = [Group("", 0, flags)]
        self.names: dict[str, int] = {}
        self.groups = 0
        self.keeps_groups = _REFERENCE.search(text) is not None
        self.lazy = -1  # where the last lazy quantifier stands
        self.last_closed: tuple[Node | None, int] = (None, 0)
        self.handlers: dict[str, Callable[[], None]] = {
            "(": self.open_group,
            ")": self.close_group,
            "|": self.alternative,
            "[": self.char_class,
            "\\": self.escape,
            ".": self.dot,
            "^": self.caret,
            "$": self.dollar,
            "*": self.quantifier,
            "+": self.quantifier,
            "?": self.quantifier,
            "{": self.quantifier,
        }

    def parse(self) -> Node:
        """The tree of the whole pattern. Raises RegexError with the offset of what is wrong."""
        size = len(self.text)
        while self.at < size:
            self.step()
        top = self.stack.pop()
        if self.stack:
            raise self.error("a group is not closed", top.offset, f"Write a `)` for {top.opening!r}")
        return self.finish(top)

    def step(self) -> None:
        """Reads one item."""
        handler = self.handlers.get(self.text[self.at])
        if handler is not None:
            handler()
            return
        run = PLAIN.match(self.text, self.at)
        letters = run[0] if run is not None else self.text[self.at]
        self.at += len(letters)
        group = self.stack[-1]
        group.items.extend(map(self.char, map(ord, letters)))
        group.last = ATOM

    # What the dialects define.

    @abstractmethod
    def char(self, code_point: int) -> Ir:
        """The language of a literal character."""

    @abstractmethod
    def open_group(self) -> None:
        """Reads what follows an opening parenthesis."""

    @abstractmethod
    def char_class(self) -> None:
        """Reads a class in brackets."""

    @abstractmethod
    def escape(self) -> None:
        """Reads a backslash and what it escapes."""

    @abstractmethod
    def dot(self) -> None:
        """Reads a dot."""

    @abstractmethod
    def caret(self) -> None:
        """Reads ``^``."""

    @abstractmethod
    def dollar(self) -> None:
        """Reads ``$``."""

    @abstractmethod
    def braces(self) -> tuple[int, int | None] | None:
        """Reads a count in braces; None, and nothing read, where the brace is a literal."""

    @abstractmethod
    def after_quantifier(self) -> str:
        """Reads what may follow a quantifier: ``?`` where it is lazy, ``+`` where it is possessive."""

    # What they share.

    def peek(self, length: int = 1) -> str:
        """The next characters, fewer at the end."""
        return self.text[self.at : self.at + length]

    def take_while(self, letters: frozenset[str], most: int | None = None) -> str:
        """Reads a run of `letters`."""
        start = self.at
        end = len(self.text) if most is None else min(len(self.text), start + most)
        while self.at < end and self.text[self.at] in letters:
            self.at += 1
        return self.text[start : self.at]

    def add(self, node: Node, last: int = ATOM) -> None:
        """Appends an item to the current alternative."""
        group = self.stack[-1]
        group.items.append(node)
        group.last = last

    def push(self, opening: str, offset: int, number: int = 0) -> None:
        """Opens a group; `number` of one that captures."""
        self.stack.append(Group(opening, offset, self.flags, number=number, groups_before=self.groups))

    def finish(self, group: Group) -> Node:
        """The tree of a group's contents."""
        group.options.append(seq(group.items))
        return branch(group.options)

    def alternative(self) -> None:
        """Reads ``|``."""
        self.at += 1
        group = self.stack[-1]
        group.options.append(seq(group.items))
        group.items, group.last = [], NOTHING

    def close_group(self) -> None:
        """Reads a closing parenthesis."""
        if len(self.stack) == 1:
            raise self.error("`)` closes no group", self.at, r"Write \) for the character")
        self.at += 1
        group = self.stack.pop()
        self.flags = group.flags
        node = self.finish(group)
        node = self.closed(node, group)
        self.last_closed = node, group.offset
        self.add(node, self.after_look if group.opening in LOOKS else ATOM)

    def closed(self, node: Node, group: Group) -> Node:
        """What a group with these contents stands for."""
        if group.opening in LOOKS:
            return self.look(node, group.opening, group.offset)
        return Capture(node, group.number) if group.number and self.keeps_groups else node

    def look(self, body: Node, opening: str, offset: int) -> Node:
        """A lookahead or lookbehind."""
        return Look(body, "<" not in opening, "!" in opening, opening, offset)

    def quantifier(self) -> None:
        """Reads a quantifier and applies it to the last item."""
        offset = self.at
        counts = self.counts()
        if counts is None:
            self.at += 1
            self.add(self.char(ord("{")))
            return
        group = self.stack[-1]
        if group.last == NOTHING:
            raise self.error(f"{self.text[offset : self.at]!r} repeats nothing", offset, "Write an item before it")
        if group.last == REPEATED:
            hint = "Put the repeated item into a group (?:...) to repeat it again"
            raise self.error(f"{self.text[offset : self.at]!r} follows another quantifier", offset, hint)
        item, mark = group.items[-1], self.after_quantifier()
        group.items[-1] = loop(item, *counts)
        if mark == "?":
            self.lazy = offset
        elif mark == "+":
            greedy = item is not self.last_closed[0] or self.lazy < self.last_closed[1]
            group.items[-1] = Atomic(group.items[-1], greedy, self.text[offset : self.at], offset)
        group.last = REPEATED

    def counts(self) -> tuple[int, int | None] | None:
        """Reads ``* + ?`` or braces."""
        letter = self.text[self.at]
        if letter == "{":
            return self.braces()
        self.at += 1
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[letter]

    def count(self, digits: str, offset: int) -> int:
        """A repetition count. Raises LimitError where it is beyond any use."""
        if len(digits.lstrip("0")) > 10 or int(digits or "0") > MAX_COUNT:
            hint = f"Write a count up to {MAX_COUNT}, or leave the upper bound out"
            raise LimitError("a repetition count is over the limit", location=f"offset {offset}", hint=hint)
        return int(digits)

    def range(self, lo: int, hi: int, offset: int) -> tuple[int, int]:
        """A range of a class, checked."""
        if hi < lo:
            written = self.text[offset : self.at]
            raise self.error(f"the range {written!r} is in reverse order", offset, "Write the smaller character first")
        return lo, hi

    def property(self, offset: int, lookup: Callable[[str], Ranges | None]) -> Ranges:
        r"""Reads ``{name}`` after ``\\p`` or ``\\P``; the cursor is behind the letter."""
        end = self.text.find("}", self.at) if self.peek() == "{" else -1
        if end < 0:
            raise self.error(rf"\{self.text[offset + 1]} without a property", offset, r"Write \p{L} or the like")
        name = self.text[self.at + 1 : end]
        ranges = lookup(name)
        if ranges is None:
            hint = r"Categories, scripts, binary properties are known, as \p{Lu}, \p{Script=Greek}, \p{Alphabetic}"
            raise self.error(rf"\{self.text[offset + 1]}{{{name}}} is not a known property", offset, hint)
        self.at = end + 1
        return ranges

    def error(self, message: str, offset: int, hint: str | None = None) -> RegexError:
        """An error at an offset of the pattern."""
        return RegexError(f"{message} in the {self.dialect} regex", location=f"offset {offset}", hint=hint)

    def unsupported(self, what: str, offset: int, hint: str) -> RegexError:
        """A refusal of a legal construct."""
        return self.error(f"{what} is not supported", offset, hint)
