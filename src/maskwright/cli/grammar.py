"""``maskwright check grammar.lark``: compiles a grammar and says what is odd about it."""

from __future__ import annotations

import argparse

import maskwright as mw

__all__ = ["check_grammar"]


def check_grammar(options: argparse.Namespace) -> None:
    """Prints the report and the remarks. Raises LarkError where the grammar cannot be enforced."""
    start = options.start or "start"
    grammar = mw.Lark.open(options.file, start=start, parser=options.parser, lexer=options.lexer)
    print(*grammar.plan(mw.CompileLimits()).report, sep="\n")
    remarks = grammar.lint()
    for remark in remarks:
        print(remark)
    print(f"{len(remarks)} remarks" if remarks else "no remarks")
