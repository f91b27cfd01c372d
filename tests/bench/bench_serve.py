"""Continuous batching against one request after the other: 32 ragged requests, each with a constraint of its own.

    OMP_NUM_THREADS=1 python tests/bench/bench_serve.py tiny --repeats 5
    OMP_NUM_THREADS=1 python tests/bench/bench_serve.py smollm2 --repeats 1

Both run by turns in one process; every output must have the tokens of its solo run. CPU seconds are given beside wall
time: on a busy machine they alone can be compared.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maskwright as mw

sys.path.insert(0, str(Path(__file__).parents[1]))
from engine.cases import REGEXES, SCHEMAS

COUNT = 32


def requests(model: Any, chat: bool) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Prompts of 10 to 70 words, 30 constraints and two free texts, rules and seeds of their own."""
    random_ = random.Random(0)
    constraints: list[tuple[str, Any]] = [(name, mw.JsonSchema(schema)) for name, schema in SCHEMAS.items()]
    constraints += [(name, mw.Regex(pattern)) for name, pattern in REGEXES.items()]
    constraints += [("text", None), ("story", None)]
    found = []
    for at, (name, constraint) in enumerate(constraints):
        words = random_.choices(["rain", "bread", "a", "map", "of", "stars"], k=random_.randint(5, 60))
        text = f"Here are some notes: {' '.join(words)}. Write an example of: {name}."
        rules = mw.Sampling(random_.choice([0.7, 1.0]), top_p=random_.choice([0.9, 1.0]))
        grammar = None if constraint is None else mw.compile(constraint, model.vocabulary)
        least = 0 if grammar is None else grammar.matcher().min_tokens_to_accept() + 1
        options = {"seed": at, "max_tokens": max(least, random_.choice([48, 64, 96, 120]))}
        options["sampling"] = mw.Sampling(0) if at % 4 == 0 else rules
        found.append(([{"role": "user", "content": text}] if chat else text, grammar, options))
    assert len(found) == COUNT
    return found


def timed(run: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    out = run()
    return out, time.perf_counter() - wall, time.process_time() - cpu


def together(model: Any, asked: list[Any], options: argparse.Namespace) -> list[mw.Result]:
    engine = mw.Engine(model, token_budget=options.budget, max_rows=options.rows)
    handles = [engine.submit(prompt, grammar, **more) for prompt, grammar, more in asked]
    engine.run()
    return [handle.result() for handle in handles]


def compare(model: Any, asked: list[Any], options: argparse.Namespace) -> tuple[float, float]:
    """Ratios of wall and CPU time of one turn of each."""
    solos, wall, cpu = timed(lambda: [mw.generate(model, prompt, grammar, **more) for prompt, grammar, more in asked])
    results, wall_all, cpu_all = timed(lambda: together(model, asked, options))
    same = sum(one.tokens == other.tokens for one, other in zip(solos, results, strict=True))
    first = [result.stats.first_token_seconds or 0.0 for result in results]
    masks = sum(result.stats.mask_seconds for result in results)
    print(
        f"{sum(len(result.tokens) for result in solos)} tokens; one after the other {wall:.2f} s ({cpu:.2f} CPU), "
        f"together {wall_all:.2f} s ({cpu_all:.2f} CPU): {wall / wall_all:.2f}x ({cpu / cpu_all:.2f}x of CPU); "
        f"{same} of {COUNT} token-identical; masks {masks / wall_all:.1%} of the time together; "
        f"first token after {statistics.median(first):.2f} s (median)",
        flush=True,
    )
    return wall / wall_all, cpu / cpu_all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["tiny", "smollm2"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=int, default=512)
    parser.add_argument("--rows", type=int, default=32)
    options = parser.parse_args()
    if options.model == "tiny":
        from engine.models import tiny_llama

        model: Any = mw.TransformersModel(*tiny_llama(), name="tiny")
    else:
        model = mw.load_model("smollm2-135m", prefix_cache=0)
    asked = requests(model, chat=options.model == "smollm2")
    ratios = [compare(model, asked, options) for _ in range(options.repeats)]
    wall, cpu = (statistics.median(each) for each in zip(*ratios, strict=True))
    print(f"median {wall:.2f}x of wall time, {cpu:.2f}x of CPU time")


if __name__ == "__main__":
    main()
