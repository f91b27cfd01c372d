r"""The dialect of Python's `re` for str patterns, as the documentation of the running version defines it.

Beyond it: ``\p{..}`` and ``\P{..}`` for general categories and other properties.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import ClassVar

from maskwright.grammar.ir import ANY, Ir, chars, merge_ranges, negate_ranges
from maskwright.grammar.regex.ast import BOUNDARIES, Anchor, At
from maskwright.grammar.regex.parser import DIGITS, HEX, NOTHING, of_ranges, single
from maskwright.grammar.regex.properties import lookup_property
from maskwright.grammar.regex.python_groups import A, I, M, PythonGroups, S, X
from maskwright.grammar.regex.unicode import python_class, python_set

_SIMPLE_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}
_OCTAL = frozenset("01234567")
_BLANK = frozenset(" \t\n\r\v\f")
_ANCHORS = {"A": At.START, "Z": At.END, "b": At.BOUNDARY, "B": At.INSIDE}
if sys.version_info >= (3, 14):
    _ANCHORS |= {"z": At.END, "B": At.NO_BOUNDARY}
_NOT_NEWLINE = chars([(0, 9), (11, 0x10FFFF)])


class PythonParser(PythonGroups):
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
            self.reference(self.group_number(), offset)
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
        ranges = self.property(offset, lookup_property)
        return ranges if letter == "p" else negate_ranges(ranges)

    def is_octal(self) -> bool:
        """Whether an escaped digit at the cursor starts an octal escape, not a group's number."""
        digits = self.text[self.at + 1 : self.at + 4]
        return digits[0] == "0" or (len(digits) == 3 and all(d in _OCTAL for d in digits))

    def group_number(self) -> int:
        """Reads a backslash and the number of a group, of two digits at most."""
        self.at += 1
        return int(self.take_while(DIGITS, 2))

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

    def after_quantifier(self) -> str:
        """Reads the ``?`` of a lazy quantifier or the ``+`` of a possessive one."""
        mark = self.peek() if self.peek() in ("?", "+") else ""
        self.at += len(mark)
        return mark
