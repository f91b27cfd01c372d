"""Tokenizers in files and folders, told apart by what they hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from maskwright.errors import VocabularyError
from maskwright.vocabulary.gguf import MAGIC
from maskwright.vocabulary.gguf_tokens import read_tokens_file
from maskwright.vocabulary.raw_bytes import rwkv_table_of_file, tekken_table
from maskwright.vocabulary.sentencepiece_model import parse_model, piece_table
from maskwright.vocabulary.source import Source, eos_beside, load_beside
from maskwright.vocabulary.token_table import TokenTable, is_reserved
from maskwright.vocabulary.tokenizer_json import (
    AddedToken,
    build_table,
    load_json,
    read_added_token,
    read_tokenizer_json,
)

__all__ = ["CONSULTED", "read_path"]

# Whatever else than the named file itself can change what is read.
CONSULTED = (
    "tokenizer.json", "tekken.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "generation_config.json", "config.json",
)  # fmt: skip

_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_FILES = ("tokenizer.json", "tekken.json", "tokenizer.model")

# Classes of transformers whose ids are those of their SentencePiece model; others move them.
_SAME_IDS = re.compile(r"(Llama|CodeLlama|Gemma|GPTSw3|Siglip)Tokenizer(Fast)?|")

_RWKV_START = re.compile(rb"\d+ b?['\"]")
_TIKTOKEN_START = re.compile(rb"[A-Za-z0-9+/]+=* \d+\r?\n")
_AUTO = "Load it with transformers.AutoTokenizer and pass the tokenizer"


def read_path(path: Path) -> Source:
    """Read a file or a folder.

    Args:
        path: a tokenizer.json or tekken.json, a SentencePiece model, a GGUF file, RWKV's
            vocabulary; or a folder that holds one of the first three under its usual name.

    Raises:
        VocabularyError: it is of another kind, malformed, or cannot be read.
    """
    try:
        return _read(path)
    except OSError as error:  # from a look at a file or folder that is out of reach
        raise VocabularyError(f"{path} cannot be read: {error.strerror}", location=str(path)) from error


def _read(path: Path) -> Source:
    if not path.is_dir():
        if not path.exists():
            hint = "For a model of a hub, load it with transformers.AutoTokenizer first and pass the tokenizer"
            raise VocabularyError("there is no such file", location=str(path), hint=hint)
        return _from_file(path)
    for name in _FILES:
        if (path / name).is_file():
            return _from_pieces(path / name) if name == "tokenizer.model" else _from_file(path / name)
    raise VocabularyError(
        f"there is no {', '.join(_FILES[:-1])} or {_FILES[-1]}",
        location=str(path),
        hint="Save it with tokenizer.save_pretrained(folder), or pass the path of a GGUF file",
    )


def _from_file(path: Path) -> Source:
    start = _content_of(path, 400)
    if start.startswith(MAGIC):
        return _fixed(*read_tokens_file(path))
    if start[:1] == b"\n" and start.lstrip()[:1] != b"{":  # field 1 of a protocol buffer
        model = parse_model(_content_of(path))
        return _fixed(piece_table(model), model.eos_ids)
    if _RWKV_START.match(start):
        try:
            return _fixed(rwkv_table_of_file(_content_of(path).decode().split("\n")), [0])
        except UnicodeDecodeError:
            raise VocabularyError("the file is not UTF-8", location=str(path)) from None
    if _TIKTOKEN_START.match(start):
        raise VocabularyError(
            "a file of merge ranks says nothing about the special tokens",
            location=str(path),
            hint="Make a tiktoken.Encoding(name, pat_str=..., mergeable_ranks=..., special_tokens=...) and pass that",
        )
    data = load_json(path)
    if isinstance(data, dict) and "model" not in data and "config" in data and "vocab" in data:
        return _tekken(data)
    return _from_json(data, path.parent)


def _content_of(path: Path, count: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise VocabularyError(f"{path.name} cannot be read: {error.strerror}", location=str(path)) from error


def _fixed(table: TokenTable, eos_ids: list[int]) -> Source:
    return Source(table, lambda: eos_ids)


def _tekken(data: dict[str, Any]) -> Source:
    table = tekken_table(data)
    return _fixed(table, [table.ids["</s>"]] if "</s>" in table.ids else [])


def _from_json(data: object, home: Path) -> Source:
    """A tokenizer.json and what lies beside it."""
    spec = read_tokenizer_json(data)
    config = load_beside(home, "tokenizer_config.json")
    spec.added.update(_flagged(config))
    return _with_names(build_table(spec), config, home)


def _from_pieces(path: Path) -> Source:
    """A folder of transformers with a SentencePiece model and perhaps added tokens, but without a tokenizer.json."""
    home = path.parent
    config = load_beside(home, "tokenizer_config.json")
    kind = config.get("tokenizer_class") or ""
    if not isinstance(kind, str) or not _SAME_IDS.fullmatch(kind):
        raise VocabularyError(f"{kind!r} may give the pieces other ids", location=str(home), hint=_AUTO)
    model = parse_model(_content_of(path))
    table = piece_table(model)
    plain = [(number, AddedToken(text, False)) for text, number in load_beside(home, "added_tokens.json").items()]
    for number, token in (*plain, *_flagged(config).items()):
        _overlay(table, number, token)
    source = _with_names(table, config, home)
    return Source(table, lambda: source.declared_eos() or model.eos_ids)


def _overlay(table: TokenTable, number: object, token: AddedToken) -> None:
    if type(number) is not int:
        raise VocabularyError(f"the id of {token.content!r} is not an integer", location="added_tokens.json")
    try:
        data = (token.content if token.special else token.content.replace("▁", " ")).encode()
    except UnicodeEncodeError as error:
        raise VocabularyError("the text holds a lone surrogate", location=f"token {number}") from error
    table.put(number, data, token.content)
    if token.special or is_reserved(token.content):
        table.special.add(number)


def _flagged(config: dict[str, Any]) -> dict[int, AddedToken]:
    """``added_tokens_decoder`` of a tokenizer_config.json: transformers lets it win over the tokenizer's own file."""
    flags = config.get("added_tokens_decoder")
    found = {}
    for key, entry in flags.items() if isinstance(flags, dict) else ():
        place = f"tokenizer_config.json/added_tokens_decoder/{key}"
        number, token = read_added_token(entry, place, int(key) if key.isdecimal() and len(key) < 20 else key)
        found[number] = token
    return found


def _with_names(table: TokenTable, config: dict[str, Any], home: Path) -> Source:
    """Adds the special tokens that are given by name, and finds the end-of-text ids."""
    names = {**load_beside(home, "special_tokens_map.json"), **config}
    table.special.update(table.ids[name] for name in _special_names(names) if name in table.ids)

    def declared_eos() -> list[int]:
        name = _content(names.get("eos_token"))
        own = [] if name is None else [_find(table, name, home / "tokenizer_config.json")]
        return own + eos_beside(home)

    return Source(table, declared_eos)


def _content(token: object) -> str | None:
    """The text of a token given as a string or as an object with its content."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _special_names(config: dict[str, Any]) -> list[str]:
    found: list[object] = [config.get(name) for name in _NAMED]
    for name in ("additional_special_tokens", "extra_special_tokens"):
        more = config.get(name)
        found += more.values() if isinstance(more, dict) else more if isinstance(more, list) else []
    return [text for text in map(_content, found) if text]


def _find(table: TokenTable, name: str, path: Path) -> int:
    if name not in table.ids:
        raise VocabularyError(
            f"the end-of-text token {name!r} is not in the vocabulary", location=str(path), hint="Pass eos_ids="
        )
    return table.ids[name]


