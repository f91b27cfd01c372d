"""Groups of Python's dialect: captures, references to them, conditionals, atomic groups, inline flags."""

from __future__ import annotations

import re

from maskwright.grammar.ir import EPSILON
from maskwright.grammar.regex.ast import Atomic, Conditional, Node, Reference, widths
from maskwright.grammar.regex.parser import Group, Parser

A, I, M, S, U, X = (int(f) for f in (re.A, re.I, re.M, re.S, re.U, re.X))  # noqa: E741 - the flags' own names
_FLAG_LETTERS = {"a": A, "i": I, "m": M, "s": S, "u": U, "x": X}


class PythonGroups(Parser):
    """What follows an opening parenthesis in Python's dialect."""

    def __init__(self, text: str, flags: int = 0) -> None:
        super().__init__(text, flags)
        self.conditions: list[tuple[int, int]] = []
        self.captured: dict[int, Node] = {}

    # Groups.

    def open_group(self) -> None:
        """Reads the opening of a group."""
        offset = self.at
        if self.peek(2) != "(?":
            self.at += 1
            self.groups += 1
            self.push("(", offset, self.groups)
            return
        for opening in ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?P<", "(?#"):
            if self.text.startswith(opening, offset):
                self.at += len(opening)
                if opening == "(?P<":
                    self.group_name(offset)
                elif opening == "(?#":
                    self.comment(offset)
                    return
                self.push(opening, offset, self.groups if opening == "(?P<" else 0)
                return
        self.rare_group(offset)

    def look(self, body: Node, opening: str, offset: int) -> Node:
        """A lookaround; `re` wants lookbehinds of one width."""
        if "<" in opening:
            low, high = widths(body, self.captured)
            if low != high:
                hint = "Write one lookbehind for each width, as alternatives"
                raise self.error("a lookbehind matches texts of several lengths", offset, hint)
        return super().look(body, opening, offset)

    def rare_group(self, offset: int) -> None:
        """Reads references by name, conditionals, atomic groups and inline flags."""
        rest = self.peek(4)
        if rest.startswith("(?>"):
            self.at += 3
            self.push("(?>", offset)
        elif rest.startswith("(?("):
            self.conditional(offset)
        elif rest.startswith("(?P="):
            self.at += 4
            self.reference(self.known_group(self.until(")"), offset), offset)
        elif rest.startswith("(?<"):
            raise self.error("'(?<' opens no group", offset, "Write (?P<name>...) for a named group")
        else:
            self.at += 2
            self.inline_flags(offset)

    def until(self, end: str) -> str:
        """Reads up to a letter and over it; nothing where there is none."""
        start, stop = self.at, self.text.find(end, self.at)
        self.at = max(stop + 1, self.at)
        return self.text[start:stop] if stop >= 0 else ""

    # References to groups.

    def known_group(self, name: str, offset: int) -> int:
        """The number of a named group."""
        if name not in self.names:
            raise self.error(f"{name!r} names no group before it", offset, "Write (?P<name>...) before it")
        return self.names[name]

    def reference(self, number: int, offset: int) -> None:
        """Appends a back-reference, to a group that is closed before it."""
        written = self.text[offset : self.at]
        if number > self.groups:
            hint = "Write it behind its group, or an octal escape with three digits"
            raise self.error(f"{written!r} refers to no group before it", offset, hint)
        self.check_closed(number, offset, always=True)
        self.add(Reference(number, written, offset, bool(self.flags & I), bool(self.flags & A)))

    def check_closed(self, number: int, offset: int, always: bool) -> None:
        """Refuses, as `re` does, references to open groups and in a lookbehind to its own groups."""
        written = self.text[offset : self.at]
        behind = next((g for g in self.stack if g.opening in ("(?<=", "(?<!")), None)
        if (always or behind) and (number > self.groups or any(g.number == number for g in self.stack)):
            raise self.error(f"{written!r} refers to a group that is still open", offset, "Write it behind its group")
        if behind is not None and number > behind.groups_before:
            hint = "Refer to groups before the lookbehind"
            raise self.error(f"{written!r} refers to a group of the same lookbehind", offset, hint)

    def conditional(self, offset: int) -> None:
        """Reads the opening ``(?(group)`` of a conditional."""
        self.at += 3
        name = self.until(")")
        if name.isidentifier():
            number = self.known_group(name, offset)
        elif name.isascii() and name.isdecimal() and 0 < len(name.lstrip("0")) < 9:
            number = int(name)
            self.conditions.append((number, offset))
        else:
            raise self.error(f"{name!r} is no group", offset, "Write (?(1)...|...) with a number or a name")
        self.check_closed(number, offset, always=False)
        self.push("(?(", offset)
        self.stack[-1].condition = number

    def alternative(self) -> None:
        """Reads ``|``, of which a conditional has one."""
        group = self.stack[-1]
        if group.condition and group.options:
            raise self.error("a conditional has more than two branches", group.offset, "Put one of them into (?:...)")
        super().alternative()

    def parse(self) -> Node:
        """The tree of the whole pattern. Raises RegexError with the offset of what is wrong."""
        tree = super().parse()
        for number, offset in self.conditions:
            if number > self.groups:
                raise self.error(f"there is no group {number}", offset, "Refer to a group of the pattern")
        return tree

    def closed(self, node: Node, group: Group) -> Node:
        """What a group with these contents stands for."""
        if group.number:
            self.captured[group.number] = node
        if group.opening == "(?>":
            return Atomic(node, self.lazy < group.offset, group.opening, group.offset)
        if not group.condition:
            return super().closed(node, group)
        then, other = [*group.options, EPSILON][:2]
        return Conditional(then, other, group.condition, "(?(", group.offset)

    def skip_to(self, end: str) -> bool:
        """Skips a comment and its end; a backslash takes the next character with it, as in `re`."""
        while self.at < len(self.text):
            letter = self.text[self.at]
            self.at += 2 if letter == "\\" else 1
            if self.at > len(self.text):
                raise self.error("a backslash escapes nothing", self.at - 2, r"Write \\ for the character")
            if letter == end:
                return True
        return False

    def comment(self, offset: int) -> None:
        """Skips ``(?#...)``."""
        if not self.skip_to(")"):
            raise self.error("a comment is not closed", offset, "Write a `)` at its end")

    def group_name(self, offset: int) -> None:
        """Reads the name of a group and its closing bracket."""
        end = self.text.find(">", self.at)
        name = self.text[self.at : end] if end >= 0 else ""
        if not name.isidentifier():
            raise self.error(f"{name!r} is no group name", offset, "Write (?P<name>...) with an identifier")
        if name in self.names:
            raise self.error(f"the group name {name!r} is used twice", offset, "Give each group its own name")
        self.groups += 1
        self.names[name] = self.groups
        self.at = end + 1

    def inline_flags(self, offset: int) -> None:
        """Reads ``(?flags)`` or the opening ``(?flags-flags:``."""
        added, removed = self.flag_letters(offset), 0
        if self.peek() == "-":
            self.at += 1
            removed = self.flag_letters(offset)
            if not removed or removed & (A | U) or added & removed:
                raise self.error("these flags cannot be turned off", offset, "Write (?-i:...) with some of imsx")
        end = self.peek()
        self.at += 1
        if end == ")" and not removed and added:
            top = self.stack[0]
            if (self.flags | added) & A and (self.flags | added) & U:
                raise self.error("the flags a and u exclude each other", offset, "Write one of them")
            if len(self.stack) > 1 or top.items or top.options:
                hint = "Move it to the start, or write (?i:...) for a part of the pattern"
                raise self.error("flags for the whole pattern are not at its start", offset, hint)
            self.set_flags(added, 0, offset)
            return
        if end != ":" or not (added or removed):
            raise self.error(f"{self.text[offset : self.at]!r} opens no group", offset, "Write (?: for a plain group")
        self.push("(?:", offset)
        self.set_flags(added, removed, offset)

    def flag_letters(self, offset: int) -> int:
        """Reads a run of flag letters."""
        flags = 0
        while (letter := self.peek()) and letter.isalpha():
            if letter not in _FLAG_LETTERS:
                raise self.error(f"{letter!r} is not a flag of a str pattern", offset, "The flags are a i m s u x")
            flags |= _FLAG_LETTERS[letter]
            self.at += 1
        return flags

    def set_flags(self, added: int, removed: int, offset: int) -> None:
        """Changes the flags from here to the end of the group."""
        if added & A and added & U:
            raise self.error("the flags a and u exclude each other", offset, "Write one of them")
        if added & (A | U):
            self.flags &= ~(A | U)
        self.flags = (self.flags | added) & ~removed
