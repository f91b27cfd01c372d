"""What every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The folder of pyproject.toml."""
    return ROOT


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of shared test data, which no checkout needs to have.

    It is found by the environment variable MASKWRIGHT_SHARED or as ``../shared``; the
    test is skipped where there is none.
    """
    named = os.environ.get("MASKWRIGHT_SHARED")
    path = Path(named) if named else ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip(f"no shared test data: {path} is not a folder (set MASKWRIGHT_SHARED)")
    return path


@pytest.fixture(scope="session")
def shared_data(shared_dir: Path) -> Path:
    """The folder ``data`` of the shared test data."""
    path = shared_dir / "data"
    if not path.is_dir():
        pytest.skip(f"no shared test data: {path} is not a folder")
    return path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how often each construct occurred in the examples of the laws, as test_zz_coverage.py counted."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    lines = [str(value) for report in reports for name, value in report.user_properties if name == "constructs"]
    if lines:
        terminalreporter.section("constructs in the examples of the laws")
        for line in lines:
            terminalreporter.write_line(line)
