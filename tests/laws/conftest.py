"""The laws run in one process, so that what their generators produced is counted together."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("laws"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))  # many examples in one test
