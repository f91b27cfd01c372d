r"""The dialect of Python's `re` for str patterns, as the documentation of the running version defines it.

Beyond it: ``\p{..}`` and ``\P{..}`` for general categories. Refused, with their offset: back-references, conditionals,
possessive quantifiers and atomic groups.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import ClassVar

from maskwright.grammar.ir import ANY, Ir, chars, merge_ranges, negate_ranges
from maskwright.grammar.regex.ast import BOUNDARIES, Anchor, At, Node, widths
from maskwright.grammar.regex.parser import DIGITS, HEX, NOTHING, Parser, of_ranges, single
from maskwright.grammar.regex.unicode import general_category, python_class, python_set

A, I, M, S, U, X = (int(f) for f in (re.A, re.I, re.M, re.S, re.U, re.X))  # noqa: E741 - the flags' own names
_FLAG_LETTERS = {"a": A, "i": I, "m": M, "s": S, "u": U, "x": X}
_SIMPLE_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}
_OCTAL = frozenset("01234567")
_BLANK = frozenset(" \t\n\r\v\f")
_ANCHORS = {"A": At.START, "Z": At.END, "b": At.BOUNDARY, "B": At.INSIDE}
if sys.version_info >= (3, 14):
    _ANCHORS |= {"z": At.END, "B": At.NO_BOUNDARY}
_NOT_NEWLINE = chars([(0, 9), (11, 0x10FFFF)])


class PythonParser(Parser):
    """One pattern of Python's dialect; `flags` are those of `re`."""

    dialect: ClassVar[str] = "Python"

    def step(self) -> None:
        """Reads one item; under the flag ``x`` blanks and comments are none."""
        if self.flags & X:
            letter = self.text[self.at]
            if letter in _BLANK:
                self.at += 1
                return
            if letter == "#":
                self.skip_to("\n")
                return
        super().step()

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

    # Single characters.

    def char(self, code_point: int) -> Ir:
        """The language of a literal character, its other cases included under ``i``."""
        if not self.flags & I:
            return single(code_point)
        return of_ranges(python_set(((code_point, code_point),), "", False, True, bool(self.flags & A)))

    def dot(self) -> None:
        """Reads a dot: no newline unless the flag ``s`` is set."""
        self.at += 1
        self.add(ANY if self.flags & S else _NOT_NEWLINE)

    def caret(self) -> None:
        """Reads ``^``: also after every newline under ``m``."""
        self.anchor(At.LINE_START if self.flags & M else At.START, 1)

    def dollar(self) -> None:
        """Reads ``$``: also before a newline that ends the text, under ``m`` before every newline."""
        self.anchor(At.LINE_END if self.flags & M else At.END_OR_NEWLINE, 1)

    def anchor(self, at: At, width: int) -> None:
        """Appends a zero-width assertion, which no quantifier may follow."""
        word = python_class("w", bool(self.flags & A)) if at in BOUNDARIES else ()
        text = self.text[self.at : self.at + width]
        self.add(Anchor(at, text, self.at, word), NOTHING)
        self.at += width

    # Escapes.

    def escape(self) -> None:
        """Reads an escape outside a class."""
        offset, letter = self.at, self.escaped()
        if letter in _ANCHORS:
            self.anchor(_ANCHORS[letter], 2)
        elif letter in "dDsSwW":
            self.at += 2
            self.add(of_ranges(python_set((), letter, False, bool(self.flags & I), bool(self.flags & A))))
        elif letter in "pP":
            self.at += 2
            self.add(of_ranges(self.category(letter, offset)))
        elif letter in "123456789" and not self.is_octal():
            what = f"the back-reference {self.text[self.at : self.at + 2]!r}"
            raise self.unsupported(what, offset, "Write the text out that the group matches, case by case")
        else:
            self.add(self.char(self.code_point()))

    def escaped(self) -> str:
        """The letter after the backslash at the cursor."""
        if self.at + 1 >= len(self.text):
            raise self.error("a backslash escapes nothing", self.at, r"Write \\ for the character")
        return self.text[self.at + 1]

    def category(self, letter: str, offset: int) -> tuple[tuple[int, int], ...]:
        r"""The code points of ``\p{..}`` or ``\P{..}``; the cursor is behind the letter."""
        if self.flags & I:
            hint = r"End the flag before it: (?-i:\p{..})"
            raise self.unsupported(rf"\{letter} under the flag i", offset, hint)
        ranges = self.property(offset, general_category)
        return ranges if letter == "p" else negate_ranges(ranges)

    def is_octal(self) -> bool:
        """Whether an escaped digit at the cursor starts an octal escape, not a group's number."""
        digits = self.text[self.at + 1 : self.at + 4]
        return digits[0] == "0" or (len(digits) == 3 and all(d in _OCTAL for d in digits))

    def octal(self) -> int:
        """Reads an octal escape."""
        digits = self.text[self.at + 1 : self.at + 4]
        run = len(digits) - len(digits.lstrip("01234567"))
        value = int(digits[:run], 8)
        if value > 0o377:
            raise self.error(f"the octal escape \\{digits} is over \\377", self.at, r"Write \u0000 with four digits")
        self.at += 1 + run
        return value

    def code_point(self) -> int:
        """Reads an escape that stands for one code point."""
        offset, letter = self.at, self.escaped()
        if letter in DIGITS:
            if letter in "89":
                raise self.error(f"\\{letter} is not an escape here", offset, r"Write \x00 with two digits")
            return self.octal()
        self.at += 2
        if letter in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[letter]
        if letter in _HEX_ESCAPES:
            return self.hexadecimal(letter, offset)
        if letter == "N":
            return self.named(offset)
        if letter.isascii() and letter.isalpha():
            raise self.error(f"\\{letter} is not an escape", offset, f"Write {letter} for the letter itself")
        return ord(letter)

    def hexadecimal(self, letter: str, offset: int) -> int:
        r"""Reads the digits of ``\x \u \U``."""
        width = _HEX_ESCAPES[letter]
        digits = self.take_while(HEX, width)
        if len(digits) != width:
            raise self.error(f"\\{letter}{digits} is incomplete", offset, f"Write {width} hexadecimal digits")
        if int(digits, 16) > sys.maxunicode:
            raise self.error(f"\\{letter}{digits} is no code point", offset, r"The largest is \U0010ffff")
        return int(digits, 16)

    def named(self, offset: int) -> int:
        r"""Reads the name of ``\N{..}``."""
        end = self.text.find("}", self.at) if self.peek() == "{" else -1
        name = self.text[self.at + 1 : end] if end > 0 else ""
        try:
            found = ord(unicodedata.lookup(name))
        except (KeyError, TypeError):
            raise self.error(rf"\N{{{name}}} names no character", offset, r"Write \uXXXX with its number") from None
        self.at = end + 1
        return found

    # Classes.

    def char_class(self) -> None:
        """Reads a class in brackets."""
        opening, empty = self.at, True
        self.at += 1
        negated = self.peek() == "^"
        self.at += negated
        singles: list[tuple[int, int]] = []
        letters: list[str] = []
        while self.peek() != "]" or empty:
            empty = False
            offset, first = self.at, self.class_atom(opening, letters, singles)
            if self.peek() == "-" and self.peek(2) != "-]":
                self.at += 1
                last = self.class_atom(opening, letters, singles)
                if first is None or last is None:
                    written = self.text[offset : self.at]
                    raise self.error(f"the range {written!r} ends in a class", offset, r"Write \- for the character")
                singles.append(self.range(first, last, offset))
            elif first is not None:
                singles.append((first, first))
        self.at += 1
        categories = "".join(dict.fromkeys(letters))
        flags = bool(self.flags & I), bool(self.flags & A)
        self.add(of_ranges(python_set(merge_ranges(singles), categories, negated, *flags)))

    def class_atom(self, opening: int, letters: list[str], singles: list[tuple[int, int]]) -> int | None:
        """Reads one member: its code point; None for a class escape, noted in `letters` or `singles`."""
        letter = self.peek()
        if not letter:
            raise self.error("a class is not closed", opening, "Write a `]` at its end")
        if letter != "\\":
            self.at += 1
            return ord(letter)
        offset, letter = self.at, self.escaped()
        if letter in "dDsSwW":
            self.at += 2
            letters.append(letter)
        elif letter in "pP":
            self.at += 2
            singles.extend(self.category(letter, offset))
        else:
            return self.code_point()
        return None

    # Quantifiers.

    def braces(self) -> tuple[int, int | None] | None:
        """Reads a count in braces; a brace that opens none is a literal."""
        found = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}").match(self.text, self.at)
        if found is None or found[0] == "{}":
            return None
        offset, (least, comma, most) = self.at, found.groups()
        self.at = found.end()
        low = self.count(least, offset) if least else 0
        high = (self.count(most, offset) if most else None) if comma else low
        if high is not None and high < low:
            raise self.error(f"{found[0]} has its bounds in reverse order", offset, "Write the smaller one first")
        return low, high

    def after_quantifier(self, offset: int) -> None:
        """Reads the ``?`` of a lazy quantifier, which has no bearing on the language."""
        if self.peek() == "?":
            self.at += 1
        elif self.peek() == "+":
            what = f"the possessive quantifier {self.text[offset : self.at + 1]!r}"
            raise self.unsupported(what, offset, "Leave the last + out for the greedy quantifier")

    # Groups.

    def open_group(self) -> None:
        """Reads the opening of a group."""
        offset = self.at
        if self.peek(2) != "(?":
            self.at += 1
            self.groups += 1
            self.push("(", offset)
            return
        for opening in ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?P<", "(?#"):
            if self.text.startswith(opening, offset):
                self.at += len(opening)
                if opening == "(?P<":
                    self.group_name(offset)
                elif opening == "(?#":
                    self.comment(offset)
                    return
                self.push(opening, offset)
                return
        self.rare_group(offset)

    def look(self, body: Node, opening: str, offset: int) -> Node:
        """A lookaround; `re` wants lookbehinds of one width."""
        if "<" in opening:
            low, high = widths(body)
            if low != high:
                hint = "Write one lookbehind for each width, as alternatives"
                raise self.error("a lookbehind matches texts of several lengths", offset, hint)
        return super().look(body, opening, offset)

    def rare_group(self, offset: int) -> None:
        """Reads inline flags; refuses what no group of ours is."""
        rest = self.peek(4)
        if rest.startswith("(?>"):
            raise self.unsupported("the atomic group '(?>'", offset, "Write (?: for an ordinary group")
        if rest.startswith("(?("):
            raise self.unsupported("the conditional '(?('", offset, "Write the two cases as alternatives")
        if rest.startswith("(?P="):
            raise self.unsupported("the back-reference '(?P='", offset, "Write the group's texts out, case by case")
        if rest.startswith("(?<"):
            raise self.error("'(?<' opens no group", offset, "Write (?P<name>...) for a named group")
        self.at += 2
        self.inline_flags(offset)

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
