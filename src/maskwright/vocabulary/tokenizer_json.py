"""Reading a tokenizer.json, or the same from a ``tokenizers.Tokenizer`` in memory.

The JSON is parsed directly: the library itself takes several times longer to load it, and
the model's merges are of no use here. Which text a token stands for is decided by the
*decoder* (see :mod:`maskwright.vocabulary.decoder`); normalizer and pre-tokenizer only say
how a text is cut into tokens.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskwright.errors import VocabularyError
from maskwright.vocabulary.decoder import TokenDecoder, compile_decoder
from maskwright.vocabulary.token_table import OWN_TOKENS, TokenTable, check_id, is_reserved

__all__ = ["AddedToken", "Spec", "build_table", "load_json", "read_added_token", "read_backend", "read_tokenizer_json"]

@dataclass(frozen=True)
class AddedToken:
    """An entry of ``added_tokens``: its literal content, and whether it is special."""

    content: str
    special: bool


@dataclass
class Spec:
    """What a tokenizer says about its tokens.

    Attributes:
        texts: id -> text in the model's own spelling.
        added: id -> added token; it hides a model token of the same id.
        decoder: from text to bytes.
        unknown: texts that stand for whatever the model could not spell.
    """

    texts: dict[int, str]
    added: dict[int, AddedToken]
    decoder: TokenDecoder
    unknown: set[str] = field(default_factory=set)


def load_json(path: Path) -> Any:
    """Parse a JSON file.

    Raises:
        VocabularyError: it cannot be read, or is no JSON.
    """
    try:
        with _gc_paused():
            return json.loads(path.read_bytes())
    except OSError as error:
        raise VocabularyError(f"{path.name} cannot be read: {error.strerror}", location=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path.name} is not valid JSON ({error})", location=str(path)) from error


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Half a million short lists of merges would set off the cyclic collector again and again (2.0 s -> 0.8 s)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read_tokenizer_json(data: object) -> Spec:
    """Read the parsed content of a tokenizer.json.

    Raises:
        VocabularyError: it is malformed, or of a kind whose tokens have no bytes of their own.
    """
    if not isinstance(data, dict) or not isinstance(data.get("model"), dict):
        raise VocabularyError("no object 'model' as in a tokenizer.json", hint="Pass the path to a tokenizer.json")
    model = data["model"]
    _check_model(_model_type(model), model.get("continuing_subword_prefix"), model.get("end_of_word_suffix"))
    texts = _read_vocab(model.get("vocab"))
    unknown, unknown_id = model.get("unk_token"), model.get("unk_id")
    named = unknown if isinstance(unknown, str) else texts.get(unknown_id) if type(unknown_id) is int else None
    return Spec(
        texts,
        _read_added(data.get("added_tokens")),
        compile_decoder(data.get("decoder"), data.get("pre_tokenizer")),
        {named} if named else set(),
    )


def read_backend(tokenizer: Any) -> Spec:
    """Read a ``tokenizers.Tokenizer``.

    Raises:
        VocabularyError: its kind is not supported, or it holds components written in Python.
    """
    try:
        if type(tokenizer.model).__name__ != "BPE":
            return read_tokenizer_json(json.loads(tokenizer.to_str()))
        # Serialising a BPE model means serialising its merges: a shell without them is
        # three times faster.
        shell = sys.modules["tokenizers"].Tokenizer(type(tokenizer.model)())
        for part in ("decoder", "pre_tokenizer"):
            if getattr(tokenizer, part) is not None:
                setattr(shell, part, getattr(tokenizer, part))
        data = json.loads(shell.to_str())
    except VocabularyError:
        raise
    except Exception as error:  # the bindings raise plain Exception where a component is custom Python
        raise VocabularyError(
            f"the tokenizer cannot be serialised ({error})",
            hint=OWN_TOKENS,
        ) from error
    model = tokenizer.model
    _check_model("BPE", model.continuing_subword_prefix, model.end_of_word_suffix)
    added = {i: AddedToken(t.content, t.special) for i, t in tokenizer.get_added_tokens_decoder().items()}
    return Spec(
        _by_id(tokenizer.get_vocab(with_added_tokens=False)),
        added,
        compile_decoder(data["decoder"], data["pre_tokenizer"]),
        {model.unk_token} if model.unk_token else set(),
    )


def _model_type(model: dict[str, Any]) -> str:
    """The kind of model; old files leave it to be told from the fields."""
    if "type" in model:
        return str(model["type"])
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    if "merges" in model:
        return "BPE"
    return "WordPiece" if "max_input_chars_per_word" in model else "WordLevel"


def _check_model(kind: str, prefix: object, suffix: object) -> None:
    if kind == "WordPiece":
        raise VocabularyError(
            "WordPiece tokenizers are refused: whether a space comes before a token depends on its neighbours, "
            "so a token has no bytes of its own",
            location="model",
            hint=OWN_TOKENS,
        )
    if kind not in ("BPE", "Unigram", "WordLevel"):
        raise VocabularyError(f"tokenizer model {kind!r} is not supported", location="model", hint=OWN_TOKENS)
    if prefix or suffix:
        raise VocabularyError(
            f"BPE with {'continuing_subword_prefix' if prefix else 'end_of_word_suffix'} {prefix or suffix!r} is "
            "refused: where the spaces are depends on the neighbours of a token",
            location="model",
            hint=OWN_TOKENS,
        )


def _read_vocab(vocab: object) -> dict[int, str]:
    if isinstance(vocab, dict):
        return _by_id(vocab)
    if not isinstance(vocab, list):
        raise VocabularyError("'vocab' is neither an object nor a list", location="model/vocab")
    for i, entry in enumerate(vocab):  # Unigram: [text, score], the id is the position
        if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
            raise VocabularyError("an entry is not [text, score]", location=f"model/vocab/{i}")
    return {i: entry[0] for i, entry in enumerate(vocab)}


def _by_id(vocab: dict[str, Any]) -> dict[int, str]:
    if set(map(type, vocab.values())) - {int}:
        text = next(s for s, i in vocab.items() if type(i) is not int)
        raise VocabularyError(f"the id of {text!r} is not an integer", location="model/vocab")
    texts = {i: text for text, i in vocab.items()}
    if len(texts) != len(vocab):
        text = next(s for s, i in vocab.items() if texts[i] != s)
        raise VocabularyError(
            f"two texts, {text!r} and {texts[vocab[text]]!r}, have one id", location=f"token {vocab[text]}"
        )
    return texts


def _read_added(added: object) -> dict[int, AddedToken]:
    if added is None:
        return {}
    if not isinstance(added, list):
        raise VocabularyError("'added_tokens' is not a list", location="added_tokens")
    return dict(read_added_token(entry, f"added_tokens/{i}") for i, entry in enumerate(added))


def read_added_token(entry: object, place: str, number: object = None) -> tuple[int, AddedToken]:
    """One added token with its id, which is given as ``number`` or stands in the entry.

    Raises:
        VocabularyError: it is malformed; the location is ``place``.
    """
    if not isinstance(entry, dict):
        raise VocabularyError("an added token is not an object", location=place)
    number, content = entry.get("id") if number is None else number, entry.get("content")
    if type(number) is not int or not isinstance(content, str):
        raise VocabularyError("an added token needs an integer 'id' and a string 'content'", location=place)
    return number, AddedToken(content, bool(entry.get("special", False)))


def build_table(spec: Spec) -> TokenTable:
    """Turn texts into bytes, and tell which tokens never match text.

    Special are: added tokens with ``special``, the unknown token, reserved placeholders
    (``<unused7>`` and the like), and added tokens whose content the byte-level decoder
    would turn into other bytes (``é`` into 0xE9), so that it is not clear what they spell.

    Raises:
        VocabularyError: an id is negative or absurdly large, or a text is no Unicode text.
    """
    numbers = spec.texts.keys() | spec.added.keys()
    for number in (min(numbers, default=0), max(numbers, default=0)):
        check_id(number)
    size = max(numbers, default=-1) + 1
    tokens, present, special = [b""] * size, bytearray(size), set[int]()
    number = 0
    try:
        for number, text in spec.texts.items():
            tokens[number] = spec.decoder(text)
            present[number] = 1
        for number, token in spec.added.items():
            tokens[number], plain = _added_bytes(token, spec.decoder)
            present[number] = 1
            if token.special or not plain:
                special.add(number)
    except UnicodeEncodeError as error:
        raise VocabularyError("the text holds a lone surrogate", location=f"token {number}") from error
    ids = {text: number for number, text in spec.texts.items()}
    ids.update((token.content, number) for number, token in spec.added.items())
    special.update(ids[text] for text in spec.unknown if text in ids)
    special.update(number for text, number in ids.items() if is_reserved(text))
    return TokenTable(tokens, special, ids, present)


def _added_bytes(token: AddedToken, decoder: TokenDecoder) -> tuple[bytes, bool]:
    """The bytes of an added token, and whether they are beyond doubt."""
    literal = token.content.encode()
    if token.special:
        return literal, True
    decoded = decoder(token.content)
    if decoder.byte_level and decoded != literal:
        return literal, False
    return decoded, True
