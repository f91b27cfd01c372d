"""Which tokenizers a vocabulary can be read from."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maskwright.errors import VocabularyError
from maskwright.vocabulary.paths import read_path
from maskwright.vocabulary.raw_bytes import rwkv_table, special_and_raw
from maskwright.vocabulary.sentencepiece_model import parse_model, piece_table
from maskwright.vocabulary.slow import read_slow
from maskwright.vocabulary.source import Source, eos_beside, id_list
from maskwright.vocabulary.token_table import OWN_TOKENS, TokenTable
from maskwright.vocabulary.tokenizer_json import build_table, read_backend

__all__ = ["read_source"]

_KINDS = (
    "Pass a tokenizer of transformers, tokenizers, tiktoken, SentencePiece or mistral-common, the path of a "
    "tokenizer.json, a GGUF file or a SentencePiece model, or the bytes of each token: Vocabulary(tokens, eos_ids=...)"
)


def read_source(tokenizer: object) -> Source:
    """Read any supported tokenizer.

    Args:
        tokenizer: see :meth:`maskwright.Vocabulary.from_tokenizer`.

    Raises:
        VocabularyError: the tokenizer is of a known kind that is not supported, or malformed.
        TypeError: it is no tokenizer.
    """
    if isinstance(tokenizer, (str, os.PathLike)):
        return read_path(Path(tokenizer))
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(tokenizer).__mro__}
    for key, reader in _READERS.items():
        if key in kinds:
            return _known(reader, tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if hasattr(backend, "get_added_tokens_decoder"):
        return _from_transformers(tokenizer, build_table(read_backend(backend)))
    roots = {root for root, _ in kinds}
    if roots & {"transformers", "mistral_common"} and _of_mistral(tokenizer) is not None:
        return _known(_from_mistral, _of_mistral(tokenizer))
    if "transformers" in roots:
        if not hasattr(tokenizer, "convert_tokens_to_string"):
            hint = "Pass processor.tokenizer" if hasattr(tokenizer, "tokenizer") else _KINDS
            raise VocabularyError(f"{type(tokenizer).__name__} of transformers is no tokenizer", hint=hint)
        return _from_transformers(tokenizer, read_slow(tokenizer))
    if _is_rwkv(tokenizer):
        return Source(rwkv_table(tokenizer.idx2token), lambda: [0])  # type: ignore[attr-defined]
    raise TypeError(f"not a tokenizer: {type(tokenizer).__name__}. {_KINDS}")


def _known(reader: Callable[[Any], Source], tokenizer: Any) -> Source:
    try:
        return reader(tokenizer)
    except AttributeError as error:  # what is read is not always part of a library's public face
        raise VocabularyError(
            f"{type(tokenizer).__name__} of this version of {type(tokenizer).__module__.partition('.')[0]} "
            f"cannot be read ({error})",
            hint=OWN_TOKENS,
        ) from error


def _from_tokenizers(tokenizer: Any) -> Source:
    # ByteLevelBPETokenizer and its siblings wrap a Tokenizer.
    return Source(build_table(read_backend(getattr(tokenizer, "_tokenizer", tokenizer))))


def _from_transformers(tokenizer: Any, table: TokenTable) -> Source:
    table.special.update(i for i in tokenizer.all_special_ids if 0 <= i < len(table.tokens))
    home = Path(str(getattr(tokenizer, "name_or_path", "") or "."))

    def declared_eos() -> list[int]:
        own = id_list(tokenizer.eos_token_id, "eos_token_id")
        return own + eos_beside(home) if home != Path() and home.is_dir() else own

    return Source(table, declared_eos)


def _from_tiktoken(encoding: Any) -> Source:
    special = {number: text for text, number in encoding._special_tokens.items()}
    table = special_and_raw({number: data for data, number in encoding._mergeable_ranks.items()}, special)
    end = table.ids.get("<|endoftext|>")  # what tiktoken itself calls eot_token
    return Source(table, lambda: [] if end is None else [end])


def _from_sentencepiece(processor: Any) -> Source:
    data = processor.serialized_model_proto()
    if not data:
        raise VocabularyError("the SentencePiece processor has loaded no model", hint="Call processor.Load(path) first")
    model = parse_model(data)
    return Source(piece_table(model), lambda: model.eos_ids)


def _of_mistral(tokenizer: object) -> Any:
    """The Tekkenizer or SentencePieceTokenizer inside the classes of mistral-common that wrap one."""
    for _ in range(4):
        inner = getattr(tokenizer, "instruct_tokenizer", None) or getattr(tokenizer, "tokenizer", None)
        if inner is None:
            break
        tokenizer = inner
    return tokenizer if ("mistral_common", type(tokenizer).__name__) in _MISTRAL else None


def _from_mistral(tokenizer: Any) -> Source:
    if type(tokenizer).__name__ == "SentencePieceTokenizer":
        return _from_sentencepiece(tokenizer._model)
    shift = tokenizer.num_special_tokens
    raw = {shift + rank: data for data, rank in tokenizer._tekken_token2id_nospecial.items()}
    table = special_and_raw(raw, {i: tokenizer.id_to_piece(i) for i in range(shift)})
    end = table.ids.get("</s>")
    return Source(table, lambda: [] if end is None else [end])


def _from_llama_cpp(llama: Any) -> Source:
    path = getattr(llama, "model_path", None)
    if not isinstance(path, str):
        raise VocabularyError("llama-cpp-python does not say which file this is", hint="Pass the path of the GGUF file")
    return read_path(Path(path))


def _is_rwkv(tokenizer: object) -> bool:
    table = getattr(tokenizer, "idx2token", None)
    return isinstance(table, dict) and all(type(i) is int and type(data) is bytes for i, data in table.items())


_MISTRAL = {("mistral_common", "Tekkenizer"), ("mistral_common", "SentencePieceTokenizer")}

# (Root module, class), looked up among the classes that an object is an instance of.
_READERS = {
    ("tokenizers", "BaseTokenizer"): _from_tokenizers,
    ("tokenizers", "Tokenizer"): _from_tokenizers,
    ("tiktoken", "Encoding"): _from_tiktoken,
    ("sentencepiece", "SentencePieceProcessor"): _from_sentencepiece,
    ("mistral_common", "Tekkenizer"): _from_mistral,
    ("mistral_common", "SentencePieceTokenizer"): _from_mistral,
    ("llama_cpp", "Llama"): _from_llama_cpp,
}
