"""genlm-control on the tasks of the lookahead benchmark; run by a Python that has it, see `bench_lookahead`.

Reads a JSON request from the file that is its first argument, writes the answer to the second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


class Counter:
    """Requests for next-token distributions, and rows that the model computed."""

    def __init__(self, llm: Any) -> None:
        self.requests = self.rows = self.forwards = 0
        backend = llm.model
        asked, forward = backend.next_token_logprobs, backend.model.forward

        async def next_token_logprobs(*args: Any, **kwargs: Any) -> Any:
            self.requests += 1
            return await asked(*args, **kwargs)

        def counted(*args: Any, **kwargs: Any) -> Any:
            ids = kwargs.get("input_ids", args[0] if args else None)
            self.forwards += 1
            self.rows += len(ids)
            return forward(*args, **kwargs)

        backend.next_token_logprobs = next_token_logprobs
        backend.model.forward = counted


def sampler_of(kind: str, llm: Any, language: Any) -> Any:
    from genlm.control import AWRS, direct_token_sampler

    constraint = language.coerce(llm, f=b"".join)
    return AWRS(llm, constraint) if kind == "awrs" else direct_token_sampler(llm * constraint)


async def draw(sampler: Any, count: int, max_tokens: int, rng: np.random.Generator) -> str | None:
    """One output, drawn by weight."""
    found = await sampler.smc(n_particles=count, ess_threshold=0.5, max_tokens=max_tokens - 1)
    weights = np.exp(found.log_weights - np.max(found.log_weights)) if np.isfinite(found.log_weights).any() else None
    if weights is None:
        return None
    context = found.contexts[rng.choice(len(weights), p=weights / weights.sum())]
    return b"".join(t.byte_string if hasattr(t, "byte_string") else t for t in context if is_text(t)).decode()


def is_text(token: Any) -> bool:
    return isinstance(token, bytes) or hasattr(token, "byte_string")


async def measure(request: dict[str, Any], task: dict[str, Any], kind: str, count: int) -> dict[str, Any]:
    from genlm.control import BoolCFG, BoolFSA, PromptedLLM

    llm = PromptedLLM.from_name(request["model"], backend="hf", temperature=task["temperature"])
    llm.set_prompt_from_str(task["prompt"])
    counter = Counter(llm)
    source = task["peer"][1]
    language = BoolFSA.from_regex(source) if task["peer"][0] == "regex" else BoolCFG.from_lark(source)
    sampler, rng = sampler_of(kind, llm, language), np.random.default_rng(0)
    texts, seconds, failed = [], 0.0, 0
    for _ in range(request["n"]):
        llm.model.clear_cache()  # first samples: nothing is known of the prompt
        begin = time.perf_counter()
        text = await draw(sampler, count, task["max_tokens"], rng)
        seconds += time.perf_counter() - begin
        texts.append(text)
        failed += text is None
    n = request["n"]
    return {
        "texts": texts, "failed": failed, "calls": counter.requests / n, "nodes": counter.rows / n,
        "forwards": counter.forwards / n, "seconds": seconds / n,
    }  # fmt: skip


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answer: dict[str, Any] = {"version": version("genlm-control"), "results": []}
    for task in request["tasks"]:
        for kind, count in request["settings"]:
            try:
                found = asyncio.run(measure(request, task, kind, count))
            except Exception as error:  # a task that the peer cannot do is reported, not hidden
                found = {"error": f"{type(error).__name__}: {error}"[:300]}
            answer["results"].append({"task": task["name"], "kind": kind, "particles": count, **found})
            print(task["name"], kind, count, {k: v for k, v in found.items() if k != "texts"}, flush=True)
            Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
