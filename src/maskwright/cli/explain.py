"""``maskwright explain``: where and why a text is refused, and what was expected there."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import maskwright as mw

if TYPE_CHECKING:
    from maskwright.grammar.plan import Constraint

__all__ = ["add_arguments", "run_explain"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes beside a constraint."""
    parser.add_argument("text", help="what to explain; - reads standard input, without the end of its last line")


def run_explain(text: str, constraint: Constraint) -> int:
    """Prints the explanation. The exit code: 0 where the text is allowed as it stands, else 1."""
    if text == "-":
        # The bytes as they are: text mode would turn line ends into "\n" and refuse what is no UTF-8.
        data = sys.stdin.buffer.read()
        explanation = mw.explain(constraint, data.removesuffix(b"\n"))
    else:
        explanation = mw.explain(constraint, text)
    print(explanation)
    return 0 if explanation.complete else 1
