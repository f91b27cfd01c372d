"""The slow tokenizers of transformers: Python classes, each with a spelling of its own.

There is no description of how such a class turns its tokens into text, only its method
``convert_tokens_to_string``. So the bytes of its tokens are worked out from what it is
built on (a SentencePiece model, GPT-2's byte alphabet, single bytes, plain pieces of
text), and then held against that method: every token is written twice between two others,
and a class that writes anything but the token's own text there is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from maskwright.errors import VocabularyError
from maskwright.vocabulary.raw_bytes import RWKV_END, special_and_raw
from maskwright.vocabulary.sentencepiece_model import parse_model, piece_bytes
from maskwright.vocabulary.token_table import OWN_TOKENS, TokenTable, check_id, is_reserved, make_table

__all__ = ["read_slow"]

_Spell = Callable[[str], "bytes | None"]

_CHUNK = 256  # tokens that are written at once


def read_slow(tokenizer: Any) -> TokenTable:
    """The tokens of a ``PreTrainedTokenizer`` that is not a fast one.

    Raises:
        VocabularyError: it is built on WordPiece, or writes a token differently next to others.
    """
    name = type(tokenizer).__name__
    if hasattr(tokenizer, "wordpiece_tokenizer") or getattr(tokenizer, "subword_tokenizer_type", "") == "wordpiece":
        raise VocabularyError(
            f"WordPiece tokenizers ({name}) are refused: whether a space comes before a token depends on its "
            "neighbours, so a token has no bytes of its own",
            hint=OWN_TOKENS,
        )
    added = {i: (str(token), bool(token.special)) for i, token in tokenizer.added_tokens_decoder.items()}
    special = {i for i in tokenizer.all_special_ids if type(i) is int and i >= 0}
    raw = _raw_bytes(tokenizer)
    if raw is not None:
        table = special_and_raw(*raw)
        _add(table, added, special)
        return table
    texts = {i: text for i, text in _texts(tokenizer, name).items() if i not in added}
    spell, trusted = _speller(tokenizer)
    tokens, dubious = _spell_all(texts, spell)
    special |= dubious
    plain = {i: data for i, data in tokens.items() if i not in special and not trusted(texts[i])}
    _check(tokenizer, name, texts, plain)
    special.update(i for i, text in texts.items() if is_reserved(text))
    table = make_table(tokens, special & tokens.keys(), {text: i for i, text in texts.items()})
    _add(table, added, special)
    return table


def _add(table: TokenTable, added: dict[int, tuple[str, bool]], special: set[int]) -> None:
    """Put in the added tokens, which stand for their literal text, and flag the special ones."""
    for i, (text, hidden) in added.items():
        table.put(i, text.encode(errors="surrogatepass"), text)
        if hidden or is_reserved(text):
            table.special.add(i)
    table.special.update(i for i in special if i < len(table.tokens))


def _raw_bytes(tokenizer: Any) -> tuple[dict[int, bytes], dict[int, str]] | None:
    """Tokens and names of special ones, of a class that wraps a tokenizer of bytes: tiktoken's, or RWKV's trie."""
    for member in getattr(tokenizer, "__dict__", {}).values():
        if type(member).__module__.partition(".")[0] == "tiktoken" and hasattr(member, "_mergeable_ranks"):
            tokens = {number: data for data, number in member._mergeable_ranks.items()}
            return tokens, {number: text for text, number in member._special_tokens.items()}
        table = getattr(member, "idx2token", None)
        if isinstance(table, dict) and table and all(type(data) is bytes for data in table.values()):
            return table, {0: RWKV_END}
    return None


def _texts(tokenizer: Any, name: str) -> dict[int, str]:
    try:
        size = int(tokenizer.vocab_size)
        check_id(size)
        listed = tokenizer.convert_ids_to_tokens(list(range(size)))
    except VocabularyError:
        raise
    except Exception as error:  # any class may have its own way to fail
        raise VocabularyError(f"{name} cannot list its tokens ({error!r})", hint=OWN_TOKENS) from error
    return {i: text for i, text in enumerate(listed) if isinstance(text, str)}


def _speller(tokenizer: Any) -> tuple[_Spell, Callable[[str], bool]]:
    """From a token's text to its bytes; and for which texts the class's own way of writing it is no guide."""
    model = getattr(tokenizer, "sp_model", None)
    if model is not None and hasattr(model, "serialized_model_proto"):
        pieces = dict(parse_model(model.serialized_model_proto()).pieces)
        # Classes that join the pieces by themselves write byte pieces as "<0x41>".
        return lambda text: piece_bytes(text, pieces.get(text, 1)), lambda text: pieces.get(text) == 6
    alphabet = getattr(tokenizer, "byte_decoder", None)
    if isinstance(alphabet, dict) and all(type(byte) is int and 0 <= byte < 256 for byte in alphabet.values()):
        return lambda text: _by_alphabet(text, alphabet), lambda text: False
    if getattr(tokenizer, "_utf_vocab_size", None) == 256:  # ByT5, Perceiver: the character of a token is its byte
        return lambda text: text.encode("latin-1") if len(text) == 1 and ord(text) < 256 else None, lambda text: False
    return str.encode, lambda text: False


def _by_alphabet(text: str, alphabet: dict[str, int]) -> bytes | None:
    return bytes(alphabet[c] for c in text) if all(c in alphabet for c in text) else None


def _spell_all(texts: dict[int, str], spell: _Spell) -> tuple[dict[int, bytes], set[int]]:
    tokens, special = {}, set()
    for i, text in texts.items():
        try:
            data = spell(text)
        except UnicodeEncodeError:  # a lone surrogate, as character models list them
            data = None
        tokens[i] = text.encode(errors="surrogatepass") if data is None else data
        if data is None:
            special.add(i)
    return tokens, special


def _check(tokenizer: Any, name: str, texts: dict[int, str], tokens: dict[int, bytes]) -> None:
    """Hold the bytes of all tokens that are whole characters against what the class writes."""
    whole = {i: text for i, data in tokens.items() if (text := _decoded(data))}
    anchor = next((i for i, text in whole.items() if text.isalnum() and text.isascii()), None)
    if anchor is None:
        anchor = next((i for i, text in whole.items() if text.strip() == text), None)
    if anchor is None:
        raise VocabularyError(f"{name} has no token that could be tried", hint=OWN_TOKENS)
    ids = list(whole)
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        if not _agrees(tokenizer, texts, whole, anchor, chunk):
            wrong = next((i for i in chunk if not _agrees(tokenizer, texts, whole, anchor, [i])), chunk[0])
            raise VocabularyError(
                f"{name} writes the token {texts[wrong]!r} differently next to others: it has no bytes of its own",
                location=f"token {wrong}",
                hint=OWN_TOKENS,
            )


def _agrees(tokenizer: Any, texts: dict[int, str], whole: dict[int, str], anchor: int, ids: Iterable[int]) -> bool:
    order = [anchor, *(j for i in ids for j in (i, i, anchor))]
    try:
        written = tokenizer.convert_tokens_to_string([texts[i] for i in order])
    except Exception:  # any class may have its own way to fail
        return False
    return bool(written == "".join(whole[i] for i in order))


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""
