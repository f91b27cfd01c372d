"""``maskwright explain --distribution``: where a format fights the model, for a prompt."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maskwright as mw

if TYPE_CHECKING:
    from maskwright.grammar.plan import Constraint

__all__ = ["add_arguments", "run_distribution"]

_ALTERNATIVES = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes for it."""
    group = parser.add_argument_group("where a format fights a model; the text is the prompt then")
    group.add_argument("--distribution", action="store_true", help="tell what masks remove of the model's mass")
    group.add_argument("--html", metavar="FILE", help="also write a page with plots")
    group.add_argument("--model", default="smollm2-135m", help="name, path or hub id (default: %(default)s)")
    group.add_argument("--raw", action="store_true", help="continue the prompt as it stands, without a chat template")
    group.add_argument("-n", type=int, default=8, help="outputs to draw (default: %(default)s)")
    group.add_argument("--max-tokens", type=int, help="the most tokens of an output, EOS included")
    group.add_argument("--temperature", type=float, default=1.0, help="of the draws (default: %(default)s)")
    group.add_argument("--seed", type=int, default=0, help="of the draws (default: %(default)s)")


def run_distribution(options: argparse.Namespace, constraint: Constraint) -> int:
    """Draws outputs by masking, prints the diagnosis and writes the page."""
    if options.temperature <= 0:
        raise ValueError(f"--temperature is {options.temperature}; outputs are drawn, so it must be greater than 0")
    text = sys.stdin.read() if options.text == "-" else options.text
    model = mw.load_model(options.model)
    prompt: Any = text if options.raw else [{"role": "user", "content": text}]
    results = mw.generate(
        model, [prompt], constraint, n=options.n, sampling=mw.Sampling(temperature=options.temperature),
        seed=options.seed, max_tokens=options.max_tokens, logprobs=_ALTERNATIVES,
    )  # fmt: skip
    (outputs,) = results
    found = mw.diagnose(outputs, model.vocabulary)
    print(found)
    if options.html is not None:
        Path(options.html).write_text(found.html(), encoding="utf-8")
        print(f"\nwritten to {options.html}")
    return 0
