"""The outcome of `explain`, for programs and for people."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from .continuations import Characters, quote

__all__ = ["Explanation"]

_WIDTH = 76  # columns of the line that is shown


@dataclass(frozen=True)
class Explanation:
    r"""Whether a text obeys a constraint and, if not, where and why not. `str()` shows it with the line and a caret.

    Attributes:
        ok: nothing in the text is refused: it is allowed, or can be continued to what is.
        complete: the whole text is allowed as it stands.
        text: what was replayed; bytes that are no UTF-8 read U+FFFD.
        byte: offset in UTF-8 of what is refused; the length of the text where nothing is.
        offset: the same in characters.
        line: the same as a line, from 1; only ``\n`` ends a line.
        column: characters from the line's start, from 1.
        found: what stands there, in words.
        expected: what may stand there, in words: literals in quotes, classes of characters like ``[0-9a-f]``, keys and
            kinds of JSON values, "end of text".
        characters: the single characters that may stand there.
        can_end: whether the text may end there.
        reasons: what speaks against what was found, where that is known.
        pointer: the JSON pointer of the value being written; between values, of their container. None outside JSON.
        schema_path: JSON pointer of the first keyword that is broken, or else of the schema of that value; None outside
            JSON.
        rule: the rules of a Lark grammar that are in progress there, separated by commas; None for other constraints.
        token: the position in the tokens of the one that is refused; None where all are allowed, or text was given.
    """

    ok: bool
    complete: bool
    text: str
    byte: int
    offset: int
    line: int
    column: int
    found: str
    expected: tuple[str, ...]
    characters: Characters
    can_end: bool
    reasons: tuple[str, ...] = ()
    pointer: str | None = None
    schema_path: str | None = None
    token: int | None = None
    rule: str | None = None

    def __str__(self) -> str:
        verdict = "allowed" if self.complete else "incomplete" if self.ok else "refused"
        lines = [f"{verdict} at line {self.line}, column {self.column} (offset {self.offset}): {self.found}"]
        if self.complete:
            lines[0] = "allowed: the text obeys the constraint"
        else:
            lines += [f"  {line}" for line in _caret(self.text, self.offset)]
        if self.token is not None:
            lines[0] += f", token {self.token}"
        if self.complete:
            more = [phrase for phrase in self.expected if phrase != "end of text"]
            lines += [f"may follow: {', '.join(more)}"] if more else []
        elif self.expected:
            lines.append(f"expected: {', '.join(self.expected)}")
        lines += [f"because {reason}" for reason in self.reasons]
        if self.rule is not None and not self.complete:
            lines.append(f"rule: {self.rule}")
        if self.pointer is not None and not self.complete:
            lines.append(f"value: {self.pointer or '#'}")
        if self.schema_path is not None and not self.complete:
            lines.append(f"schema: {self.schema_path or '#'}")
        return "\n".join(lines)


def _caret(text: str, offset: int) -> tuple[str, str]:
    """The line around an offset, cut to the width of a terminal, and a caret under the place."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    before = _plain(text[start:offset])
    after = _plain(text[offset : len(text) if end < 0 else end][:_WIDTH])
    if _width(before) > _WIDTH // 2:
        while _width(before) > _WIDTH // 2 - 1:
            before = before[1 + len(before) // 64 :] if len(before) > _WIDTH else before[1:]
        before = "…" + before
    room = _WIDTH - _width(before)
    if _width(after) > room:
        while _width(after) > room - 1:
            after = after[:-1]
        after += "…"
    return before + after, " " * _width(before) + "^"


def _plain(text: str) -> str:
    """A text on one line: what does not print is escaped."""
    return "".join(letter if letter.isprintable() else quote(letter)[1:-1] for letter in text)


def _width(text: str) -> int:
    """Columns of a terminal: two for wide letters, none for marks that combine."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )
