"""Beams of five on SmolLM2: with a JSON schema, beside those of transformers without one.

    OMP_NUM_THREADS=1 python tests/bench/bench_beam.py --repeats 3 --tokens 100

The same prompts and the same most tokens for both, whole calls, by turns; medians over the repeats. CPU seconds are
given beside wall time: on a busy machine they alone can be compared. Every hypothesis found is checked by jsonschema.
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

import jsonschema
import torch
from bench_engine import SCHEMAS, Clock, load_transformers, timed

import maskwright as mw

WIDTH = 5


def hf_beams(model: Any, prompt: list[int], tokens: int) -> int:
    """Decode steps that `generate` took."""
    ids = torch.tensor([prompt])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, num_beams=WIDTH, max_new_tokens=tokens
    )
    return int(out.shape[1]) - len(prompt)


def checked(results: list[mw.Result], schema: Any) -> int:
    for result in results:
        assert result.valid
        jsonschema.validate(json.loads(result.text), schema)
    assert len({tuple(result.tokens) for result in results}) == len(results)
    return results[0].stats.model_calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--schemas", type=int, default=len(SCHEMAS))
    options = parser.parse_args()
    model = mw.load_model("smollm2-135m", prefix_cache=0)
    theirs, tokenizer = load_transformers()
    theirs.generation_config.pad_token_id = tokenizer.pad_token_id
    print("| schema | steps, ours / theirs | texts of 5 | wall, ours / theirs | CPU | CPU of a step |")
    print("|---|---|---|---|---|---|")
    ratios: dict[str, list[float]] = {"wall": [], "cpu": [], "cpu of a step": []}
    for at, case in enumerate(SCHEMAS[: options.schemas]):
        chat = [{"role": "user", "content": case["ask"] + " Answer with JSON."}]
        prompt, constraint = model.apply_chat_template(chat), mw.JsonSchema(case["schema"])
        compiled = mw.compile(constraint, model.vocabulary)
        clocks: list[tuple[Clock, Clock]] = []
        for _ in range(options.repeats):
            results, ours = timed(
                lambda chat=chat, compiled=compiled: mw.generate(
                    model, chat, compiled, strategy=mw.Beam(WIDTH), n=WIDTH, max_tokens=options.tokens
                )
            )
            steps = checked(results, case["schema"])
            length, other = timed(lambda prompt=prompt: hf_beams(theirs, prompt, options.tokens))
            clocks.append((ours, other))
        cells = []
        for kind in ("wall", "cpu"):
            mine, their = (statistics.median(getattr(pair[side], kind) for pair in clocks) for side in (0, 1))
            ratios[kind].append(mine / their)
            cells.append(f"{mine:.2f} / {their:.2f} s = {mine / their:.2f}")
        ratios["cpu of a step"].append(mine / steps / (their / length))
        cells.append(f"{ratios['cpu of a step'][-1]:.2f}")
        texts = len({result.text for result in results})
        print(f"| {at} | {steps} / {length} | {texts} | {' | '.join(cells)} |", flush=True)
    for kind, found in ratios.items():
        print(f"{kind}: median {statistics.median(found):.2f} of that of transformers, at most {max(found):.2f}")


if __name__ == "__main__":
    main()
