"""Real schemas with valid and invalid instances (MaskBench): most compile, none of their instances is judged wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import maskwright as mw

COUNT = 300
AT_LEAST = 260


@pytest.fixture(scope="module")
def vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary([*(bytes([byte]) for byte in range(256)), b"<eos>"], eos_ids=[256], special_ids=[256])


def test_real_schemas(shared_data: Path, vocabulary: mw.Vocabulary) -> None:
    path = shared_data / "maskbench.open.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no real schemas: {path} is no file")
    compiled_count, wrong = 0, []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line, _ in zip(lines, range(COUNT), strict=False):
            case = json.loads(line)
            text = json.dumps(case["schema"])
            schema = mw.JsonSchema(text, key_order="any", whitespace="any", numbers="full", escapes="any")
            try:
                compiled = mw.compile(schema, vocabulary)
            except mw.ConstraintError as error:
                assert isinstance(error.location, str)
                continue
            compiled_count += 1
            for test in case["tests"]:
                matcher = compiled.matcher()
                accepted = matcher.accept_text(json.dumps(test["data"])) and matcher.is_accepting
                if accepted != test["valid"]:
                    wrong.append((case["id"], test["data"]))
    assert wrong == []
    assert compiled_count >= AT_LEAST
