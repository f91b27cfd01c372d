"""Properties of code points against node, whose Unicode version is that of the table."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import maskwright.grammar.regex as package
from maskwright.errors import RegexError
from maskwright.grammar.ir import merge_ranges, negate_ranges
from maskwright.grammar.regex import pattern_ir
from maskwright.grammar.regex.properties import lookup_property
from unit.grammar.naive import matches

TABLE = Path(package.__file__).with_name("properties.txt").read_text(encoding="ascii").splitlines()
SCRIPT = """
let text = '';
for (let c = 0; c < 0x110000; c++) if (c < 0xd800 || c > 0xdfff) text += String.fromCodePoint(c);
const ends = run => { const all = [...run]; return [all[0].codePointAt(0), all.at(-1).codePointAt(0)]; };
const out = JSON.parse(require('fs').readFileSync(0)).map(
  name => [...text.matchAll(new RegExp(`\\\\p{${name}}+`, 'gu'))].map(found => ends(found[0])));
console.log(JSON.stringify(out));
"""


def names() -> list[str]:
    """Each name of the table as it stands between the braces."""
    found = []
    for kind, aliases, *_ in (line.split(" ", 2) for line in TABLE[1:]):
        found += [name if kind == "b" else f"{kind}={name}" for name in aliases.split("=")]
    return found


def node(wanted: list[str]) -> list[list[list[int]]]:
    """The runs of the code points of each property; an error where node does not know one."""
    result = subprocess.run(
        ["node", "-e", SCRIPT], input=json.dumps(wanted), capture_output=True, text=True, check=True
    )
    runs: list[list[list[int]]] = json.loads(result.stdout)
    return runs


def node_has_the_version() -> bool:
    if shutil.which("node") is None:
        return False
    command = ["node", "-p", "process.versions.unicode"]
    version = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return TABLE[0].startswith(f"# Unicode {version}.")


@pytest.mark.skipif(not node_has_the_version(), reason="node is not installed, or of another Unicode version")
def test_a_sample_of_the_table_is_that_of_node() -> None:
    assert len(names()) > 400
    sample = names()[::12]
    for name, runs in zip(sample, node(sample), strict=True):
        assert lookup_property(name) == merge_ranges((lo, hi) for lo, hi in runs), name


def test_every_entry_reads_as_ranges() -> None:
    for name in names():
        ranges = lookup_property(name)
        assert ranges and ranges[-1][1] <= 0x10FFFF and negate_ranges(negate_ranges(ranges)) == ranges, name


@pytest.mark.parametrize("dialect", ["python", "ecma"])
def test_by_hand(dialect: str) -> None:
    for pattern, good, bad in (
        (r"\p{Script=Greek}+", "αβγ", "abc"),
        (r"\p{sc=Grek}", "Ω", "\u0301"),
        (r"\p{scx=Grek}", "Ω\u0342", "a"),
        (r"[\p{Script=Han}\p{scx=Hira}]", "漢あー", "ア"),
        (r"\P{Script=Latin}", "1я", "aé"),
        (r"\p{Alphabetic}", "aªⓐ\u0345", "1_"),
        (r"\p{White_Space}", " \u0085\u3000", "\u200b\x1c"),
        (r"\p{Lowercase}", "aªⓐ", "A"),
        (r"\p{Upper}", "AⒶ", "a"),
    ):
        term = pattern_ir(pattern, dialect)  # type: ignore[arg-type]
        assert [c for c in good if not matches(term, c)] == [] == [c for c in bad if matches(term, c)], pattern


@pytest.mark.parametrize("name", ["Script=greek", "Greek", "Script=", "sc=Foo", "White_space", "Block=Greek", "scx"])
@pytest.mark.parametrize("dialect", ["python", "ecma"])
def test_names_are_strict(dialect: str, name: str) -> None:
    with pytest.raises(RegexError, match="not a known property") as caught:
        pattern_ir(rf"a\p{{{name}}}", dialect)  # type: ignore[arg-type]
    assert caught.value.location == "offset 1"
