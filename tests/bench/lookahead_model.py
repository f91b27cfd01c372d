"""A small GPT-2 for the lookahead benchmark, trained for a minute on noisy texts of its tasks.

It is saved as a Hugging Face folder, so that every library under test loads the same weights.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

MERGES = [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1"), ("1", "9"), ("2", "0"), ("{", '"'), ('"', ":"), ("(", "x")]
LONGEST = 64


def tokenizer() -> Any:
    """All bytes and a few merges, so that most texts have several spellings."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*letters, *("".join(pair) for pair in MERGES)]
    made = Tokenizer(models.BPE({piece: at for at, piece in enumerate(pieces)}, MERGES))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<eos>"])
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<eos>", model_max_length=LONGEST)


def corrupted(text: str, rng: random.Random, noise: float) -> str:
    """A text with some characters changed, doubled or left out."""
    out = []
    for letter in text:
        kind = rng.random() / noise
        if kind < 1 / 3:
            continue
        out.append(rng.choice('01239abcdefx(){}":-, ') if kind < 2 / 3 else letter)
        if 2 / 3 < kind < 1:
            out.append(letter)
    return "".join(out)


def build(folder: Path, texts: dict[str, list[str]], steps: int = 400) -> None:
    """Trains and saves the model; does nothing where the folder is there.

    Args:
        folder: of the model.
        texts: by prompt, what follows it.
        steps: of training.
    """
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    if (folder / "config.json").exists():
        return
    rng, fast = random.Random(0), tokenizer()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(fast), n_positions=LONGEST, n_embd=48, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, bos_token_id=fast.eos_token_id, eos_token_id=fast.eos_token_id,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        rows = [_example(fast, texts, rng) for _ in range(32)]
        width = max(map(len, rows))
        ids = torch.tensor([row + [fast.eos_token_id] * (width - len(row)) for row in rows])
        labels = torch.tensor([row + [-100] * (width - len(row)) for row in rows])
        loss = model(ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval().save_pretrained(folder)
    fast.save_pretrained(folder)


def _example(fast: Any, texts: dict[str, list[str]], rng: random.Random) -> list[int]:
    prompt = rng.choice(sorted(texts))
    # Skewed: the first texts are frequent, so that masking and conditioning differ.
    many = texts[prompt]
    text = many[int(len(many) * rng.random() ** 3)]
    ids: list[int] = fast(prompt + corrupted(text, rng, 0.15)).input_ids
    return [*ids[: LONGEST - 1], fast.eos_token_id]
