"""SentencePiece models: BPE with byte fallback, Unigram, words, characters.

A ``.model`` file is one protocol buffer, the ``ModelProto`` of SentencePiece's
``sentencepiece_model.proto``; the few fields that matter here are read from the wire
format directly. The bytes of a piece are what ``SentencePieceProcessor::Decode`` writes
for it in the middle of a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from maskwright.errors import VocabularyError
from maskwright.vocabulary.decoder import byte_of
from maskwright.vocabulary.token_table import OWN_TOKENS, TokenTable, is_reserved, make_table

__all__ = ["PieceModel", "parse_model", "piece_bytes", "piece_table"]

# ModelProto.SentencePiece.Type.
_NORMAL = 1
_UNKNOWN = 2
_CONTROL = 3
_USER_DEFINED = 4
_UNUSED = 5
_BYTE = 6

# Field numbers.
_PIECES, _TRAINER, _DENORMALIZER = 1, 2, 5
_PIECE_TEXT, _PIECE_TYPE = 1, 3
_EOS_PIECE = 47
_CHARSMAP = 2

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5  # wire types


@dataclass
class PieceModel:
    """What a model says about its pieces.

    Attributes:
        pieces: text and type, by id.
        eos_piece: the text of the end-of-text piece, which need not exist.
    """

    pieces: list[tuple[str, int]] = field(default_factory=list)
    eos_piece: str = "</s>"

    @property
    def eos_ids(self) -> list[int]:
        """The id of the control piece that ends a text, if there is one."""
        return [i for i, piece in enumerate(self.pieces) if piece == (self.eos_piece, _CONTROL)]


def parse_model(data: bytes) -> PieceModel:
    """Read a serialized ``ModelProto``.

    Raises:
        VocabularyError: it is truncated or no such message, or it changes its output text
            after joining the pieces (``denormalizer_spec``).
    """
    model = PieceModel()
    for number, value in _fields(data, 0):
        if number == _PIECES and isinstance(value, bytes):
            model.pieces.append(_piece(value, len(model.pieces)))
        elif number == _TRAINER and isinstance(value, bytes):
            model.eos_piece = _last_text(value, _EOS_PIECE, model.eos_piece)
        elif number == _DENORMALIZER and isinstance(value, bytes) and _has_charsmap(value):
            raise VocabularyError(
                "the model rewrites the text that its pieces spell, so that a piece has no bytes of its own",
                location="denormalizer_spec",
                hint=OWN_TOKENS,
            )
    if not model.pieces:
        raise VocabularyError("there are no pieces: not a SentencePiece model")
    return model


def piece_table(model: PieceModel) -> TokenTable:
    """The bytes of all pieces. Control, unknown and unused pieces and placeholders never match text.

    Raises:
        VocabularyError: a byte piece is not spelled like one.
    """
    tokens: dict[int, bytes] = {}
    special: set[int] = set()
    for number, (text, kind) in enumerate(model.pieces):
        data = piece_bytes(text, kind)
        tokens[number] = text.encode() if data is None else data
        if data is None:
            if kind == _BYTE:
                raise VocabularyError(f"a byte piece is spelled {text!r}, not as <0x41>", location=f"token {number}")
            special.add(number)
        elif is_reserved(text):
            special.add(number)
    return make_table(tokens, special, {text: number for number, (text, _) in enumerate(model.pieces)})


def piece_bytes(text: str, kind: int) -> bytes | None:
    """The bytes of a piece; None where it stands for no text, or is a byte piece spelled wrongly."""
    if kind == _BYTE:
        return byte_of(text)
    return text.replace("▁", " ").encode() if kind in (_NORMAL, _USER_DEFINED) else None


def _piece(data: bytes, number: int) -> tuple[str, int]:
    text, kind = b"", _NORMAL
    for name, value in _fields(data, number):
        if name == _PIECE_TEXT and isinstance(value, bytes):
            text = value
        elif name == _PIECE_TYPE and isinstance(value, int):
            kind = value
    try:
        return text.decode(), kind
    except UnicodeDecodeError:
        raise VocabularyError("a piece is not UTF-8", location=f"token {number}") from None


def _last_text(data: bytes, wanted: int, default: str) -> str:
    for number, value in _fields(data, 0):
        if number == wanted and isinstance(value, bytes):
            default = value.decode(errors="replace")
    return default


def _has_charsmap(data: bytes) -> bool:
    return any(number == _CHARSMAP and value != b"" for number, value in _fields(data, 0))


def _fields(data: bytes, place: int) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: number and value; of fixed-size numbers, the bytes."""
    offset, end = 0, len(data)
    while offset < end:
        tag, offset = _varint(data, offset, place)
        wire = tag & 7
        if wire == _VARINT:
            value, offset = _varint(data, offset, place)
            yield tag >> 3, value
            continue
        if wire == _LENGTH:
            size, offset = _varint(data, offset, place)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise _malformed(f"wire type {wire}", place)
        if size > end - offset:
            raise _malformed(f"{size} more bytes are announced, {end - offset} are there (truncated?)", place)
        yield tag >> 3, data[offset : offset + size]
        offset += size


def _varint(data: bytes, offset: int, place: int) -> tuple[int, int]:
    if offset < len(data) and data[offset] < 0x80:
        return data[offset], offset + 1
    value = 0
    for shift, byte in enumerate(data[offset : offset + 10]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, offset + shift + 1
    raise _malformed("a number without end", place)


def _malformed(what: str, place: int) -> VocabularyError:
    return VocabularyError(f"not a SentencePiece model: {what}", location=f"token {place}")
