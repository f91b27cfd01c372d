"""Writes small GGUF files, independently of the reader."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 4, 5, 6, 7, 8, 9, 10
_FORMS = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?", UINT64: "<Q"}
ALIGNMENT = 32


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_of(value: Any) -> tuple[int, bytes]:
    """The type code and bytes of a metadata value."""
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return UINT32, struct.pack("<I", value)
    if isinstance(value, float):
        return FLOAT32, struct.pack("<f", value)
    if isinstance(value, str):
        return STRING, text(value)
    items = [value_of(item) for item in value]
    code = items[0][0] if items else UINT32
    return ARRAY, struct.pack("<IQ", code, len(items)) + b"".join(data for _, data in items)


def gguf_bytes(
    metadata: dict[str, Any], tensors: dict[str, tuple[tuple[int, ...], int, bytes]], *, version: int = 3
) -> bytes:
    """A file. Tensors are ``name: (shape in numpy's order, type code, data)``."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata.items():
        code, data = value_of(value)
        head += text(key) + struct.pack("<I", code) + data
    body = b""
    for name, (shape, code, data) in tensors.items():
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += struct.pack("<IQ", code, len(body))
        body += data + bytes(-len(data) % ALIGNMENT)
    return head + bytes(-len(head) % ALIGNMENT) + body


def float_tensor(array: np.ndarray) -> tuple[tuple[int, ...], int, bytes]:
    return array.shape, 0, array.astype("<f4").tobytes()


TINY = {"layers": 2, "embedding": 32, "heads": 4, "kv_heads": 2, "forward": 48, "context": 64}


def tiny_tokenizer() -> dict[str, Any]:
    """All bytes in GPT-2's order, two merges, two control tokens."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [*map(chr, printable), *(chr(0x100 + index) for index in range(256 - len(printable)))]
    tokens = [*letters, "th", "the", "<|im_start|>", "<|im_end|>"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * 258 + [3, 3],
        "tokenizer.ggml.merges": ["t h", "th e"],
        "tokenizer.ggml.bos_token_id": 258,
        "tokenizer.ggml.eos_token_id": 259,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>"
        "{% endfor %}{{ '<|im_start|>assistant\n' }}",
    }


def tiny_llama(seed: int = 0) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Metadata and float32 tensors of a random Llama with tied embeddings."""
    sizes = TINY
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": sizes["layers"],
        "llama.context_length": sizes["context"],
        "llama.embedding_length": sizes["embedding"],
        "llama.feed_forward_length": sizes["forward"],
        "llama.attention.head_count": sizes["heads"],
        "llama.attention.head_count_kv": sizes["kv_heads"],
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 1000.0,
        **tiny_tokenizer(),
    }
    random = np.random.default_rng(seed)
    embedding, forward = sizes["embedding"], sizes["forward"]
    keys = embedding // sizes["heads"] * sizes["kv_heads"]
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (260, embedding), "output_norm.weight": (embedding,)}
    for block in range(sizes["layers"]):
        for name, shape in {
            "attn_norm": (embedding,), "attn_q": (embedding, embedding), "attn_k": (keys, embedding),
            "attn_v": (keys, embedding), "attn_output": (embedding, embedding), "ffn_norm": (embedding,),
            "ffn_gate": (forward, embedding), "ffn_up": (forward, embedding), "ffn_down": (embedding, forward),
        }.items():  # fmt: skip
            shapes[f"blk.{block}.{name}.weight"] = shape
    tensors = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    return metadata, tensors


def tiny_llama_bytes(changes: dict[str, Any] | None = None, drop: tuple[str, ...] = ()) -> bytes:
    """The file of :func:`tiny_llama`, with some metadata changed and keys or tensors dropped."""
    metadata, tensors = tiny_llama()
    metadata = {key: value for key, value in (metadata | (changes or {})).items() if key not in drop}
    return gguf_bytes(metadata, {name: float_tensor(array) for name, array in tensors.items() if name not in drop})
