"""From the text of a token, as tokenizer.json spells it, to the bytes it stands for.

A mask needs bytes that do not depend on a token's neighbours. Whether a tokenizer has them
is decided by the ``decoder`` of its tokenizer.json, a chain of the steps that the Hugging
Face ``tokenizers`` library documents under "Decoders": the chain is compiled into one
function from text to bytes, or refused, naming the step whose result depends on the
neighbours. Only what a decoder does at the very start of a text (``Strip``, ``Metaspace``)
is left out: it does not change the bytes of a token in the middle.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable
from typing import Any

from maskwright.errors import VocabularyError
from maskwright.vocabulary.token_table import OWN_TOKENS

__all__ = ["BYTE_ALPHABET", "TokenDecoder", "byte_of", "compile_decoder"]

_MAX_DEPTH = 50
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> str:
    """The character that stands for each byte in byte-level BPE (``bytes_to_unicode`` of GPT-2's encoder.py).

    Printable Latin-1 stands for itself; the other 68 bytes, in order, for U+0100 and after.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(others)) for byte in range(256))


class _ByteAlphabet:
    """Encoding by a character map runs in C: 65 ms for 128,000 tokens."""

    def __init__(self) -> None:
        self._map = codecs.charmap_build(_byte_alphabet())

    def encode(self, text: str) -> bytes:
        """The bytes that the characters stand for.

        Raises:
            UnicodeEncodeError: a character stands for no byte.
        """
        return codecs.charmap_encode(text, "strict", self._map)[0]


BYTE_ALPHABET = _ByteAlphabet()


def byte_of(text: str) -> bytes | None:
    """0x41 for ``<0x41>``; None for a text of another form."""
    found = _BYTE_TOKEN.fullmatch(text) if len(text) == 6 else None
    return bytes.fromhex(found[1]) if found else None


def _byte_level(text: str) -> bytes:
    """Undo GPT-2's byte alphabet; a text with any other character stands for itself, as in ``ByteLevel``."""
    try:
        return BYTE_ALPHABET.encode(text)
    except UnicodeEncodeError:
        return text.encode()


def _byte_fallback(text: str) -> bytes:
    """``<0x41>`` is the byte 0x41, any other text stands for itself."""
    data = byte_of(text)
    return text.encode() if data is None else data


class TokenDecoder:
    """The bytes of a token from its text."""

    def __init__(self, steps: Iterable[Callable[[str], str]], last: Callable[[str], bytes]) -> None:
        self._steps = tuple(steps)
        self._last = last

    @property
    def byte_level(self) -> bool:
        """Whether the text is spelled in GPT-2's byte alphabet."""
        return self._last is _byte_level

    def __call__(self, text: str) -> bytes:
        """The bytes of the token with this text, wherever in a text it stands but at its start.

        Raises:
            UnicodeEncodeError: the text holds a lone surrogate, which no bytes stand for.
        """
        for step in self._steps:
            text = step(text)
        return self._last(text)


def compile_decoder(decoder: object, pre_tokenizer: object = None) -> TokenDecoder:
    """Compile the ``decoder`` of a tokenizer.json.

    Args:
        decoder: its JSON value; None where the tokenizer has none.
        pre_tokenizer: the JSON value of the ``pre_tokenizer``, asked for the spelling of
            the tokens where there is no decoder.

    Raises:
        VocabularyError: a step is unknown or makes the bytes of a token depend on its
            neighbours; the location names it.
    """
    if decoder is None:
        return _from_pre_tokenizer(pre_tokenizer)
    chain = _Chain()
    for place, step in _flatten(decoder, "decoder", "decoders"):
        chain.add(step, place)
    return TokenDecoder(chain.steps, chain.last or str.encode)


def _flatten(value: object, name: str, members: str) -> list[tuple[str, dict[str, Any]]]:
    """The steps of (nested) ``Sequence`` values in order, each with its place in the JSON."""
    todo, flat = [(name, value, 0)], []
    while todo:
        place, step, depth = todo.pop()
        if depth > _MAX_DEPTH:
            raise VocabularyError(f"the {name} is nested more than {_MAX_DEPTH} deep", location=name)
        if not isinstance(step, dict) or not isinstance(step.get("type"), str):
            raise VocabularyError(f"the {name} is not an object with a type", location=place)
        if step["type"] == "Sequence":
            inner = step.get(members)
            if not isinstance(inner, list):
                raise VocabularyError(f"a Sequence has no list of {members}", location=place)
            todo += [(f"{place}/{members}/{i}", inner[i], depth + 1) for i in reversed(range(len(inner)))]
        else:
            flat.append((place, step))
    return flat


def _from_pre_tokenizer(pre_tokenizer: object) -> TokenDecoder:
    steps = [] if pre_tokenizer is None else _flatten(pre_tokenizer, "pre_tokenizer", "pretokenizers")
    for place, step in steps:
        if step["type"] == "ByteLevel":
            return TokenDecoder((), _byte_level)
        if step["type"] == "Metaspace":
            return TokenDecoder((_replace(_character(step, "replacement", place), " "),), str.encode)
    raise VocabularyError(
        "the tokenizer has no decoder: it joins the tokens with spaces, whatever was between them",
        location="decoder",
        hint="Set tokenizer.decoder (decoders.Fuse() if the tokens are just pieces of text), or pass the bytes "
        "of each token: Vocabulary(tokens, eos_ids=...)",
    )


def _replace(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


def _strip(character: str, start: int, stop: int) -> Callable[[str], str]:
    def strip(text: str) -> str:
        begin, end = 0, len(text)
        while begin < min(start, len(text)) and text[begin] == character:
            begin += 1
        while len(text) - end < stop and end > begin and text[end - 1] == character:
            end -= 1
        return text[begin:end]

    return strip


def _character(step: dict[str, Any], key: str, place: str) -> str:
    value = step.get(key)
    if not isinstance(value, str) or len(value) != 1:
        raise VocabularyError(f"{step['type']} needs one character as its {key!r}", location=place)
    return value


class _Chain:
    """The steps read so far.

    Attributes:
        steps: what is done to a token's text.
        last: how the result becomes bytes, once ByteLevel or ByteFallback was seen.
        joined: whether the tokens are one text from here on.
    """

    def __init__(self) -> None:
        self.steps: list[Callable[[str], str]] = []
        self.last: Callable[[str], bytes] | None = None
        self.joined = False

    def add(self, step: dict[str, Any], place: str) -> None:
        adder = _ADDERS.get(step["type"])
        if adder is None:
            raise VocabularyError(f"decoder {step['type']!r} is not supported", location=place, hint=OWN_TOKENS)
        adder(self, step, place)

    def _refuse(self, what: str, place: str) -> VocabularyError:
        return VocabularyError(
            f"{what}: the bytes of a token depend on the tokens around it", location=place, hint=OWN_TOKENS
        )

    def contextual(self, step: dict[str, Any], place: str) -> None:
        raise self._refuse(f"decoder {step['type']!r}", place)

    def byte_level(self, step: dict[str, Any], place: str) -> None:
        if self.joined or self.last:
            raise self._refuse("ByteLevel over joined tokens", place)
        self.last, self.joined = _byte_level, True  # it joins the tokens before it decodes them

    def byte_fallback(self, step: dict[str, Any], place: str) -> None:
        if self.joined or self.last:
            raise self._refuse("ByteFallback over joined tokens", place)
        self.last = _byte_fallback

    def fuse(self, step: dict[str, Any], place: str) -> None:
        self.joined = True

    def replace(self, step: dict[str, Any], place: str) -> None:
        pattern, new = step.get("pattern"), step.get("content")
        old = pattern.get("String") if isinstance(pattern, dict) else None
        if not isinstance(old, str) or not isinstance(new, str):
            raise VocabularyError(
                "Replace by anything but a plain string is not supported", location=place, hint=OWN_TOKENS
            )
        if self.last or (self.joined and len(old) != 1):  # what it replaces may be spelled by several tokens
            raise self._refuse("Replace over joined tokens", place)
        self.steps.append(_replace(old, new))

    def metaspace(self, step: dict[str, Any], place: str) -> None:
        if self.last or self.joined:
            raise self._refuse("Metaspace over joined tokens", place)
        self.steps.append(_replace(_character(step, "replacement", place), " "))

    def strip(self, step: dict[str, Any], place: str) -> None:
        character, counts = _character(step, "content", place), (step.get("start", 0), step.get("stop", 0))
        if any(type(n) is not int or n < 0 for n in counts):
            raise VocabularyError("Strip needs counts of characters as 'start' and 'stop'", location=place)
        if self.joined and not counts[1]:
            return  # at the start of the text alone
        if self.joined or self.last:
            raise self._refuse("Strip over joined tokens", place)
        self.steps.append(_strip(character, *counts))


_ADDERS: dict[str, Callable[[_Chain, dict[str, Any], str], None]] = {
    "ByteLevel": _Chain.byte_level,
    "ByteFallback": _Chain.byte_fallback,
    "Fuse": _Chain.fuse,
    "Replace": _Chain.replace,
    "Metaspace": _Chain.metaspace,
    "Strip": _Chain.strip,
    "WordPiece": _Chain.contextual,
    "BPEDecoder": _Chain.contextual,
    "CTC": _Chain.contextual,
}
