"""The vocabulary of a language model: which bytes each token id stands for."""

from __future__ import annotations

import hashlib
import operator
import os
import threading
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex
from weakref import WeakValueDictionary

from maskwright._interrupt import interruptible
from maskwright.errors import VocabularyError
from maskwright.vocabulary import images
from maskwright.vocabulary.prepared import read_prepared
from maskwright.vocabulary.token_bytes import TokenBytes, little_endian

if TYPE_CHECKING:
    from maskwright import _core

__all__ = ["Vocabulary"]

_LARGE = 10_000  # tokens; preparing fewer takes the core a few milliseconds


class _Prepared:
    """The core's trie of one vocabulary, shared by all objects with the same content."""

    __slots__ = ("__weakref__", "core")

    def __init__(self, core: _core.Vocab) -> None:
        self.core = core


_shared: WeakValueDictionary[str, _Prepared] = WeakValueDictionary()
_preparing = threading.Lock()


def _renew_lock() -> None:
    """A thread that held the lock does not exist in a forked child."""
    global _preparing
    _preparing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Vocabulary:
    """The tokens of a language model as bytes, by id. Immutable, thread-safe, compared and pickled by content.

    A constraint speaks of text, a model of token ids; a token matches the text that its
    bytes spell. Special tokens, reserved placeholders, ids without a token and tokens
    without bytes match no text. Several ids may have the same bytes: all of them match.

    Example:
        >>> Vocabulary([b"a", b"b", b"ab", b"<eos>"], eos_ids=[3])
        Vocabulary(4 tokens, eos_ids=(3,), 1 special)

    Args:
        tokens: the bytes of every token; the index is the id.
        eos_ids: the tokens that end a text, at least one. They are special.
        special_ids: tokens that never match text.

    Raises:
        VocabularyError: a token is not bytes, an id is out of range, there is no EOS id
            or no token that matches text.
    """

    __slots__ = (
        "__weakref__",
        "_bytes",
        "_eos_ids",
        "_fingerprint",
        "_is_lasting",
        "_kinds",
        "_prepared",
        "_special_ids",
        "_tokens",
    )

    _bytes: TokenBytes
    _tokens: tuple[bytes, ...] | None  # made from _bytes on demand
    _eos_ids: tuple[int, ...]
    _special_ids: frozenset[int]
    _kinds: bytes
    _fingerprint: str | None
    _prepared: _Prepared | None
    _is_lasting: bool  # others will read the same from disk

    def __init__(
        self,
        tokens: Sequence[bytes],
        eos_ids: Iterable[SupportsIndex] | SupportsIndex,
        special_ids: Iterable[SupportsIndex] = (),
    ) -> None:
        checked = _check_tokens(tokens)
        self._fill(TokenBytes.join(checked), eos_ids, special_ids)
        self._tokens = checked

    def _fill(
        self,
        tokens: TokenBytes,
        eos_ids: Iterable[SupportsIndex] | SupportsIndex,
        special_ids: Iterable[SupportsIndex] | SupportsIndex,
    ) -> None:
        self._bytes, self._tokens = tokens, None
        size = len(tokens.lengths)
        self._eos_ids = tuple(sorted(set(_check_ids(eos_ids, "eos_ids", size))))
        if not self._eos_ids:
            raise VocabularyError(
                "no token ends a text", location="eos_ids", hint="Pass the ids of the end-of-sequence tokens"
            )
        self._special_ids = frozenset(_check_ids(special_ids, "special_ids", size)).union(self._eos_ids)
        kinds = bytearray(size)
        if 0 in tokens.lengths:
            kinds = bytearray(map(operator.not_, tokens.lengths))
        for i in self._special_ids:
            kinds[i] = 1
        self._kinds = bytes(kinds)
        if 0 not in self._kinds:
            raise VocabularyError(
                "no token matches text: all are special or empty", hint="List in special_ids only the control tokens"
            )
        self._fingerprint, self._prepared, self._is_lasting = None, None, False

    @classmethod
    def _of(
        cls,
        tokens: TokenBytes,
        eos_ids: Iterable[SupportsIndex] | SupportsIndex,
        special_ids: Iterable[SupportsIndex] | SupportsIndex,
    ) -> Vocabulary:
        """As the constructor, without a list of the tokens."""
        made = cls.__new__(cls)
        made._fill(tokens, eos_ids, special_ids)
        return made

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: object,
        eos_ids: Iterable[SupportsIndex] | SupportsIndex | None = None,
        special_ids: Iterable[SupportsIndex] | None = None,
    ) -> Vocabulary:
        """Read the vocabulary of a tokenizer.

        Byte-level BPE, BPE with byte fallback, Unigram, WordLevel and character models are
        read where every token has bytes of its own; the others (WordPiece above all) are
        refused by name. The bytes are those that the token's decoder writes in the *middle*
        of a text: the space that decoders such as Llama 2's strip at the start of a text is
        part of the token here, and the ``clean_up_tokenization_spaces`` of transformers is
        not applied.

        Added tokens that are not special (``<think>``, runs of spaces) match their literal
        text. Never matching text: special tokens, the unknown token, reserved placeholders
        such as ``<unused7>`` or ``<|reserved_special_token_7|>``, and added tokens whose
        literal text and decoded bytes disagree.

        What is read from a path is kept in the folder ``$MASKWRIGHT_CACHE`` (by default
        ``~/.cache/maskwright``) and read from there as long as the files at the path keep
        their size and time.

        Args:
            tokenizer: a tokenizer of transformers (fast or slow), tokenizers, tiktoken,
                SentencePiece, mistral-common or RWKV; a ``llama_cpp.Llama``; or the path of
                a tokenizer.json, tekken.json, GGUF file, SentencePiece model or
                ``rwkv_vocab_*.txt``, or of a folder that holds one of the first two or a
                tokenizer.model.
            eos_ids: the tokens that end a text. By default what the tokenizer declares, and,
                beside a tokenizer.json, the ``eos_token_id`` of generation_config.json (or
                else config.json).
            special_ids: exactly these tokens never match text (and the EOS ids), whatever
                the tokenizer says.

        Raises:
            VocabularyError: the tokenizer cannot be read, or declares no EOS token.
            TypeError: ``tokenizer`` is no tokenizer.
        """
        prepared = read_prepared(tokenizer)
        ends = prepared.need_eos() if eos_ids is None else eos_ids
        special = prepared.special if special_ids is None else special_ids
        found = cls._of(prepared.tokens, ends, special)
        for i in found._eos_ids:
            if not prepared.present[i]:
                raise VocabularyError("the vocabulary has no token with this EOS id", location=f"token {i}")
        found._is_lasting = prepared.is_lasting
        return found

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return len(self._kinds)

    @property
    def tokens(self) -> tuple[bytes, ...]:
        """The bytes of every token, by id; for special tokens, their name."""
        if self._tokens is None:
            self._tokens = self._bytes.split()
        return self._tokens

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The tokens that end a text, in ascending order."""
        return self._eos_ids

    @property
    def special_ids(self) -> frozenset[int]:
        """The tokens that never match text although they have bytes; the EOS ids are among them."""
        return self._special_ids

    @property
    def kinds(self) -> bytes:
        """By id, 0 for a token that matches its bytes as text, 1 for one that never matches text."""
        return self._kinds

    @property
    def is_byte_complete(self) -> bool:
        """Whether every byte that can occur in UTF-8 text is a token of its own, so that any text can be spelled."""
        return bool(self.core.is_byte_complete)

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, over the bytes and kinds of all tokens and the EOS ids."""
        if self._fingerprint is None:
            digest = hashlib.sha256(b"maskwright vocabulary 1\0")
            for part in (self._bytes.lengths, array("I", self._eos_ids)):
                packed = little_endian(part)
                digest.update(len(part).to_bytes(8, "little") + packed)
            digest.update(self._kinds)
            digest.update(self._bytes.blob)
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    @property
    def core(self) -> _core.Vocab:
        """The compiled core's trie of this vocabulary, built on first use and shared between equal vocabularies."""
        if self._prepared is None:
            with _preparing:
                self._prepared = _shared.get(self.fingerprint) or self._prepare()
        return self._prepared.core

    def limit_cache(self, bytes: int) -> None:
        """Sets how much the tables kept for this vocabulary may take: 256 MB by default.

        The tables say what character classes and patterns allow; they are shared by everything compiled for the
        vocabulary, and for equal ones. When they come to more, all that are not in use are dropped and made again
        where they are needed. What they take now is `base_bytes` of `CompiledGrammar.stats`, an estimate.

        Raises:
            ValueError: `bytes` is negative.
        """
        if bytes < 0:
            raise ValueError(f"a limit in bytes is not negative, and {bytes} is")
        self.core.limit_bases(bytes)

    def _prepare(self) -> _Prepared:
        from maskwright import _core

        blob, lengths = self._bytes.blob, self._bytes.lengths
        kinds, eos_ids = array("B", self._kinds), list(self._eos_ids)
        if self.size < _LARGE:
            core = _core.Vocab(blob, lengths, kinds, eos_ids)
        else:
            key = self.fingerprint
            image = images.load(key)
            core = interruptible(lambda: _core.Vocab(blob, lengths, kinds, eos_ids, image, key))
            if self._is_lasting and not core.is_from_image:
                images.store(key, core.to_image(key))
        prepared = _shared[self.fingerprint] = _Prepared(core)
        return prepared

    def decode(self, ids: Iterable[SupportsIndex]) -> bytes:
        """The bytes that the tokens spell one after the other; tokens that match no text give nothing.

        Raises:
            VocabularyError: an id is out of range; the location says which.
        """
        tokens, kinds = self.tokens, self._kinds
        return b"".join(tokens[i] for i in _check_ids(ids, "ids", len(tokens)) if not kinds[i])

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickle, (self._bytes.blob, self._bytes.lengths, self._eos_ids, self._special_ids))

    def __copy__(self) -> Vocabulary:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Vocabulary:
        return self

    def __repr__(self) -> str:
        return f"Vocabulary({self.size} tokens, eos_ids={self._eos_ids}, {len(self._special_ids)} special)"


def _unpickle(
    blob: bytes, lengths: array[int], eos_ids: tuple[int, ...], special_ids: frozenset[int]
) -> Vocabulary:
    return Vocabulary._of(TokenBytes(blob, lengths), eos_ids, special_ids)


def _check_tokens(tokens: Sequence[bytes]) -> tuple[bytes, ...]:
    if isinstance(tokens, (str, bytes, bytearray)) or not isinstance(tokens, Iterable):
        raise TypeError(f"tokens must be a sequence of bytes, not {type(tokens).__name__}")
    checked = tuple(tokens)
    if set(map(type, checked)) - {bytes}:
        i = next(i for i, token in enumerate(checked) if type(token) is not bytes)
        hint = "Encode it: text.encode()" if isinstance(checked[i], str) else "Convert it: bytes(token)"
        raise VocabularyError(f"a token is {type(checked[i]).__name__}, not bytes", location=f"token {i}", hint=hint)
    if sum(map(len, checked)) >= 1 << 32:
        raise VocabularyError("the tokens have more than 4 GiB of bytes")
    return checked


def _check_ids(ids: Iterable[SupportsIndex] | SupportsIndex, name: str, size: int) -> list[int]:
    """Plain integers from what may be numpy's or torch's; a single id is a list of one."""
    listed = list(ids) if isinstance(ids, Iterable) else [ids]
    checked = []
    for at, value in enumerate(listed):
        place = f"{name}[{at}]"
        i = _index(value, place)
        if not 0 <= i < size:
            raise VocabularyError(f"id {i} is out of range, the vocabulary has {size} tokens", location=place)
        checked.append(i)
    return checked


def _index(value: SupportsIndex, place: str) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise VocabularyError(f"an id is {value!r} of type {type(value).__name__}, not an integer", location=place)
