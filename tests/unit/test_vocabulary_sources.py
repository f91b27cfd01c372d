"""Where a vocabulary can come from, and which token ends its texts."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tokenizers import AddedToken, ByteLevelBPETokenizer, Tokenizer, decoders, models

from maskwright import Vocabulary, VocabularyError
from mutation import mutated


def make_tokenizer() -> Tokenizer:
    made = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    made.decoder = decoders.ByteLevel()
    made.add_tokens([AddedToken("<think>", special=False)])
    made.add_special_tokens(["<s>", "</s>", "<|im_end|>"])
    return made


def save(folder: Path, **beside: object) -> Path:
    make_tokenizer().save(str(folder / "tokenizer.json"))
    for name, data in beside.items():
        (folder / f"{name}.json").write_text(json.dumps(data), "utf-8")
    return folder


def caught(source: object, **arguments: Any) -> VocabularyError:
    with pytest.raises(VocabularyError) as found:
        Vocabulary.from_tokenizer(source, **arguments)
    return found.value


WHOLE = Vocabulary([b"a", b"b", b"ab", b"<think>", b"<s>", b"</s>", b"<|im_end|>"], eos_ids=[5], special_ids=[4, 6])


def test_tokenizers() -> None:
    assert Vocabulary.from_tokenizer(make_tokenizer(), eos_ids=[5]) == WHOLE
    error = caught(make_tokenizer())
    assert "does not say which token ends a text. Pass eos_ids=, as eos_ids=[5] for '</s>'" in str(error)


def test_tokenizers_implementations() -> None:
    made = ByteLevelBPETokenizer({"a": 0, "Ġ": 1, "<eos>": 2}, [])
    assert Vocabulary.from_tokenizer(made, eos_ids=[2]).tokens == (b"a", b" ", b"<eos>")


def test_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=make_tokenizer(), eos_token="</s>")
    assert Vocabulary.from_tokenizer(fast) == WHOLE
    assert Vocabulary.from_tokenizer(fast, eos_ids=[6]).eos_ids == (6,)
    named = transformers.PreTrainedTokenizerFast(tokenizer_object=make_tokenizer(), eos_token="</s>", pad_token="ab")
    assert Vocabulary.from_tokenizer(named).special_ids == {2, 4, 5, 6}
    without = transformers.PreTrainedTokenizerFast(tokenizer_object=make_tokenizer())
    assert "Pass eos_ids=" in str(caught(without))

    fast.save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [6, 5]}))
    from_folder = Vocabulary.from_tokenizer(tmp_path)
    assert from_folder.eos_ids == (5, 6)
    loaded = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert Vocabulary.from_tokenizer(loaded) == from_folder


def test_added_token_flags_of_the_config_win(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    flags = {"3": {"content": "<think>", "special": True}, "7": {"content": "<more>", "special": False}}
    save(tmp_path, tokenizer_config={"eos_token": "</s>", "added_tokens_decoder": flags})
    found = Vocabulary.from_tokenizer(tmp_path)
    assert found.special_ids == {3, 4, 5, 6} and found.tokens[7] == b"<more>"
    loaded = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert Vocabulary.from_tokenizer(loaded) == found


def test_path_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, tokenizer_config={"eos_token": "</s>"})
    other = tmp_path / "other.json"
    other.write_bytes((tmp_path / "tokenizer.json").read_bytes())
    for path in (tmp_path, other, tmp_path / "tokenizer.json", str(other), os.fspath(tmp_path)):
        assert Vocabulary.from_tokenizer(path) == WHOLE
    monkeypatch.chdir(tmp_path)
    assert Vocabulary.from_tokenizer("tokenizer.json") == WHOLE


@pytest.mark.parametrize(
    ("beside", "eos_ids"),
    [
        ({"tokenizer_config": {"eos_token": "</s>"}}, (5,)),
        ({"tokenizer_config": {"eos_token": {"content": "</s>", "lstrip": False}}}, (5,)),
        ({"special_tokens_map": {"eos_token": "</s>"}}, (5,)),
        ({"special_tokens_map": {"eos_token": "</s>"}, "tokenizer_config": {"eos_token": "<|im_end|>"}}, (6,)),
        ({"generation_config": {"eos_token_id": 5}}, (5,)),
        ({"generation_config": {"eos_token_id": [5, 6]}}, (5, 6)),
        ({"generation_config": {"eos_token_id": [5]}, "tokenizer_config": {"eos_token": "<|im_end|>"}}, (5, 6)),
        ({"config": {"eos_token_id": 5}}, (5,)),
        ({"config": {"eos_token_id": 6}, "generation_config": {"eos_token_id": 5}}, (5,)),
        ({"config": {"eos_token_id": None}, "generation_config": {}, "tokenizer_config": {"eos_token": None}}, None),
        ({}, None),
    ],
)
def test_eos_of_the_files_beside(tmp_path: Path, beside: dict[str, object], eos_ids: tuple[int, ...] | None) -> None:
    save(tmp_path, **beside)
    if eos_ids is None:
        assert "Pass eos_ids=" in str(caught(tmp_path))
    else:
        assert Vocabulary.from_tokenizer(tmp_path).eos_ids == eos_ids
    assert Vocabulary.from_tokenizer(tmp_path, eos_ids=[4]).eos_ids == (4,)


@pytest.mark.parametrize(
    ("beside", "location", "said"),
    [
        ({"generation_config": {"eos_token_id": [5, 70]}}, "token 70", "has no token for"),
        ({"generation_config": {"eos_token_id": -1}}, "token -1", "has no token for"),
        ({"generation_config": {"eos_token_id": "</s>"}}, "generation_config.json", "neither an id nor a list"),
        ({"generation_config": {"eos_token_id": [True]}}, "generation_config.json", "neither an id nor a list"),
        ({"generation_config": [5]}, "generation_config.json", "not a JSON object"),
        ({"tokenizer_config": {"eos_token": "<eos>"}}, "tokenizer_config.json", "'<eos>' is not in the vocabulary"),
    ],
)
def test_wrong_declarations(tmp_path: Path, beside: dict[str, object], location: str, said: str) -> None:
    save(tmp_path, **beside)
    error = caught(tmp_path)
    assert error.location is not None and error.location.endswith(location) and said in str(error)
    # Whoever says which ids end a text need not care.
    assert Vocabulary.from_tokenizer(tmp_path, eos_ids=[5]).eos_ids == (5,)


def test_special_tokens_of_the_config(tmp_path: Path) -> None:
    config = {
        "eos_token": "</s>",
        "pad_token": {"content": "b"},
        "unk_token": None,
        "additional_special_tokens": ["ab"],
    }
    save(tmp_path, tokenizer_config={**config, "additional_special_tokens": ["ab"]})
    assert Vocabulary.from_tokenizer(tmp_path).special_ids == {1, 2, 4, 5, 6}
    save(tmp_path, tokenizer_config={"eos_token": "</s>", "extra_special_tokens": {"thought": "<think>"}})
    assert Vocabulary.from_tokenizer(tmp_path).special_ids == {3, 4, 5, 6}
    assert Vocabulary.from_tokenizer(tmp_path, special_ids=[0]).special_ids == {0, 5}
    assert Vocabulary.from_tokenizer(tmp_path, special_ids=[]).decode([3, 4, 5]) == b"<think><s>"


MALFORMED = [
    "",
    "{",
    "[]",
    "null",
    "{}",
    '{"model": null}',
    '{"model": {}}',
    '{"model": {"vocab": 7}}',
    '{"model": {"type": "Unheard", "vocab": {}}}',
    '{"model": {"type": ["BPE"], "vocab": {"a": 0}}}',
    '{"model": {"type": "BPE", "vocab": {"a": "0"}}}',
    '{"model": {"type": "BPE", "vocab": {"a": true}}}',
    '{"model": {"type": "BPE", "vocab": {"a": 0.0}}}',
    '{"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}}}',
    '{"model": {"type": "BPE", "vocab": {"a": 0, "b": -1}}, "decoder": {"type": "Fuse"}}',
    '{"model": {"type": "BPE", "vocab": {"a": 0, "b": 4194304}}, "decoder": {"type": "Fuse"}}',
    '{"model": {"type": "BPE", "vocab": {"a": 0, "\\ud800": 1}}, "decoder": {"type": "Fuse"}}',
    '{"model": {"type": "BPE", "vocab": {"a": 0}}}',
    '{"model": {"type": "BPE", "vocab": {"a": 0}}, "decoder": 7}',
    '{"model": {"type": "BPE", "vocab": {}}, "decoder": {"type": "Fuse"}}',
    '{"model": {"type": "BPE", "vocab": {"a": 0}}, "decoder": {"type": "Fuse"}, "added_tokens": 7}',
    '{"model": {"type": "BPE", "vocab": {"a": 0}}, "decoder": {"type": "Fuse"}, "added_tokens": [7]}',
    '{"model": {"type": "BPE", "vocab": {"a": 0}}, "decoder": {"type": "Fuse"}, "added_tokens": [{"id": 1}]}',
    '{"model": {"type": "Unigram", "vocab": [["a", 0], [7, 0]]}, "decoder": {"type": "Fuse"}}',
    '{"model": {"type": "Unigram", "vocab": [["a", 0], []]}, "decoder": {"type": "Fuse"}}',
    '{"model": {"max_input_chars_per_word": 9, "vocab": {"a": 0}}, "decoder": {"type": "Fuse"}}',
    "[" * 100_000,
    '{"model": {"vocab": {"a": 1' + "0" * 5000 + "}}}",
]


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: text[:60])
def test_malformed_files(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(text)
    caught(file, eos_ids=[0])


def test_mutated_files(tmp_path: Path) -> None:
    """Whatever a file holds, it is read or refused by our error."""
    file = save(tmp_path) / "tokenizer.json"
    whole = json.loads(file.read_text("utf-8"))
    for mutant in mutants(whole):
        file.write_text(json.dumps(mutant), "utf-8")
        try:
            Vocabulary.from_tokenizer(file, eos_ids=[0])
        except VocabularyError as error:
            assert str(error)
    data = json.dumps(whole).encode()
    for end in range(0, len(data), 7):
        file.write_bytes(data[:end])
        caught(file, eos_ids=[0])
    file.write_bytes(data.replace(b"think", b"\xff\xfe"))
    assert "not valid JSON" in str(caught(file, eos_ids=[0]))


def mutants(value: Any) -> list[Any]:
    """The value with one part replaced, in every way and place."""
    found: list[Any] = [None, True, -1, 1.5, "x", [], {}, [value], {"type": value}]
    if isinstance(value, dict):
        for key, member in value.items():
            found += [{**value, key: mutant} for mutant in mutants(member)]
            found.append({k: v for k, v in value.items() if k != key})
    if isinstance(value, list):
        for i, member in enumerate(value):
            found += [[*value[:i], mutant, *value[i + 1 :]] for mutant in mutants(member)]
    return found


@pytest.mark.slow
def test_ten_thousand_damaged_files(tmp_path: Path) -> None:
    file, choose, read = save(tmp_path) / "tokenizer.json", random.Random(19), 0
    whole = json.dumps(json.loads(file.read_text("utf-8"))).encode()
    for _ in range(10_000):
        file.write_bytes(mutated(whole, choose))
        try:
            Vocabulary.from_tokenizer(file, eos_ids=[0])
            read += 1
        except VocabularyError as error:
            assert str(error)
    assert 200 < read < 9_000


def test_folders_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", denied)
    assert "cannot be read: Permission denied" in str(caught(tmp_path / "model", eos_ids=[0]))
    monkeypatch.undo()
    assert "no such file" in str(caught("a\0b", eos_ids=[0]))


def test_old_files_without_a_type(tmp_path: Path) -> None:
    save(tmp_path)
    data = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))
    del data["model"]["type"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    assert Vocabulary.from_tokenizer(tmp_path, eos_ids=[5]) == WHOLE


def foreign(module: str, name: str, **members: object) -> object:
    return type(name, (), {"__module__": module, **members})()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (foreign("tiktoken.core", "Encoding"), "Encoding of this version of tiktoken cannot be read"),
        (foreign("sentencepiece", "SentencePieceProcessor"), "this version of sentencepiece cannot be read"),
        (foreign("mistral_common.tokens.tokenizers.tekken", "Tekkenizer"), "this version of mistral_common"),
        (foreign("llama_cpp.llama", "Llama"), "Pass the path of the GGUF file"),
        (foreign("transformers.models.x", "XModel"), "XModel of transformers is no tokenizer"),
        (foreign("transformers.models.x", "XProcessor", tokenizer=None), "Pass processor.tokenizer"),
        ("model.gguf", "there is no such file"),
        ("meta-llama/Llama-3.1-8B", "transformers.AutoTokenizer"),
        ("", "there is no tokenizer.json, tekken.json or tokenizer.model"),
    ],
)
def test_refused_by_name(source: object, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in str(caught(source, eos_ids=[0]))


def test_folder_without_a_tokenizer(tmp_path: Path) -> None:
    error = caught(tmp_path)
    assert error.location == str(tmp_path) and "save_pretrained" in str(error)


def test_unreadable_files(tmp_path: Path) -> None:
    for content in (b"", b"GGUF", b"\n", b"1 'a' 1", b"YQ== 0\n", b"{}", b"\xff\xfe", b"PK\x03\x04", b"\0" * 9):
        (tmp_path / "file").write_bytes(content)
        caught(tmp_path / "file", eos_ids=[7])


@pytest.mark.parametrize("source", [None, 7, SimpleNamespace(), b"tokenizer.json", [b"a"], str.split])
def test_no_tokenizer(source: object) -> None:
    with pytest.raises(TypeError, match="not a tokenizer"):
        Vocabulary.from_tokenizer(source)


def test_custom_components_are_refused() -> None:
    class Shout:
        def decode_chain(self, tokens: list[str]) -> list[str]:
            return [token.upper() for token in tokens]

    made = make_tokenizer()
    made.decoder = decoders.Decoder.custom(Shout())
    assert "cannot be serialised" in str(caught(made, eos_ids=[5]))
