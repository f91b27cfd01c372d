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
    ok, can_end = count == len(data), matcher.is_accepting
    if compiled is not None and not compiled.vocabulary.is_byte_complete:
        spelt, can_end = _spell(compiled, data[:count])
        if spelt < count:
            return Stop(data, _between(data, spelt), False, False, why=_UNSPELLED)
    return Stop(data, _between(data, count), ok, ok and can_end)


def _spell(compiled: CompiledGrammar, data: bytes) -> tuple[int, bool]:
    """How far tokens that are allowed spell a text, and whether it may end there."""
    pieces, by_lead = _index(compiled.vocabulary)
    longest = max(map(len, pieces))
    matchers = {0: compiled.matcher()}  # by bytes that whole tokens have spelled
    for at in range(len(data)):
        if at not in matchers:
            continue
        for end in range(at + 1, min(at + longest, len(data)) + 1):
            token = pieces.get(data[at:end])
            if token is not None and end not in matchers:
                after = matchers[at].fork()
                if after.accept(token):
                    matchers[end] = after
        matchers.pop(at - longest, None)
    furthest = max(matchers)
    can_end = furthest == len(data) and matchers[furthest].is_accepting
    for at in sorted(matchers, reverse=True):  # a token that goes on otherwise may share some bytes more
        if at < len(data):
            furthest = max(furthest, _shared(matchers[at], data[at : at + longest], by_lead, furthest - at) + at)
    return furthest, can_end


def _shared(matcher: Matcher, rest: bytes, by_lead: dict[int, dict[bytes, int]], least: int) -> int:
    """The most bytes, if over `least`, that the text shares with the start of an allowed token."""
    shared = sorted(((_common(piece, rest), piece) for piece in by_lead.get(rest[0], ())), reverse=True)
    for same, piece in shared:
        if same <= least:
            break
        if matcher.fork().accept(by_lead[rest[0]][piece]):
            return same
    return 0


def _index(vocabulary: Vocabulary) -> tuple[dict[bytes, int], dict[int, dict[bytes, int]]]:
    """An id of every text token by its bytes, and the same by the first byte."""
    by_lead: dict[int, dict[bytes, int]] = {}
    for token, (piece, kind) in enumerate(zip(vocabulary.tokens, vocabulary.kinds, strict=True)):
        if kind == 0:
            by_lead.setdefault(piece[0], {})[piece] = token
    return {piece: token for part in by_lead.values() for piece, token in part.items()}, by_lead


def _common(one: bytes, other: bytes) -> int:
    """The number of bytes at the start that are the same."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


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
