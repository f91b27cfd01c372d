"""Vocabularies in GGUF files: every kind of tokenizer that llama.cpp writes."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.gguf_files import gguf_bytes
from maskwright import Vocabulary, VocabularyError
from mutation import mutated

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def write(path: Path, model: str | None, tokens: list[tuple[str, int]], /, **keys: Any) -> Path:
    metadata: dict[str, Any] = {"general.architecture": "llama", "some.list": ["x", "yy"], "more": [1, 2, 3]}
    if model is not None:
        metadata["tokenizer.ggml.model"] = model
    metadata["tokenizer.ggml.tokens"] = [text for text, _ in tokens]
    metadata["tokenizer.ggml.scores"] = [0.0] * len(tokens)
    metadata["tokenizer.ggml.token_type"] = [kind for _, kind in tokens]
    metadata["tokenizer.ggml.merges"] = ["a b"]
    metadata |= {f"tokenizer.ggml.{key}": value for key, value in {"eos_token_id": 0, **keys}.items()}
    path.write_bytes(gguf_bytes({key: value for key, value in metadata.items() if value is not None}, {}))
    return path


SPACED = [("<s>", CONTROL), ("▁a", NORMAL), ("▁▁", NORMAL), ("<0x0A>", BYTE), ("<0xE2>", BYTE), ("▁b", USER_DEFINED)]
KINDS: dict[str, tuple[list[tuple[str, int]], list[bytes]]] = {
    "gpt2": (
        [("<s>", CONTROL), ("Ġa", NORMAL), ("âĸ", NORMAL), ("Ċ", NORMAL), ("ö", USER_DEFINED), ("   ", USER_DEFINED)],
        [b" a", b"\xe2\x96", b"\n", "ö".encode(), b"   "],
    ),
    "llama": (SPACED, [b" a", b"  ", b"\n", b"\xe2", "▁b".encode()]),
    "gemma4": (SPACED, [b" a", b"  ", b"\n", b"\xe2", "▁b".encode()]),
    "t5": (SPACED, [b" a", b"  ", b"\n", b"\xe2", "▁b".encode()]),
    "plamo2": ([("<s>", CONTROL), (" a", NORMAL), ("▁", NORMAL), ("<0xFF>", BYTE)], [b" a", "▁".encode(), b"\xff"]),
    "rwkv": (
        [("<s>", CONTROL), ("a", NORMAL), (r"\n\t\r", NORMAL), (r"\xe4\xbd", NORMAL), (r"\\x41\'", NORMAL)],
        [b"a", b"\n\t\r", b"\xe4\xbd", b"\\x41'"],
    ),
}


@pytest.mark.parametrize("model", KINDS)
def test_kinds(tmp_path: Path, model: str) -> None:
    tokens, wanted = KINDS[model]
    found = Vocabulary.from_tokenizer(write(tmp_path / "m.gguf", model, tokens))
    assert found.tokens == (b"<s>", *wanted)
    assert found.eos_ids == (0,) and found.special_ids == {0}


def test_a_pre_tokenizer_may_say_how_tokens_are_spelled(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", "gpt2", [("<s>", CONTROL), ("▁a", NORMAL)], pre="gemma4")
    assert Vocabulary.from_tokenizer(path).tokens == (b"<s>", b" a")


def test_what_never_matches_text(tmp_path: Path) -> None:
    tokens = [("<s>", CONTROL), ("a", NORMAL), ("<unk>", UNKNOWN), ("b", UNUSED), ("[PAD7]", USER_DEFINED), ("c", 0)]
    tokens += [("<unused3>", NORMAL), ("◾", NORMAL), ("</s>", USER_DEFINED), ("<think>", USER_DEFINED)]
    found = Vocabulary.from_tokenizer(write(tmp_path / "m.gguf", "gpt2", tokens))
    assert found.special_ids == {0, 2, 3, 4, 5, 6, 7}
    assert Vocabulary.from_tokenizer(tmp_path / "m.gguf", special_ids=[1]).special_ids == {0, 1}


def test_without_types_all_tokens_are_text(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", "llama", [("</s>", CONTROL), ("▁a", NORMAL)], token_type=None)
    assert Vocabulary.from_tokenizer(path).special_ids == {0}


def test_end_of_text(tmp_path: Path) -> None:
    tokens = [("a", NORMAL), *((f"<{i}>", CONTROL) for i in range(1, 6))]
    path = write(tmp_path / "m.gguf", "gpt2", tokens, eos_token_id=3, eot_token_id=1, eom_token_id=5)
    assert Vocabulary.from_tokenizer(path).eos_ids == (1, 3, 5)
    assert Vocabulary.from_tokenizer(path, eos_ids=2).eos_ids == (2,)


def test_llama_cpp_python(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", "llama", SPACED)
    kind = type("Llama", (), {"__module__": "llama_cpp.llama"})
    llama = kind()
    llama.model_path = str(path)
    assert Vocabulary.from_tokenizer(llama) == Vocabulary.from_tokenizer(path)
    with pytest.raises(VocabularyError, match="Pass the path of the GGUF file"):
        Vocabulary.from_tokenizer(kind())
    with pytest.raises(TypeError):
        Vocabulary.from_tokenizer(SimpleNamespace(model_path=str(path)))


@pytest.mark.parametrize(
    ("model", "tokens", "keys", "location", "said"),
    [
        ("bert", SPACED, {}, "tokenizer.ggml.model", "WordPiece tokenizers ('bert') are refused"),
        (None, SPACED, {}, "tokenizer.ggml.model", "holds no tokenizer"),
        ("none", SPACED, {}, "tokenizer.ggml.model", "holds no tokenizer"),
        ("hybriddna", SPACED, {}, "tokenizer.ggml.model", "'hybriddna' is not supported"),
        ("gpt2", SPACED, {"model": 7}, "tokenizer.ggml.model", "7 is not supported"),
        ("gpt2", SPACED, {"tokens": 7}, "tokenizer.ggml.tokens", "no list of strings"),
        ("gpt2", SPACED, {"tokens": [1, 2]}, "tokenizer.ggml.tokens", "no list of strings"),
        ("gpt2", SPACED, {"tokens": None}, "tokenizer.ggml.tokens", "no list of strings"),
        ("gpt2", SPACED, {"token_type": [1]}, "tokenizer.ggml.token_type", "6 tokens have 1 types"),
        ("gpt2", SPACED, {"token_type": "x"}, "tokenizer.ggml.token_type", "no list of integers"),
        ("llama", [("<s>", CONTROL), ("<0x4>", BYTE)], {}, "token 1", "spelled '<0x4>'"),
        ("gpt2", SPACED, {"eos_token_id": None}, None, "does not say which token ends a text"),
        ("gpt2", SPACED, {"eos_token_id": 9}, "token 9", "has no token for"),
        ("gpt2", SPACED, {"eos_token_id": "x"}, "tokenizer.ggml.eos_token_id", "'x'"),
    ],
)
def test_refused(tmp_path: Path, model, tokens, keys, location, said) -> None:
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_tokenizer(write(tmp_path / "m.gguf", model, tokens, **keys))
    assert caught.value.location == location and said in str(caught.value)


def test_weights_do_not_matter(tmp_path: Path) -> None:
    """A file whose tensors cannot be read here still has a vocabulary."""
    metadata = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["</s>", "a"]}
    metadata |= {"tokenizer.ggml.eos_token_id": 0}
    (tmp_path / "m.gguf").write_bytes(gguf_bytes(metadata, {"w": ((1,), 999, b"abcd")}))
    assert Vocabulary.from_tokenizer(tmp_path / "m.gguf").tokens == (b"</s>", b"a")


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_files(tmp_path: Path, count: int) -> None:
    """Whatever a file holds, it is read or refused by our error."""
    path = write(tmp_path / "m.gguf", "llama", SPACED)
    whole, choose, read = path.read_bytes(), random.Random(3), 0
    for _ in range(count):
        path.write_bytes(mutated(whole, choose))
        try:
            Vocabulary.from_tokenizer(path, eos_ids=[0])
            read += 1
        except VocabularyError as error:
            assert str(error)
    assert 0.02 * count < read < 0.9 * count
