"""The time from a schema's text to its first mask, where schemas meet (`anyOf`, `not`, ...) beside where none do.

    python tests/bench/bench_first_mask.py [--count 150] [--other DIR] [--tokenizer llama3]

MaskBench's schemas in two groups, those with a Boolean keyword and the others, drawn at random but always the same.
Each is compiled four times, never out of a cache of compiled schemas, by the CPU time of the process: the first time,
and the least of the others, when patterns and automata that others share are there already. `--other` is a folder with
another `maskwright` that takes turns, in a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))
from mask_cases import Case, maskbench

from assets import tokenizer_folder

BOOLEAN = {"anyOf", "oneOf", "allOf", "not", "if", "contains", "dependencies", "dependentSchemas", "dependentRequired"}
BOOLEAN |= {"unevaluatedProperties", "unevaluatedItems"}
NAMED = {"properties", "patternProperties", "definitions", "$defs", "dependentSchemas"}
VALUES = {"enum", "const", "default", "examples"}


def keywords(value: Any, found: set[str]) -> set[str]:
    """All keywords of a schema."""
    for keyword, below in value.items() if isinstance(value, dict) else ():
        found.add(keyword)
        if keyword not in VALUES:
            for part in below.values() if keyword in NAMED and isinstance(below, dict) else [below]:
                keywords(part, found)
    for part in value if isinstance(value, list) else ():
        keywords(part, found)
    return found


def serve(source: str, tokenizer: str) -> None:
    """Compiles the schemas of the standard input; a line of times in ms for each, or the refusal."""
    if source:
        sys.path.insert(0, source)
    import numpy as np

    import maskwright as mw
    from maskwright import compiler

    vocabulary = mw.Vocabulary.from_tokenizer(tokenizer_folder(tokenizer) / "tokenizer.json", eos_ids=[128009])
    row = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
    gc.freeze()
    gc.disable()
    for line in sys.stdin:
        times: list[float] = []
        try:
            for _ in range(4):
                compiler._cache._entries.clear()
                gc.collect()
                start = time.process_time()
                constraint = mw.JsonSchema(json.loads(line), whitespace="any", numbers="full", escapes="any")
                mw.compile(constraint, vocabulary).matcher().fill_mask(row)
                times.append((time.process_time() - start) * 1e3)
        except mw.MaskwrightError:
            times = []
        print(json.dumps(times), flush=True)


def groups(count: int) -> dict[str, list[Case]]:
    """`count` schemas of each kind."""
    found: dict[str, list[Case]] = {"Boolean": [], "plain": []}
    for case in maskbench(1_000_000):
        boolean = keywords(json.loads(case.schema), set()) & BOOLEAN
        found["Boolean" if boolean else "plain"].append(case)
    rng = random.Random(0)
    return {group: rng.sample(cases, min(count, len(cases))) for group, cases in found.items() if cases}


def percentiles(samples: list[float]) -> str:
    """At 50, 90 and 99, and the mean."""
    ordered = sorted(samples)
    at = [ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (50, 90, 99)]
    return " / ".join(f"{value:.2f}" for value in (*at, sum(ordered) / len(ordered)))


def main() -> None:
    """Times both groups, and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--other")
    parser.add_argument("--tokenizer", default="llama3")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.tokenizer)
        return
    sources = {"this": ""} | ({"other": options.other} if options.other else {})
    workers = {
        name: subprocess.Popen(
            [sys.executable, __file__, "--serve", source, "--tokenizer", options.tokenizer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, source in sources.items()
    }
    print("ms, p50 / p90 / p99 / mean")
    for group, cases in groups(options.count).items():
        times: dict[str, list[list[float]]] = {name: [] for name in workers}
        for case in cases:
            answers = {}
            for name, worker in workers.items():
                assert worker.stdin is not None and worker.stdout is not None
                worker.stdin.write(json.dumps(case.schema) + "\n")
                worker.stdin.flush()
                answers[name] = json.loads(worker.stdout.readline())
            if all(answers.values()):
                for name, answer in answers.items():
                    times[name].append(answer)
        for name, answers_of in times.items():
            if not answers_of:
                continue
            first, again = [t[0] for t in answers_of], [min(t[1:]) for t in answers_of]
            print(f"{group:8} {name:6} {len(first)} schemas; first: {percentiles(first)}; again: {percentiles(again)}")
    for worker in workers.values():
        worker.terminate()


if __name__ == "__main__":
    main()
