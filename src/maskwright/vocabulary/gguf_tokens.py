"""The tokens of a GGUF file, as llama.cpp writes them (``token_to_piece`` in its llama-vocab.cpp)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.vocabulary.decoder import BYTE_ALPHABET, byte_of
from maskwright.vocabulary.gguf import GgufReader, map_file, read_metadata, read_preamble
from maskwright.vocabulary.token_table import OWN_TOKENS, TokenTable, is_reserved, make_table

__all__ = ["declared_eos", "read_tokens", "read_tokens_file"]

# Values of tokenizer.ggml.token_type.
_UNDEFINED: Final = 0
_NORMAL: Final = 1
_UNKNOWN: Final = 2
_CONTROL: Final = 3
_USER_DEFINED: Final = 4
_UNUSED: Final = 5
_BYTE: Final = 6
_NEVER_TEXT: Final = frozenset([_UNDEFINED, _UNKNOWN, _CONTROL, _UNUSED])

_TOKENS: Final = "tokenizer.ggml.tokens"
_TYPES: Final = "tokenizer.ggml.token_type"
_MODEL: Final = "tokenizer.ggml.model"
_EOS: Final = tuple(f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom"))

# Pre-tokenizers of the 'gpt2' model whose tokens are spelled like SentencePiece's.
_SPACED: Final = frozenset(["gemma4", "granite-embed-multi-311m", "sarvam-moe"])

_RWKV_ESCAPE: Final = re.compile(rb"\\(?:x([0-9a-f]{2})|([^x]))", re.DOTALL)
_RWKV_LETTERS: Final = {b"t": b"\t", b"n": b"\n", b"r": b"\r"}


def read_tokens_file(path: Path) -> tuple[TokenTable, list[int]]:
    """The tokens of a file, and the end-of-text ids that it declares.

    Raises:
        VocabularyError: it is malformed or truncated, or its tokens have no bytes of their own.
    """
    try:
        reader = GgufReader(map_file(path), path.name)
        _, count = read_preamble(reader)
        metadata = read_metadata(reader, count, wanted=lambda key: key in (_TOKENS, _TYPES))
    except VocabularyError:
        raise
    except MaskwrightError as error:
        raise VocabularyError(error.message, location=error.location, hint=error.hint) from None
    return read_tokens(metadata), declared_eos(metadata)


def read_tokens(metadata: Mapping[str, Any]) -> TokenTable:
    """The tokens that the ``tokenizer.*`` keys of a file describe.

    Never matching text are control, unknown, unused and undefined tokens, placeholders
    (``[PAD7]``), and byte-level tokens that are not spelled in the byte alphabet.

    Raises:
        VocabularyError: a key is missing or inconsistent, or the tokens have no bytes of their own.
    """
    decode = _speller(metadata)
    texts, types = _texts(metadata), _types(metadata)
    if types and len(types) != len(texts):
        raise VocabularyError(f"{len(texts)} tokens have {len(types)} types", location=_TYPES)
    tokens: dict[int, bytes] = {}
    special: set[int] = set()
    for number, (text, kind) in enumerate(zip(texts, types or [_NORMAL] * len(texts), strict=True)):
        data: bytes | None = None
        if kind == _NORMAL:
            data = decode(text)
        elif kind == _BYTE:
            data = _byte(text, number)
        elif kind == _USER_DEFINED:
            data = text.encode()
        tokens[number] = text.encode() if data is None else data
        if data is None or is_reserved(text):
            special.add(number)
    return make_table(tokens, special, {text: number for number, text in enumerate(texts)})


def declared_eos(metadata: Mapping[str, Any]) -> list[int]:
    """The ids that the file says end a text, a turn or a message, in that order.

    Raises:
        VocabularyError: one is no integer.
    """
    ids = []
    for key in _EOS:
        value = metadata.get(key)
        if value is not None and type(value) is not int:
            raise VocabularyError(f"the id of a token is {value!r}", location=key)
        if value is not None and value not in ids:
            ids.append(value)
    return ids


def _speller(metadata: Mapping[str, Any]) -> Callable[[str], bytes | None]:
    model, pre = metadata.get(_MODEL), metadata.get("tokenizer.ggml.pre")
    if model is None or model in ("none", "no_vocab"):
        raise VocabularyError("the file holds no tokenizer", location=_MODEL)
    if model == "bert":
        raise VocabularyError(
            "WordPiece tokenizers ('bert') are refused: whether a space comes before a token depends on its "
            "neighbours, so a token has no bytes of its own",
            location=_MODEL,
            hint=OWN_TOKENS,
        )
    if model == "gpt2" and pre in _SPACED:
        return _spaced
    speller = _SPELLERS.get(model) if isinstance(model, str) else None
    if speller is None:
        raise VocabularyError(f"the tokenizer {model!r} is not supported", location=_MODEL, hint=OWN_TOKENS)
    return speller


def _spaced(text: str) -> bytes:
    return text.replace("▁", " ").encode()


def _byte_level(text: str) -> bytes | None:
    """None for what the model never writes as text: added by hand, outside the byte alphabet."""
    try:
        return BYTE_ALPHABET.encode(text)
    except UnicodeEncodeError:
        return None


def _rwkv(text: str) -> bytes:
    """Undo the escapes of a Python bytes literal; an escape of anything else stands for that."""

    def unescape(found: re.Match[bytes]) -> bytes:
        return bytes.fromhex(found[1].decode()) if found[1] else _RWKV_LETTERS.get(found[2], found[2])

    return _RWKV_ESCAPE.sub(unescape, text.encode())


_SPELLERS: Final[dict[str, Callable[[str], bytes | None]]] = {
    "gpt2": _byte_level,
    "gemma4": _spaced,
    "llama": _spaced,
    "t5": _spaced,
    "rwkv": _rwkv,
    "plamo2": str.encode,
}


def _texts(metadata: Mapping[str, Any]) -> list[str]:
    texts = metadata.get(_TOKENS)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise VocabularyError("there is no list of strings", location=_TOKENS)
    return texts


def _types(metadata: Mapping[str, Any]) -> list[int]:
    types = metadata.get(_TYPES, [])
    if not isinstance(types, list) or not all(type(kind) is int for kind in types):
        raise VocabularyError("there is no list of integers", location=_TYPES)
    return types


def _byte(text: str, number: int) -> bytes:
    data = byte_of(text)
    if data is None:
        raise VocabularyError(f"a byte token is spelled {text!r}, not as <0x41>", location=f"token {number}")
    return data
