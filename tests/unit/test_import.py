"""``import maskwright`` is light."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"numpy", "torch", "transformers", "tokenizers", "pydantic", "jsonschema", "lark", "interegular", "tqdm"}


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_no_dependency() -> None:
    loaded = run("import sys, maskwright; print(*{name.split('.')[0] for name in sys.modules})")
    assert not HEAVY & set(loaded.split())
    assert "maskwright" in loaded.split()


@pytest.mark.parametrize("module", ["errors", "vocabulary", "grammar.plan", "compiler"])
def test_constraints_need_no_torch(module: str) -> None:
    loaded = run(f"import sys, maskwright.{module}; print(*sys.modules)")
    assert not {"torch", "transformers"} & set(loaded.split())


@pytest.mark.slow  # by the clock: not for a busy machine
def test_import_takes_under_a_tenth_of_a_second() -> None:
    # The best of several: the budget is for the import, not for a busy machine.
    code = "import time; start = time.perf_counter(); import maskwright; print(time.perf_counter() - start)"
    assert min(float(run(code)) for _ in range(5)) < 0.1
