"""The GGUF reader: values, dequantisation, and files that lie."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.gguf_files import gguf_bytes, text, tiny_llama_bytes, tiny_tokenizer
from maskwright import MaskwrightError, VocabularyError
from maskwright.engine.gguf import read_gguf
from maskwright.engine.gguf_tokenizer import read_tokenizer


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    def writer(data: bytes) -> Path:
        path = tmp_path / "model.gguf"
        path.write_bytes(data)
        return path

    return writer


def test_metadata_of_every_kind(write: Callable[[bytes], Path]) -> None:
    metadata = {
        "int": 7, "float": 0.5, "yes": True, "no": False, "text": "naïve", "empty": "",
        "ints": [1, 2, 3], "floats": [0.5, -1.0], "bools": [True, False], "texts": ["a", ""], "none": [],
        "nested": [[1], [2, 3]],
    }  # fmt: skip
    assert read_gguf(write(gguf_bytes(metadata, {}))).metadata == metadata


@pytest.mark.parametrize("version", [2, 3])
def test_versions(write: Callable[[bytes], Path], version: int) -> None:
    assert read_gguf(write(gguf_bytes({"a": 1}, {}, version=version))).metadata == {"a": 1}


def half(data: bytes) -> float:
    return float(struct.unpack("<e", data)[0])


def q4_0(block: bytes) -> list[float]:
    numbers = [byte & 15 for byte in block[2:]] + [byte >> 4 for byte in block[2:]]
    return [half(block[:2]) * (number - 8) for number in numbers]


def q4_1(block: bytes) -> list[float]:
    numbers = [byte & 15 for byte in block[4:]] + [byte >> 4 for byte in block[4:]]
    return [half(block[:2]) * number + half(block[2:4]) for number in numbers]


def fives(high: bytes, low: bytes) -> list[int]:
    bits = int.from_bytes(high, "little")
    numbers = [byte & 15 for byte in low] + [byte >> 4 for byte in low]
    return [number | (bits >> index & 1) << 4 for index, number in enumerate(numbers)]


def q5_0(block: bytes) -> list[float]:
    return [half(block[:2]) * (number - 16) for number in fives(block[2:6], block[6:])]


def q5_1(block: bytes) -> list[float]:
    return [half(block[:2]) * number + half(block[2:4]) for number in fives(block[4:8], block[8:])]


def q8_0(block: bytes) -> list[float]:
    return [half(block[:2]) * number for number in struct.unpack("<32b", block[2:])]


def q6_k(block: bytes) -> list[float]:
    """The loops of ``dequantize_row_q6_K`` in ggml-quants.c."""
    result = [0.0] * 256
    scale = half(block[208:])
    scales = struct.unpack("<16b", block[192:208])
    for part in range(2):
        low, high, scaled = block[64 * part :], block[128 + 32 * part :], scales[8 * part :]
        for index in range(32):
            numbers = [
                low[index] & 15 | (high[index] & 3) << 4,
                low[index + 32] & 15 | (high[index] >> 2 & 3) << 4,
                low[index] >> 4 | (high[index] >> 4 & 3) << 4,
                low[index + 32] >> 4 | (high[index] >> 6 & 3) << 4,
            ]
            for group, number in enumerate(numbers):
                value = scale * scaled[index // 16 + 2 * group] * (number - 32)
                result[128 * part + index + 32 * group] = value
    return result


def bf16(block: bytes) -> list[float]:
    return [struct.unpack("<f", b"\0\0" + block)[0]]


@pytest.mark.parametrize(
    ("code", "values", "size", "reference"),
    [
        (0, 1, 4, lambda block: list(struct.unpack("<f", block))),
        (1, 1, 2, lambda block: [half(block)]),
        (30, 1, 2, bf16),
        (2, 32, 18, q4_0),
        (3, 32, 20, q4_1),
        (6, 32, 22, q5_0),
        (7, 32, 24, q5_1),
        (8, 32, 34, q8_0),
        (14, 256, 210, q6_k),
    ],
)
def test_dequantisation_equals_loops_over_numbers(
    write: Callable[[bytes], Path], code: int, values: int, size: int, reference: Callable[[bytes], list[float]]
) -> None:
    rows, blocks = 3, 4
    data = random.Random(code).randbytes(rows * blocks * size)
    file = read_gguf(write(gguf_bytes({}, {"other": ((1,), 0, b"abcd"), "w": ((rows, blocks * values), code, data)})))
    got = file.load("w")
    expected = [number for start in range(0, len(data), size) for number in reference(data[start : start + size])]
    assert got.shape == (rows, blocks * values)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got.ravel(), np.array(expected, np.float32), rtol=1e-6)


def raw(metadata: bytes = b"", tensors: bytes = b"", counts: tuple[int, int] = (0, 0)) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, *counts) + metadata + tensors


def tensor(name: str, dimensions: tuple[int, ...], code: int, offset: int = 0) -> bytes:
    rank = len(dimensions)
    return text(name) + struct.pack(f"<I{rank}QIQ", rank, *dimensions, code, offset)


HUGE = 1 << 62


@pytest.mark.parametrize(
    ("data", "message", "location"),
    [
        (b"", "4 more bytes are announced, 0 are there", "byte 0"),
        (b"GGML" + bytes(20), "does not begin with 'GGUF'", "byte 0"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1 is not 2 or 3", "byte 4"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian", "byte 4"),
        (raw(counts=(0, HUGE)), "8 more bytes", "byte 24"),
        (raw(counts=(HUGE, 0)), "8 more bytes", "byte 24"),
        (raw(struct.pack("<Q", HUGE), counts=(0, 1)), f"{HUGE} more bytes", "byte 32"),
        (raw(struct.pack("<Q", 1) + b"\xff", counts=(0, 1)), "not UTF-8", "byte 32"),
        (raw(text("a") + struct.pack("<I", 99), counts=(0, 1)), "unknown value type 99", "byte 37"),
        (raw(text("a") + struct.pack("<IIQ", 9, 8, HUGE), counts=(0, 1)), "more bytes", "byte 49"),
        (raw(text("a") + struct.pack("<IIQ", 9, 6, HUGE), counts=(0, 1)), "more bytes", "byte 49"),
        (raw(text("a") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 20, counts=(0, 1)), "deeper", "byte"),
        (raw(2 * (text("a") + struct.pack("<II", 4, 1)), counts=(0, 2)), "'a' occurs twice", "byte 41"),
        (raw(text("general.alignment") + struct.pack("<II", 4, 0), counts=(0, 1)), "alignment is 0", "byte 57"),
        (raw(tensors=tensor("w", (), 0), counts=(1, 0)), "0 dimensions", "byte"),
        (raw(tensors=tensor("w", (1,) * 5, 0), counts=(1, 0)), "5 dimensions", "byte"),
        (raw(tensors=tensor("w", (1,), 12), counts=(1, 0)), "stored as Q4_K, which is not decoded", "byte"),
        (raw(tensors=tensor("w", (1,), 77), counts=(1, 0)), "stored as type 77", "byte"),
        (raw(tensors=tensor("w", (31,), 3), counts=(1, 0)), "rows of 32n", "byte"),
        (raw(tensors=tensor("w", (0,), 0), counts=(1, 0)), r"shape \(0,\)", "byte"),
        (raw(tensors=tensor("w", (HUGE, HUGE), 0), counts=(1, 0)), "should lie at", "byte"),
        (raw(tensors=tensor("w", (1,), 0, HUGE), counts=(1, 0)), "should lie at", "byte"),
        (raw(tensors=2 * tensor("w", (1,), 0) + bytes(200), counts=(2, 0)), "'w' occurs twice", "byte"),
        (raw(tensors=tensor("w", (1,), 0, 1) + bytes(200), counts=(1, 0)), "should lie at", "byte"),
    ],
)
def test_malformed_files(write: Callable[[bytes], Path], data: bytes, message: str, location: str) -> None:
    with pytest.raises(MaskwrightError, match=message) as caught:
        read_gguf(write(data))
    assert caught.value.location is not None
    assert caught.value.location.startswith(location)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MaskwrightError, match="cannot read"):
        read_gguf(tmp_path / "none.gguf")
    with pytest.raises(MaskwrightError, match="cannot read"):
        read_gguf(tmp_path)


def test_every_truncation_is_refused(write: Callable[[bytes], Path]) -> None:
    tensors = {"w": ((2, 32), 3, bytes(40)), "v": ((3,), 0, bytes(12))}
    data = gguf_bytes({"a": 1, "b": ["x", "yz"], "c": [1.0, 2.0]}, tensors)
    needed = len(data) - 20  # behind the last tensor there is padding
    for size in range(needed):
        with pytest.raises(MaskwrightError):
            read_gguf(write(data[:size]))
    read_gguf(write(data[:needed]))


def test_changed_bytes_never_escape_our_errors(write: Callable[[bytes], Path]) -> None:
    source = random.Random(7)
    data = tiny_llama_bytes()
    header = data.index(b"token_embd") + 2000
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(source.randint(1, 4)):
            changed[source.randrange(header)] = source.choice([0, 1, 4, 8, 9, 127, 128, 255, source.randrange(256)])
        try:
            file = read_gguf(write(bytes(changed)))
            for name in file.tensors:
                file.load(name)
            read_tokenizer(file.metadata)
        except MaskwrightError as error:
            assert error.location


def test_the_tokenizer_gives_back_any_text() -> None:
    source = read_tokenizer(tiny_tokenizer())
    vocabulary = source.vocabulary
    assert vocabulary.eos_ids == (259,)
    assert vocabulary.special_ids == frozenset({258, 259})
    assert vocabulary.is_byte_complete
    for sample in ["", "the then", "12 naïve\n\t日本 🙂"]:
        ids = source.tokenizer.encode(sample).ids
        assert b"".join(vocabulary.tokens[token] for token in ids).decode() == sample
    assert source.tokenizer.encode("the<|im_end|>th").ids == [257, 259, 256]


def test_digits_are_set_apart_for_smollm_only() -> None:
    metadata = tiny_tokenizer()
    metadata["tokenizer.ggml.tokens"] = [*metadata["tokenizer.ggml.tokens"], "12"]
    metadata["tokenizer.ggml.token_type"] = [*metadata["tokenizer.ggml.token_type"], 1]
    metadata["tokenizer.ggml.merges"] = ["1 2"]
    assert len(read_tokenizer(metadata).tokenizer.encode("12").ids) == 2
    assert len(read_tokenizer(metadata | {"tokenizer.ggml.pre": "gpt-2"}).tokenizer.encode("12").ids) == 1


@pytest.mark.parametrize(
    ("changes", "message", "location"),
    [
        ({"tokenizer.ggml.pre": "llama-bpe"}, "pre-tokenizer 'llama-bpe'", "tokenizer.ggml.pre"),
        ({"tokenizer.ggml.model": "llama"}, "the tokenizer is 'llama'", "tokenizer.ggml.pre"),
        ({"tokenizer.ggml.model": None}, "missing", "tokenizer.ggml.model"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "more than strings", "tokenizer.ggml.tokens"),
        ({"tokenizer.ggml.tokens": ["a"] * 260}, "occurs twice", "tokenizer.ggml.tokens"),
        ({"tokenizer.ggml.token_type": [1]}, "260 tokens have 1 types", "tokenizer.ggml.token_type"),
        ({"tokenizer.ggml.merges": ["t h", "q x"]}, "merge 1 .* does not join", "tokenizer.ggml.merges"),
        ({"tokenizer.ggml.eos_token_id": 260}, "token 260 does not exist", "tokenizer.ggml.eos_token_id"),
        ({"tokenizer.ggml.eos_token_id": "x"}, "of type str, expected int", "tokenizer.ggml.eos_token_id"),
    ],
)
def test_tokenizers_that_are_not_read(changes: dict[str, object], message: str, location: str) -> None:
    metadata = {key: value for key, value in (tiny_tokenizer() | changes).items() if value is not None}
    with pytest.raises(VocabularyError, match=message) as caught:
        read_tokenizer(metadata)
    assert caught.value.location == location


def test_no_end_of_text_is_refused() -> None:
    metadata = tiny_tokenizer()
    del metadata["tokenizer.ggml.eos_token_id"]
    with pytest.raises(VocabularyError, match="no token ends a text"):
        read_tokenizer(metadata)
