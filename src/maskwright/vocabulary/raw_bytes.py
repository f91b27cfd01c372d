"""Vocabularies whose tokens are given as bytes: tiktoken, Tekken and RWKV."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any

from maskwright.errors import VocabularyError
from maskwright.vocabulary.token_table import TokenTable, make_table

__all__ = ["RWKV_END", "rwkv_table", "rwkv_table_of_file", "special_and_raw", "tekken_table"]

# Special tokens of Tekken files that list none: the first of mistral-common's own list, in order.
_TEKKEN_SPECIAL = (
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]",
    "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
)  # fmt: skip

RWKV_END = "<|endoftext|>"  # id 0 of every RWKV vocabulary; its files leave it out
_RWKV_LINE = re.compile(r"(\d{1,9}) (b?)(?:'(.*)'|\"(.*)\") (\d{1,9})")
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|([\\'\"ntr])|(.|$))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}


def special_and_raw(raw: Mapping[int, bytes], special: Mapping[int, str]) -> TokenTable:
    """Tokens that are bytes, and special ones that are names; a special one hides another of its id.

    Raises:
        VocabularyError: an id is negative or absurdly large, or a name is no Unicode text.
    """
    tokens = dict(raw)
    for number, name in special.items():
        try:
            tokens[number] = name.encode()
        except UnicodeEncodeError as error:
            raise VocabularyError("the text holds a lone surrogate", location=f"token {number}") from error
    return make_table(tokens, special, {name: number for number, name in special.items()})


def tekken_table(data: Mapping[str, Any]) -> TokenTable:
    """The content of a ``tekken.json``: special tokens come first, then the vocabulary by rank.

    Raises:
        VocabularyError: it is malformed.
    """
    config, vocab, listed = data.get("config"), data.get("vocab"), data.get("special_tokens")
    if not isinstance(config, dict) or not isinstance(vocab, list):
        raise VocabularyError("no object 'config' and list 'vocab' as in a tekken.json", location="config")
    count, size = config.get("default_num_special_tokens"), config.get("default_vocab_size")
    if type(count) is not int or type(size) is not int or not 0 <= count <= size <= count + len(vocab):
        what = f"{size!r} tokens, {count!r} of them special, are announced, and {len(vocab)} others are there"
        raise VocabularyError(what, location="config")
    names = {i: f"<SPECIAL_{i}>" for i in range(count)}
    if listed is None:
        names.update(enumerate(_TEKKEN_SPECIAL[:count]))
    elif not isinstance(listed, list):
        raise VocabularyError("'special_tokens' is not a list", location="special_tokens")
    for i, entry in enumerate(listed or ()):
        rank, text = _entry(entry, "token_str", f"special_tokens/{i}")
        if rank not in names:
            raise VocabularyError(f"rank {rank} is not below {count}", location=f"special_tokens/{i}")
        names[rank] = text
    raw = {}
    for i, entry in enumerate(vocab[: size - count]):
        rank, text = _entry(entry, "token_bytes", f"vocab/{i}")
        if rank != i:
            raise VocabularyError(f"rank {rank} stands where {i} belongs", location=f"vocab/{i}")
        try:
            raw[count + i] = base64.b64decode(text, validate=True)
        except ValueError as error:
            raise VocabularyError(f"'token_bytes' is not base64 ({error})", location=f"vocab/{i}") from None
    return special_and_raw(raw, names)


def _entry(entry: object, key: str, place: str) -> tuple[int, str]:
    if isinstance(entry, dict):
        rank, text = entry.get("rank"), entry.get(key)
        if type(rank) is int and isinstance(text, str):
            return rank, text
    raise VocabularyError(f"an entry has no integer 'rank' and string {key!r}", location=place)


def rwkv_table(tokens: Mapping[int, bytes]) -> TokenTable:
    """RWKV's tokens by id; id 0, the end of a text, is added where it is missing.

    Raises:
        VocabularyError: an id is negative or absurdly large.
    """
    return special_and_raw({i: data for i, data in tokens.items() if i}, {0: RWKV_END})


def rwkv_table_of_file(lines: Iterable[str]) -> TokenTable:
    r"""The lines of an ``rwkv_vocab_*.txt``: id, Python literal (``'\n'`` or ``b'\xff'``), number of bytes.

    Raises:
        VocabularyError: a line has another form; the location says which.
    """
    tokens: dict[int, bytes] = {}
    for place, line in enumerate(lines, 1):
        if not line.strip():
            continue
        number, data = _rwkv_line(line.strip("\r\n"), f"line {place}")
        if number in tokens:
            raise VocabularyError(f"token {number} occurs twice", location=f"line {place}")
        tokens[number] = data
    return rwkv_table(tokens)


def _rwkv_line(line: str, place: str) -> tuple[int, bytes]:
    found = _RWKV_LINE.fullmatch(line)
    if found is None:
        raise VocabularyError("a line is not an id, a literal and a length as in RWKV's vocabulary", location=place)
    text, raw = found[3] if found[3] is not None else found[4], bool(found[2])
    try:
        data = _unescape(text, raw)
    except (ValueError, OverflowError):  # no such code point, a surrogate, or no byte
        raise VocabularyError(f"the literal {text!r} is malformed", location=place) from None
    if len(data) != int(found[5]):
        raise VocabularyError(f"the literal has {len(data)} bytes, not {found[5]}", location=place)
    return int(found[1]), data


def _unescape(text: str, raw: bool) -> bytes:
    def character(found: re.Match[str]) -> str:
        code = found[1] or found[2] or found[3]
        if found[5] is not None or (raw and (found[2] or found[3])):
            raise ValueError("unknown escape")
        return chr(int(code, 16)) if code else _LETTERS.get(found[4], found[4])

    if raw and not text.isascii():
        raise ValueError("bytes literals are ASCII")
    if "\\" in text:
        text = _ESCAPE.sub(character, text)
    return text.encode("latin-1" if raw else "utf-8")
