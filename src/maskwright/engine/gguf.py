"""Reads GGUF files: tensors and their dequantisation.

The format is that of ggml's ``docs/gguf.md`` (its head: :mod:`maskwright.vocabulary.gguf`);
the block layouts are those of ``ggml-common.h``. Only what a file declares is trusted,
and only after it has been compared with the size of the file: a truncated or
malformed file raises a :class:`~maskwright.MaskwrightError` that names the byte.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from maskwright.vocabulary.gguf import GgufReader, map_file, read_metadata, read_preamble

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = ["GgufFile", "GgufTensor", "read_gguf"]

_MAX_DIMENSIONS: Final = 4

_QUANTISATIONS: Final[dict[int, str]] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K",
    11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS",
    18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8",
    25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0",
    39: "MXFP4",
}  # fmt: skip


@dataclass(frozen=True)
class GgufTensor:
    """Where one tensor lies in the file.

    Attributes:
        name: its name, e.g. ``blk.0.attn_q.weight``.
        shape: in numpy's order (the file stores it reversed).
        quantisation: name of its block format, e.g. ``Q4_1``.
        start: offset of its first byte in the file.
        size: number of bytes.
    """

    name: str
    shape: tuple[int, ...]
    quantisation: str
    start: int
    size: int


@dataclass(frozen=True)
class GgufFile:
    """An opened file: its metadata, its tensors and the mapped bytes."""

    path: str
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]
    data: memoryview

    def load(self, name: str) -> NDArray[np.float32]:
        """The values of a tensor, dequantised to float32, in its shape."""
        tensor = self.tensors[name]
        block = _FORMATS[tensor.quantisation]
        raw = np.frombuffer(self.data, np.uint8, tensor.size, tensor.start)
        return block.decode(raw.reshape(-1, block.size)).reshape(tensor.shape)


def read_gguf(path: str | os.PathLike[str]) -> GgufFile:
    """Reads the header of a GGUF file and maps its tensors.

    Raises:
        MaskwrightError: if the file cannot be read, is not GGUF of version 2 or 3, is
            truncated or inconsistent, or holds a quantisation without a decoder here.
    """
    shown = os.fspath(path)
    data = map_file(path)
    reader = GgufReader(data, Path(shown).name)
    tensor_count, metadata_count = read_preamble(reader)
    metadata = read_metadata(reader, metadata_count)
    tensors = _read_tensors(reader, tensor_count, metadata)
    return GgufFile(shown, metadata, tensors, data)


def _read_tensors(reader: GgufReader, count: int, metadata: Mapping[str, Any]) -> dict[str, GgufTensor]:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0 or alignment % 8:
        raise reader.fail(f"general.alignment is {alignment!r}, not a positive multiple of 8")
    heads = []
    names = set()
    for _ in range(count):
        start = reader.offset
        head = _read_tensor_head(reader)
        if head[0] in names:
            raise reader.fail(f"the tensor {head[0]!r} occurs twice", start)
        names.add(head[0])
        heads.append(head)
    base = -(-reader.offset // alignment) * alignment
    return {head[0]: _place(reader, base, alignment, *head) for head in heads}


def _read_tensor_head(reader: GgufReader) -> tuple[str, tuple[int, ...], int, int]:
    name = reader.string()
    rank = reader.u32()
    if not 1 <= rank <= _MAX_DIMENSIONS:
        raise reader.fail(f"the tensor {name!r} has {rank} dimensions")
    dimensions = [reader.u64() for _ in range(rank)]
    return name, tuple(reversed(dimensions)), reader.u32(), reader.u64()


def _place(
    reader: GgufReader, base: int, alignment: int, name: str, shape: tuple[int, ...], code: int, offset: int
) -> GgufTensor:
    quantisation = _QUANTISATIONS.get(code, f"type {code}")
    block = _FORMATS.get(quantisation)
    if block is None:
        raise reader.fail(
            f"the tensor {name!r} is stored as {quantisation}, which is not decoded here "
            f"(decoded: {', '.join(_FORMATS)})"
        )
    if math.prod(shape) == 0 or shape[-1] % block.values:
        raise reader.fail(f"the tensor {name!r} has shape {shape}, but {quantisation} has rows of {block.values}n")
    size = math.prod(shape) // block.values * block.size
    start = base + offset
    if offset % alignment or start + size > len(reader.data):
        raise reader.fail(
            f"the tensor {name!r} should lie at bytes {start} to {start + size}, "
            f"the file has {len(reader.data)} (truncated?)"
        )
    return GgufTensor(name, shape, quantisation, start, size)


@dataclass(frozen=True)
class _Format:
    """A block format: ``values`` numbers in ``size`` bytes, decoded ``(n, size) -> (n, values)``."""

    values: int
    size: int
    decode: Callable[[NDArray[np.uint8]], NDArray[np.float32]]


def _half(raw: NDArray[np.uint8], start: int) -> NDArray[np.float32]:
    """The float16 at byte ``start`` of each block, as a column."""
    return np.ascontiguousarray(raw[:, start : start + 2]).view("<f2").astype(np.float32)


def _nibbles(raw: NDArray[np.uint8], start: int) -> NDArray[np.uint8]:
    """The 32 four-bit numbers at bytes ``start..start+16``: low halves, then high halves."""
    packed = raw[:, start : start + 16]
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def _fifth_bits(raw: NDArray[np.uint8], start: int) -> NDArray[np.uint8]:
    """The 32 bits at bytes ``start..start+4``, each moved to where the fifth bit of a number is."""
    return np.unpackbits(raw[:, start : start + 4], axis=1, bitorder="little") << np.uint8(4)


def _floats(dtype: str) -> Callable[[NDArray[np.uint8]], NDArray[np.float32]]:
    return lambda raw: np.ascontiguousarray(raw).view(dtype).astype(np.float32)


def _bf16(raw: NDArray[np.uint8]) -> NDArray[np.float32]:
    return (np.ascontiguousarray(raw).view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q4_0(raw: NDArray[np.uint8]) -> NDArray[np.float32]:
    return (_nibbles(raw, 2).astype(np.float32) - 8) * _half(raw, 0)


def _q4_1(raw: NDArray[np.uint8]) -> NDArray[np.float32]:
    return _nibbles(raw, 4).astype(np.float32) * _half(raw, 0) + _half(raw, 2)


def _q5_0(raw: NDArray[np.uint8]) -> NDArray[np.float32]:
    numbers = _nibbles(raw, 6) | _fifth_bits(raw, 2)
    return (numbers.astype(np.float32) - 16) * _half(raw, 0)


def _q5_1(raw: NDArray[np.uint8]) -> NDArray[np.float32]:
    numbers = _nibbles(raw, 8) | _fifth_bits(raw, 4)
    return numbers.astype(np.float32) * _half(raw, 0) + _half(raw, 2)


def _q8_0(raw: NDArray[np.uint8]) -> NDArray[np.float32]:
    return raw[:, 2:].view(np.int8).astype(np.float32) * _half(raw, 0)


def _q6_k(raw: NDArray[np.uint8]) -> NDArray[np.float32]:
    """256 numbers: 128 bytes of low nibbles, 64 of upper bit pairs, 16 scales, one float16."""
    count = len(raw)
    low = raw[:, :128].reshape(count, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(count, 2, 4, 32)
    high = raw[:, 128:192].reshape(count, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    numbers = (low | (high & 3) << 4).reshape(count, 16, 16).astype(np.float32) - 32
    scales = raw[:, 192:208].view(np.int8).astype(np.float32) * _half(raw, 208)
    scaled: NDArray[np.float32] = numbers * scales[:, :, None]
    return scaled.reshape(count, 256)


_FORMATS: Final[dict[str, _Format]] = {
    "F32": _Format(1, 4, _floats("<f4")),
    "F16": _Format(1, 2, _floats("<f2")),
    "BF16": _Format(1, 2, _bf16),
    "Q4_0": _Format(32, 18, _q4_0),
    "Q4_1": _Format(32, 20, _q4_1),
    "Q5_0": _Format(32, 22, _q5_0),
    "Q5_1": _Format(32, 24, _q5_1),
    "Q8_0": _Format(32, 34, _q8_0),
    "Q6_K": _Format(256, 210, _q6_k),
}
