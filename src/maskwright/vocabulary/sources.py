"""Which tokenizers a vocabulary can be read from, and where their end-of-text ids stand."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwright.errors import VocabularyError
from maskwright.vocabulary.token_table import TokenTable
from maskwright.vocabulary.tokenizer_json import (
    build_table,
    load_json,
    read_added_token,
    read_backend,
    read_tokenizer_json,
)

__all__ = ["Source", "read_source"]

_LIKELY_EOS = ("</s>", "<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end_of_text|>", "<|endoftext|>", "<eos>")
_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_RAW_BYTES = "or pass the bytes of each token: Vocabulary(tokens, eos_ids=...)"
_FAST = f"Pass a fast tokenizer (PreTrainedTokenizerFast), a path to tokenizer.json, {_RAW_BYTES}"

# What cannot be read yet: root module -> name of the library.
_REFUSED = {
    "tiktoken": "tiktoken",
    "sentencepiece": "SentencePiece",
    "mistral_common": "mistral-common",
    "gguf": "GGUF",
    "llama_cpp": "llama-cpp-python",
}
_REFUSED_FILES = {
    ".gguf": "GGUF files",
    ".model": "SentencePiece and tiktoken models",
    ".tiktoken": "tiktoken files",
    ".txt": "plain word lists",
}


@dataclass
class Source:
    """A table of tokens, and what reads the end-of-text ids declared beside it.

    They are read on demand: whoever passes ids need not care about a broken declaration.
    """

    table: TokenTable
    declared_eos: Callable[[], list[int]] = list

    def need_eos(self) -> list[int]:
        """The declared ids.

        Raises:
            VocabularyError: none is declared, or one that does not exist; the hint names a likely one.
        """
        ids = self.declared_eos()
        for i in ids:
            if not 0 <= i < len(self.table.tokens) or not self.table.present[i]:
                raise VocabularyError(
                    "the tokenizer declares an EOS id that it has no token for",
                    location=f"token {i}",
                    hint="Pass eos_ids=",
                )
        if ids:
            return ids
        likely = [(self.table.ids[name], name) for name in _LIKELY_EOS if name in self.table.ids]
        example = f"eos_ids=[{likely[0][0]}] for {likely[0][1]!r}" if likely else "eos_ids=[id, ...]"
        raise VocabularyError("the tokenizer does not say which token ends a text", hint=f"Pass eos_ids=, as {example}")


def read_source(tokenizer: object) -> Source:
    """Read any supported tokenizer.

    Args:
        tokenizer: a fast tokenizer of transformers, a ``tokenizers.Tokenizer``, or the path
            of a tokenizer.json or of a folder that holds one.

    Raises:
        VocabularyError: the tokenizer is of a known kind that is not supported, or malformed.
        TypeError: it is no tokenizer.
    """
    if isinstance(tokenizer, (str, os.PathLike)):
        return _from_path(Path(tokenizer))
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(tokenizer).__mro__}
    roots = {root for root, _ in kinds}
    if ("tokenizers", "BaseTokenizer") in kinds:  # ByteLevelBPETokenizer and its siblings
        return Source(build_table(read_backend(tokenizer._tokenizer)))  # type: ignore[attr-defined]
    if ("tokenizers", "Tokenizer") in kinds:
        return Source(build_table(read_backend(tokenizer)))
    for root in roots & _REFUSED.keys():
        raise VocabularyError(f"{_REFUSED[root]} tokenizers cannot be read yet", hint=_FAST)
    if hasattr(tokenizer, "backend_tokenizer") and hasattr(tokenizer.backend_tokenizer, "get_added_tokens_decoder"):
        return _from_transformers(tokenizer)
    if "transformers" in roots:
        what = "processors" if hasattr(tokenizer, "tokenizer") else "slow tokenizers"
        hint = "Pass processor.tokenizer" if what == "processors" else _FAST
        raise VocabularyError(f"{what} of transformers ({type(tokenizer).__name__}) cannot be read", hint=hint)
    raise TypeError(f"not a tokenizer: {type(tokenizer).__name__}. {_FAST}")


def _from_transformers(tokenizer: Any) -> Source:
    table = build_table(read_backend(tokenizer.backend_tokenizer))
    table.special.update(i for i in tokenizer.all_special_ids if 0 <= i < len(table.tokens))
    home = Path(str(getattr(tokenizer, "name_or_path", "") or "."))

    def declared_eos() -> list[int]:
        own = _id_list(tokenizer.eos_token_id, "eos_token_id")
        return own + _declared_eos(home) if home != Path() and home.is_dir() else own

    return Source(table, declared_eos)


def _from_path(path: Path) -> Source:
    if path.suffix in _REFUSED_FILES and not path.is_dir():
        raise VocabularyError(f"{_REFUSED_FILES[path.suffix]} cannot be read yet", location=str(path), hint=_FAST)
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.exists():
        hint = (
            "Save it with tokenizer.save_pretrained(folder) of a fast tokenizer"
            if path.is_dir()
            else "For a model of a hub, load it with transformers.AutoTokenizer first and pass the tokenizer"
        )
        raise VocabularyError("there is no tokenizer.json", location=str(path), hint=hint)
    spec, home = read_tokenizer_json(load_json(file)), file.parent
    config = _load_beside(home, "tokenizer_config.json")
    flags = config.get("added_tokens_decoder")  # transformers lets them win over tokenizer.json, so do we
    for key, entry in flags.items() if isinstance(flags, dict) else ():
        place = f"tokenizer_config.json/added_tokens_decoder/{key}"
        spec.added.update([read_added_token(entry, place, int(key) if key.isdecimal() and len(key) < 20 else key)])
    table = build_table(spec)
    names = {**_load_beside(home, "special_tokens_map.json"), **config}
    table.special.update(table.ids[name] for name in _special_names(names) if name in table.ids)

    def declared_eos() -> list[int]:
        name = _content(names.get("eos_token"))
        own = [] if name is None else [_find(table, name, home / "tokenizer_config.json")]
        return own + _declared_eos(home)

    return Source(table, declared_eos)


def _load_beside(home: Path, name: str) -> dict[str, Any]:
    data = load_json(home / name) if (home / name).is_file() else {}
    if not isinstance(data, dict):
        raise VocabularyError(f"{name} is not a JSON object", location=str(home / name))
    return data


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


def _declared_eos(home: Path) -> list[int]:
    """``eos_token_id`` of generation_config.json, or of config.json where there is none."""
    for name in ("generation_config.json", "config.json"):
        found = _id_list(_load_beside(home, name).get("eos_token_id"), str(home / name))
        if found:
            return found
    return []


def _id_list(value: object, place: str) -> list[int]:
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if any(type(i) is not int for i in ids):
        raise VocabularyError("eos_token_id is neither an id nor a list of ids", location=place, hint="Pass eos_ids=")
    return list(ids)
