"""The ECMA-262 dialect: cases by hand, the shared cases, and random patterns against node where it is installed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskwright.errors import RegexError
from maskwright.grammar.ir import chars, merge_ranges
from maskwright.grammar.regex import pattern_ir
from maskwright.grammar.regex.unicode import general_category
from unit.grammar.naive import matches
from unit.grammar.node import judging

ROOT = Path(__file__).parents[3]
PLACES = (ROOT / "shared/data/regex_cases.jsonl", ROOT.parent / "shared/data/regex_cases.jsonl")
CASES = next((p for p in PLACES if p.is_file()), None)


def found(pattern: str, text: str) -> bool:
    return matches(pattern_ir(pattern, "ecma", "search"), text)


@pytest.mark.skipif(CASES is None, reason="the shared cases are not here")
def test_shared_cases() -> None:
    assert CASES is not None
    refused = []
    for case in map(json.loads, filter(None, CASES.read_text(encoding="utf-8").split("\n"))):
        pattern = case["pattern"]
        try:
            term = pattern_ir(pattern, "ecma", "search")
        except RegexError as error:
            if case.get("legal", True):
                refused.append(case["name"])
                assert "not supported" in str(error) or "not a known property" in str(error)
            continue
        assert case.get("legal", True), pattern
        for text in [t for t in case["accept"] if len(t) < 100]:
            assert matches(term, text), (pattern, text)
        for text in [t for t in case["reject"] if len(t) < 100]:
            assert not matches(term, text), (pattern, text)
    assert len(refused) == 1, refused  # an unbounded back-reference


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^\s$", "\t \ufeff\u2028\u00a0\u3000", "\u0085\u200b\u180e\x1c"),
        (r"^.$", "a\u0085\U0001f409", "\n\r\u2028\u2029"),
        (r"^[^]$", "a\n\u2028", ""),
        (r"^\cJ$", "\n", "J"),
        (r"^[\b\-\]\/\0]$", "\b-]/\0", "b\\"),
        (r"^\ud83d\udc09$", "\U0001f409", "\ud83d"),
        (r"^[\ud83d\udc09-\u{1F410}]$", "\U0001f409\U0001f410", "\U0001f411"),
        (r"^\p{gc=Lu}$", "AÉ", "aé1"),
        (r"^[\p{Nd}\P{L}]$", "1_", "aZ"),
        (r"^\p{LC}$", "aAǅ", "ª1"),
        (r"^[^\W\d]$", "aZ_", "1é"),
        (r"^$", "", "a"),
    ],
)
def test_by_hand(pattern: str, good: str, bad: str) -> None:
    assert [c for c in (good or [""]) if not found(pattern, c)] == []
    assert [c for c in bad if found(pattern, c)] == []


def test_white_space_is_that_of_the_standard() -> None:
    zs = general_category("Zs")
    assert zs is not None
    space = merge_ranges([*zs, (9, 13), (0x2028, 0x2029), (0xFEFF, 0xFEFF)])
    assert pattern_ir(r"\s", "ecma") == chars(space)


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ("a(b", 1),
        ("ab)", 2),
        (r"a\q", 1),
        ("a{2,1}", 1),
        ("a{", 1),
        ("x]", 1),
        ("[b-a]", 1),
        (r"[a-\d]", 1),
        ("**", 0),
        ("^*", 1),
        (r"\u{110000}", 0),
        (r"\x1", 0),
        (r"a\01", 1),
        ("(?<1>a)", 0),
        ("(?<a>a)(?<a>b)", 7),
        ("(?i:a)", 0),
        (r"\p{Foo}", 0),
        (r"\pL", 0),
        ("(?=a)*", 5),
        (r"\_", 0),
        (r"a\-", 1),
        ("a[", 1),
        ("\\", 0),
        (r"\c1", 0),
    ],
)
def test_errors_say_where(pattern: str, offset: int) -> None:
    with pytest.raises(RegexError) as caught:
        pattern_ir(pattern, "ecma")
    assert caught.value.location == f"offset {offset}"
    assert caught.value.hint


@pytest.fixture(scope="module")
def node() -> Iterator[Any]:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    with judging() as judge:
        yield judge


PIECES = [
    *"ab1,{}[]()|*+?^$.\\-:=<!> _",
    "\n",
    "é",
    "(?:",
    "(?<n>",
    "(?<m>",
    r"\1",
    r"\0",
    r"\01",
    r"\x41",
    r"\u00e9",
    r"\u{62}",
    r"\cJ",
    r"\c",
    r"\q",
    r"\b",
    r"\B",
    r"\-",
    r"\/",
    r"\$",
    "[^",
    "[]",
    "(?=",
    "(?=a)",
    "(?!ab)",
    "(?=.*b)",
    "(?!.*1$)",
    "(?<=a|ab)",
    "(?<!b+)",
    "(?!",
    "(?<=",
    "(?<!",
    r"\k<n>",
    "{2}",
    "{1,2}",
    "{,2}",
    "{2,1}",
    "{1}",
    "a*",
    "b+",
    r"\w",
    r"\W",
    r"\d-",
    r"\s",
    r"\S",
    "a-",
    "-b]",
    "a|",
    "(?",
    r"\p{L}",
    r"\P{Lu}",
    r"\p{Foo}",
    r"\ud83d\udc09",
    "\U0001f409",
    "^a",
    "b$",
    "[a-b]",
    "[^ab]",
    "(a|b)",
    "(?:ab)?",
    "(^a)?",
    "(b$)*",
]
TEXTS = st.lists(st.text(alphabet="ab1A_ \n\ré\u2028\U0001f409-{,", max_size=5), min_size=3, max_size=6)


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), TEXTS)
def test_node_agrees(node: Any, pattern: str, texts: list[str]) -> None:
    if r"\B" in pattern:  # V8 also looks between the halves of a surrogate pair, where ECMA-262 (22.2.7.2) does not
        texts = [t.replace("\U0001f409", "") for t in texts]
    verdicts = node(pattern, texts)
    try:
        term = pattern_ir(pattern, "ecma", "search")
    except RegexError as error:
        assert verdicts is None or "not supported" in str(error), (pattern, str(error))
        return
    assert verdicts is not None, pattern
    assert [matches(term, t) for t in texts] == verdicts, (pattern, texts)
