"""Random regular expressions, as pattern text that Python's `re` and our front end both read."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from laws import coverage

CHARACTERS = "ab0 \n\"\\.-é€😀Z_"
SETS = ("[ab]", "[^a]", "[a-c0]", "[^\\d\\s]", "[\\w.]", "[é-€]", "[^\\n\"]", "[\\]a-]", "[😀-😂]")
ESCAPES = (r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".")

coverage.expect(
    "regex",
    ["literal", "set", "escape", "dot", "alternation", "group", "capture", "named", "star", "plus", "optional",
    "lazy", "counted", "open-count", "anchor-start", "anchor-end", "flag-i", "flag-s", "flag-x", "non-ascii", "quote",
    "nested-repeat", "empty-alternative", "newline", "backslash"],
)


@dataclass(frozen=True)
class Pattern:
    """A pattern, its flags, and the constructs in it."""

    text: str
    flags: int
    constructs: frozenset[str]


class _Writer:
    """Writes a pattern at random; `uses` collects the constructs."""

    def __init__(self, rng: random.Random) -> None:
        self.pick = rng.randrange
        self.uses: set[str] = set()
        self.names = 0

    def one_of(self, choices: str | tuple[str, ...]) -> str:
        return choices[self.pick(len(choices))]

    def alternation(self, depth: int) -> str:
        n = (1, 1, 2, 3)[self.pick(4)]
        parts = [self.sequence(depth) for _ in range(n)]
        if n > 1:
            self.uses.add("alternation")
        if n > 1 and "" in parts:
            self.uses.add("empty-alternative")
        return "|".join(parts)

    def sequence(self, depth: int) -> str:
        return "".join(self.repeated(depth) for _ in range((0, 1, 1, 2, 2, 3)[self.pick(6)]))

    def repeated(self, depth: int) -> str:
        atom = self.atom(depth)
        kind = self.pick(12)
        if kind < 6 or atom in ("^", "$", r"\A", r"\Z"):
            return atom
        if kind >= 10:
            low = self.pick(3)
            high = "" if self.pick(3) == 0 else str(low + self.pick(3))
            self.uses.add("counted" if high else "open-count")
            suffix = f"{{{low},{high}}}" if self.pick(3) or not high else f"{{{low}}}"
        else:
            suffix = "*+?*"[kind - 6]
            self.uses.add({"*": "star", "+": "plus", "?": "optional"}[suffix])
        if atom.endswith((")*", ")+", "})")) or ("(" in atom and any(c in atom for c in "*+{")):
            self.uses.add("nested-repeat")
        if self.pick(5) == 0:
            self.uses.add("lazy")
            suffix += "?"
        return atom + suffix

    def atom(self, depth: int) -> str:
        kind = self.pick(12 if depth else 9)
        if kind >= 9:
            return self.group(depth)
        if kind == 8 and self.pick(2) == 0:
            anchor = self.one_of(("^", "$", r"\A", r"\Z"))
            self.uses.add("anchor-start" if anchor in ("^", r"\A") else "anchor-end")
            return anchor
        if kind >= 7:
            self.uses.add("set")
            return self.one_of(SETS)
        if kind in (5, 6):
            escape = self.one_of(ESCAPES)
            self.uses.add("dot" if escape == "." else "escape")
            return escape
        return self.character()

    def group(self, depth: int) -> str:
        inner = self.alternation(depth - 1)
        kind = self.pick(4)
        if kind == 0:
            self.uses.add("named")
            self.names += 1
            return f"(?P<n{self.names}>{inner})"
        if kind == 1:
            self.uses.add("capture")
            return f"({inner})"
        self.uses.add("group")
        return f"(?:{inner})"

    def character(self) -> str:
        char = self.one_of(CHARACTERS)
        self.uses.add("literal")
        self.uses.add({'"': "quote", "\n": "newline", "\\": "backslash"}.get(char, "literal"))
        self.uses.update({"non-ascii"} if not char.isascii() else ())
        return re.escape(char)


def pattern(rng: random.Random, size: int) -> Pattern:
    """A pattern of any supported constructs, with groups nested up to `size` deep."""
    writer = _Writer(rng)
    text = writer.alternation(size)
    chosen = 0
    for name, flag in (("flag-i", re.I), ("flag-s", re.S), ("flag-x", re.X)):
        if rng.random() < 0.2:
            chosen |= flag
            writer.uses.add(name)
    return Pattern(text, int(chosen), frozenset(writer.uses))


def random_text(rng: random.Random) -> str:
    """A short text over the characters that patterns speak of."""
    return "".join(rng.choices(CHARACTERS + "AbÉc9\t", k=rng.randrange(7)))
