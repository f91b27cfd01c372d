"""What a stream can say of a value before its text is complete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskwright.engine.partial import PartialJson
from maskwright.engine.result import Chunk
from maskwright.grammar.regions import Capture, Free, Part, Seq, Special

if TYPE_CHECKING:
    from maskwright.engine.request import Grammar
    from maskwright.engine.result import Result
    from maskwright.engine.row import Row

__all__ = ["Chunker", "Progress"]


class Chunker:
    """Cuts the output of a row into chunks as it grows.

    Args:
        row: the row.
        partial_strings: as in `PartialJson`.
        thinking: whether the output is reasoning and then an answer.
    """

    def __init__(self, row: Row, partial_strings: bool, thinking: bool = False) -> None:
        self._row = row
        self._progress = Progress(row.request.constraint, partial_strings, thinking)
        self._sent = 0

    def take(self) -> Chunk | None:
        """What a step added that nothing can take back; None for nothing."""
        row = self._row
        text, count = row.text.take() if row.running else ("", 0)
        if not count:
            return None
        chunk = Chunk(text, row.tokens[self._sent : self._sent + count], *self._progress.push(text, row))
        self._sent += count
        return chunk

    def last(self, result: Result) -> Chunk:
        """What is left of an ended row."""
        text, _ = self._row.text.take_rest(result.text)
        return Chunk(text, self._row.tokens[self._sent :], *self._progress.finish(text, result, self._row), result)


@dataclass(frozen=True)
class _Layout:
    """Where in an output its first JSON is.

    Attributes:
        before: what comes before it: strings, and free texts and special tokens that end with something certain.
        name: of its capture; None where its value is that of the output.
        followed: whether more comes after it.
    """

    before: tuple[Part, ...] = ()
    name: str | None = None
    followed: bool = False


def _layout(part: Part, thinking: bool) -> _Layout | None:
    """None where there is no JSON whose beginning can be told."""
    from maskwright.grammar.json_schema import JsonSchema

    if isinstance(part, JsonSchema):
        return _Layout()
    parts, before = list(_flat(part)), list[Part]()
    for at, each in enumerate(parts):
        inner = each.parts[0] if isinstance(each, Capture) else each
        if isinstance(each, Capture) and isinstance(inner, JsonSchema):
            return _Layout(tuple(before), None if thinking else each.name, at + 1 < len(parts))
        if not isinstance(inner, str | Special) and not (isinstance(inner, Free) and inner.until is not None):
            return None
        before.append(inner)
    return None


def _flat(part: Part) -> Iterator[Part]:
    """The parts of sequences inside each other."""
    if not isinstance(part, Seq):
        yield part
        return
    for each in part.parts:
        yield from _flat(each)


class Progress:
    """The value and the closed places of a streamed output.

    Args:
        compiled: what the output obeys; only JSON has a value before its end.
        partial_strings: as in `PartialJson`.
        thinking: whether it is reasoning and then an answer, whose value is that of the output.
    """

    def __init__(self, compiled: Grammar | None, partial_strings: bool, thinking: bool = False) -> None:
        self._compiled: Any = compiled
        self._layout = None if compiled is None else _layout(compiled.constraint, thinking)
        self._json = None if self._layout is None else PartialJson(partial_strings)
        self._waiting: str | None = ""  # the text so far, while the JSON has not begun

    def push(self, text: str, row: Row | None = None) -> tuple[Any, tuple[str, ...]]:
        """The value and the closed places after more text; the row is needed where special tokens come before."""
        if self._json is None or self._layout is None:
            return None, ()
        if self._waiting is None:
            self._read(text)
        else:
            self._waiting += text
            begin = self._begin(self._layout.before, self._waiting, row)
            if begin is not None and begin < len(self._waiting):
                text, self._waiting = self._waiting[begin:], None
                if self._layout.followed and text[0] not in '{["tfn':
                    self._json = None  # where a number ends, what follows cannot tell
                    return None, ()
                self._read(text)
        return self._named(self._json.value()), self._places(self._json.closed)

    def finish(self, text: str, result: Result, row: Row | None = None) -> tuple[Any, tuple[str, ...]]:
        """The same after the last text: a complete output has its own value, another keeps what there is."""
        value, closed = self.push(text, row)
        if not result.valid:
            return value if result.value is None else result.value, closed
        if self._json is not None:
            self._json.finish()
            closed = self._places(self._json.closed)
        return result.value, closed if closed[-1:] == ("",) else (*closed, "")

    def _read(self, text: str) -> None:
        assert self._json is not None
        for character in text:
            if self._json.closed[-1:] == [""]:
                return  # what follows is another part's
            self._json.push(character)

    def _begin(self, before: tuple[Part, ...], text: str, row: Row | None) -> int | None:
        """Where the JSON begins; None where that has not come yet."""
        at = token = 0
        for part in before:
            until = part.until if isinstance(part, Free) else part
            if isinstance(until, Special):
                found = self._after(until, token, row)
                if found is None:
                    return None
                token, at = found
            elif isinstance(part, str):
                at += len(part)
            else:
                assert isinstance(until, str)
                end = text.find(until, at)
                if end < 0:
                    return None
                at = end + len(until)
        return at

    def _after(self, special: Special, first: int, row: Row | None) -> tuple[int, int] | None:
        """The token after a special one, from one on, and where in the text that is."""
        assert row is not None
        name = self._compiled.id_of(special)
        if name in row.request.prefix or name not in row.tokens[first:]:
            return None
        at = row.tokens.index(name, first)
        return at + 1, row.text.offsets.ends[at]

    def _named(self, value: Any) -> Any:
        name = self._layout.name if self._layout else None
        return value if name is None or value is None else {name: value}

    def _places(self, closed: list[str]) -> tuple[str, ...]:
        name = self._layout.name if self._layout else None
        if name is None:
            return tuple(closed)
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        return tuple(pointer + each for each in closed)
