"""What single calls of the core cost: advance, mask, fork, rollback, compile, vocabulary. Prints p50/p90/p99/max.

    python tests/bench/bench_core.py [--tokenizer llama3]

For figures beside other engines see docs/performance.md: only ratios within one run mean anything on a shared machine.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
import maskwright as mw
from assets import tokenizer_folder

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 80},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["new", "old", "sold"]}, "maxItems": 5},
        "note": {"type": "string"},
    },
    "required": ["name", "age"],
}
TEXT = (
    '{"name": "Ada Lovelace", "age": 36, "tags": ["old", "new"], "note": "wrote the first program", "more": {"x": [1]}}'
)


def percentiles(samples: list[float]) -> str:
    ordered = sorted(samples)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * p))] for p in (0.5, 0.9, 0.99, 1.0)]
    return " / ".join(f"{value:8.2f}" for value in at)


def repeat(name: str, call: Callable[[], object], times: int = 2000) -> None:
    samples = []
    for _ in range(times):
        start = time.perf_counter_ns()
        call()
        samples.append((time.perf_counter_ns() - start) / 1e3)
    print(f"{name:34} {percentiles(samples)}  µs  n={times}")


def greedy(vocabulary: mw.Vocabulary, text: bytes) -> list[int]:
    """Longest tokens first: a way to spell the text."""
    ids = {token: i for i, token in reversed(list(enumerate(vocabulary.tokens))) if not vocabulary.kinds[i]}
    out, at = [], 0
    while at < len(text):
        width = next(w for w in range(min(40, len(text) - at), 0, -1) if text[at : at + w] in ids)
        out.append(ids[text[at : at + width]])
        at += width
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", default="gpt2")
    name = parser.parse_args().tokenizer
    start = time.perf_counter()
    vocabulary = mw.Vocabulary.from_tokenizer(tokenizer_folder(name))
    read = time.perf_counter()
    _ = vocabulary.core
    prepared = time.perf_counter()
    print(
        f"maskwright {version('maskwright')}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, {platform.machine()}"
    )
    print(f"{name}: {vocabulary.size} tokens, read {read - start:.3f} s, prepared {prepared - read:.3f} s")
    print(f"{'':34} {'p50':>8} / {'p90':>8} / {'p99':>8} / {'max':>8}")
    compiled = mw.compile(mw.JsonSchema(SCHEMA), vocabulary)
    tokens = greedy(vocabulary, TEXT.encode())
    row = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
    matcher = compiled.matcher()
    step_samples, mask_samples = [], []
    for _ in range(200):
        matcher.reset()
        for token in tokens:
            start_ns = time.perf_counter_ns()
            matcher.accept(token)
            middle_ns = time.perf_counter_ns()
            matcher.fill_mask(row)
            step_samples.append((middle_ns - start_ns) / 1e3)
            mask_samples.append((time.perf_counter_ns() - middle_ns) / 1e3)
    print(f"{'advance one token':34} {percentiles(step_samples)}  µs  n={len(step_samples)}")
    print(f"{'mask, each request anew':34} {percentiles(mask_samples)}  µs  n={len(mask_samples)}")
    repeat("mask, seen in this request", lambda: matcher.fill_mask(row))
    repeat("fork", matcher.fork)

    def back() -> None:
        matcher.rollback(1)
        matcher.accept(tokens[-1])

    repeat("rollback and advance", back)
    counter = iter(range(10**9))

    def fresh() -> None:
        schema = {**SCHEMA, "title": str(next(counter))}
        mw.compile(mw.JsonSchema(schema), vocabulary).matcher().fill_mask(row)

    repeat("new schema to first mask", fresh, 500)
    repeat(
        "known schema to first mask",
        lambda: mw.compile(mw.JsonSchema(SCHEMA), vocabulary).matcher().fill_mask(row),
        500,
    )


if __name__ == "__main__":
    main()
