"""The official JSON Schema test suite, judged by matchers over single bytes.

Every schema is either refused by a ConstraintError that names a place, or judged right on all of its data: a valid one
is accepted in the order in which it is given (`key_order="any"`), an invalid one in no writing.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw

DRAFTS = {"draft2020-12": "2020-12", "draft2019-09": "2019-09", "draft7": "7"}
# Groups of which every datum is judged right, at least: what was reached, so that nothing is lost unnoticed.
WHOLLY_RIGHT = {
    ("draft2020-12", "required"): 357,
    ("draft2019-09", "required"): 346,
    ("draft7", "required"): 235,
    ("draft2020-12", "optional"): 47,
    ("draft2019-09", "optional"): 46,
    ("draft7", "optional"): 34,
    ("draft2020-12", "format"): 18,
    ("draft2019-09", "format"): 18,
    ("draft7", "format"): 16,
}
# Drafts from 2019-09 on say that content is an annotation; here it is one in draft 7 too, where that is left open.
ANNOTATIONS = {"content"}


class Lexeme(float):
    """A number that remembers how it is written in the suite."""

    text: str


def lexeme(text: str) -> Lexeme:
    number = Lexeme(text)
    number.text = text
    return number


def write(value: Any, spaced: bool = False, ascii_only: bool = False) -> str:
    comma, colon = (", ", ": ") if spaced else (",", ":")

    def inner(v: Any) -> str:
        return write(v, spaced, ascii_only)

    if isinstance(value, Lexeme):
        return value.text
    if isinstance(value, dict):
        return "{" + comma.join(inner(k) + colon + inner(v) for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + comma.join(map(inner, value)) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


def groups(data: Path, draft: str, part: str) -> Iterator[dict[str, Any]]:
    path = data / "jsts" / f"{draft}.{part}.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"the test suite is not at hand: {path} is no file")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line, parse_float=lexeme)


def writings(value: Any) -> list[str]:
    texts = [write(value, spaced, ascii_only) for spaced in (False, True) for ascii_only in (False, True)]
    return [text for text in dict.fromkeys(texts) if not any("\ud800" <= c <= "\udfff" for c in text)]


def accepts(compiled: mw.CompiledGrammar, text: str) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_text(text) and matcher.is_accepting


@pytest.fixture(scope="module")
def vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary([*(bytes([byte]) for byte in range(256)), b"<eos>"], eos_ids=[256], special_ids=[256])


def remotes(data: Path) -> dict[str, Any]:
    """The documents that the suite's references to other documents mean."""
    path = data / "jsts" / "remotes.json.gz"
    if not path.is_file():
        pytest.skip(f"the test suite is not at hand: {path} is no file")
    with gzip.open(path, "rt", encoding="utf-8") as text:
        found: dict[str, Any] = json.load(text)
    return found


def judge(
    group: dict[str, Any], draft: str, formats: Any, registry: dict[str, Any], vocabulary: mw.Vocabulary
) -> list[bool] | None:
    """For each datum whether it is judged right; None where the schema is refused."""
    schema = mw.JsonSchema(
        write(group["schema"]),
        key_order="any",
        numbers="full",
        escapes="any",
        formats=formats,
        registry=registry,
        default_draft=DRAFTS[draft],  # type: ignore[arg-type]
    )
    try:
        compiled = mw.compile(schema, vocabulary)
    except mw.UnsatisfiableError:
        return [not test["valid"] for test in group["tests"]]
    except mw.ConstraintError as error:
        assert isinstance(error.location, str) and error.message
        return None
    return [any(accepts(compiled, text) for text in writings(test["data"])) == test["valid"] for test in group["tests"]]


def is_left_out(group: dict[str, Any], test: dict[str, Any]) -> bool:
    """Host names with labels in Punycode: over-constrained, as the report says."""
    return group["file"] == "hostname" and test["valid"] and "xn--" in test["data"]


@pytest.mark.parametrize(("draft", "part"), WHOLLY_RIGHT)
def test_right_or_refused(draft: str, part: str, shared_data: Path, vocabulary: mw.Vocabulary) -> None:
    wrong, count, registry = [], Counter[str](), remotes(shared_data)
    for group in groups(shared_data, draft, part):
        plain = part == "required" and group["file"] == "format"
        formats = "assert" if part == "format" else "annotate"
        verdicts = judge(group, draft, formats, registry, vocabulary)
        if verdicts is None:
            count["refused"] += 1
        elif all(verdicts):
            count["right"] += not plain
        elif group["file"] not in ANNOTATIONS:
            wrong += [
                f"{group['file']}: {group['description']}: {test['description']}"
                for test, right in zip(group["tests"], verdicts, strict=True)
                if not right and not is_left_out(group, test)
            ]
    assert wrong == []
    assert count["right"] >= WHOLLY_RIGHT[draft, part], count
