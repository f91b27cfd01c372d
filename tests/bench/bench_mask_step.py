"""What a constraint adds to a step at a vocabulary of 128k: its mask and applying it, beside llguidance (R26).

    OMP_NUM_THREADS=1 python tests/bench/bench_mask_step.py [--tokenizer llama3] [--texts 3]

Texts of 30 constraints are replayed token by token, a step of each engine by turns. A step is: the token before goes to
the matcher, the mask is filled, and logits of shape (1, V), float32 on the CPU, get -inf where it says no. Ours is the
engine's own row (budget, EOS, forced tokens and stop strings included), theirs the bare matcher. Times are of the
thread's CPU, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
import maskwright as mw
from assets import tokenizer_folder
from engine.cases import REGEXES, SCHEMAS
from maskwright.engine.draw import Draw
from maskwright.engine.request import Request
from maskwright.engine.rng import Stream
from maskwright.engine.row import Row
from maskwright.masks import apply_bitmask_

BUDGET = 4000


def texts(count: int) -> Iterator[tuple[str, Any, str]]:
    """Name, constraint and a valid text of it."""
    for name, source in [*SCHEMAS.items(), *REGEXES.items()]:
        constraint = mw.Regex(source) if name in REGEXES else mw.JsonSchema(source)
        for text in mw.sample(constraint, count, seed=1):
            yield name, constraint, text


class Ours:
    """A row of the engine."""

    def __init__(self, vocabulary: mw.Vocabulary, constraint: Any) -> None:
        grammar = mw.compile(constraint, vocabulary)
        request = Request((0,), grammar, Stream(0), BUDGET, forced_runs=False)
        self.row = Row(request, vocabulary, 0.0, mw.Sampling())

    def step(self, token: int, logits: torch.Tensor) -> None:
        self.row.take([Draw(token, 0.0, 0.0)], {})
        if self.row.running:
            apply_bitmask_(logits, self.row.mask.reshape(1, -1).view("int32"))  # type: ignore[union-attr]


class Theirs:
    """llguidance, as its own processor for transformers calls it."""

    vocabulary: Any = None

    def __init__(self, name: str) -> None:
        import llguidance.torch
        from llguidance import LLMatcher

        source = (
            LLMatcher.grammar_from_regex(REGEXES[name])
            if name in REGEXES
            else LLMatcher.grammar_from_json_schema(json.dumps(SCHEMAS[name]))
        )
        self.matcher = LLMatcher(self.vocabulary, source)
        if self.matcher.is_error():
            raise ValueError(self.matcher.get_error())
        self.torch = llguidance.torch
        self.mask = self.torch.allocate_token_bitmask(1, self.vocabulary.vocab_size)

    def step(self, token: int, logits: torch.Tensor) -> None:
        if not self.matcher.consume_token(token):
            raise ValueError("refused")
        self.torch.fill_next_token_bitmask(self.matcher, self.mask, 0)
        self.torch.apply_token_bitmask_inplace(logits, self.mask)


def timed(call: Callable[[], None]) -> float:
    begin = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - begin) / 1e6


def told(name: str, samples: list[float]) -> None:
    ordered = sorted(samples)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * p))] for p in (0.5, 0.9, 0.99, 1.0)]
    shown = " / ".join(f"{each:7.3f}" for each in at)
    print(f"{name:40} p50/p90/p99/max {shown} ms, mean {statistics.mean(samples):.3f}, {len(samples)} steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", default="llama3")
    parser.add_argument("--texts", type=int, default=3)
    options = parser.parse_args()
    from tokenizers import Tokenizer

    folder = tokenizer_folder(options.tokenizer)
    path = Path(folder) / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    vocabulary = mw.Vocabulary.from_tokenizer(str(path), eos_ids=[tokenizer.token_to_id("<|eot_id|>")])
    import llguidance.hf
    from transformers import PreTrainedTokenizerFast

    Theirs.vocabulary = llguidance.hf.from_tokenizer(
        PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<|eot_id|>")
    )
    logits = torch.randn(1, vocabulary.size)
    ours, masks, theirs, both = [], [], [], []
    refused = set()
    for name, constraint, text in texts(options.texts):
        row, other = Ours(vocabulary, constraint), None
        try:
            other = Theirs(name)
        except ValueError:
            refused.add(name)
        for token in tokenizer.encode(text, add_special_tokens=False).ids:
            before = row.row.mask_seconds
            ours.append(timed(lambda row=row, token=token: row.step(token, logits.clone())))
            masks.append(1000 * (row.row.mask_seconds - before))
            if other is not None:
                try:
                    theirs.append(timed(lambda other=other, token=token: other.step(token, logits.clone())))
                    both.append(ours[-1])
                except ValueError:
                    refused.add(name)
                    other = None
            if not row.row.running:
                break
    clone = [timed(lambda: _copy(logits)) for _ in range(500)]
    print(f"V = {vocabulary.size}")
    told("maskwright: accept + mask + apply", ours)
    told("  of which the mask (wall)", masks)
    told("  the same steps as llguidance's", both)
    told("llguidance: consume + mask + apply", theirs)
    told("copying the logits, in all of these", clone)
    print("not compared, or in part (white space that llguidance does not take):", ", ".join(sorted(refused)) or "none")


def _copy(logits: torch.Tensor) -> None:
    logits.clone()


if __name__ == "__main__":
    main()
