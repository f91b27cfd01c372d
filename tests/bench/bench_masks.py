"""Masks beside other engines: time to first mask and time between masks, by percentile, interleaved case by case.

    python tests/bench/bench_masks.py [--engines maskwright,llguidance,xgrammar] [--maskbench 100] [--out masks.json]
        [--plot masks.png] [--tokenizer llama3]

Each engine has a process of its own; a case goes to one after the other, so they see the same noise. Engines that are
not installed (extra `bench`) are left out. MaskBench is read where its data is present, our own and the adversarial
schemas always. On a shared machine only the ratios within one run mean anything.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from threading import Timer
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))
from mask_cases import Case, adversarial, maskbench, own

from assets import tokenizer_folder

PERCENTILES = (50, 90, 99, 99.9, 100)


class Engine:
    """An engine in a process of its own."""

    def __init__(self, name: str, folder: Path, seconds: float) -> None:
        self.name, self._folder, self._seconds = name, folder, seconds
        self._start()

    def _start(self) -> None:
        env = dict(os.environ, TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", RAYON_NUM_THREADS="1")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("mask_engines.py")), self.name, str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
        if self._read() is None:
            raise SystemExit(f"{self.name} did not start: status {self._process.wait()}")

    def _read(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        reply: dict[str, Any] | None = json.loads(line) if line else None
        return reply

    def run(self, schema: str, tokens: list[list[int]]) -> dict[str, Any]:
        """The engine's reply to one case."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"schema": schema, "tokens": tokens}) + "\n")
        self._process.stdin.flush()
        alarm = Timer(self._seconds, self._process.kill)
        alarm.start()
        reply = self._read()
        alarm.cancel()
        if reply is None:
            self._process.wait()
            self._start()
        return reply or {"refused": f"no answer within {self._seconds} s, or the process ended"}


def percentiles(samples: list[float]) -> list[float]:
    """At PERCENTILES; of nothing, nothing."""
    ordered = sorted(samples)
    return [round(ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))], 2) for p in PERCENTILES if ordered]


def summary(replies: list[dict[str, Any]]) -> dict[str, Any]:
    """What an engine's replies to one group come to, in microseconds."""
    taken = [r for r in replies if "refused" not in r]
    tbm = [t for r in taken for t in r["tbm"]]
    return {
        "compiled": len(taken),
        "cases": len(replies),
        "rejected": sum(r["rejected"] for r in taken),
        "masks": len(tbm),
        "ttfm": percentiles([r["ttfm"] for r in taken]),
        "tbm": percentiles(tbm),
        "tbm_average": round(sum(tbm) / max(1, len(tbm)), 2),
        "warm": percentiles([t for r in taken for t in r["warm"]]),
    }


def row(label: str, values: list[float]) -> str:
    return f"  {label:22}" + "".join(f"{value:12,.1f}" for value in values)


def show(results: dict[str, dict[str, Any]]) -> None:
    """Prints a table for each group."""
    for group, engines in results.items():
        print(f"\n{group}: microseconds at percentiles {', '.join(map(str, PERCENTILES))}")
        for name, s in engines.items():
            print(f" {name}: {s['compiled']} of {s['cases']} schemas, {s['masks']} masks, {s['rejected']} rejected")
            for key, label in (("ttfm", "to first mask"), ("tbm", "between masks"), ("warm", "warm, a token")):
                print(row(label, s[key]))
            print(row("average between masks", [s["tbm_average"]]))


def plot(replies: dict[str, dict[str, list[dict[str, Any]]]], path: Path) -> None:
    """Time between masks by percentile, all groups together."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name in {name: None for group in replies.values() for name in group}:
        every = [t for group in replies.values() for r in group.get(name, ()) for t in r.get("tbm", ())]
        ordered = sorted(every)
        axes.plot([n / len(ordered) for n in range(len(ordered))], ordered, label=name)
    axes.set(xscale="logit", yscale="log", xlabel="share of masks", ylabel="microseconds", title="Time between masks")
    axes.legend()
    figure.savefig(path, bbox_inches="tight")


def machine() -> dict[str, Any]:
    """Where this runs, and what."""
    names = ("maskwright", "llguidance", "xgrammar")
    versions = {n: version(n) for n in names if importlib.util.find_spec(n)}
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
        "versions": versions,
    }


def run(cases: list[Case], engines: list[Engine], folder: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By group and engine the replies, the engines taking turns to go first."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    replies: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for n, case in enumerate(cases):
        tokens = [tokenizer.encode(text, add_special_tokens=False).ids for text in case.texts]
        turn = n % len(engines)
        for engine in engines[turn:] + engines[:turn]:
            reply = engine.run(case.schema, tokens)
            replies[case.group][engine.name].append(reply | {"case": case.name})
    return replies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", default="maskwright,maskwright-budget,llguidance,xgrammar")
    parser.add_argument("--maskbench", type=int, default=100, help="schemas of MaskBench, where its data is present")
    parser.add_argument("--tokenizer", default="llama3", choices=("llama3", "gpt2"))
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a case in one engine")
    parser.add_argument("--out", type=Path, help="where the replies go, as JSON")
    parser.add_argument("--plot", type=Path, help="where a plot goes; needs matplotlib")
    options = parser.parse_args()
    folder = tokenizer_folder(options.tokenizer)
    names = [name for name in options.engines.split(",") if importlib.util.find_spec(name.partition("-")[0])]
    cases = [*own(), *adversarial(), *maskbench(options.maskbench)]
    replies = run(cases, [Engine(name, folder, options.timeout) for name in names], folder)
    results = {group: {name: summary(r) for name, r in by.items()} for group, by in replies.items()}
    print(machine())
    show(results)
    for name in names:
        for reply in replies["hard"][name]:
            found = reply.get("refused") or f"{reply['ttfm'] / 1e3:.2f} ms; {percentiles(reply['tbm'])} µs"
            print(f"  {reply['case']:24} {name:12} {found[:110]}")
    if options.out:
        options.out.write_text(json.dumps({"machine": machine(), "summary": results, "replies": replies}))
    if options.plot:
        plot(replies, options.plot)


if __name__ == "__main__":
    main()
