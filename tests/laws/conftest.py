"""Prints at the end how often each construct occurred in the examples of the laws."""

from __future__ import annotations

import pytest

from laws import coverage


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if coverage.examples:
        terminalreporter.section("constructs in the examples of the laws")
        for line in coverage.table():
            terminalreporter.write_line(line)
