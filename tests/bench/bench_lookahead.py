"""The lookahead sampler beside masking, rejection, ASAp, restart CARS and genlm-control: laws, calls, time.

    make bench-lookahead                                # ours alone
    make bench-lookahead GENLM=/path/to/venv/bin/python # and genlm-control 0.4.1, where that Python has it

Writes ``build/bench-lookahead/results.json`` and, with ``--doc``, the tables and the plot of a document.
Every sample is the first of a sampler that knows nothing of the prompt, unless the table says otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.lookahead_cars import RestartCars
from tests.bench.lookahead_model import build
from tests.bench.lookahead_tasks import Task, all_tasks, exact_law
from tests.engine.statistics import p_value

import maskwright as mw
from maskwright.engine.lookahead.base import Base
from maskwright.engine.lookahead.store import forget
from maskwright.engine.request import Request
from maskwright.engine.rng import Stream

FOLDER = Path("build/bench-lookahead")
_PLAIN: dict[str, Any] = {"twist": None, "block_nodes": 1}
# name -> settings; budgets are out of the way, the cost is what is measured.
OURS: dict[str, dict[str, Any]] = {
    "exact": {"method": "exact", "frontier": 1, "enumerate_nodes": 0},
    "exact, B=8": {"method": "exact", "frontier": 8, "enumerate_nodes": 0},
    "enumerate": {"method": "exact"},
    "smc 4": {"method": "smc", "particles": 4},
    "smc 16": {"method": "smc", "particles": 16},
    "smc 16, plain": {"method": "smc", "particles": 16, **_PLAIN},
    "asap": {"method": "asap"},
    "reject": {"method": "reject"},
}
PEER = [("awrs", 4), ("awrs", 16), ("direct", 4), ("direct", 16)]


def sampled(model: Any, task: Task, n: int, settings: dict[str, Any], seed: int = 0) -> list[Any]:
    """First samples: each of a call of its own that keeps nothing."""
    ahead = mw.Lookahead(reuse=False, budget_calls=100_000, **settings)
    rules = mw.Sampling(temperature=task.temperature)

    def call(seed: int, n: int) -> Any:
        return mw.generate(
            model, task.prompt, task.constraint, lookahead=ahead, sampling=rules, max_tokens=task.max_tokens, seed=seed,
            n=n,
        )  # fmt: skip

    first = call(seed, 1)
    if first.lookahead.method == "enumerate" and n > 1:
        # All samples of a language that is known as a whole have one law; only the first costs anything.
        return [replace(each, lookahead=first.lookahead) for each in call(seed, n)]
    return [first, *(call(at, 1) for at in range(seed + 1, seed + n))]


def row(name: str, texts: Iterable[str], calls: float, nodes: float, seconds: float, **more: Any) -> dict[str, Any]:
    return {"sampler": name, "texts": list(texts), "calls": calls, "nodes": nodes, "seconds": seconds, **more}


def measure_ours(model: Any, task: Task, n: int, z: float) -> list[dict[str, Any]]:
    """A row for each of our methods, and masking."""
    rows = [_local(model, task, n)]
    for name, settings in OURS.items():
        # Plain rejection takes hundreds of forwards for a sample where Z is small.
        count = max(5, min(n, int(n * z))) if name == "reject" else n
        begin = time.perf_counter()
        try:
            results = sampled(model, task, count, settings)
        except mw.GenerationError as error:
            rows.append({"sampler": name, "error": str(error)[:200]})
            continue
        seconds = (time.perf_counter() - begin) / count
        told = [r.lookahead for r in results]
        calls, nodes = (float(np.mean([getattr(each, key) for each in told])) for key in ("calls", "nodes"))
        rows.append(row(name, [r.text for r in results], calls, nodes, seconds, by=told[0].method))
    rows.append(_cars(model, task, n))
    return rows


def _local(model: Any, task: Task, n: int) -> dict[str, Any]:
    begin = time.perf_counter()
    rules = mw.Sampling(temperature=task.temperature)
    results = [
        mw.generate(model, task.prompt, task.constraint, sampling=rules, max_tokens=task.max_tokens, seed=seed)
        for seed in range(n)
    ]
    seconds = (time.perf_counter() - begin) / n
    calls = float(np.mean([r.stats.model_calls for r in results]))
    return row("masking", [r.text for r in results], calls, float(np.mean([len(r.tokens) for r in results])), seconds)


def base_of(model: Any, task: Task) -> Base:
    request = Request(
        tuple(model.encode(task.prompt)), mw.compile(task.constraint, model.vocabulary), Stream(0), task.max_tokens
    )
    return Base(model, request, mw.Sampling(temperature=task.temperature), mw.Lookahead())


def _cars(model: Any, task: Task, n: int) -> dict[str, Any]:
    base, known, texts = base_of(model, task), {}, []
    calls, nodes = [], []
    for seed in range(n):
        sampler = RestartCars(base, np.random.default_rng(seed), known)
        texts.append(base.text_of(sampler.draw()).decode())
        calls.append(sampler.calls)
        nodes.append(sampler.nodes)
    # Its time is not told: the distributions are shared here.
    return row("restart CARS", texts, float(np.mean(calls)), float(np.mean(nodes)), math.nan)


def amortised(model: Any, task: Task, n: int = 100) -> dict[str, Any]:
    """Cost per sample over `n` samples of one call, and of the second call."""
    found: dict[str, Any] = {"task": task.name}
    for name in ("exact", "enumerate", "asap"):
        ahead = mw.Lookahead(budget_calls=100_000, **OURS[name])
        rules = mw.Sampling(temperature=task.temperature)
        forget(model)
        for which in ("", " again"):
            begin = time.perf_counter()
            results = mw.generate(
                model, task.prompt, task.constraint, lookahead=ahead, sampling=rules, max_tokens=task.max_tokens, n=n,
                seed=1 + len(which),
            )  # fmt: skip
            seconds = (time.perf_counter() - begin) / n
            nodes = sum(r.lookahead.nodes for r in results) / n
            found[name + which] = {"by": results[0].lookahead.method, "nodes": nodes, "seconds": seconds}
    return found


def judge(rows: list[dict[str, Any]], task: Task, law: dict[str, float]) -> None:
    """Adds KL, its floor, TV and the p-value of each row's texts, over the task's cells."""
    cells: dict[str, float] = {}
    total = sum(law.values())
    for text, p in law.items():
        cells[task.cell(text)] = cells.get(task.cell(text), 0.0) + p / total
    names, p = list(cells), np.array(list(cells.values()))
    floors: dict[int, float] = {}
    for each in rows:
        if "texts" not in each:
            continue
        texts = [text for text in each.pop("texts") if text is not None]
        counts = np.array([Counter(map(task.cell, texts))[name] for name in names])
        n = int(counts.sum())
        assert n == len(texts), f"{each['sampler']} gave a text outside of {task.name}"
        if n not in floors:
            ideal = np.random.default_rng(0).multinomial(n, p, size=300)
            floors[n] = float(np.mean([_kl(one, p) for one in ideal]))
        each.update(
            n=n, kl=_kl(counts, p), floor=floors[n], tv=float(np.abs(counts / n - p).sum() / 2), p=p_value(counts, p)
        )


def _kl(counts: Any, p: Any) -> float:
    share = counts[counts > 0] / counts.sum()
    return float((share * np.log(share / p[counts > 0])).sum())


def peer(python: str | None, tasks: list[Task], n: int, settings: list[tuple[str, int]]) -> dict[str, Any]:
    """What genlm-control does; says why where it is not there."""
    if python is None:
        print("genlm-control: skipped, no --genlm-python was given")
        return {"results": []}
    asked = {
        "model": str(FOLDER / "model"), "n": n, "settings": settings,
        "tasks": [
            {"name": t.name, "prompt": t.prompt, "temperature": t.temperature, "peer": t.peer,
             "max_tokens": t.max_tokens} for t in tasks
        ],
    }  # fmt: skip
    files = FOLDER / "genlm-request.json", FOLDER / "genlm-answer.json"
    if files[1].exists() and files[0].exists() and json.loads(files[0].read_text()) == json.loads(json.dumps(asked)):
        print("genlm-control: as measured before; remove its answer to measure it again")
        known: dict[str, Any] = json.loads(files[1].read_text())
        return known
    files[0].write_text(json.dumps(asked))
    script = Path(__file__).parent / "genlm_lookahead.py"
    done = subprocess.run([python, "-W", "ignore", str(script), *map(str, files)], check=False)
    if done.returncode != 0:
        print(f"genlm-control: skipped, {python} ended with {done.returncode}")
        return {"results": []}
    answer: dict[str, Any] = json.loads(files[1].read_text())
    return answer


def peers_of(answer: dict[str, Any], task: Task, law: dict[str, float]) -> list[dict[str, Any]]:
    """The rows of genlm-control for a task."""
    rows = []
    for each in answer["results"]:
        if each["task"] == task.name:
            name = f"genlm {each['kind']} {each['particles']}"
            rows.append({"sampler": name, **{k: v for k, v in each.items() if k not in ("task", "kind", "particles")}})
    judge(rows, task, law)
    return rows


def wide_node(repeats: int = 5) -> dict[str, float]:
    """CPU time per node where some 30,000 tokens are allowed and the model takes none; the median of some calls."""
    from tests.bench.lookahead_stub import StubModel

    model = StubModel(mw.load_model("smollm2-135m").vocabulary)
    constraint = mw.Regex("[^i]{200,4000}")
    base = Base(
        model, Request((0,), mw.compile(constraint, model.vocabulary), Stream(0), 1000), mw.Sampling(), mw.Lookahead()
    )
    found: dict[str, float] = {"allowed": len(base.allowed(base.start(), ()))}
    for name in ("exact", "asap", "smc 1"):
        settings = OURS.get(name, {"method": "smc", "particles": 1})
        ahead = mw.Lookahead(reuse=False, budget_calls=200, **settings)
        times = [milliseconds_per_node(model, constraint, ahead, seed) for seed in range(repeats + 1)]
        found[f"{name}, milliseconds per node"] = statistics.median(times[1:])
    return found


def milliseconds_per_node(model: Any, constraint: Any, ahead: mw.Lookahead, seed: int) -> float:
    """Of one call, results included; the exact search does not find an output of so little mass in its budget."""
    model.seconds, model.places, begin = 0.0, 0, time.process_time()
    with suppress(mw.BudgetError):
        mw.generate(model, "x", constraint, lookahead=ahead, seed=seed, max_tokens=1000)
    return 1e3 * (time.process_time() - begin - model.seconds) / model.places


def laws_of(tasks: list[Task], model: Any, hf: Any, tokenizer: Any) -> dict[str, dict[str, float]]:
    """The exact laws, from a file where they are there."""
    path = FOLDER / "laws.json"
    found: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.exists() else {}
    kinds = model.vocabulary.kinds
    tokens = [b"" if kind else piece for piece, kind in zip(model.vocabulary.tokens, kinds, strict=True)]
    for task in tasks:
        key = f"{task.name} {task.temperature} {task.max_tokens}"
        if key not in found:
            found[key] = exact_law(task, hf, tokenizer, tokens, model.eos_ids[0])
            path.write_text(json.dumps(found))
        found[task.name] = found[key]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=200, help="first samples of each sampler (default: %(default)s)")
    parser.add_argument("--genlm-n", type=int, default=100, help="the same of genlm-control (default: %(default)s)")
    parser.add_argument("--genlm-python", help="a Python that has genlm-control 0.4.1")
    parser.add_argument("--report-only", action="store_true", help="write again what was measured before")
    parser.add_argument("--tasks", nargs="*", help="measure only these; what is known of others stays")
    parser.add_argument("--doc", help="the markdown file whose tables are to be replaced")
    options = parser.parse_args()
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    tasks = [task for task in all_tasks() if not options.tasks or task.name in options.tasks]
    build(FOLDER / "model", {task.prompt: task.texts for task in all_tasks()})
    hf = AutoModelForCausalLM.from_pretrained(FOLDER / "model").eval()
    tokenizer = AutoTokenizer.from_pretrained(FOLDER / "model")
    model = mw.TransformersModel(hf, tokenizer)
    laws = laws_of(tasks, model, hf, tokenizer)
    answer = peer(options.genlm_python, tasks, options.genlm_n, PEER)
    path = FOLDER / "results.json"
    report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"tasks": []}
    if not options.report_only:
        report["wide"] = wide_node()
    for task in tasks:
        law = laws[task.name]
        if not options.report_only:
            rows = measure_ours(model, task, options.n, sum(law.values()))
            judge(rows, task, law)
            told = {"task": task.name, "Z": sum(law.values()), "texts": len(task.texts), "rows": rows}
            report["tasks"] = [each for each in report["tasks"] if each["task"] != task.name]
            report["tasks"].append({**told, "amortised": amortised(model, task)})
        told = next(each for each in report["tasks"] if each["task"] == task.name)
        told["rows"] = [row for row in told["rows"] if not row["sampler"].startswith("genlm")]
        told["rows"] += peers_of(answer, task, law)
        print(json.dumps(told, indent=1), flush=True)
        path.write_text(json.dumps(report, indent=1))
    if options.doc:
        from tests.bench.lookahead_report import write

        write(report, Path(options.doc))



if __name__ == "__main__":
    main()
