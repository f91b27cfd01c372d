"""What every reader of a tokenizer hands over: its tokens, and which of them end a text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwright.errors import VocabularyError
from maskwright.vocabulary.token_table import TokenTable
from maskwright.vocabulary.tokenizer_json import load_json

__all__ = ["Source", "eos_beside", "id_list", "load_beside"]

_LIKELY_EOS = ("</s>", "<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end_of_text|>", "<|endoftext|>", "<eos>")


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


def eos_beside(home: Path) -> list[int]:
    """``eos_token_id`` of a folder's generation_config.json, or of config.json where there is none.

    Raises:
        VocabularyError: it is malformed.
    """
    for name in ("generation_config.json", "config.json"):
        found = id_list(load_beside(home, name).get("eos_token_id"), str(home / name))
        if found:
            return found
    return []


def load_beside(home: Path, name: str) -> dict[str, Any]:
    """The JSON object in a file of a folder; empty where there is no such file.

    Raises:
        VocabularyError: it holds anything else.
    """
    data = load_json(home / name) if (home / name).is_file() else {}
    if not isinstance(data, dict):
        raise VocabularyError(f"{name} is not a JSON object", location=str(home / name))
    return data


def id_list(value: object, place: str) -> list[int]:
    """An id, a list of ids or nothing.

    Raises:
        VocabularyError: it is anything else; the location is ``place``.
    """
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if any(type(i) is not int for i in ids):
        raise VocabularyError("eos_token_id is neither an id nor a list of ids", location=place, hint="Pass eos_ids=")
    return list(ids)
