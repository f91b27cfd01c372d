"""Where in a JSON text its beginning ends: in a key, in a string, behind a value, and of which value."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Literal

__all__ = ["Place", "place_of"]

State = Literal["value", "string", "scalar", "key", "key-string", "colon", "after", "end"]
_BLANKS = " \t\r\n"
_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\(?:u[0-9a-fA-F]{0,3})?\Z")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a JSON text.

    Args:
        state: what comes here: a "value"; the rest of a "string", of a "scalar" (number, true, false, null) or of a
            "key-string"; a "key"; a "colon"; what comes "after" a value inside a container; the "end".
        path: keys and indices that lead to the value being written; between values, to their container.
        container: the kind of the innermost container, or "".
        keys: what is written already in the innermost object.
        count: complete items of the innermost array.
        written: of the string, key or scalar, decoded.
        in_escape: the place is inside an escape of a string or key.
    """

    state: State
    path: tuple[str | int, ...] = ()
    container: Literal["", "object", "array"] = ""
    keys: tuple[str, ...] = ()
    count: int = 0
    written: str = ""
    in_escape: bool = False

    @property
    def pointer(self) -> str:
        """`path` as a JSON pointer."""
        return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.path)


@dataclass(slots=True)
class _Container:
    kind: Literal["object", "array"]
    keys: list[str] = field(default_factory=list)
    count: int = 0


def place_of(text: str) -> Place:
    """The place at the end of `text`, the beginning of a valid JSON text."""
    return _Scanner(text).run()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.stack: list[_Container] = []
        self.state: State = "value"

    def run(self) -> Place:
        while True:
            while self.at < len(self.text) and self.text[self.at] in _BLANKS:
                self.at += 1
            if self.at >= len(self.text):
                return self.place(self.state)
            letter = self.text[self.at]
            if letter == '"':
                if (partial := self.string()) is not None:
                    return partial
            elif letter in "{[":
                self.at += 1
                self.stack.append(_Container("object" if letter == "{" else "array"))
                self.state = "key" if letter == "{" else "value"
            elif letter in "}],:":
                self.punctuation(letter)
            elif (partial := self.scalar()) is not None:
                return partial

    def punctuation(self, letter: str) -> None:
        self.at += 1
        if letter == ":":
            self.state = "value"
        elif letter == ",":
            self.state = "key" if self.stack and self.stack[-1].kind == "object" else "value"
        else:
            if self.stack:
                self.stack.pop()
            self.close_value()

    def close_value(self) -> None:
        if self.stack and self.stack[-1].kind == "array":
            self.stack[-1].count += 1
        self.state = "after" if self.stack else "end"

    def string(self) -> Place | None:
        """Reads a string; the place inside it where the text ends there."""
        start = self.at + 1
        end = start
        while end < len(self.text) and self.text[end] != '"':
            end += 2 if self.text[end] == "\\" else 1
        is_key = self.state == "key"
        written = _decoded(self.text[start:end])
        if end >= len(self.text):
            partial = self.place("key-string" if is_key else "string", written)
            return replace(partial, in_escape=_ESCAPE.search(self.text[start:]) is not None)
        self.at = end + 1
        if is_key:
            self.stack[-1].keys.append(written)
            self.state = "colon"
        else:
            self.close_value()
        return None

    def scalar(self) -> Place | None:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in ',]}:"{[' + _BLANKS:
            self.at += 1
        if self.at >= len(self.text):
            return self.place("scalar", self.text[start:])
        self.close_value()
        return None

    def place(self, state: State, written: str = "") -> Place:
        inside = len(self.stack) if state in ("value", "string", "scalar") else len(self.stack) - 1
        path = tuple(c.count if c.kind == "array" else c.keys[-1] for c in self.stack[: max(inside, 0)])
        if not self.stack:
            return Place(state, path, written=written)
        last = self.stack[-1]
        keys = last.keys[:-1] if state in ("value", "string", "scalar", "colon") and last.keys else last.keys
        return Place(state, path, last.kind, tuple(keys), last.count, written)


def _decoded(text: str) -> str:
    """The value of a JSON string's inside, without an escape that is cut off."""
    for cut in range(min(len(text), 6) + 1):
        try:
            value: str = json.loads(f'"{text[: len(text) - cut]}"', strict=False)
        except ValueError:
            continue
        return value
    return text
