"""What may come next at a place: found by trying, on the matcher of a vocabulary of single bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from maskwright.grammar.ir import MAX_CODE_POINT
from maskwright.matcher import Matcher

__all__ = ["END", "Characters", "characters", "literals", "quote", "words"]

END = 256  # the id of the end of text, behind the 256 bytes
_MOST_LEADS = 40  # wider than that in UTF-8 is told as "beyond ASCII": trying all characters takes a second
_MOST_RANGES = 24
_MOST_LITERALS = 12
_MOST_WORDS = 50
_MOST_STEPS = 2000
_SHOWN = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", "]": "\\]", "[": "\\[", "^": "\\^", "-": "\\-"}


@dataclass(frozen=True, slots=True)
class Characters:
    """A set of characters.

    Args:
        ranges: of code points, inclusive, ascending.
        beyond: some characters beyond ASCII belong to it too; which is not told in `ranges`.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    beyond: bool = False

    def __contains__(self, character: str) -> bool:
        return any(low <= ord(character) <= high for low, high in self.ranges)

    def __bool__(self) -> bool:
        return bool(self.ranges) or self.beyond

    def __str__(self) -> str:
        """A class as regexes write it, `[0-9a-f]`."""
        if not self:
            return "nothing"
        parts = [_range(low, high) for low, high in self.ranges[:_MOST_RANGES]]
        more = len(self.ranges) - len(parts)
        shown = f"[{''.join(parts)}]" + (f" and {more} more ranges of characters" if more > 0 else "")
        if not self.beyond:
            return shown
        return f"{shown} or a character beyond ASCII" if self.ranges else "a character beyond ASCII"


def _range(low: int, high: int) -> str:
    if high - low < 2:
        return "".join(map(_letter, range(low, high + 1)))
    return f"{_letter(low)}-{_letter(high)}"


def _letter(code: int) -> str:
    letter = chr(code)
    if letter in _SHOWN:
        return _SHOWN[letter]
    if letter.isprintable():
        return letter
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quote(text: str) -> str:
    """A text in double quotes, on one line."""
    shown = (letter if letter.isprintable() and letter not in '"\\' else _escape(letter) for letter in text)
    return f'"{"".join(shown)}"'


def _escape(letter: str) -> str:
    return f"\\{letter}" if letter in '"\\' else _letter(ord(letter))


def characters(matcher: Matcher) -> Characters:
    """The characters that may come next. The matcher stands between characters, and does so again afterwards."""
    found: list[list[int]] = []
    leads = [lead for lead in matcher.allowed_tokens() if lead != END]
    beyond = sum(lead >= 0x80 for lead in leads)
    for lead in leads:
        if lead < 0x80:
            _add(found, lead)
        elif beyond <= _MOST_LEADS and sum(byte >= 0xF0 for byte in leads) < 3:
            length = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
            matcher.accept(lead)
            _spell(matcher, lead & (0x3F >> length), length, found)
            matcher.rollback(1)
    told = bool(found) and found[-1][1] >= 0x80
    return Characters(tuple((low, high) for low, high in found), beyond > 0 and not told)


def _spell(matcher: Matcher, value: int, length: int, found: list[list[int]]) -> None:
    """Tries all that can follow within one character, of which `length` bytes are left."""
    for byte in matcher.allowed_tokens():
        code = value << 6 | byte & 0x3F
        if length == 1:
            _add(found, code)
        else:
            matcher.accept(byte)
            _spell(matcher, code, length - 1, found)
            matcher.rollback(1)


def _add(found: list[list[int]], code: int) -> None:
    if found and found[-1][1] == code - 1 and code <= MAX_CODE_POINT:
        found[-1][1] = code
    else:
        found.append([code, code])


def literals(matcher: Matcher) -> tuple[list[str], set[int]]:
    """Longer texts of which one has to come next, and the first bytes that they account for.

    A text goes on while nothing else may come, and ends where the whole may. Single characters are left to the class.
    """
    texts: list[str] = []
    firsts: set[int] = set()
    leads = [lead for lead in matcher.allowed_tokens() if lead != END]
    if len(leads) > _MOST_LITERALS:
        return texts, firsts
    for lead in leads:
        run = _forced(matcher, lead)
        if len(run) > 1:
            texts.append(run)
            firsts.add(lead)
    return texts, firsts


def _forced(matcher: Matcher, lead: int) -> str:
    matcher.accept(lead)
    run = bytes([lead, *(byte for byte in matcher.forced_tokens() if byte != END)])
    matcher.rollback(1)
    return run.decode("utf-8", "ignore")


def words(matcher: Matcher, escapes: bool) -> tuple[list[bytes], bool]:
    """What may stand before the closing quote of a JSON string, as it is written there.

    Args:
        matcher: inside the string, between characters; stands there again afterwards.
        escapes: follow backslashes also where there are other ways to go on.

    Returns:
        The words found, and whether there are others: too many to list.
    """
    found: list[bytes] = []
    steps = 0
    more = False
    stack: list[Iterator[int]] = [iter(_ways(matcher, escapes))]
    path = bytearray()
    while stack:
        byte = next(stack[-1], None)
        if byte is None:
            stack.pop()
            if path:
                path.pop()
                matcher.rollback(1)
            continue
        if byte == ord('"') and not _is_escaped(path):
            found.append(bytes(path))
            continue
        steps += 1
        if steps > _MOST_STEPS or len(found) >= _MOST_WORDS:
            more = True
            stack[-1] = iter(())
            continue
        matcher.accept(byte)
        path.append(byte)
        ways = _ways(matcher, escapes)
        if len(ways) > _MOST_LEADS:
            more, ways = True, []
        stack.append(iter(ways))
    return found, more


def _ways(matcher: Matcher, escapes: bool) -> list[int]:
    ways = matcher.allowed_tokens()
    return ways if escapes or len(ways) == 1 else [byte for byte in ways if byte != ord("\\")]


def _is_escaped(path: bytearray) -> bool:
    """Whether a quote after these bytes of a string belongs to an escape."""
    return (len(path) - len(path.rstrip(b"\\"))) % 2 == 1
