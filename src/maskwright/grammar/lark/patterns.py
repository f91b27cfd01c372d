"""Regular expressions of terminals, as Python's `re` reads them, to programs that keep its order of preference.

The expression is parsed by the parser of `re` itself: a terminal means what the running Python makes of it.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Any, NoReturn

from maskwright.errors import LarkError
from maskwright.grammar.ir import ANY, Chars, merge_ranges, negate_ranges
from maskwright.grammar.lark.assembly import BEGIN, END, MATCH, Assembly
from maskwright.grammar.lark.regex_module import members as regex_members
from maskwright.grammar.lark.regex_module import with_placeholders
from maskwright.grammar.regex.unicode import python_set

# The names are private, and have moved once.
_HOME = ("re._constants", "re._parser") if sys.version_info >= (3, 11) else ("sre_constants", "sre_parse")
sre: Any = import_module(_HOME[0])
sre_parser: Any = import_module(_HOME[1])

_A, _I, _M, _S = int(re.A), int(re.I), int(re.M), int(re.S)
_TYPES = int(re.A | re.L | re.U)
_CATEGORIES = {
    sre.CATEGORY_DIGIT: "d",
    sre.CATEGORY_NOT_DIGIT: "D",
    sre.CATEGORY_SPACE: "s",
    sre.CATEGORY_NOT_SPACE: "S",
    sre.CATEGORY_WORD: "w",
    sre.CATEGORY_NOT_WORD: "W",
}
assert isinstance(ANY, Chars)
_ANY = ANY.ranges
_NEWLINE = ((10, 10),)
_REFUSED = {
    sre.GROUPREF: ("a back-reference", "Write out what the group may be, or match it in a rule"),
    sre.GROUPREF_EXISTS: ("a conditional group", "Write both cases as alternatives"),
    sre.AT_BOUNDARY: (r"\b", "Lark's lexers end words by themselves: leave it out, or write a lookahead at the end"),
    sre.AT_NON_BOUNDARY: (r"\B", "Write the characters that may stand there"),
}
if sys.version_info >= (3, 11):
    _REFUSED[sre.ATOMIC_GROUP] = ("an atomic group", "Write a plain group, (?:...), whose end is told by what follows")
    _REFUSED[sre.POSSESSIVE_REPEAT] = ("a possessive repeat", "Write a plain one; the first match is taken anyway")


class PatternCompiler:
    """Writes the program of one terminal.

    Args:
        assembly: where it is written.
        name: of the terminal, for the errors.
        location: in the grammar, likewise.
        lookaround: whether lookaheads and lookbehinds may be used.
        regex: the expressions are the `regex` package's.
    """

    def __init__(
        self, assembly: Assembly, name: str, location: str, lookaround: bool = True, regex: bool = False
    ) -> None:
        self.regex = regex
        self.properties: dict[int, str] = {}
        self.anchored = False  # every way to match begins with ^
        self.out = assembly
        self.name = name
        self.location = location
        self.lookaround = lookaround

    def refuse(self, what: str, hint: str) -> NoReturn:
        """Raises LarkError."""
        raise LarkError(f"terminal {self.name} {what}", location=self.location, hint=hint)

    def program(self, pattern: str, flags: int, terminal: int) -> int:
        """Writes the program of a regular expression and tells where it starts."""
        if self.regex:
            pattern, self.properties = with_placeholders(pattern, self.refuse)
        try:
            tree = sre_parser.parse(pattern, flags)
        except (re.error, OverflowError, RecursionError) as error:
            self.refuse(f"is not a regular expression: {error}", "Correct it")
        start = self.out.here
        self.out.loops = 0
        self.anchored = _begins_with_anchor(tree)
        self.items(tree, tree.state.flags, 0, True)
        self.out.emit(MATCH, terminal)
        return start

    # `low`: the characters that were read before, at least. `main`: not inside a lookaround.

    def items(self, items: Any, flags: int, low: int, main: bool, tail: bool = True) -> int:
        """A sequence; returns the least number of characters before its end."""
        listed = list(items)
        for at, (op, arg) in enumerate(listed):
            low = self.item(op, arg, flags, low, main, tail and at == len(listed) - 1)
        return low

    def item(self, op: Any, arg: Any, flags: int, low: int, main: bool, tail: bool) -> int:
        """One item."""
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            self.out.char(self.ranges(op, arg, flags))
            return low + 1
        if op is sre.SUBPATTERN:
            _, added, removed, body = arg
            if added & _TYPES:
                flags &= ~_TYPES
            return self.items(body, (flags & ~removed) | added, low, main, tail)
        if op is sre.BRANCH:
            lows: list[int] = []
            self.out.options([lambda o=o: lows.append(self.items(o, flags, low, main, tail)) for o in arg[1]])  # type: ignore[misc]
            return min(lows)
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self.repeat(arg, op is sre.MIN_REPEAT, flags, low, main)
        if op is sre.AT:
            return self.anchor(arg, flags, low, main, tail)
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            return self.look(arg, op is sre.ASSERT_NOT, flags, low, main)
        if op is sre.FAILURE:
            self.out.char(())
            return low
        what, hint = _REFUSED.get(op, (str(op).lower(), "Write it in another way"))
        self.refuse(f"uses {what}", hint)

    def repeat(self, arg: Any, lazy: bool, flags: int, low: int, main: bool) -> int:
        """A quantifier."""
        least, most, body = arg
        nullable = body.getwidth()[0] == 0
        after = low
        for _ in range(least):
            after = self.items(body, flags, after, main, False)

        def write() -> None:
            self.items(body, flags, after, main, False)

        if most is sre.MAXREPEAT:
            self.out.star(write, lazy, nullable)
        else:
            self.out.up_to(int(most) - int(least), write, lazy, nullable)
        return after

    def anchor(self, at: Any, flags: int, low: int, main: bool, tail: bool) -> int:
        """A zero-width assertion. `re` keeps the flag m as another code only when it compiles."""
        if at in _REFUSED:
            self.refuse(f"uses {_REFUSED[at][0]}, which looks at text before it", _REFUSED[at][1])
        if at in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            lines = at is sre.AT_BEGINNING and bool(flags & _M)
            if not main or (low == 0 and lines):
                self.refuse("looks at text before it", f"Include that text in {self.name}, or leave the ^ out")
            self.begin(low, lines)
            return low
        self.need_lookaround("$")

        def end() -> None:
            self.out.emit(END)

        def newline_then_end() -> None:
            self.out.char(_NEWLINE)
            if not flags & _M:
                self.out.emit(END)

        body = end if at is sre.AT_END_STRING else lambda: self.out.options([end, newline_then_end])
        if main:
            self.out.ahead(body, False)
        elif tail:
            body()
        else:
            self.refuse("has a $ inside a lookahead with more behind it", "Put it at the end of the lookahead")
        return low

    def begin(self, low: int, lines: bool) -> None:
        """The start of the text; `lines`: or of a line, behind at least one character of the token."""
        if lines:
            self.out.behind("\n", lambda: self.out.char(_NEWLINE), False)
        elif low > 0:
            self.out.char(())
        elif self.lookaround or self.anchored:
            self.out.emit(BEGIN)
        else:  # on a slice it would hold at every token
            hint = "Put it in front of all alternatives, or use lexer='dynamic'"
            self.refuse("has a ^ in some alternatives, with lexer='dynamic_complete', which matches slices", hint)

    def need_lookaround(self, what: str) -> None:
        """Raises where the lexer looks at slices of the text."""
        if not self.lookaround:
            self.refuse(f"uses {what} with lexer='dynamic_complete', which matches slices", "Use lexer='dynamic'")

    def look(self, arg: Any, negative: bool, flags: int, low: int, main: bool) -> int:
        """A lookahead or lookbehind."""
        direction, body = arg
        self.need_lookaround("a lookaround")
        if not main:
            self.refuse("nests lookarounds", "Write the inner one as an alternative")
        if direction > 0:
            self.out.ahead(lambda: self.look_body(body, flags), negative)
            return low
        width = body.getwidth()[0]
        if width > low:
            self.refuse("looks at text before it", f"Include that text in {self.name}")
        if width == 0:
            if negative:
                self.out.char(())
            return low
        self.out.behind(f"{flags}:{body.data!r}", lambda: self.look_body(body, flags), negative)
        return low

    def look_body(self, body: Any, flags: int) -> None:
        """The inside of a lookaround, where the order of preference does not matter."""
        self.items(body, flags, 0, False)

    def ranges(self, op: Any, arg: Any, flags: int) -> tuple[tuple[int, int], ...]:
        """The code points of a character, a dot or a class."""
        if op is sre.ANY:
            return _ANY if flags & _S else negate_ranges(_NEWLINE)
        if self.regex:
            return self.regex_ranges(op, arg, flags)
        members = [(sre.LITERAL, arg)] if op in (sre.LITERAL, sre.NOT_LITERAL) else arg
        negated = op is sre.NOT_LITERAL
        singles: list[tuple[int, int]] = []
        letters: list[str] = []
        for kind, value in members:
            if kind is sre.NEGATE:
                negated = True
            elif kind is sre.LITERAL:
                singles.append((value, value))
            elif kind is sre.RANGE:
                singles.append(value)
            else:
                letters.append(_CATEGORIES[value])
        plain = merge_ranges(singles)
        if not letters and not flags & _I:
            return negate_ranges(plain) if negated else plain
        return python_set(plain, "".join(dict.fromkeys(letters)), negated, bool(flags & _I), bool(flags & _A))

    def regex_ranges(self, op: Any, arg: Any, flags: int) -> tuple[tuple[int, int], ...]:
        """The same as the `regex` package has it."""
        members = arg if op is sre.IN else [(sre.LITERAL, arg)]
        out = "[^" if op is sre.NOT_LITERAL or (sre.NEGATE, None) in members else "["
        for kind, value in members:
            if kind is sre.LITERAL:
                out += self.properties.get(value, f"\\U{value:08x}")
            elif kind is sre.RANGE:
                low, high = value
                if low in self.properties or high in self.properties:
                    self.refuse("has a property at the end of a range", "Write it beside the range")
                out += f"\\U{low:08x}-\\U{high:08x}"
            elif kind is not sre.NEGATE:
                out += "\\" + _CATEGORIES[value]
        return regex_members(out + "]", flags)


def _begins_with_anchor(items: Any) -> bool:
    first: tuple[Any, Any] = next(iter(items), (None, None))
    op, arg = first
    if op is sre.BRANCH:
        return all(map(_begins_with_anchor, arg[1]))
    if op is sre.SUBPATTERN:
        return _begins_with_anchor(arg[3])
    return op is sre.AT and arg in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING)
