"""Speculative decoding of the character model with trigrams counted from its training text.

    python examples/shakespeare/speculation.py --plots docs/plots

Draws texts with windows of 1, 2, 4 and 8 drafted characters, and sets the characters per pass of the model beside what
the acceptance rate alone predicts. The model is the one that `python examples/shakespeare` trained.
"""

import argparse
import dataclasses
import pathlib

import corpus
import experiments
import network
import torch

import maskwright as mw
from maskwright.engine.speculation.tally import Tally, predicted_tokens

GAMMAS = (1, 2, 4, 8)
RULES = {"temperature 1": mw.Sampling(), "temperature 0.5": mw.Sampling(0.5), "greedy": mw.Sampling(0)}


@dataclasses.dataclass
class Measured:
    """Of one rule and window length; characters are those per pass of the model that verified a draft."""

    acceptance: float
    characters: float
    predicted: float


def measured(
    model: network.Characters, prompts: list[str], rule: mw.Sampling, draft: mw.NGram, gamma: int, variant: str
) -> Measured:
    """Characters per pass over the texts that follow some prompts."""
    how = mw.Speculative(draft, gamma=gamma, variant=variant)
    results = mw.generate(
        model, prompts, sampling=rule, seed=0, strategy=how, max_tokens=experiments.LENGTH, batch_size=experiments.BATCH
    )
    total = Tally()
    for result in results:
        told = result.stats.speculation
        for name in ("windows", "tokens", "tested", "accepted", "lengths"):
            setattr(total, name, getattr(total, name) + getattr(told, name))
    return Measured(total.acceptance, total.tokens_per_window, total.predicted)


def table(model: network.Characters, text: str, held_out: str, texts: int) -> dict[tuple[str, str], list[Measured]]:
    """Rule and variant -> what was measured for each window length."""
    prompts, draft = experiments.prompts(held_out, texts), mw.NGram(3, text)
    variants = [(name, "both") for name in RULES] + [("temperature 1", "coupled")]
    return {
        (name, variant): [measured(model, prompts, RULES[name], draft, gamma, variant) for gamma in GAMMAS]
        for name, variant in variants
    }


def draw(found: dict[tuple[str, str], list[Measured]], path: pathlib.Path) -> None:
    """Characters per pass against the window: points measured, lines predicted from the mean acceptance."""
    import plots
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4.2))
    for (name, variant), rows in found.items():
        (points,) = axes.plot(GAMMAS, [row.characters for row in rows], "o", label=f"{name}, {variant}")
        rate = sum(row.acceptance for row in rows) / len(rows)
        lengths = range(1, max(GAMMAS) + 1)
        line = [predicted_tokens(rate, length) for length in lengths]
        axes.plot(lengths, line, color=points.get_color(), linewidth=1)
    axes.set(xlabel="drafted characters", ylabel="characters per pass of the model", xticks=GAMMAS)
    axes.legend(fontsize=7)
    plots.save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--model", type=pathlib.Path, default=corpus.folder() / "shakespeare.pt")
    parser.add_argument("--plots", type=pathlib.Path, help="a folder for the picture (needs matplotlib)")
    options = parser.parse_args()
    if not options.model.exists():
        parser.error(f"{options.model} does not exist; python examples/shakespeare trains it")
    text, held_out = corpus.texts()
    found = table(network.Characters(torch.load(options.model, weights_only=True)), text, held_out, options.texts)
    print("| rule | variant | gamma | acceptance | characters per pass | predicted | difference |")
    print("|---|---|---|---|---|---|---|")
    for (name, variant), rows in found.items():
        for gamma, row in zip(GAMMAS, rows, strict=True):
            cells = [f"{row.acceptance:.3f}", f"{row.characters:.2f}", f"{row.predicted:.2f}"]
            print(f"| {name} | {variant} | {gamma} | {' | '.join(cells)} | {row.characters - row.predicted:+.2f} |")
    if options.plots:
        draw(found, options.plots / "speculation.svg")


if __name__ == "__main__":
    main()
