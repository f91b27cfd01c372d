"""The command line: ``maskwright generate``, ``sample``, ``check``, ``explain`` and ``demo``.

What is asked for goes to standard output, errors to standard error. Exit codes: 0 done, 1 an error that the message
names (of `explain`: the text is refused or incomplete), 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maskwright as mw

if TYPE_CHECKING:
    from maskwright.grammar.plan import Constraint, ReportEntry

__all__ = ["main"]

_DEFAULT_MODEL = "smollm2-135m"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: of the command line, without the program's name; those of the process by default.

    Returns:
        The exit code.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except KeyboardInterrupt:
        return 130
    except (mw.MaskwrightError, OSError, ValueError) as error:
        print(f"maskwright: {_said(error)}", file=sys.stderr)
        return 1


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="maskwright", description="Language model output that obeys a format exactly."
    )
    parser.add_argument("--version", action="version", version=f"maskwright {mw.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_generate(commands.add_parser("generate", help="generate text, with or without a constraint"))
    _add_sample(commands.add_parser("sample", help="print valid texts, drawn without any model"))
    _add_check(commands.add_parser("check", help="tell how every keyword of a constraint is treated"))
    _add_explain(commands.add_parser("explain", help="tell where and why a text is refused, and what was expected"))
    demo = commands.add_parser("demo", help="the packaged model fills a form, a date and a label")
    demo.add_argument("--model", default=_DEFAULT_MODEL, help="name, path or hub id (default: %(default)s)")
    demo.set_defaults(run=_demo)
    return parser


def _add_constraint(parser: argparse.ArgumentParser, required: bool) -> None:
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument("--schema", metavar="FILE", help="a JSON Schema; - reads standard input")
    group.add_argument("--regex", metavar="PATTERN", help="a regular expression in Python's syntax, matched in full")
    group.add_argument("--choice", metavar="TEXT", action="append", help="one of the allowed texts; repeat it")
    group.add_argument("--grammar", metavar="FILE", help="a Lark grammar; or the name of a shipped one, such as sql")


def _add_generate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", help="what to ask; - reads standard input; {COLUMN} stands for a field")
    _add_constraint(parser, required=False)
    parser.add_argument("--model", default=_DEFAULT_MODEL, help="name, path or hub id (default: %(default)s)")
    parser.add_argument("--raw", action="store_true", help="continue the prompt as it stands, without a chat template")
    parser.add_argument("--max-tokens", type=int, help="the most tokens of an output, EOS included")
    parser.add_argument("--temperature", type=float, help="draw at this temperature instead of greedily")
    parser.add_argument("--top-k", type=int, default=0, help="draw from the K most probable tokens")
    parser.add_argument("--top-p", type=float, default=1.0, help="draw from the most probable tokens of this mass")
    parser.add_argument("--min-p", type=float, default=0.0, help="leave out tokens below this share of the best one's")
    parser.add_argument("--seed", type=int, help="draw, and draw the same again")
    parser.add_argument("-n", type=int, default=1, help="number of outputs")
    parser.add_argument("--stop", action="append", default=[], help="a string that ends the output; repeat it")
    parser.add_argument("--stream", action="store_true", help="print the text as it comes")
    parser.add_argument("--details", action="store_true", help="print the whole result as JSON, one a line")
    table = parser.add_argument_group("an output for every row of a table")
    table.add_argument("--input", metavar="CSV", help="rows to ask about; a stopped run goes on where it ended")
    table.add_argument("--output", metavar="CSV", help="gets the rows with the columns output and error")
    table.add_argument("--prompt-column", default="prompt", help="what to ask, without a prompt (default: %(default)s)")
    table.add_argument("--batch-size", type=int, default=8, help="rows that share a forward (default: %(default)s)")
    parser.set_defaults(run=_generate, wrong_usage=parser.error)


def _add_sample(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", help="a JSON Schema; - reads standard input")
    parser.add_argument("--regex", metavar="PATTERN", help="a regular expression instead")
    parser.add_argument("--choice", metavar="TEXT", action="append", help="one of the texts instead; repeat it")
    parser.add_argument("-n", type=int, default=1, help="number of texts (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="draw the same again")
    parser.add_argument("-z", "--null", action="store_true", help="end each text with a NUL instead of a line break")
    parser.set_defaults(run=_sample, wrong_usage=parser.error)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", help="a JSON Schema, or a grammar (.lark); - reads standard input")
    parser.add_argument("--regex", metavar="PATTERN", help="check a regular expression instead")
    parser.add_argument("--start", action="append", help="of a grammar: its start rule (default: start)")
    parser.add_argument("--parser", default="earley", help="of a grammar: earley, lalr or cyk (default: %(default)s)")
    parser.add_argument("--lexer", default="auto", help="of a grammar: its lexer (default: %(default)s)")
    parser.set_defaults(run=_check)


def _add_explain(parser: argparse.ArgumentParser) -> None:
    from maskwright.cli import distribution, explain

    explain.add_arguments(parser)
    distribution.add_arguments(parser)
    _add_constraint(parser, required=True)
    parser.set_defaults(run=_explain, wrong_usage=parser.error)


def _read(path: str) -> str:
    return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")


def _constraint(options: argparse.Namespace) -> Constraint | None:
    if options.schema is not None:
        return mw.JsonSchema(_read(options.schema))
    if options.regex is not None:
        return mw.Regex(options.regex)
    if options.grammar is not None:
        return _grammar(options.grammar)
    return mw.Choice(options.choice) if options.choice else None


def _grammar(name: str) -> Constraint:
    return mw.Lark.open(name) if name.endswith(".lark") else mw.Lark.shipped(name)


def _sampling(options: argparse.Namespace) -> mw.Sampling | None:
    rules = (options.top_k, options.top_p, options.min_p)
    if options.temperature is None and options.seed is None and options.n == 1 and rules == (0, 1.0, 0.0):
        return None
    temperature = 1.0 if options.temperature is None else options.temperature
    return mw.Sampling(temperature, *rules)


def _asked(options: argparse.Namespace, sampling: mw.Sampling | None) -> dict[str, Any]:
    asked: dict[str, Any] = {"sampling": sampling, "max_tokens": options.max_tokens, "stop": options.stop}
    return asked if options.seed is None else {**asked, "seed": options.seed}


def _check_usage(options: argparse.Namespace) -> None:
    if (options.input is None) != (options.output is None):
        options.wrong_usage("--input and --output go together")
    if options.input is None and options.prompt is None:
        options.wrong_usage("say what to ask: a prompt, or --input with --output")
    if options.input is not None and (options.n > 1 or options.stream or options.details or options.prompt == "-"):
        options.wrong_usage("--input gives one output per row: leave out -n, --stream, --details and the prompt -")
    if options.batch_size < 1:
        options.wrong_usage(f"--batch-size is {options.batch_size}; it must be at least 1")


def _generate(options: argparse.Namespace) -> None:
    _check_usage(options)
    constraint, sampling = _constraint(options), _sampling(options)  # what is wrong is said before a model loads
    if options.input is not None:
        from maskwright.cli.table import run_table

        run_table(options, constraint, _asked(options, sampling))
        return
    if options.stream and (options.n > 1 or options.details):
        raise ValueError("--stream prints one text; leave out -n and --details")
    text = _read("-") if options.prompt == "-" else options.prompt
    model = mw.load_model(options.model)
    prompt: Any = text if options.raw else [{"role": "user", "content": text}]
    asked = _asked(options, sampling)
    if options.stream:
        for chunk in mw.stream(model, prompt, constraint, **asked):
            print(chunk.text, end="", flush=True)
        print()
        return
    results = mw.generate(model, prompt, constraint, n=options.n, **asked)
    for result in results if isinstance(results, list) else [results]:
        print(json.dumps(_details(result), ensure_ascii=False) if options.details else result.text)


def _sample(options: argparse.Namespace) -> None:
    if (options.file is not None) + (options.regex is not None) + bool(options.choice) != 1:
        options.wrong_usage("sample takes one of a schema file, --regex PATTERN and --choice TEXT")
    constraint: Constraint
    if options.file is not None:
        constraint = mw.JsonSchema(_read(options.file), whitespace="compact")  # a text a line
    else:
        constraint = mw.Choice(options.choice) if options.choice else mw.Regex(options.regex)
    for text in mw.sample(constraint, options.n, options.seed):
        print(text, end="\0" if options.null else "\n")


def _details(result: mw.Result) -> dict[str, Any]:
    """A result as plain JSON; the value is left out where it is an object of a program."""
    plain = dataclasses.asdict(dataclasses.replace(result, value=None, manifest={}))
    return {**plain, "value": result.value, "manifest": dict(result.manifest)}


def _check(options: argparse.Namespace) -> None:
    if options.file is not None and options.file.endswith(".lark"):
        from maskwright.cli.grammar import check_grammar

        return check_grammar(options)
    if (options.file is None) == (options.regex is None):
        raise ValueError("check takes a schema file or --regex PATTERN")
    constraint: Constraint = mw.Regex(options.regex) if options.file is None else mw.JsonSchema(_read(options.file))
    entries = list(constraint.plan(mw.CompileLimits()).report)
    if entries:
        _print_table(entries)
    counts = {
        status: sum(entry.status == status for entry in entries) for status in dict.fromkeys(e.status for e in entries)
    }
    print(
        ", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing to report: enforced as it stands"
    )


def _print_table(entries: Sequence[ReportEntry]) -> None:
    rows = [("where", "keyword", "status", "cost", "how")]
    rows += [(entry.pointer or "#", entry.keyword, entry.status, entry.cost, entry.detail) for entry in entries]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip())
    print()


def _explain(options: argparse.Namespace) -> int:
    from maskwright.cli.distribution import run_distribution
    from maskwright.cli.explain import run_explain

    constraint = _constraint(options)
    assert constraint is not None
    if options.distribution:
        return run_distribution(options, constraint)
    if options.html is not None:
        options.wrong_usage("--html goes with --distribution")
    return run_explain(options.text, constraint)


def _demo(options: argparse.Namespace) -> None:
    from maskwright.cli.demo import run_demo

    run_demo(mw.load_model(options.model))
