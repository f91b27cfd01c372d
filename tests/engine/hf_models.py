"""Tiny random Hugging Face models with a byte-level tokenizer."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def byte_tokenizer(**options: Any) -> Any:
    """All bytes, a few merges, the tokens of TEMPLATE."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ('"', ":"), ("{", '"')]
    vocabulary = {token: index for index, token in enumerate([*alphabet, *(a + b for a, b in merges)])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    names = ["<|end|>", "<|user|>", "<|assistant|>", "<|document|>"]
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>", **options
    )
    wrapped.chat_template = TEMPLATE
    return wrapped


SIZES = {
    "vocab_size": 288,  # wider than the tokenizer's 265
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
    "bos_token_id": None,
    "eos_token_id": [261, 264],
    "pad_token_id": 261,
    "initializer_range": 0.3,
}

GEMMA_LAYERS = ["sliding_attention", "full_attention", "sliding_attention"]


def tiny(kind: str, **changes: Any) -> Any:
    """A random model of a kind, the same at every call."""
    torch.manual_seed(0)
    if kind == "gpt2":
        names = {"vocab_size", "bos_token_id", "eos_token_id", "pad_token_id", "initializer_range"}
        common = {key: value for key, value in SIZES.items() if key in names}
        config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=96, **common, **changes)
        return transformers.GPT2LMHeadModel(config).eval()
    if kind == "mamba":
        config = transformers.MambaConfig(
            vocab_size=288, hidden_size=32, num_hidden_layers=2, state_size=4, eos_token_id=261, pad_token_id=261,
            bos_token_id=None, use_mambapy=False,
        )  # fmt: skip
        return transformers.MambaForCausalLM(config).eval()
    family = {"llama": "Llama", "mistral": "Mistral", "qwen3": "Qwen3", "gemma3": "Gemma3"}[kind]
    configs: dict[str, dict[str, Any]] = {
        "mistral": {"sliding_window": 7},
        "qwen3": {"head_dim": 8},
        "gemma3": {
            "sliding_window": 5,
            "head_dim": 8,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    }
    name = "Gemma3TextConfig" if kind == "gemma3" else f"{family}Config"
    config = getattr(transformers, name)(**{**SIZES, **configs.get(kind, {}), **changes})
    return getattr(transformers, f"{family}ForCausalLM")(config).eval()
