"""The vocabularies that llama.cpp is tested with, against its own token ids (``.gguf.inp`` and ``.gguf.out``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets import pip_source
from maskwright import Choice, Vocabulary, VocabularyError, compile

pytestmark = pytest.mark.slow

BYTE_LEVEL = "command-r deepseek-coder deepseek-llm falcon gpt-2 llama-bpe mpt qwen2 qwen35 refact starcoder gemma-4"
SENTENCEPIECE = "llama-spm phi-3"  # with a space before every text
WITHOUT_IDS = {"aquila": 100008, "baichuan": 64000, "gpt-neox": 50432, "nomic-bert-moe": 250048}


def vocabulary_file(name: str) -> Path:
    return pip_source("llama-cpp-python==0.3.36") / f"ggml-vocab-{name}.gguf"


def golden(name: str) -> list[tuple[str, list[int]]]:
    """Texts and their ids."""
    path = vocabulary_file(name)
    texts = path.with_suffix(".gguf.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    lines = path.with_suffix(".gguf.out").read_text().split("\n")
    return [(text, [int(i) for i in line.split()]) for text, line in zip(texts, lines, strict=False)]


@pytest.mark.parametrize("name", [*BYTE_LEVEL.split(), *SENTENCEPIECE.split()])
def test_golden_ids(name: str) -> None:
    vocabulary = Vocabulary.from_tokenizer(vocabulary_file(name))
    cases = golden(name)
    assert len(cases) >= 46
    for text, ids in cases:
        if name in SENTENCEPIECE and text:
            text = " " + text
        assert b"".join(vocabulary.tokens[i] for i in ids) == text.encode()
        assert not vocabulary.special_ids.intersection(ids)
        matcher = compile(Choice([text]), vocabulary).matcher()
        assert matcher.accept_tokens(ids) == len(ids) and matcher.is_accepting
        assert matcher.accept(vocabulary.eos_ids[0])


@pytest.mark.parametrize("name", WITHOUT_IDS)
def test_the_others_are_read(name: str) -> None:
    vocabulary = Vocabulary.from_tokenizer(vocabulary_file(name))
    assert vocabulary.size == WITHOUT_IDS[name]
    assert vocabulary.is_byte_complete == (name != "nomic-bert-moe")


def test_wordpiece_is_refused() -> None:
    with pytest.raises(VocabularyError, match="WordPiece tokenizers"):
        Vocabulary.from_tokenizer(vocabulary_file("bert-bge"))


def test_all_files_are_tested() -> None:
    tested = {*BYTE_LEVEL.split(), *SENTENCEPIECE.split(), *WITHOUT_IDS, "bert-bge"}
    assert {path.stem.removeprefix("ggml-vocab-") for path in vocabulary_file("").parent.glob("*.gguf")} == tested
