"""The value of a JSON text while it is still being written.

A scanner for text that a mask keeps valid: it reads every character once, and asks only where a value begins and ends
(RFC 8259, sections 2 to 7). Places are JSON pointers (RFC 6901).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["PartialJson"]

_SPACE_AND_COMMAS = " \t\n\r,"
_NUMBER_ENDS = ",]} \t\n\r"
_WORDS = {"true": True, "false": False, "null": None}
# What a string may end with while it is not closed: a part of an escape, or the first half of a surrogate pair.
_UNFINISHED = re.compile(r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z")
_ESCAPES = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[^u])")


@dataclass(slots=True)
class _Open:
    """An array or object whose end has not come."""

    pointer: str
    value: Any
    key: str | None = None  # of the member whose value comes next


class PartialJson:
    """What is known of a JSON value after a part of its text.

    Arrays and objects show what they hold so far. Numbers, literals and strings show once they are closed: a number
    with the character after it.

    Args:
        partial_strings: whether a string shows, as far as it goes, before it is closed; keys never do.

    Attributes:
        closed: JSON pointers of the values that are closed, in the order in which they were; `""` is the whole.
    """

    def __init__(self, partial_strings: bool = False) -> None:
        self.closed: list[str] = []
        self._partial_strings = partial_strings
        self._open: list[_Open] = []
        self._root: Any = None
        self._kind = ""  # of the scalar being read: "" none, "string", "number" or "word"
        self._read: list[str] = []
        self._escaped = False
        self._lost = False

    def push(self, text: str) -> None:
        """Reads the next characters."""
        for character in text:
            if self._lost:
                return
            try:
                self._step(character)
            except ValueError:
                # A number that Python refuses (4,300 digits): what is known stays, and no more comes.
                self._lost = True

    def finish(self) -> None:
        """The text is complete: a number at its end is closed."""
        if self._kind == "number" and not self._lost:
            self._end_number()

    def value(self) -> Any:
        """The value so far; None where none has begun to show.

        Later text does not change it. Values that are closed are shared between the values of all times: leave them
        as they are.
        """
        text = self._unclosed()
        if not self._open:
            return self._root if text is None else text
        shown = self._open[-1].value.copy()
        if text is not None:
            _put(shown, self._open[-1].key, text)
        for level in reversed(self._open[:-1]):
            outer = level.value.copy()
            outer[-1 if level.key is None else level.key] = shown
            shown = outer
        return shown

    def _step(self, character: str) -> None:
        if self._kind == "string":
            self._in_string(character)
        elif self._kind == "number" and character not in _NUMBER_ENDS:
            self._read.append(character)
        elif self._kind == "word":
            self._in_word(character)
        else:
            if self._kind == "number":
                self._end_number()
            self._between(character)

    def _between(self, character: str) -> None:
        if character in _SPACE_AND_COMMAS or character == ":":
            return
        if character in "{[":
            value: Any = {} if character == "{" else []
            level = _Open(self._next_pointer(), value)
            self._place(value)
            self._open.append(level)
        elif character in "}]":
            self._closes(self._open.pop().pointer)
        elif character == '"':
            self._kind, self._read, self._escaped = "string", [], False
        else:
            self._kind = "word" if character.isalpha() else "number"
            self._read = [character]

    def _in_string(self, character: str) -> None:
        if character == '"' and not self._escaped:
            text = json.loads('"' + "".join(self._read) + '"', strict=False)
            self._kind = ""
            if self._is_key():
                self._open[-1].key = text
            else:
                self._scalar(text)
            return
        self._escaped = character == "\\" and not self._escaped
        self._read.append(character)

    def _in_word(self, character: str) -> None:
        self._read.append(character)
        word = "".join(self._read)
        if word in _WORDS:
            self._kind = ""
            self._scalar(_WORDS[word])

    def _end_number(self) -> None:
        self._kind = ""
        self._scalar(json.loads("".join(self._read)))

    def _scalar(self, value: Any) -> None:
        pointer = self._next_pointer()
        self._place(value)
        self._closes(pointer)

    def _is_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _next_pointer(self) -> str:
        """The place of the value that begins or is being read; its slot is not there yet."""
        if not self._open:
            return ""
        level = self._open[-1]
        name = str(len(level.value)) if level.key is None else level.key.replace("~", "~0").replace("/", "~1")
        return f"{level.pointer}/{name}"

    def _place(self, value: Any) -> None:
        if not self._open:
            self._root = value
        else:
            _put(self._open[-1].value, self._open[-1].key, value)

    def _closes(self, pointer: str) -> None:
        self.closed.append(pointer)
        if self._open:
            self._open[-1].key = None

    def _unclosed(self) -> str | None:
        """The string being read, as far as it is certain; None where none is shown."""
        if self._kind != "string" or not self._partial_strings or self._is_key():
            return None
        raw = "".join(self._read)
        # Whether a backslash at the end begins an escape or ends one, only the whole string tells.
        masked = _ESCAPES.sub(lambda m: m[0] if m[0][1] == "u" else "\x00\x00", raw)
        unfinished = _UNFINISHED.search(masked)
        return str(json.loads('"' + raw[: unfinished and unfinished.start()] + '"', strict=False))


def _put(container: Any, key: str | None, value: Any) -> None:
    if key is None:
        container.append(value)
    else:
        container[key] = value
