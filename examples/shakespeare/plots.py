"""The measurements as pictures."""

import pathlib

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "maskwright"  # the same picture from the same numbers

from experiments import Measured  # noqa: E402
from matplotlib import pyplot  # noqa: E402


def draw_all(folder: pathlib.Path, measured: dict[str, Measured], sets: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    for name, found in measured.items():
        marker = "*" if name == "human" else "o"
        left.plot(found.nats, found.real_words, marker, markersize=12 if name == "human" else 6)
        left.annotate(name, (found.nats, found.real_words), fontsize=7, xytext=(4, 3), textcoords="offset points")
    left.set(xlabel="nats per character under the model", ylabel="share of real words")
    names = list(measured)
    right.barh(names, [measured[name].repeated for name in names])
    right.set(xlabel="repeated word trigrams")
    right.invert_yaxis()
    save(figure, folder / "words-and-repeats.svg")

    figure, axes = pyplot.subplots(figsize=(6, 4.2))
    for name in ("human", "greedy", "temperature 0.5", "temperature 1", "top-p 0.8", "temperature 1.3"):
        values = sorted(measured[name].probabilities)
        axes.plot(values, [i / len(values) for i in range(len(values))], label=name)
    axes.set(xlabel="probability of the character", ylabel="share of characters below")
    axes.legend(fontsize=7)
    save(figure, folder / "probabilities.svg")

    figure, axes = pyplot.subplots(figsize=(6, 4.2))
    for shift, kind in ((-0.2, "word start"), (0.2, "inside a word")):
        axes.barh([i + shift for i in range(len(sets))], [sets[name][kind][0] for name in sets], 0.4, label=kind)
    axes.set(yticks=range(len(sets)), yticklabels=list(sets), xlabel="characters that stay (mean of 200 places)")
    axes.invert_yaxis()
    axes.legend()
    save(figure, folder / "kept-sets.svg")


def save(figure, path: pathlib.Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
