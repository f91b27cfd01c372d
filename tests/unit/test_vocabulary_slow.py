"""The slow tokenizers of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maskwright import Vocabulary, VocabularyError
from unit.test_vocabulary_bytes import encoding
from unit.test_vocabulary_sentencepiece import MODELS, train

transformers = pytest.importorskip("transformers")

TEXT = 'Hello world  {"a": [1, 2]}\n  def f(é 日本 😀)'


def caught(tokenizer: object) -> VocabularyError:
    with pytest.raises(VocabularyError) as found:
        Vocabulary.from_tokenizer(tokenizer, eos_ids=[0])
    return found.value


@pytest.mark.parametrize("name", ["ByT5Tokenizer", "PerceiverTokenizer"])
def test_bytes(name: str) -> None:
    made = getattr(transformers, name)()
    found = Vocabulary.from_tokenizer(made)
    assert found.decode(made.encode(TEXT, add_special_tokens=False)) == TEXT.encode()
    assert found.eos_ids == (made.eos_token_id,) and set(made.all_special_ids) <= found.special_ids


@pytest.mark.slow
def test_characters() -> None:
    """Canine's vocabulary is all code points, lone surrogates among them."""
    made = transformers.CanineTokenizer()
    found = Vocabulary.from_tokenizer(made)
    assert found.decode(made.encode(TEXT, add_special_tokens=False)) == TEXT.encode()
    assert found.tokens[0x1F600] == "😀".encode() and 0xD800 in found.special_ids
    assert found.eos_ids == (made.eos_token_id,)


@pytest.mark.parametrize("name", ["GPTSw3Tokenizer", "BertGenerationTokenizer", "PLBartTokenizer", "SpeechT5Tokenizer"])
@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_sentencepiece(tmp_path: Path, name: str, model: str) -> None:
    processor = train(**MODELS[model])
    (tmp_path / "tokenizer.model").write_bytes(processor.serialized_model_proto())
    made = getattr(transformers, name)(vocab_file=str(tmp_path / "tokenizer.model"), eos_token="</s>")
    made.add_tokens(["<think>"])
    found = Vocabulary.from_tokenizer(made)
    text = "the brown dog {é} 日本語 runs"
    ids = made.encode(text, add_special_tokens=False)
    assert found.decode(ids) == b" " + text.encode()
    # The ids of a class need not be those of its model.
    assert [found.tokens[i] for i in ids[1:]] == [bytes_of(processor, i) for i in processor.encode(text)[1:]]
    think = made.convert_tokens_to_ids("<think>")
    assert found.tokens[think] == b"<think>" and think not in found.special_ids
    assert set(made.all_special_ids) <= found.special_ids and found.eos_ids == (made.eos_token_id,)


def bytes_of(processor: Any, i: int) -> bytes:
    piece = processor.id_to_piece(i)
    return bytes([int(piece[3:5], 16)]) if processor.is_byte(i) else piece.replace("▁", " ").encode()


def write_vocabulary(folder: Path, tokens: list[str]) -> tuple[str, str, str]:
    (folder / "vocab.txt").write_text("\n".join(tokens), "utf-8")
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\na b\n")
    return tuple(str(folder / name) for name in ("vocab.txt", "vocab.json", "merges.txt"))  # type: ignore[return-value]


TOKENS = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "a", "##b", "c@@", "<unk>", "<s>", "</s>", "<pad>", "l|", "|"]


def test_wordpiece_is_refused_by_name(tmp_path: Path) -> None:
    text, _, _ = write_vocabulary(tmp_path, TOKENS)
    for made in (
        transformers.BertTokenizerLegacy(text),
        transformers.BertJapaneseTokenizer(text, word_tokenizer_type="basic"),
    ):
        assert f"WordPiece tokenizers ({type(made).__name__}) are refused" in str(caught(made))


def test_what_depends_on_the_neighbours_is_refused(tmp_path: Path) -> None:
    text, vocabulary, merges = write_vocabulary(tmp_path, TOKENS)
    for made in (
        transformers.CTRLTokenizer(vocabulary, merges),  # "a@@ " joins
        transformers.EsmTokenizer(text),  # spaces between
        transformers.Wav2Vec2CTCTokenizer(vocabulary),  # repetitions are one
    ):
        error = caught(made)
        assert f"{type(made).__name__} writes the token" in str(error) and "next to others" in str(error)


class Slow:
    """As much of a slow tokenizer as is asked for."""

    __module__ = "transformers.models.some.tokenization_some"

    def __init__(self, texts: list[str], **members: Any) -> None:
        self.texts, self.vocab_size, self.all_special_ids, self.eos_token_id = texts, len(texts), [0], 0
        self.added_tokens_decoder: dict[int, Any] = {0: SimpleToken("<eos>")}
        self.__dict__.update(members)

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [self.texts[i] for i in ids]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return "".join(tokens)


class SimpleToken(SimpleNamespace):
    def __init__(self, content: str, special: bool = True) -> None:
        super().__init__(content=content, special=special)

    def __str__(self) -> str:
        return str(self.content)


def slow(*texts: str, **members: Any) -> Slow:
    return Slow(["<eos>", *texts], **members)


def test_plain_pieces() -> None:
    found = Vocabulary.from_tokenizer(slow("a", " ", "\n", "日", "<unused7>", "\ud800"))
    assert found.tokens[:5] == (b"<eos>", b"a", b" ", b"\n", "日".encode())
    assert found.special_ids == {0, 5, 6}


def test_byte_alphabet() -> None:
    class ByteLevel(Slow):
        def convert_tokens_to_string(self, tokens: list[str]) -> str:
            return bytes(ALPHABET[c] for c in "".join(tokens)).decode(errors="replace")

    made = ByteLevel(["<eos>", "Ġa", "â", "ĸģ", "x"], byte_decoder=ALPHABET)
    found = Vocabulary.from_tokenizer(made)
    assert found.tokens == (b"<eos>", b" a", b"\xe2", b"\x96\x81", b"x")
    made.texts[1] = "日"  # nothing that the alphabet spells
    assert Vocabulary.from_tokenizer(made).special_ids == {0, 1}


ALPHABET = {"Ġ": 32, "a": 97, "â": 0xE2, "ĸ": 0x96, "ģ": 0x81, "x": 120}


def test_wrapped_tokenizers_of_bytes() -> None:
    added = {258: SimpleToken("<eos>"), 259: SimpleToken("<think>", False)}
    inner = encoding({"<|endoftext|>": 260})
    made = slow(tokenizer=inner, added_tokens_decoder=added, all_special_ids=[258], eos_token_id=258)
    found = Vocabulary.from_tokenizer(made)
    assert found.tokens[250:] == (
        *(bytes([b]) for b in range(250, 256)),
        b"ab",
        b"\xe2\x96",
        b"<eos>",
        b"<think>",
        b"<|endoftext|>",
    )
    assert found.special_ids == {258, 260} and found.eos_ids == (258,)
    trie = SimpleNamespace(idx2token={1: b"a", 2: b"\xff"})
    found = Vocabulary.from_tokenizer(slow(trie_tokenizer=trie))
    assert found.tokens == (b"<eos>", b"a", b"\xff") and found.special_ids == {0}


def test_a_class_that_fails_is_refused() -> None:
    def fail(*_: object) -> str:
        raise KeyError("no")

    assert "cannot list its tokens (KeyError('no'))" in str(caught(slow("a", convert_ids_to_tokens=fail)))
    assert "writes the token 'a'" in str(caught(slow("a", convert_tokens_to_string=fail)))
    assert "no token that could be tried" in str(caught(slow()))
    error = caught(slow("a", "b", "wrong", "c", convert_tokens_to_string=lambda t: "".join(t).replace("wrong", "x")))
    assert error.location == "token 3"


def test_mistral_common(tmp_path: Path) -> None:
    pytest.importorskip("mistral_common")
    import mistral_common

    path = Path(mistral_common.__file__).parent / "data" / "mistral_instruct_tokenizer_240323.model.v3"
    made = transformers.tokenization_mistral_common.MistralCommonBackend(str(path))
    assert Vocabulary.from_tokenizer(made) == Vocabulary.from_tokenizer(path)
    assert Vocabulary.from_tokenizer(made.tokenizer) == Vocabulary.from_tokenizer(path)
