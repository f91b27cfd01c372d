"""The laws run in one process, so that what their generators produced is counted together; those of Lark in another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session", autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Lowered grammars of earlier runs, or with faults planted in them, are not found again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("lark laws" if "lark" in item.path.name else "laws"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))  # many examples in one test
