"""SentencePiece models against the library itself."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pytest

from maskwright import Vocabulary, VocabularyError
from mutation import mutated

sentencepiece = pytest.importorskip("sentencepiece")

TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "the lazy dog sleeps  while the quick fox runs",
    'a box of {"keys": [1, 2, 3]} and 10 quick brown dogs',
    "日本語 の テキスト と 中文 的 文本",
]
PLAIN = "the brown dog 日本語 runs"


def train(**options: Any) -> Any:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 3), model_writer=model, minloglevel=2, hard_vocab_limit=False, **options
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


FALLBACK = {"byte_fallback": True, "vocab_size": 340}
MODELS: dict[str, dict[str, Any]] = {
    "bpe": {"model_type": "bpe", **FALLBACK},
    "unigram": {"model_type": "unigram", **FALLBACK},
    "unigram without bytes": {"model_type": "unigram", "vocab_size": 80},
    "char": {"model_type": "char", "vocab_size": 80},
    "word": {"model_type": "word", "vocab_size": 30},
    "no prefix": {"model_type": "bpe", "add_dummy_prefix": False, "normalization_rule_name": "identity", **FALLBACK},
    "space at the end": {"model_type": "bpe", "treat_whitespace_as_suffix": True, **FALLBACK},
    "kept spaces": {"model_type": "bpe", "remove_extra_whitespaces": False, **FALLBACK},
    "markers": {"model_type": "bpe", "user_defined_symbols": ["<think>", "▁▁", "<unused7>"], **FALLBACK},
    "controls": {"model_type": "bpe", "control_symbols": ["[INST]"], "eos_piece": "<end>", **FALLBACK},
}


@pytest.fixture(scope="module", params=MODELS)
def processor(request: pytest.FixtureRequest) -> Any:
    return train(**MODELS[request.param])


def test_every_piece_decodes_to_its_bytes(processor: Any) -> None:
    vocabulary = Vocabulary.from_tokenizer(processor)
    assert vocabulary.size == processor.get_piece_size()
    texts = [data.decode(errors="replace") for data in vocabulary.tokens]
    anchor = next(i for i, text in enumerate(texts) if not special(processor, i) and text.strip().isalpha())
    for i in range(vocabulary.size):
        if special(processor, i):
            assert i in vocabulary.special_ids
        else:
            spelled = texts[anchor] + texts[i] + texts[anchor]  # less the space before a text
            assert processor.decode([anchor, i, anchor]) in (spelled, spelled.removeprefix(" ")), texts[i]
            assert (i in vocabulary.special_ids) == (processor.id_to_piece(i) == "<unused7>")
    assert vocabulary.eos_ids == (processor.eos_id(),)


def special(processor: Any, i: int) -> bool:
    return processor.is_control(i) or processor.is_unknown(i) or processor.is_unused(i)


def test_pieces_spell_the_text(processor: Any) -> None:
    vocabulary = Vocabulary.from_tokenizer(processor)
    for text in (PLAIN, *TEXTS):
        ids = processor.encode(text)
        if processor.unk_id() not in ids:
            assert vocabulary.decode(ids).decode().strip() in (text, " ".join(text.split()))
    assert processor.unk_id() not in processor.encode(PLAIN)


def test_files(tmp_path: Path, processor: Any) -> None:
    for name in ("tokenizer.model", "mistral.model.v3", "anything"):
        (tmp_path / name).write_bytes(processor.serialized_model_proto())
        assert Vocabulary.from_tokenizer(tmp_path / name) == Vocabulary.from_tokenizer(processor)


def test_byte_complete() -> None:
    assert Vocabulary.from_tokenizer(train(**MODELS["unigram"])).is_byte_complete
    assert not Vocabulary.from_tokenizer(train(**MODELS["char"])).is_byte_complete


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return number_of(number << 3) + number_of(value)
    return number_of(number << 3 | 2) + number_of(len(value)) + value


def number_of(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def piece(text: bytes, kind: int = 1) -> bytes:
    return field(1, field(1, text) + b"\x15\0\0\0\0" + field(3, kind))


def test_unknown_fields_are_skipped(tmp_path: Path) -> None:
    extra = field(99, 1 << 40) + number_of(98 << 3 | 1) + bytes(8) + number_of(97 << 3 | 5) + bytes(4) + field(96, b"x")
    data = piece(b"a") + extra + field(1, extra + field(1, "▁b".encode())) + field(2, extra) + piece(b"</s>", 3)
    (tmp_path / "m").write_bytes(data)
    assert Vocabulary.from_tokenizer(tmp_path / "m").tokens == (b"a", b" b", b"</s>")


@pytest.mark.parametrize(
    ("data", "location", "said"),
    [
        (piece(b"a"), None, "does not say which token ends a text"),
        (piece(b"</s>", 1) + piece(b"a"), None, "does not say which token ends a text"),
        (piece(b"a") + piece(b"\xff"), "token 1", "not UTF-8"),
        (piece(b"a") + piece(b"<0xZZ>", 6), "token 1", "spelled '<0xZZ>'"),
        (piece(b"a") + b"\x0a\x7f", "token 0", "127 more bytes are announced, 0 are there"),
        (piece(b"a") + b"\x0a" + b"\xff" * 11, "token 0", "a number without end"),
        (piece(b"a") + b"\x0b", "token 0", "wire type 3"),
        (piece(b"a") + field(5, field(2, b"x")), "denormalizer_spec", "rewrites the text"),
        (b"\x0a\x00", None, "no token matches text"),
        (b"\n", "token 0", "number without end"),
        (b"\n\n\n\n\n\n\n\n\n\n\n", "token 0", ""),
    ],
)
def test_malformed(tmp_path: Path, data: bytes, location: str | None, said: str) -> None:
    (tmp_path / "tokenizer.model").write_bytes(data)
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_tokenizer(tmp_path / "tokenizer.model", eos_ids=[0] if "matches" in said else None)
    assert said in str(caught.value)
    assert caught.value.location == location


def test_an_empty_processor_is_refused() -> None:
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokenizer(sentencepiece.SentencePieceProcessor())


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_files(tmp_path: Path, count: int) -> None:
    whole = piece(b"<unk>", 2) + piece(b"</s>", 3) + piece(b"<0x0A>", 6) + piece("▁a".encode()) + field(2, b"") * 3
    whole += b"".join(piece(b"word%d" % i) for i in range(20)) + field(3, field(2, b"x" * 50))
    choose, path, read = random.Random(5), tmp_path / "tokenizer.model", 0
    for _ in range(count):
        path.write_bytes(mutated(whole, choose))
        try:
            Vocabulary.from_tokenizer(path, eos_ids=[0])
            read += 1
        except VocabularyError as error:
            assert str(error)
    assert 0.05 * count < read < 0.9 * count


def test_folders_of_transformers(tmp_path: Path) -> None:
    """A SentencePiece model with added tokens, but without a tokenizer.json."""
    (tmp_path / "tokenizer.model").write_bytes(piece(b"<unk>", 2) + piece(b"</s>", 3) + piece("▁a".encode()))
    assert Vocabulary.from_tokenizer(tmp_path).tokens == (b"<unk>", b"</s>", b" a")
    (tmp_path / "added_tokens.json").write_text('{"<think>": 3, "<end>": 5}')
    flags = '{"4": {"content": "▁▁", "special": false}, "5": {"content": "<end>", "special": true}}'
    config = '{"tokenizer_class": "LlamaTokenizer", "added_tokens_decoder": %s, "eos_token": "<end>"}'
    (tmp_path / "tokenizer_config.json").write_text(config % flags, "utf-8")
    found = Vocabulary.from_tokenizer(tmp_path)
    assert found.tokens == (b"<unk>", b"</s>", b" a", b"<think>", b"  ", b"<end>")
    assert found.special_ids == {0, 1, 5} and found.eos_ids == (5,)
    (tmp_path / "added_tokens.json").write_text('{"<think>": [3]}')
    with pytest.raises(VocabularyError, match="not an integer"):
        Vocabulary.from_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizer"}')
    with pytest.raises(VocabularyError, match="'XLMRobertaTokenizer' may give the pieces other ids"):
        Vocabulary.from_tokenizer(tmp_path)
