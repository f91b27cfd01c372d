"""Constrain ``generate`` of transformers: a logits processor, for greedy decoding, sampling, beams and batches.

    python examples/hf_generate.py [HUB_ID_OR_PATH]

Without an argument a small Llama with random weights over bytes is used: it knows nothing, and still every output is
valid.
"""

import re
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

import maskwright as mw

DATE = r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9])"
VERDICT = ["yes", "no", "do not know"]


def random_model() -> tuple[LlamaForCausalLM, mw.Vocabulary]:
    vocabulary = mw.Vocabulary([*(bytes([i]) for i in range(256)), b"<eos>"], eos_ids=[256])
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=257, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, bos_token_id=None, eos_token_id=256, pad_token_id=256,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval(), vocabulary


def main() -> None:
    prompts = ["When was the treaty signed?", "Is the Earth flat?"]
    if len(sys.argv) > 1:
        tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], padding_side="left")
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
        vocabulary = mw.Vocabulary.from_tokenizer(tokenizer)
        inputs, pad = tokenizer(prompts, return_tensors="pt", padding=True), tokenizer.pad_token_id
    else:
        (model, vocabulary), pad = random_model(), 256
        width = max(map(len, prompts))
        ids = torch.tensor([[pad] * (width - len(p)) + list(p.encode()) for p in prompts])
        inputs = {"input_ids": ids, "attention_mask": (ids != pad).long()}

    # One constraint per prompt, in one padded batch.
    date, verdict = mw.compile(mw.Regex(DATE), vocabulary), mw.compile(mw.Choice(VERDICT), vocabulary)
    for options in ({"do_sample": False}, {"do_sample": True, "temperature": 1.5}, {"num_beams": 4}):
        # A processor for each call; with max_tokens every output is complete within it.
        processor = mw.LogitsProcessor([date, verdict], pad_id=pad, max_tokens=20)
        output = model.generate(
            **inputs, logits_processor=[processor], max_new_tokens=20, pad_token_id=pad,
            eos_token_id=list(vocabulary.eos_ids), **options,
        )  # fmt: skip
        texts = [vocabulary.decode(row).decode() for row in output[:, inputs["input_ids"].shape[1] :]]
        print(f"{options}: {texts}")
        assert re.fullmatch(DATE, texts[0])
        assert texts[1] in VERDICT


if __name__ == "__main__":
    main()
