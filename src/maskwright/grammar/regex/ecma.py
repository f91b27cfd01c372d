r"""The dialect of ECMA-262 (2024), section 22.2, with the flag u and no other: what JSON Schema's `pattern` speaks.

Syntax is strict, as under u: no lone ``{ } ]``, no identity escapes but those of syntax characters. Refused, with their
offset: modifiers (?i:...).
"""

from __future__ import annotations

import re
from typing import ClassVar

from maskwright.grammar.ir import Ir, Ranges, chars, merge_ranges, negate_ranges
from maskwright.grammar.regex.ast import Anchor, At, Node, Reference, fold, with_children
from maskwright.grammar.regex.parser import DIGITS, HEX, MAX_COUNT, NOTHING, Parser, of_ranges, single
from maskwright.grammar.regex.properties import lookup_property
from maskwright.grammar.regex.unicode import ASCII_CLASSES

_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
# WhiteSpace and LineTerminator of ECMA-262: 9-13, U+FEFF, U+2028, U+2029 and the general category Zs, spelled out
# because tabulating the categories takes 60 ms.
_SPACE: Ranges = (
    (9, 13),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)

_PUNCTUATION = "!\"#%&',-:;<=>@_`~ "
_CONTROL_ESCAPES = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_NOT_LINE_END = chars([(0, 9), (11, 12), (14, 0x2027), (0x202A, 0x10FFFF)])
_GROUP_NAME = re.compile(r"(?:[^\W\d]|\$|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]+\})(?:[\w$\u200c\u200d]|\\u\S)*")


class EcmaParser(Parser):
    """One pattern of ECMA-262's dialect.

    Args:
        text: its source.
        loose: closing brackets that close nothing, and escapes of punctuation that needs none, stand for the character,
            as without flag u (Annex B.1.2).
    """

    dialect: ClassVar[str] = "ECMA-262"
    after_look: ClassVar[int] = NOTHING

    def __init__(self, text: str, loose: bool = False) -> None:
        # JavaScript reads its source as UTF-16: a high surrogate and a low one after it are one character.
        super().__init__(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))
        self.references: list[tuple[int | str, int]] = []
        self.loose = loose
        self.handlers["]"] = self.handlers["}"] = self.lone_bracket

    def lone_bracket(self) -> None:
        """Reads or refuses a closing bracket that closes nothing."""
        letter = self.peek()
        if self.loose:
            self.at += 1
            self.add(single(ord(letter)))
            return
        raise self.error(f"{letter!r} closes nothing", self.at, f"Write \\{letter} for the character")

    def char(self, code_point: int) -> Ir:
        """The language of a literal character."""
        return single(code_point)

    def dot(self) -> None:
        """Reads a dot: anything but a line terminator."""
        self.at += 1
        self.add(_NOT_LINE_END)

    def caret(self) -> None:
        """Reads ``^``: the start of the text."""
        self.anchor(At.START, 1)

    def dollar(self) -> None:
        """Reads ``$``: the end of the text."""
        self.anchor(At.END, 1)

    def anchor(self, at: At, width: int) -> None:
        """Appends a zero-width assertion, which no quantifier may follow."""
        self.add(Anchor(at, self.peek(width), self.at, ASCII_CLASSES["w"]), NOTHING)
        self.at += width

    # Escapes.

    def escape(self) -> None:
        """Reads an escape outside a class."""
        offset, letter = self.at, self.escaped()
        if letter in "bB":
            self.anchor(At.BOUNDARY if letter == "b" else At.NO_BOUNDARY, 2)
        elif letter in "dDsSwWpP":
            self.add(of_ranges(self.class_escape(letter)))
        elif letter == "k" or letter in "123456789":
            self.reference(letter, offset)
        else:
            self.add(single(self.code_point()))

    def escaped(self) -> str:
        """The letter after the backslash at the cursor."""
        if self.at + 1 >= len(self.text):
            raise self.error("a backslash escapes nothing", self.at, r"Write \\ for the character")
        return self.text[self.at + 1]

    def reference(self, letter: str, offset: int) -> None:
        r"""Reads ``\1`` or ``\k<name>``; that there is such a group is checked at the end."""
        self.at += 1
        if letter != "k":
            digits = self.take_while(DIGITS)
            number: int | str = int(digits) if len(digits) < 10 else MAX_COUNT
        else:
            self.at += 1
            found = _GROUP_NAME.match(self.text, self.at + 1)
            if self.peek() != "<" or found is None or self.text[found.end() : found.end() + 1] != ">":
                raise self.error(r"'\k' without a name", offset, r"Write \k<name> with the name of a group")
            number, self.at = _unescaped(found[0]), found.end() + 1
        self.references.append((number, offset))
        self.add(Reference(len(self.references), self.text[offset : self.at], offset))

    def parse(self) -> Node:
        """The tree of the whole pattern. Raises RegexError with the offset of what is wrong."""
        tree = super().parse()
        numbers: list[int] = []
        for name, offset in self.references:
            number = self.names.get(name, 0) if isinstance(name, str) else name
            if not 0 < number <= self.groups:
                hint = r"Write (?<name>...) or (...) for it, or \xHH for the character"
                raise self.error("the back-reference refers to no group", offset, hint)
            numbers.append(number)
        return fold(tree, lambda node, parts: _numbered(node, parts, numbers)) if numbers else tree

    def class_escape(self, letter: str) -> Ranges:
        r"""Reads ``\d \D \s \S \w \W \p{..} \P{..}``."""
        offset = self.at
        self.at += 2
        if letter in "pP":
            ranges = self.property(offset, lookup_property)
        elif letter in "sS":
            ranges = _SPACE
        else:
            ranges = ASCII_CLASSES[letter.lower()]
        return negate_ranges(ranges) if letter.isupper() else ranges

    def code_point(self) -> int:
        """Reads an escape that stands for one code point."""
        offset, letter = self.at, self.escaped()
        self.at += 2
        if letter in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[letter]
        if letter == "0" and self.peek() not in DIGITS:
            return 0
        if letter == "c" and self.peek().isascii() and self.peek().isalpha():
            self.at += 1
            return ord(self.text[self.at - 1]) % 32
        if letter == "x":
            return self.hexadecimal(2, offset)
        if letter == "u":
            return self.unicode_escape(offset)
        if letter in _SYNTAX or (self.loose and letter in _PUNCTUATION):
            return ord(letter)
        hint = r"Write \xHH or \uHHHH" if letter in DIGITS else f"Write {letter!r} without the backslash"
        raise self.error(f"\\{letter} is not an escape", offset, hint)

    def hexadecimal(self, width: int, offset: int) -> int:
        """Reads a number of so many hexadecimal digits."""
        digits = self.take_while(HEX, width)
        if len(digits) != width:
            written = self.text[offset : self.at]
            raise self.error(f"{written} is incomplete", offset, f"Write {width} hexadecimal digits")
        return int(digits, 16)

    def unicode_escape(self, offset: int) -> int:
        r"""Reads ``\uHHHH`` (a pair of surrogates is one character) or ``\u{..}`` behind its ``u``."""
        if self.peek() == "{":
            self.at += 1
            digits = self.take_while(HEX)
            self.at += 1
            if self.text[self.at - 1 : self.at] != "}" or not digits:
                raise self.error(r"\u{ is incomplete", offset, r"Write \u{1F600} or the like")
            if len(digits.lstrip("0")) > 6 or int(digits, 16) > 0x10FFFF:
                raise self.error(rf"\u{{{digits[:20]}}} is no code point", offset, r"The largest is \u{10FFFF}")
            return int(digits, 16)
        value = self.hexadecimal(4, offset)
        trail = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match(self.text, self.at)
        if trail is not None and 0xD800 <= value <= 0xDBFF:
            self.at = trail.end()
            return 0x10000 + ((value - 0xD800) << 10) + (int(trail[1], 16) - 0xDC00)
        return value

    # Classes.

    def char_class(self) -> None:
        """Reads a class in brackets; an empty one matches nothing."""
        opening = self.at
        self.at += 1
        negated = self.peek() == "^"
        self.at += negated
        found: list[tuple[int, int]] = []
        while self.peek() != "]":
            offset, first = self.at, self.class_atom(opening, found)
            if self.peek() == "-" and self.peek(2) != "-]":
                self.at += 1
                last = self.class_atom(opening, found)
                if first is None or last is None:
                    written = self.text[offset : self.at]
                    raise self.error(f"the range {written!r} ends in a class", offset, r"Write \- for the character")
                found.append(self.range(first, last, offset))
            elif first is not None:
                found.append((first, first))
        self.at += 1
        ranges = merge_ranges(found)
        self.add(of_ranges(negate_ranges(ranges) if negated else ranges))

    def class_atom(self, opening: int, found: list[tuple[int, int]]) -> int | None:
        """Reads one member: its code point; None for a class escape, whose ranges go to `found`."""
        letter = self.peek()
        if not letter:
            raise self.error("a class is not closed", opening, "Write a `]` at its end")
        if letter != "\\":
            self.at += 1
            return ord(letter)
        letter = self.escaped()
        if letter in "b-":
            self.at += 2
            return 8 if letter == "b" else ord("-")
        if letter in "dDsSwWpP":
            found.extend(self.class_escape(letter))
            return None
        return self.code_point()

    # Quantifiers.

    def braces(self) -> tuple[int, int | None]:
        """Reads a count in braces; under u no brace is a literal."""
        found = re.compile(r"\{([0-9]+)(,?)([0-9]*)\}").match(self.text, self.at)
        if found is None:
            raise self.error("'{' opens no count", self.at, r"Write {m}, {m,} or {m,n}, or \{ for the character")
        offset, (least, comma, most) = self.at, found.groups()
        self.at = found.end()
        low = self.count(least, offset)
        high = (self.count(most, offset) if most else None) if comma else low
        if high is not None and high < low:
            raise self.error(f"{found[0]} has its bounds in reverse order", offset, "Write the smaller one first")
        return low, high

    def after_quantifier(self) -> str:
        """Reads the ``?`` of a lazy quantifier."""
        mark = "?" if self.peek() == "?" else ""
        self.at += len(mark)
        return mark

    # Groups.

    def open_group(self) -> None:
        """Reads the opening of a group."""
        offset = self.at
        for opening in ("(?:", "(?=", "(?!", "(?<=", "(?<!"):
            if self.text.startswith(opening, offset):
                self.at += len(opening)
                self.push(opening, offset)
                return
        if self.peek(3) == "(?<":
            self.at += 3
            self.group_name(offset)
        elif self.peek(2) == "(?":
            hint = "Write (?: for a plain group, (?<name> for a named one"
            raise self.error(f"{self.peek(3)!r} opens no group", offset, hint)
        else:
            self.at += 1
        self.groups += 1
        self.push("(", offset, self.groups)

    def group_name(self, offset: int) -> None:
        """Reads the name of a group and its closing bracket."""
        found = _GROUP_NAME.match(self.text, self.at)
        if found is None or self.text[found.end() : found.end() + 1] != ">":
            raise self.error("'(?<' without a name", offset, "Write (?<name>...) with an identifier")
        name = _unescaped(found[0])
        if name in self.names:
            raise self.error(f"the group name {name!r} is used twice", offset, "Give each group its own name")
        self.names[name] = self.groups + 1
        self.at = found.end() + 1


def _unescape(found: re.Match[str]) -> str:
    value = int(found[1] or found[2], 16)
    return chr(value) if value <= 0x10FFFF else found[0]


def _unescaped(name: str) -> str:
    """A group name with its escapes resolved."""
    return re.sub(r"\\u(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4}))", _unescape, name)


def _numbered(node: Node, parts: list[Node], numbers: list[int]) -> Node:
    """The node with the parts, a reference with the number of its group."""
    if isinstance(node, Reference):
        return Reference(numbers[node.number - 1], node.text, node.offset)
    return with_children(node, parts) if parts else node
