"""What a stream can say of a value before its text is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskwright.engine.partial import PartialJson
from maskwright.engine.result import Chunk

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
    """

    def __init__(self, row: Row, partial_strings: bool) -> None:
        self._row = row
        self._progress = Progress(row.request.constraint, partial_strings)
        self._sent = 0

    def take(self) -> Chunk | None:
        """What a step added that nothing can take back; None for nothing."""
        row = self._row
        text, count = row.text.take() if row.running else ("", 0)
        if not count:
            return None
        chunk = Chunk(text, row.tokens[self._sent : self._sent + count], *self._progress.push(text))
        self._sent += count
        return chunk

    def last(self, result: Result) -> Chunk:
        """What is left of an ended row."""
        text, _ = self._row.text.take_rest(result.text)
        return Chunk(text, self._row.tokens[self._sent :], *self._progress.finish(text, result), result)


class Progress:
    """The value and the closed places of a streamed output.

    Args:
        compiled: what the output obeys; only JSON has a value before its end.
        partial_strings: as in `PartialJson`.
    """

    def __init__(self, compiled: Grammar | None, partial_strings: bool) -> None:
        from maskwright.grammar.json_schema import JsonSchema

        is_json = compiled is not None and isinstance(compiled.constraint, JsonSchema)
        self._json = PartialJson(partial_strings) if is_json else None

    def push(self, text: str) -> tuple[Any, tuple[str, ...]]:
        """The value and the closed places after more text."""
        if self._json is None:
            return None, ()
        self._json.push(text)
        return self._json.value(), tuple(self._json.closed)

    def finish(self, text: str, result: Result) -> tuple[Any, tuple[str, ...]]:
        """The same after the last text: a complete output has its own value, another keeps what there is."""
        value, closed = self.push(text)
        if not result.valid:
            return value if result.value is None else result.value, closed
        if self._json is not None:
            self._json.finish()
            closed = tuple(self._json.closed)
        return result.value, closed if closed[-1:] == ("",) else (*closed, "")
