"""Verdicts of node on patterns of ECMA-262, from one process for many of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SCRIPT = """
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const {pattern, texts} = JSON.parse(line);
  let out = null;
  try { const r = new RegExp(pattern, 'u'); out = texts.map(t => r.test(t)); } catch (e) {}
  console.log(JSON.stringify(out));
});
"""
Judge = Callable[[str, list[str]], "list[bool] | None"]


@contextmanager
def judging() -> Iterator[Judge]:
    """A function from a pattern and texts to whether each matches; None for what is no pattern."""
    with subprocess.Popen(
        ["node", "-e", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        reader, writer = process.stdout, process.stdin

        def judge(pattern: str, texts: list[str]) -> list[bool] | None:
            writer.write(json.dumps({"pattern": pattern, "texts": texts}) + "\n")
            writer.flush()
            verdicts: list[bool] | None = json.loads(reader.readline())
            return verdicts

        yield judge
        writer.close()
