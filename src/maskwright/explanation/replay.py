"""How far a text, or tokens, are allowed."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from maskwright.compiler import CompiledGrammar
from maskwright.matcher import Matcher
from maskwright.vocabulary import Vocabulary

__all__ = ["Stop", "replay_text", "replay_tokens"]

_UNSPELLED = "no sequence of the vocabulary's tokens continues to a valid text from there"


@dataclass(frozen=True)
class Stop:
    """Where a replay came to its end.

    Args:
        data: the whole text, in UTF-8.
        at: bytes up to what is refused, between characters; all where nothing is.
        ok: nothing is refused.
        complete: and the text may end there.
        token: the position of the token that is refused.
        found: what was found, where that is no text.
        why: why it is refused, where that is not a matter of text.
    """

    data: bytes
    at: int
    ok: bool
    complete: bool
    token: int | None = None
    found: str = ""
    why: str = ""


def replay_text(data: bytes, spelled: CompiledGrammar, compiled: CompiledGrammar | None) -> Stop:
    """How far a text is allowed, by the bytes and, where there is one, by a vocabulary."""
    matcher = spelled.matcher()
    count = matcher.accept_tokens(data)
    if compiled is not None and not compiled.vocabulary.is_byte_complete:
        spelt = _longest(compiled.matcher(), data[:count])
        if spelt < count:
            at = _between(data, spelt)
            return Stop(data, at, False, False, why=_UNSPELLED)
    ok = count == len(data)
    return Stop(data, _between(data, count), ok, ok and matcher.is_accepting)


def _longest(matcher: Matcher, data: bytes) -> int:
    """The length of the longest beginning that is allowed; all shorter ones are too."""
    if matcher.fork().accept_text(data):
        return len(data)
    low, high = 0, len(data)
    while high - low > 1:
        middle = (low + high) // 2
        if matcher.fork().accept_text(data[:middle]):
            low = middle
        else:
            high = middle
    return low


def _between(data: bytes, at: int) -> int:
    """The start of the character that an offset lies in, as far as the bytes before it tell."""
    for back in range(1, min(at, 3) + 1):
        byte = data[at - back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return at - back if back < length else at
    return at


def replay_tokens(tokens: Iterable[SupportsIndex], spelled: CompiledGrammar, compiled: CompiledGrammar) -> Stop:
    """How far tokens are allowed, and how far the text of the one that is refused is."""
    ids = [operator.index(token) for token in tokens]
    vocabulary = compiled.vocabulary
    matcher = compiled.matcher()
    count = matcher.accept_tokens(ids)
    data = vocabulary.decode(token for token in ids if 0 <= token < vocabulary.size)
    if count == len(ids):
        return Stop(data, _between(data, len(data)), True, matcher.is_finished or matcher.is_accepting)
    before = vocabulary.decode(ids[:count])
    found, why = _unfit(vocabulary, ids[count], matcher.is_finished)
    at = len(before)
    if not found:
        piece = vocabulary.tokens[ids[count]]
        found = f"{piece!r} (id {ids[count]})"
        bytewise = spelled.matcher()
        bytewise.accept_text(before)
        good = bytewise.accept_tokens(piece)
        at += good
        why = _UNSPELLED if good == len(piece) else ""
    return Stop(data, _between(data, at), False, False, count, found, why)


def _unfit(vocabulary: Vocabulary, token: int, is_finished: bool) -> tuple[str, str]:
    """What a token is that is no text, and why it is refused; two empty texts for others."""
    if not 0 <= token < vocabulary.size:
        return f"id {token}", f"the vocabulary has {vocabulary.size} tokens"
    if is_finished:
        return f"{vocabulary.tokens[token]!r} (id {token})", "the text has ended"
    if token in vocabulary.eos_ids:
        return f"end of text (id {token})", "the text is not complete"
    if vocabulary.kinds[token]:
        return f"{vocabulary.tokens[token]!r} (id {token})", "a special or empty token never matches text"
    return "", ""
