"""Vocabularies kept on disk: the same as read anew, or not used at all."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from maskwright import Vocabulary, VocabularyError
from maskwright.vocabulary import prepared
from mutation import mutated

OLD = 1_700_000_000  # seconds; a file this old has settled


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(folder))
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    return write(folder)


def write(folder: Path, texts: tuple[str, ...] = ("a", "b", "Ġ"), eos: object = 4, when: float = OLD) -> Path:
    model = {"type": "BPE", "vocab": {text: i for i, text in enumerate(texts)}, "merges": []}
    added = [{"id": 4, "content": "<eos>", "special": True}, {"id": 6, "content": "<think>", "special": False}]
    save(folder / "tokenizer.json", {"model": model, "decoder": {"type": "ByteLevel"}, "added_tokens": added}, when)
    save(folder / "generation_config.json", {"eos_token_id": eos}, when)
    return folder


def save(path: Path, data: object, when: float = OLD) -> None:
    path.write_text(json.dumps(data), "utf-8")
    os.utime(path, (when, when))


class Reads:
    """Counts how often a tokenizer itself is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self._read = 0, prepared.read_source
        monkeypatch.setattr(prepared, "read_source", self)

    def __call__(self, tokenizer: object) -> Any:
        self.count += 1
        return self._read(tokenizer)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


WHOLE = Vocabulary([b"a", b"b", b" ", b"", b"<eos>", b"", b"<think>"], eos_ids=[4])


def test_the_second_time_nothing_is_read(home: Path, reads: Reads, cache: Path) -> None:
    for path in (home, str(home), home, home / "tokenizer.json", home / "tokenizer.json"):
        found = Vocabulary.from_tokenizer(path)
        assert found == WHOLE and found.fingerprint == WHOLE.fingerprint and found.tokens == WHOLE.tokens
        assert found.special_ids == WHOLE.special_ids and found.kinds == WHOLE.kinds and found.core.size == 7
        assert found.decode([0, 2, 6]) == b"a <think>"
    assert reads.count == 2 and len(list(cache.iterdir())) == 2


def test_what_the_caller_says_still_wins(home: Path, reads: Reads) -> None:
    for _ in range(2):
        assert Vocabulary.from_tokenizer(home, eos_ids=[1]).special_ids == {1, 4}
        assert Vocabulary.from_tokenizer(home, special_ids=[0]).special_ids == {0, 4}
        with pytest.raises(VocabularyError, match="no token with this EOS id"):
            Vocabulary.from_tokenizer(home, eos_ids=[5])
    assert reads.count == 1


@pytest.mark.parametrize(
    ("eos", "said"), [(None, r"as eos_ids=\[4\] for '<eos>'"), (5, "has no token for"), ("x", "neither an id")]
)
def test_a_missing_or_wrong_declaration_is_an_error_each_time(home: Path, eos: object, said: str) -> None:
    write(home, eos=eos)
    for _ in range(3):
        with pytest.raises(VocabularyError, match=said):
            Vocabulary.from_tokenizer(home)
        assert Vocabulary.from_tokenizer(home, eos_ids=[4]) == WHOLE


def test_changed_files_are_read_again(home: Path, reads: Reads) -> None:
    assert Vocabulary.from_tokenizer(home) == WHOLE
    write(home, ("a", "c", "Ġ"), when=OLD + 1)  # the same size
    assert Vocabulary.from_tokenizer(home).tokens[1] == b"c"
    write(home, ("a", "cc", "Ġ"), when=OLD + 1)  # the same time
    assert Vocabulary.from_tokenizer(home).tokens[1] == b"cc"
    save(home / "config.json", {})
    assert Vocabulary.from_tokenizer(home).tokens[1] == b"cc"
    save(home / "tokenizer_config.json", {"pad_token": "a"})
    assert Vocabulary.from_tokenizer(home).special_ids == {0, 4}
    (home / "tokenizer_config.json").unlink()
    assert Vocabulary.from_tokenizer(home).special_ids == {4}
    assert reads.count == 6
    (home / "tokenizer.json").unlink()
    with pytest.raises(VocabularyError, match="there is no tokenizer"):
        Vocabulary.from_tokenizer(home)


def test_files_that_may_still_change_are_not_kept(home: Path, cache: Path) -> None:
    (home / "tokenizer.json").touch()
    for text in "bcd":
        write(home, ("a", text, "Ġ"), when=(home / "tokenizer.json").stat().st_mtime)
        assert Vocabulary.from_tokenizer(home).tokens[1] == text.encode()
    assert not cache.exists()


def test_files_that_change_while_they_are_read_are_not_kept(
    home: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = prepared.read_source

    def slow(tokenizer: object) -> Any:
        source = read(tokenizer)
        write(home, ("a", "c", "Ġ"), when=OLD + 1)
        return source

    monkeypatch.setattr(prepared, "read_source", slow)
    Vocabulary.from_tokenizer(home)
    assert not cache.exists()


def test_relative_paths(home: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    other = home.parent / "other"
    other.mkdir()
    write(other, ("a", "c", "Ġ"))
    for folder, text in ((home, b"b"), (other, b"c"), (home, b"b"), (other, b"c")):
        monkeypatch.chdir(folder)
        assert Vocabulary.from_tokenizer("tokenizer.json").tokens[1] == text
    assert reads.count == 2


def kept(cache: Path) -> Path:
    (file,) = cache.iterdir()
    return file


def test_damaged_files_are_written_anew(home: Path, cache: Path, reads: Reads) -> None:
    Vocabulary.from_tokenizer(home)
    file = kept(cache)
    whole, choose = file.read_bytes(), random.Random(11)
    damaged = [whole[:end] for end in range(0, len(whole), 9)]
    damaged += [whole + b"\0", whole[::-1], b"\0" * len(whole), whole.replace(b"vocabulary 1", b"vocabulary 0")]
    damaged += [mutated(whole, choose) for _ in range(100)]
    for data in damaged:
        file.write_bytes(data)
        before = reads.count
        assert Vocabulary.from_tokenizer(home) == WHOLE
        assert file.read_bytes() == whole and reads.count == before + (data != whole)


@pytest.mark.slow
def test_ten_thousand_damaged_files(home: Path, cache: Path) -> None:
    Vocabulary.from_tokenizer(home)
    file = kept(cache)
    whole, choose = file.read_bytes(), random.Random(13)
    for _ in range(10_000):
        file.write_bytes(mutated(whole, choose))
        assert Vocabulary.from_tokenizer(home) == WHOLE


def test_foreign_files_are_ignored(home: Path, cache: Path) -> None:
    """A file of another tokenizer under this one's name."""
    Vocabulary.from_tokenizer(home)
    own = kept(cache)
    other = home.parent / "other"
    other.mkdir()
    Vocabulary.from_tokenizer(write(other, ("x", "y", "Ġ")))
    (foreign,) = set(cache.iterdir()) - {own}
    own.write_bytes(foreign.read_bytes())
    assert Vocabulary.from_tokenizer(home) == WHOLE
    own.unlink()
    own.mkdir()
    assert Vocabulary.from_tokenizer(home) == WHOLE


def test_the_cache_may_be_out_of_reach(home: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write_text("a file where the folder should be")
    assert Vocabulary.from_tokenizer(home) == WHOLE

    def nowhere() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(prepared, "cache_directory", nowhere)
    assert Vocabulary.from_tokenizer(home) == WHOLE


def test_nothing_is_left_behind_where_writing_fails(home: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    assert Vocabulary.from_tokenizer(home) == WHOLE
    assert list(cache.iterdir()) == []


def test_many_writers(home: Path, cache: Path) -> None:
    """Whoever reads while others write sees a whole file."""
    wrong: list[object] = []

    def work() -> None:
        for _ in range(30):
            for file in cache.glob("*.bin"):
                file.unlink(missing_ok=True)
            if Vocabulary.from_tokenizer(home) != WHOLE:
                wrong.append(None)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(list(cache.iterdir())) == 1


def test_other_processes_find_it(home: Path, cache: Path) -> None:
    code = "import sys; from maskwright import Vocabulary; print(Vocabulary.from_tokenizer(sys.argv[1]).fingerprint)"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code, str(home)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == WHOLE.fingerprint
        assert kept(cache).is_file()
