"""Tables and a plot from the results of `bench_lookahead`."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


def costs(row: dict[str, Any]) -> tuple[float, float, float]:
    """Distributions asked for, distributions computed, and forwards, for one sample."""
    if row["sampler"].startswith("genlm"):
        return row["calls"], row["nodes"], row["forwards"]
    if row["sampler"] == "restart CARS":
        return row["calls"], row["nodes"], row["calls"]
    return row["nodes"], row["nodes"], row["calls"]


def table(told: dict[str, Any]) -> str:
    """The rows of a task."""
    lines = [
        f"**{told['task']}**: {told['texts']} texts, Z = {told['Z']:.2g}",
        "",
        "| sampler | n | KL | floor | TV | chi-square p | asked | computed | forwards | s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in told["rows"]:
        if "error" in row:
            lines.append(f"| {row['sampler']} | | | | | | | | | {row['error'][:60]} |")
            continue
        asked, computed, forwards = costs(row)
        seconds = "" if math.isnan(row["seconds"]) else f"{row['seconds']:.3f}"
        by = f" ({row['by']})" if row.get("by", row["sampler"]) not in row["sampler"] else ""
        lines.append(
            f"| {row['sampler']}{by} | {row['n']} | {row['kl']:.3f} | {row['floor']:.3f} | {row['tv']:.3f} | "
            f"{row['p']:.1g} | {asked:.1f} | {computed:.1f} | {forwards:.1f} | {seconds} |"
        )
    return "\n".join(lines)


def amortised(report: dict[str, Any]) -> str:
    """Distributions per sample over the samples of one call, and of the next."""
    names = ("exact", "exact again", "enumerate", "enumerate again", "asap", "asap again")
    lines = ["| task | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for told in report["tasks"]:
        cells = [f"{told['amortised'][name]['nodes']:.2f}" for name in names]
        lines.append(f"| {told['task']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ratios(report: dict[str, Any]) -> str:
    """First samples: ours against restart CARS, and what a frontier of 8 saves."""
    lines = [
        "| task | exact: computed / asked by restart CARS | forwards B=1 / B=8 | computed B=8 / B=1 |",
        "|---|---|---|---|",
    ]
    for told in report["tasks"]:
        rows = {row["sampler"]: row for row in told["rows"]}
        one, eight, cars = rows["exact"], rows["exact, B=8"], rows["restart CARS"]
        lines.append(
            f"| {told['task']} | {one['nodes']:.1f} / {cars['calls']:.1f} = {one['nodes'] / cars['calls']:.2f} | "
            f"{one['calls']:.1f} / {eight['calls']:.1f} = {one['calls'] / eight['calls']:.1f} | "
            f"{eight['nodes'] / one['nodes']:.1f} |"
        )
    return "\n".join(lines)


def plot(report: dict[str, Any], path: Path) -> None:
    """KL above the floor against distributions asked for, a panel for each task."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed (pip install 'maskwright[examples]')")
        return
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "maskwright"  # the same picture from the same numbers
    from matplotlib import pyplot as plt

    tasks = report["tasks"]
    figure, axes = plt.subplots(2, (len(tasks) + 1) // 2, figsize=(13, 7), squeeze=False)
    for axis, told in zip(axes.flat, tasks, strict=False):
        for row in told["rows"]:
            if "error" in row or row["n"] < 20:  # few samples say nothing
                continue
            colour = "tab:gray" if row["sampler"].startswith("genlm") else "tab:blue"
            colour = "tab:green" if row["sampler"].startswith(("exact", "enum", "cert")) else colour
            x, y = costs(row)[0], max(row["kl"] - row["floor"], 1e-3)
            axis.scatter([x], [y], color=colour, s=18)
            axis.annotate(row["sampler"], (x, y), fontsize=6, xytext=(3, 3), textcoords="offset points")
        axis.set(xscale="log", yscale="log", title=f"{told['task']} (Z = {told['Z']:.2g})")
        axis.set_xlabel("distributions asked for, first sample")
        axis.set_ylabel("KL above the floor")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def write(report: dict[str, Any], document: Path) -> None:
    """Replaces what is between the marks of a document, and draws the plot beside it."""
    wide = report["wide"]
    parts = [
        "### Against restart CARS; a frontier of eight",
        ratios(report),
        "### Over 100 samples of one call: distributions computed per sample, and in a second call",
        amortised(report),
        f"### A place that allows {wide['allowed']} tokens",
        ", ".join(f"{name}: {value:.3g}" for name, value in wide.items() if name != "allowed"),
        "### First samples, task by task",
        *map(table, report["tasks"]),
    ]
    text = document.read_text(encoding="utf-8")
    inside = f"{_BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{_END}"
    found, count = re.subn(f"{re.escape(_BEGIN)}.*{re.escape(_END)}", lambda _: inside, text, flags=re.S)
    if count != 1:
        raise ValueError(f"{document} has no place for the tables: it needs {_BEGIN} and {_END}")
    document.write_text(found, encoding="utf-8")
    plot(report, document.parent / "plots" / "lookahead.svg")
