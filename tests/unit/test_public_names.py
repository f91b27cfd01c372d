"""The names of the package: all resolve, and the lists that name them agree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import maskwright
from maskwright import errors

TREE = ast.parse(Path(maskwright.__file__).read_text(encoding="utf-8"))


def test_all_has_no_duplicates() -> None:
    assert len(set(maskwright.__all__)) == len(maskwright.__all__)


def test_all_is_the_lazy_names_and_the_errors() -> None:
    assert set(maskwright.__all__) == set(maskwright._LAZY) | set(errors.__all__)


def test_type_checkers_see_the_same_modules() -> None:
    block = next(node for node in TREE.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == {name: f"maskwright.{module}" for name, module in maskwright._LAZY.items()}


@pytest.mark.parametrize("name", maskwright.__all__)
def test_name_resolves(name: str) -> None:
    value = getattr(maskwright, name)
    assert callable(value)
    assert value.__name__ == name
    assert value.__doc__


def test_dir_lists_every_name() -> None:
    assert set(maskwright.__all__) <= set(dir(maskwright))


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = maskwright.nonsense
