"""Where in a grammar's text its names are defined."""

from __future__ import annotations

import re


class Places:
    """Looks names up in the text of a grammar; names of imported files have no place in it.

    Args:
        text: of the grammar.
        origin: path of its file, if it has one.
    """

    def __init__(self, text: str, origin: str = "") -> None:
        self._text = text
        self.origin = origin

    def at(self, line: int, column: int) -> str:
        """A place as it stands in errors."""
        return f"{self.origin}:{line}:{column}" if self.origin else f"line {line}, column {column}"

    def offset(self, offset: int) -> str:
        """The same for an offset."""
        line = self._text.count("\n", 0, offset) + 1
        return self.at(line, offset - self._text.rfind("\n", 0, offset))

    def _find(self, pattern: str) -> str | None:
        found = re.search(pattern, self._text, re.M)
        return None if found is None else self.offset(found.start(1))

    def terminal(self, name: str) -> str:
        """The place of a terminal."""
        if name not in self._text:  # it is lark's own
            return name
        base = re.escape(name)
        return self._find(rf"^[ \t]*({base})(\.-?\d+)?\s*:") or self._find(rf"^[ \t]*%\w+[^\n]*?\b({base})\b") or name

    def text(self, quoted: str) -> str:
        """The place where a string first stands, in its quotes."""
        found = self._text.find(quoted)
        return self.offset(found) if found >= 0 else quoted

    def rule(self, name: str) -> str:
        """The place of a rule."""
        base = re.escape(name)
        return self._find(rf"^[ \t]*[?!]*({base})(\{{[^}}]*\}})?(\.-?\d+)?\s*:") or name
