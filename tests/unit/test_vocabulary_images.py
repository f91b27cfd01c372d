"""Tables of vocabularies kept on disk: the same masks as those made anew, or not used at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import maskwright as mw
from maskwright import _core
from maskwright.compiler import CompiledGrammar
from maskwright.vocabulary import images, table

OLD = 1_700_000_000  # seconds; a file this old has settled
SCHEMAS = (
    {"type": "object", "properties": {"aa": {"type": "string", "maxLength": 9}, "ab": {"pattern": "^[a-f]{2,300}$"}}},
    {"type": "string", "minLength": 3, "pattern": "[0-9]"},
    {"enum": ["one", 2, None, ["three"]]},
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(folder))
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A tokenizer with so many tokens that its tables are worth keeping."""
    words = [f"{prefix}{n:x}" for n in range(4000) for prefix in ("", "Ġ", '"', "é")]
    vocab = {text: i for i, text in enumerate(dict.fromkeys([*map(chr, range(33, 127)), "Ġ", *words, "<eos>"]))}
    model = {"type": "BPE", "vocab": vocab, "merges": []}
    added = [{"id": vocab["<eos>"], "content": "<eos>", "special": True}]
    folder = tmp_path / "model"
    folder.mkdir()
    for name, data in (
        ("tokenizer.json", {"model": model, "decoder": {"type": "ByteLevel"}, "added_tokens": added}),
        ("generation_config.json", {"eos_token_id": vocab["<eos>"]}),
    ):
        (folder / name).write_text(json.dumps(data), "utf-8")
        os.utime(folder / name, (OLD, OLD))
    return folder


def forget(vocabulary: mw.Vocabulary) -> None:
    """As a new process: what was prepared for the vocabulary is not shared."""
    table._shared.pop(vocabulary.fingerprint, None)


def read(home: Path) -> mw.Vocabulary:
    vocabulary = mw.Vocabulary.from_tokenizer(home)
    forget(vocabulary)
    return vocabulary


def rows(vocabulary: mw.Vocabulary, schema: object) -> list[bytes]:
    """The masks along the texts that the lowest ids spell."""
    constraint = mw.JsonSchema(schema)  # type: ignore[arg-type]
    matcher = CompiledGrammar(constraint, vocabulary, constraint.plan(mw.CompileLimits())).matcher()
    row, out = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32), []
    for _ in range(12):
        matcher.fill_mask(row)
        out.append(row.tobytes())
        allowed = matcher.allowed_tokens()
        if matcher.is_accepting or not matcher.accept(allowed[len(allowed) // 2]):
            break
    return out


def test_tables_are_kept_and_used(home: Path, cache: Path) -> None:
    first = read(home)
    assert not first.core.is_from_image and len(list(cache.glob("tables-*"))) == 1
    second = read(home)
    assert second == first and second.core.is_from_image
    plain = mw.Vocabulary(first.tokens, first.eos_ids, first.special_ids)
    data = first._bytes
    plain._prepared = table._Prepared(_core.Vocab(data.blob, data.lengths, first.kinds, list(first.eos_ids)))
    assert not plain.core.is_from_image and plain.core.to_image("k") == second.core.to_image("k")
    assert [rows(second, schema) for schema in SCHEMAS] == [rows(plain, schema) for schema in SCHEMAS]


def test_another_process_uses_them(home: Path) -> None:
    _ = read(home).core
    program = f"import maskwright as mw; print(mw.Vocabulary.from_tokenizer({str(home)!r}).core.is_from_image)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "other"])
def test_what_is_no_image_is_written_anew(home: Path, cache: Path, damage: str) -> None:
    _ = read(home).core
    (place,) = cache.glob("tables-*")
    whole = place.read_bytes()
    middle = len(whole) // 2
    damaged = {
        "cut": whole[:middle],
        "changed": whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :],
        "empty": b"",
        "other": read(home).core.to_image("the key of another vocabulary"),
    }
    place.write_bytes(damaged[damage])
    assert not read(home).core.is_from_image
    assert place.read_bytes() == whole and read(home).core.is_from_image


def test_vocabularies_that_nobody_reads_again_leave_no_file(cache: Path) -> None:
    tokens = [bytes([b]) for b in range(256)] + [b"%x" % n for n in range(20000)] + [b"<end>"]
    made = mw.Vocabulary(tokens, eos_ids=[len(tokens) - 1])
    assert made.core.size == len(tokens) and not list(cache.glob("*"))


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(home: Path, cache: Path) -> None:
    cache.write_text("a file in the way of the folder")
    assert not read(home).core.is_from_image
    assert images.load("00") is None
    images.store("00", b"image")
