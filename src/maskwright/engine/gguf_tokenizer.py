"""The tokenizer inside a GGUF file: byte-level BPE with the vocabulary's bytes.

A file names its pre-tokenizer (``tokenizer.ggml.pre``) rather than describing it. Those
whose rule is known here are built; any other is refused by name, since a wrong rule
gives wrong ids without any sign of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from maskwright.errors import VocabularyError
from maskwright.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokenizers import Tokenizer

__all__ = ["GgufTokenizer", "read_tokenizer"]

# Values of tokenizer.ggml.token_type.
_CONTROL: Final = 3
_USER_DEFINED: Final = 4
_UNUSED: Final = 5

_EOS_KEYS: Final = ("eos_token_id", "eot_token_id", "eom_token_id")


@dataclass(frozen=True)
class GgufTokenizer:
    """A tokenizer with what generation needs beside it.

    Attributes:
        tokenizer: encodes; special tokens in the text are recognised.
        vocabulary: the bytes of its tokens.
        bos_id: what stands before a text, if anything does.
        eos_id: the first end-of-text id.
        chat_template: a Jinja template, if the file has one.
    """

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    bos_id: int | None
    eos_id: int
    chat_template: str | None


def read_tokenizer(metadata: Mapping[str, Any]) -> GgufTokenizer:
    """Builds the tokenizer that a file's ``tokenizer.*`` keys describe.

    Raises:
        VocabularyError: a key is missing or inconsistent, or the tokenizer is of a kind
            or has a pre-tokenizer that is not known here.
    """
    model = _key(metadata, "tokenizer.ggml.model", str)
    pre = _key(metadata, "tokenizer.ggml.pre", str)
    if model != "gpt2" or pre not in _PRE_TOKENIZERS:
        raise VocabularyError(
            f"the tokenizer is {model!r} with the pre-tokenizer {pre!r}; only 'gpt2' with one of "
            f"{sorted(_PRE_TOKENIZERS)} is read here",
            location="tokenizer.ggml.pre",
            hint="Load the model with transformers and wrap it in TransformersModel",
        )
    tokens = _strings(metadata, "tokenizer.ggml.tokens")
    types = _key(metadata, "tokenizer.ggml.token_type", list)
    if len(types) != len(tokens):
        raise VocabularyError(f"{len(tokens)} tokens have {len(types)} types", location="tokenizer.ggml.token_type")
    eos_ids = [_token_id(metadata, f"tokenizer.ggml.{name}", len(tokens)) for name in _EOS_KEYS]
    present = [token for token in eos_ids if token is not None]
    if not present:
        raise VocabularyError("no token ends a text", location="tokenizer.ggml.eos_token_id")
    special = [index for index, kind in enumerate(types) if kind in (_CONTROL, _UNUSED)]
    bos_id = _token_id(metadata, "tokenizer.ggml.bos_token_id", len(tokens))
    tokenizer = _build(tokens, types, _strings(metadata, "tokenizer.ggml.merges"), pre)
    return GgufTokenizer(
        tokenizer=tokenizer,
        vocabulary=Vocabulary.from_tokenizer(tokenizer, eos_ids=sorted(set(present)), special_ids=special),
        bos_id=bos_id if metadata.get("tokenizer.ggml.add_bos_token", False) else None,
        eos_id=present[0],
        chat_template=_optional(metadata, "tokenizer.chat_template", str),
    )


def _build(tokens: list[str], types: list[int], merges: list[str], pre: str) -> Tokenizer:
    from tokenizers import AddedToken, Tokenizer, decoders, models

    ranks = {token: index for index, token in enumerate(tokens)}
    if len(ranks) != len(tokens):
        raise VocabularyError("a token occurs twice", location="tokenizer.ggml.tokens")
    pairs = []
    for index, merge in enumerate(merges):
        left, _, right = merge.partition(" ")
        if left not in ranks or right not in ranks or left + right not in ranks:
            raise VocabularyError(
                f"merge {index} ({merge!r}) does not join two tokens to a third", location="tokenizer.ggml.merges"
            )
        pairs.append((left, right))
    tokenizer = Tokenizer(models.BPE(vocab=ranks, merges=pairs, byte_fallback=False))
    tokenizer.pre_tokenizer = _PRE_TOKENIZERS[pre]()
    tokenizer.decoder = decoders.ByteLevel()
    added = [
        AddedToken(token, special=kind == _CONTROL, normalized=False)
        for token, kind in zip(tokens, types, strict=True)
        if kind in (_CONTROL, _USER_DEFINED)
    ]
    tokenizer.add_special_tokens([token for token in added if token.special])
    tokenizer.add_tokens([token for token in added if not token.special])
    return tokenizer


def _pre_gpt2() -> Any:
    from tokenizers import pre_tokenizers

    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def _pre_smollm() -> Any:
    """GPT-2's rule after every digit has been set apart."""
    from tokenizers import pre_tokenizers

    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _pre_gpt2()])


_PRE_TOKENIZERS: Final[dict[str, Callable[[], Any]]] = {"gpt-2": _pre_gpt2, "smollm": _pre_smollm}


def _optional(metadata: Mapping[str, Any], name: str, kind: type) -> Any:
    return _key(metadata, name, kind) if name in metadata else None


def _key(metadata: Mapping[str, Any], name: str, kind: type) -> Any:
    value = metadata.get(name)
    if not isinstance(value, kind):
        found = "missing" if value is None else f"of type {type(value).__name__}"
        raise VocabularyError(f"the key is {found}, expected {kind.__name__}", location=name)
    return value


def _strings(metadata: Mapping[str, Any], name: str) -> list[str]:
    values: list[str] = _key(metadata, name, list)
    if not all(isinstance(value, str) for value in values):
        raise VocabularyError("the list holds more than strings", location=name)
    return values


def _token_id(metadata: Mapping[str, Any], name: str, size: int) -> int | None:
    value: int | None = _optional(metadata, name, int)
    if value is not None and not 0 <= value < size:
        raise VocabularyError(f"token {value} does not exist, there are {size}", location=name)
    return value
