"""Weights of a GGUF file as torch tensors, converted once and kept on disk.

The converted tensors lie in a safetensors file below ``$MASKWRIGHT_CACHE`` (default
``~/.cache/maskwright``) and are mapped into memory: later loads take no time for it, and
processes that load the same model share the pages. Nothing there is trusted: a file that
is not exactly what the conversion would write is written anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from tqdm import tqdm

from maskwright._files import cache_directory
from maskwright.engine.llama import LlamaConfig, join_weights
from maskwright.errors import MaskwrightError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from maskwright.engine.gguf import GgufFile

__all__ = ["load_weights", "read_config"]

# Raised whenever the conversion changes, so that files of older releases are left alone.
_CONVERSION: Final = "maskwright-weights-1"


def read_config(file: GgufFile) -> LlamaConfig:
    """The sizes of the Llama in a file, checked against its tensors.

    Raises:
        MaskwrightError: another architecture, a key that is missing or senseless, a variant
            (rotary scaling, biases, experts) that the network here does not compute, or a
            tensor of another shape than the sizes ask for.
    """
    metadata = file.metadata
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise _refuse(file, f"its architecture is {architecture!r}, only 'llama' is run here", "general.architecture")
    scaling = metadata.get("llama.rope.scaling.type", "none")
    if scaling != "none":
        raise _refuse(file, f"rotary scaling {scaling!r} is not computed here", "llama.rope.scaling.type")
    heads = _size(file, "llama.attention.head_count")
    embedding = _size(file, "llama.embedding_length")
    head_size = _size(file, "llama.rope.dimension_count", embedding // heads)
    vocab = file.tensors["token_embd.weight"].shape[0] if "token_embd.weight" in file.tensors else 0
    config = LlamaConfig(
        vocab_size=_size(file, "llama.vocab_size", vocab),
        context_length=_size(file, "llama.context_length"),
        embedding_length=embedding,
        block_count=_size(file, "llama.block_count"),
        feed_forward_length=_size(file, "llama.feed_forward_length"),
        head_count=heads,
        head_count_kv=_size(file, "llama.attention.head_count_kv", heads),
        head_size=head_size,
        rope_freq_base=_number(file, "llama.rope.freq_base", 10000.0),
        rms_epsilon=_number(file, "llama.attention.layer_norm_rms_epsilon"),
        tied="output.weight" not in file.tensors,
    )
    if heads % config.head_count_kv or head_size % 2:
        raise _refuse(file, "its head counts do not divide", "llama.attention.head_count_kv")
    if config.block_count > len(file.tensors):
        raise _refuse(file, f"it announces {config.block_count} blocks", "llama.block_count")
    _check_shapes(file, config)
    return config


def load_weights(file: GgufFile, config: LlamaConfig, dtype: torch.dtype, progress: bool | None) -> dict[str, Tensor]:
    """The tensors of :func:`maskwright.engine.llama.join_weights`, from the cache where it has them.

    Args:
        file: the file.
        config: from :func:`read_config`.
        dtype: of the result.
        progress: show a progress bar while converting; None: on a terminal only.
    """
    key = _fingerprint(file, dtype)
    place = cache_directory() / f"{Path(file.path).stem}-{key[:16]}.safetensors"
    weights = _read_cache(place, key, _joined_shapes(config), dtype)
    if weights is None:
        weights = _convert(file, config, dtype, progress)
        _write_cache(place, key, weights)
    return weights


def _convert(file: GgufFile, config: LlamaConfig, dtype: torch.dtype, progress: bool | None) -> dict[str, Tensor]:
    def load(name: str) -> Tensor:
        tensor = torch.from_numpy(file.load(name)).to(dtype)
        if bar is not None:
            bar.update()
        return tensor

    shown = sys.stderr.isatty() if progress is None else progress
    # Not tqdm's own `disable`, with which it starts its monitor thread all the same.
    bar = tqdm(total=len(file.tensors), desc="Converting weights", unit="tensor") if shown else None
    with bar or contextlib.nullcontext():
        return dict(join_weights(config, load))


def _fingerprint(file: GgufFile, dtype: torch.dtype) -> str:
    """Content, not time stamps: a reinstalled package finds its conversion again."""
    digest = hashlib.sha256(f"{_CONVERSION} {dtype} ".encode())
    digest.update(file.data)
    return digest.hexdigest()


def _read_cache(
    place: Path, key: str, shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype
) -> dict[str, Tensor] | None:
    """The tensors of a cache file, or None if it is missing, damaged or not ours."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(place, framework="pt") as opened:
            if (opened.metadata() or {}).get("key") != key or set(opened.keys()) != set(shapes):
                return None
            weights: dict[str, Tensor] = {name: opened.get_tensor(name) for name in shapes}
    except (OSError, SafetensorError):
        return None
    matches = all(weights[name].shape == shape and weights[name].dtype == dtype for name, shape in shapes.items())
    return weights if matches else None


def _write_cache(place: Path, key: str, weights: dict[str, Tensor]) -> None:
    """Writes a cache file whole or not at all; a full or read-only disk only costs the next load."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    scratch = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(prefix=place.stem, suffix=".tmp", dir=place.parent)
        os.close(handle)
        save_file(weights, scratch, metadata={"key": key, "conversion": _CONVERSION})
        Path(scratch).replace(place)
        scratch = None
    except (OSError, SafetensorError):
        pass
    finally:
        if scratch is not None:
            with contextlib.suppress(OSError):
                Path(scratch).unlink()


def _file_shapes(config: LlamaConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor that a file must have."""
    embedding, forward = config.embedding_length, config.feed_forward_length
    queries, keys = config.head_count * config.head_size, config.head_count_kv * config.head_size
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (config.vocab_size, embedding),
        "output_norm.weight": (embedding,),
    }
    if not config.tied:
        shapes["output.weight"] = (config.vocab_size, embedding)
    block: dict[str, tuple[int, ...]] = {
        "attn_norm": (embedding,), "attn_q": (queries, embedding), "attn_k": (keys, embedding),
        "attn_v": (keys, embedding), "attn_output": (embedding, queries), "ffn_norm": (embedding,),
        "ffn_gate": (forward, embedding), "ffn_up": (forward, embedding), "ffn_down": (embedding, forward),
    }  # fmt: skip
    for index in range(config.block_count):
        shapes.update({f"blk.{index}.{name}.weight": shape for name, shape in block.items()})
    return shapes


def _joined_shapes(config: LlamaConfig) -> dict[str, tuple[int, ...]]:
    shapes = _file_shapes(config)
    return {
        name: tensor.shape
        for name, tensor in join_weights(config, lambda name: torch.empty(shapes[name], device="meta"))
    }


def _check_shapes(file: GgufFile, config: LlamaConfig) -> None:
    shapes = _file_shapes(config)
    for name, shape in shapes.items():
        found = file.tensors[name].shape if name in file.tensors else None
        if found != shape:
            what = "is missing" if found is None else f"has shape {found}"
            raise _refuse(file, f"the tensor {what}, expected {shape}", name)
    for name in file.tensors:
        if name not in shapes:
            raise _refuse(file, "the network here has no place for this tensor", name)


def _size(file: GgufFile, key: str, default: int | None = None) -> int:
    value = file.metadata.get(key, default)
    if not isinstance(value, int) or value <= 0:
        raise _refuse(file, f"the key is {value!r}, not a positive integer", key)
    return value


def _number(file: GgufFile, key: str, default: float | None = None) -> float:
    value: Any = file.metadata.get(key, default)
    if not isinstance(value, float) or not 0 < value < float("inf"):
        raise _refuse(file, f"the key is {value!r}, not a positive number", key)
    return value


def _refuse(file: GgufFile, message: str, location: str) -> MaskwrightError:
    return MaskwrightError(f"cannot run {Path(file.path).name}: {message}", location=location)
