"""Text of tokens as they come: UTF-8 across tokens, stop strings across tokens and characters."""

from __future__ import annotations

import codecs
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from maskwright.vocabulary import Vocabulary

__all__ = ["Detokenizer", "Offsets"]


class Offsets(NamedTuple):
    """Where the characters begin, and end, that tokens spell; those that begin or end inside one have all of it."""

    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def tokens(self, begin: int, end: int) -> tuple[int, int]:
        """``(first, end)`` of the tokens that spell the characters from ``begin`` to ``end``."""
        first = bisect_right(self.ends, begin)
        return first, max(first, bisect_left(self.starts, end))


class Detokenizer:
    """The text of a growing sequence of tokens.

    Text is decoded from the bytes of the tokens, not by the tokenizer, so that it is the text that a matcher has
    seen; special tokens have none.

    Args:
        vocabulary: whose tokens these are.
        stops: strings whose end ends the text; not empty.

    Attributes:
        text: decoded so far, without an incomplete character at the end.
        start_length: how much of it was there before the first token.
    """

    def __init__(self, vocabulary: Vocabulary, stops: Sequence[str] = ()) -> None:
        self._tokens = vocabulary.tokens
        self._kinds = vocabulary.kinds
        self._stops = tuple(stops)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._marks: list[int] = []  # per token: length of the text where it ends on a character's end, else -1
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._sent_tokens = 0
        self._sent_text = 0
        self.text = ""
        self.start_length = 0

    def start(self, tokens: Sequence[int]) -> None:
        """Puts the text of tokens before all others; it is shown with the first token that comes."""
        for token in tokens:
            if not self._kinds[token]:
                self.text += self._decoder.decode(self._tokens[token])
        self.start_length = len(self.text)

    def push(self, token: int) -> list[tuple[int, int]]:
        """Appends a token.

        Returns:
            ``(end, start)`` of the stop strings in ``text`` that it completes, the first to end first.
        """
        before = len(self.text)
        if not self._kinds[token]:
            self.text += self._decoder.decode(self._tokens[token])
        self._marks.append(-1 if self._decoder.getstate()[0] else len(self.text))
        self._starts.append(before)
        self._ends.append(len(self.text) + (self._marks[-1] < 0))
        return self._completed(before)

    def _completed(self, before: int) -> list[tuple[int, int]]:
        """Stop strings that end after offset ``before``."""
        found = []
        for stop in self._stops:
            start = self.text.find(stop, max(0, before - len(stop) + 1))
            while start >= 0:
                found.append((start + len(stop), start))
                start = self.text.find(stop, start + 1)
        return sorted(set(found))

    def finish(self) -> None:
        """Nothing follows: a character that is still incomplete becomes U+FFFD."""
        self.text += self._decoder.decode(b"", True)

    @property
    def offsets(self) -> Offsets:
        """Where in the text the tokens are."""
        return Offsets(tuple(self._starts), tuple(self._ends))

    def safe_length(self) -> int:
        """How many characters no stop string can take back any more: all but the longest beginning of one."""
        longest = 0
        for stop in self._stops:
            for size in range(min(len(stop) - 1, len(self.text)), longest, -1):
                if self.text.endswith(stop[:size]):
                    longest = size
                    break
        return len(self.text) - longest

    def take(self) -> tuple[str, int]:
        """New text that is safe to show, in whole tokens.

        Returns:
            The text and the number of tokens that spell it; both stay behind together, so that ids and text of what
            is shown always agree.
        """
        safe, tokens = self.safe_length(), len(self._marks)
        while tokens > self._sent_tokens and not 0 <= self._marks[tokens - 1] <= safe:
            tokens -= 1
        if tokens == self._sent_tokens:
            return "", 0
        return self._take(tokens, self._marks[tokens - 1])

    def take_rest(self, text: str) -> tuple[str, int]:
        """What is left to show of the final ``text``, and the number of tokens that come with it."""
        self.text = text
        return self._take(len(self._marks), len(text))

    def _take(self, tokens: int, length: int) -> tuple[str, int]:
        part, count = self.text[self._sent_text : length], tokens - self._sent_tokens
        self._sent_tokens, self._sent_text = tokens, length
        return part, count
