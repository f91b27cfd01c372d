"""What the unit tests share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for cached files that is not the user's."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(folder))
    return folder
