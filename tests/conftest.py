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


# How often each construct occurred in the examples of the laws: counted where they ran, printed at the end.
_constructs: list[str] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    from laws import coverage

    output = getattr(session.config, "workeroutput", None)  # of a pytest-xdist worker
    if output is None:
        _constructs.extend(coverage.table())
    else:
        output["constructs"] = coverage.table()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    _constructs.extend(getattr(node, "workeroutput", {}).get("constructs", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _constructs:
        terminalreporter.section("constructs in the examples of the laws")
        for line in _constructs:
            terminalreporter.write_line(line)
