"""Vocabularies given as bytes: tiktoken, Tekken, RWKV."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maskwright import Vocabulary, VocabularyError
from mutation import mutated

RANKS = {**{bytes([b]): b for b in range(256)}, b"ab": 256, b"\xe2\x96": 257}


def caught(source: object, **arguments: Any) -> VocabularyError:
    with pytest.raises(VocabularyError) as found:
        Vocabulary.from_tokenizer(source, **arguments)
    return found.value


# tiktoken


def encoding(special: dict[str, int]) -> Any:
    tiktoken = pytest.importorskip("tiktoken")
    return tiktoken.Encoding("test", pat_str=r"\w+|\W+", mergeable_ranks=RANKS, special_tokens=special)


def test_tiktoken() -> None:
    made = encoding({"<|endoftext|>": 260, "<|im_end|>": 258})
    found = Vocabulary.from_tokenizer(made)
    assert found.tokens == (*RANKS, b"<|im_end|>", b"", b"<|endoftext|>")
    assert found.eos_ids == (260,) and found.special_ids == {258, 260} and found.is_byte_complete
    text = "abba ▁ <|endoftext|> 日本"
    assert found.decode(made.encode(text, disallowed_special=())) == text.encode()
    assert Vocabulary.from_tokenizer(made, eos_ids=258).eos_ids == (258,)
    assert "no token with this EOS id" in str(caught(made, eos_ids=259))


def test_tiktoken_without_an_end() -> None:
    assert "eos_ids=[258] for '<|im_end|>'" in str(caught(encoding({"<|im_end|>": 258})))


def test_files_of_ranks_are_refused(tmp_path: Path) -> None:
    lines = [base64.b64encode(data).decode() + f" {rank}\n" for data, rank in RANKS.items()]
    (tmp_path / "qwen.tiktoken").write_text("".join(lines))
    assert "Make a tiktoken.Encoding" in str(caught(tmp_path / "qwen.tiktoken"))


# Tekken


def tekken(**changes: Any) -> dict[str, Any]:
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(data).decode(), "token_str": None}
        for data, rank in RANKS.items()
    ]
    special = [
        {"rank": rank, "token_str": text, "is_control": True}
        for rank, text in enumerate(["<unk>", "<s>", "</s>", "[INST]"])
    ]
    config = {"pattern": r"\w+|\W+", "num_vocab_tokens": 258, "default_vocab_size": 262, "version": "v11"}
    config["default_num_special_tokens"] = 5
    return {"config": config, "vocab": vocab, "special_tokens": special, "version": 1, "type": "Tekken", **changes}


def save(folder: Path, data: dict[str, Any]) -> Path:
    (folder / "tekken.json").write_text(json.dumps(data))
    return folder / "tekken.json"


def test_tekken_files(tmp_path: Path) -> None:
    path = save(tmp_path, tekken())
    found = Vocabulary.from_tokenizer(path)
    names = (b"<unk>", b"<s>", b"</s>", b"[INST]", b"<SPECIAL_4>")
    assert found.tokens == (*names, *list(RANKS)[:257])  # the size cuts off the last
    assert found.eos_ids == (2,) and found.special_ids == {0, 1, 2, 3, 4}
    assert Vocabulary.from_tokenizer(tmp_path) == found
    old = tekken(special_tokens=None)
    old["config"]["default_num_special_tokens"] = 22
    old["config"]["default_vocab_size"] = 280
    found = Vocabulary.from_tokenizer(save(tmp_path, old))
    assert found.tokens[2] == b"</s>" and found.tokens[19:22] == (b"[TOOL_CONTENT]", b"<SPECIAL_20>", b"<SPECIAL_21>")
    assert found.tokens[22:] == tuple(RANKS)


def test_mistral_common(tmp_path: Path) -> None:
    pytest.importorskip("mistral_common")
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    made = Tekkenizer.from_file(save(tmp_path, tekken()))
    assert Vocabulary.from_tokenizer(made) == Vocabulary.from_tokenizer(tmp_path)
    wrapper = SimpleNamespace(tokenizer=made)
    kind = type("MistralTokenizer", (), {"__module__": "mistral_common.tokens.tokenizers.mistral"})
    outer = kind()
    outer.instruct_tokenizer = wrapper
    assert Vocabulary.from_tokenizer(outer) == Vocabulary.from_tokenizer(tmp_path)


def wrong(**config: Any) -> dict[str, Any]:
    return {**tekken()["config"], **config}


@pytest.mark.parametrize(
    ("changes", "location", "said"),
    [
        ({"config": 7}, "config", "no object 'config'"),
        ({"vocab": {}}, "config", "list 'vocab'"),
        ({"config": wrong(default_vocab_size=264)}, "config", "258 others are there"),
        ({"config": wrong(default_vocab_size=None)}, "config", "are announced"),
        ({"config": wrong(default_num_special_tokens=-1)}, "config", "-1 of them special"),
        ({"config": wrong(default_num_special_tokens=3, default_vocab_size=9)}, "special_tokens/3", "not below 3"),
        ({"special_tokens": {}}, "special_tokens", "not a list"),
        ({"special_tokens": [{"rank": 0}]}, "special_tokens/0", "'token_str'"),
        ({"special_tokens": [{"rank": 0, "token_str": "\ud800"}]}, "token 0", "lone surrogate"),
        ({"vocab": [{"rank": 1, "token_bytes": "YQ=="}] * 258}, "vocab/0", "rank 1 stands where 0 belongs"),
        ({"vocab": [{"rank": 0, "token_bytes": "!"}] * 258}, "vocab/0", "not base64"),
        ({"vocab": [7] * 258}, "vocab/0", "'token_bytes'"),
        ({"special_tokens": [{"rank": 0, "token_str": "<end>"}]}, None, "does not say which token ends"),
    ],
)
def test_malformed_tekken(tmp_path: Path, changes: dict[str, Any], location: str | None, said: str) -> None:
    error = caught(save(tmp_path, tekken(**changes)))
    assert said in str(error) and error.location == location


# RWKV

LINES = [
    r"1 '\x00' 1",
    r"2 b'\xe4\xbd' 2",
    r"3 '\n\t\r' 3",
    r"""4 "'" 1""",
    r"""5 '"\'\\' 3""",
    r"6 '日本' 6",
    r"7 'é\u200d\U0001f600' 9",
    r"""9 b"'\xff" 2""",
]
BYTES = [b"<|endoftext|>", b"\0", b"\xe4\xbd", b"\n\t\r", b"'", b"\"'\\", "日本".encode()]
BYTES += ["é\u200d😀".encode(), b"", b"'\xff"]


def test_rwkv_files(tmp_path: Path) -> None:
    path = tmp_path / "rwkv_vocab.txt"
    for end in ("\n", "\r\n"):
        path.write_text(end.join([*LINES, ""]), "utf-8", newline="")
        found = Vocabulary.from_tokenizer(path)
        assert list(found.tokens) == BYTES
        assert found.eos_ids == (0,) and found.special_ids == {0}


def test_rwkv_tokenizers() -> None:
    made = SimpleNamespace(idx2token={i: data for i, data in enumerate(BYTES) if i and data})
    assert list(Vocabulary.from_tokenizer(made).tokens) == BYTES


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("8 'ab' 3", "the literal has 2 bytes, not 3"),
        ("8 'é' 1", "the literal has 2 bytes, not 1"),
        ("8 b'é' 1", "malformed"),
        ("8 b'日' 3", "malformed"),
        (r"8 b'\u00e9' 1", "malformed"),
        (r"8 '\ud800' 3", "malformed"),
        (r"8 '\U00110000' 4", "malformed"),
        (r"8 '\q' 1", "malformed"),
        ("8 'ab\\' 3", "malformed"),
        ("8 ab 2", "not an id, a literal and a length"),
        ("8 __import__('os') 2", "not an id, a literal and a length"),
        ("-8 'a' 1", "not an id, a literal and a length"),
        ("1 'a' 1", "token 1 occurs twice"),
        ("999999999 'a' 1", "token ids go from 0"),
        ("8", "not an id"),
    ],
)
def test_malformed_rwkv(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "rwkv_vocab.txt"
    path.write_text("\n".join([*LINES, line]), "utf-8")
    error = caught(path)
    assert said in str(error) and error.location in ("line 9", "token 999999999")
    path.write_bytes("\n".join(LINES).encode("latin-1", "replace"))
    assert "not UTF-8" in str(caught(path))


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_files(tmp_path: Path, count: int) -> None:
    path, choose, read = tmp_path / "vocabulary", random.Random(7), 0
    small = {"vocab": tekken()["vocab"][:3], "config": wrong(default_vocab_size=8)}
    wholes = ["\n".join(LINES).encode(), json.dumps(tekken(**small)).encode()]
    for i in range(count):
        path.write_bytes(mutated(wholes[i % 2], choose))
        try:
            Vocabulary.from_tokenizer(path, eos_ids=[0])
            read += 1
        except VocabularyError as error:
            assert str(error)
    assert 0.02 * count < read < 0.9 * count
