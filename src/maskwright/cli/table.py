"""``maskwright generate --input``: an output for every row of a CSV file.

Rows are appended to the output file as they are done, in the order of the input; a row that failed has an error in
place of a text. A run that was stopped goes on where it ended. Each row draws from a seed of its own, so that neither
that nor the batch changes a text.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maskwright as mw

if TYPE_CHECKING:
    from maskwright.engine.model import LanguageModel
    from maskwright.grammar.plan import Constraint

__all__ = ["run_table"]

_ADDED = ("output", "error")
# CSV holds what it is given; the reader's own bound is 128 KiB a field.
_LONGEST_FIELD = 1 << 30
# Of a template, as in Python's format strings: {column}, {{ and }} for braces, text.
_PARTS = re.compile(r"\{\{|\}\}|\{(?P<column>[^{}]*)\}|[^{}]+|[{}]")


@dataclass(frozen=True)
class _Table:
    columns: list[str]
    rows: list[list[str]]


def run_table(options: argparse.Namespace, constraint: Constraint | None, asked: dict[str, Any]) -> None:
    """Generates an output for every row that has none yet.

    Args:
        options: of the command line.
        constraint: of all outputs.
        asked: arguments of ``generate``.

    Raises:
        ValueError: a file is not what it must be, or some rows failed; what failed is in their column ``error``.
        OSError: a file cannot be read or written.
        ConstraintError: the constraint cannot be enforced.
    """
    from tqdm import tqdm

    from maskwright.engine.requests import compile_for

    source, target = Path(options.input), Path(options.output)
    if target.exists() and source.samefile(target):
        raise ValueError(f"{target} is the input: name another file as --output")
    table = _read(source.read_bytes(), str(source))
    prompt_of = _prompts(options, table.columns)
    for column in _ADDED:
        if column in table.columns:
            raise ValueError(f"{source} has a column {column!r} already, which the output adds: rename it")
    done, whole = _done(target, table)
    model = mw.load_model(options.model)
    # An error of the constraint is no row's.
    run = _Run(model, compile_for(model, constraint), asked, options.raw)
    _start(target, table, whole)
    failed = 0
    with tqdm(total=len(table.rows), initial=done, unit="row", disable=None) as bar:
        for start in range(done, len(table.rows), options.batch_size):
            rows = table.rows[start : start + options.batch_size]
            outputs = run.outputs([prompt_of(row) for row in rows], start)
            _append(target, [[*row, *output] for row, output in zip(rows, outputs, strict=True)])
            failed += sum(bool(error) for _, error in outputs)
            bar.update(len(rows))
    if failed:
        raise ValueError(f"{failed} of {len(table.rows) - done} rows failed: see the column 'error' of {target}")


def _read(data: bytes, name: str) -> _Table:
    """A table out of a CSV file: a header, and rows of as many fields."""
    csv.field_size_limit(_LONGEST_FIELD)
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        columns, rows = next(reader, []), []
        for row in reader:
            if row and len(row) != len(columns):
                raise ValueError(f"{name}, line {reader.line_num}: {len(row)} fields for {len(columns)} columns")
            if row:
                rows.append(row)
    except csv.Error as error:
        raise ValueError(f"{name}, line {reader.line_num}: {error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8: {error.reason} at byte {error.start}") from None
    if not columns:
        raise ValueError(f"{name} is empty: its first line names the columns")
    if len(set(columns)) != len(columns):
        raise ValueError(f"{name} names a column twice")
    return _Table(columns, rows)


def _prompts(options: argparse.Namespace, columns: Sequence[str]) -> Callable[[list[str]], str]:
    """What makes the prompt of a row: the template that was given, or a column."""
    at = {column: index for index, column in enumerate(columns)}

    def place(column: str) -> int:
        if column not in at:
            raise ValueError(f"there is no column {column!r} in {options.input}; it has {', '.join(columns)}")
        return at[column]

    if options.prompt is None:
        index = place(options.prompt_column)
        return lambda row: row[index]
    parts: list[str | int] = []
    for match in _PARTS.finditer(options.prompt):
        name = match["column"]
        parts.append({"{{": "{", "}}": "}"}.get(match[0], match[0]) if name is None else place(name))
    return lambda row: "".join(part if isinstance(part, str) else row[part] for part in parts)


def _done(target: Path, table: _Table) -> tuple[int, int]:
    """How many rows the output has already, and how many bytes they are; what follows is a row half written.

    Raises:
        ValueError: the file holds something else.
    """
    header = [*table.columns, *_ADDED]
    data = target.read_bytes() if target.exists() else b""
    whole = _whole_records(data)
    if not whole:
        if data:
            raise ValueError(f"{target} exists and is no output of {len(header)} columns: name another file")
        return 0, 0
    found = _read(data[:whole], str(target))
    rows = [row[: len(table.columns)] for row in found.rows]
    if found.columns != header or rows != table.rows[: len(rows)]:
        raise ValueError(f"{target} exists and holds other rows than the input's first ones: name another file")
    return len(rows), whole


def _start(target: Path, table: _Table, whole: int) -> None:
    """Writes the header where there is none, and cuts off a row half written."""
    if not whole:
        _append(target, [[*table.columns, *_ADDED]])
        return
    with target.open("r+b") as file:
        file.truncate(whole)


def _whole_records(data: bytes) -> int:
    """The length of the records that end: a line break between quotes ends none."""
    end, quotes, at = 0, 0, 0
    while (line := data.find(b"\n", at)) >= 0:
        quotes += data.count(b'"', at, line)
        at = line + 1
        if quotes % 2 == 0:
            end = at
    return end


def _append(target: Path, rows: list[list[str]]) -> None:
    """Adds rows in one piece, and waits until they are on the disk."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    with target.open("ab", buffering=0) as file:
        data = memoryview(text.getvalue().encode("utf-8", "replace"))
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())


class _Run:
    """What all rows share."""

    def __init__(
        self, model: LanguageModel, constraint: Any, asked: dict[str, Any], raw: bool
    ) -> None:
        from maskwright.engine.rng import derive, fresh_seed

        asked = dict(asked)
        self._seed: int = asked.pop("seed") if "seed" in asked else fresh_seed()
        self._derive = derive
        self._model, self._constraint, self._asked, self._raw = model, constraint, asked, raw

    def outputs(self, prompts: list[str], first: int) -> list[tuple[str, str]]:
        """Text and error of the rows from number ``first`` on; one of the two may be empty."""
        try:
            return self._together(prompts, first)
        except (mw.MaskwrightError, ValueError) as error:
            if len(prompts) == 1:
                return [("", str(error) or type(error).__name__)]
        # One row fails; the others get what they would have got together.
        return [output for at, prompt in enumerate(prompts) for output in self.outputs([prompt], first + at)]

    def _together(self, prompts: list[str], first: int) -> list[tuple[str, str]]:
        asked = dict(self._asked)
        if asked["sampling"] is not None:
            asked["seed"] = [self._derive(self._seed, first + at) for at in range(len(prompts))]
        chats: list[Any] = prompts if self._raw else [[{"role": "user", "content": text}] for text in prompts]
        results = mw.generate(self._model, chats, self._constraint, **asked)
        return [(r.text, "" if r.valid else f"the output is not finished ({r.finish_reason})") for r in results]
