"""A module imports only from layers to the left of its own, and nothing third-party on top."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "maskwright"

LAYERS = [
    "errors",
    "_core",
    "_arguments", "_files",
    "_forks",
    "_interrupt",
    "vocabulary",
    "grammar",
    "compiler",
    "compilation",
    "matcher",
    "masks",
    "explanation",
    "texts",
    "logits",
    "engine",
    "generation",
    "generation_async",
    "integrations",
    "reference",
    "cli",
]

# The oracle shares no code with what it judges.
REFERENCE_MAY_IMPORT = {"errors", "vocabulary", "grammar", "reference"}

# For type checkers only: an error says of what type the result is that it carries.
ANNOTATION_ONLY = {"errors": {"engine"}}

FILES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    """Name a file as it is imported, e.g. ``maskwright.grammar.ir``."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Return the absolute names of the modules that a file imports, wherever in it."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            names.update({f"{source}.{alias.name}" for alias in node.names} if source == "maskwright" else {source})
    return names


def own_layers(path: Path) -> set[str]:
    """Return the layers of the package that a file imports from."""
    names = [name.split(".") for name in imported(path)]
    return {name[1] for name in names if name[0] == "maskwright" and len(name) > 1}


def test_every_module_has_a_layer() -> None:
    layers = {module_name(path).split(".")[1] for path in FILES if path != PACKAGE / "__init__.py"}
    assert layers - {"__main__"} <= set(LAYERS)


@pytest.mark.parametrize("path", [p for p in FILES if p.parent != PACKAGE or p.stem[:2] != "__"], ids=module_name)
def test_imports_come_from_the_left(path: Path) -> None:
    layer = module_name(path).split(".")[1]
    allowed = REFERENCE_MAY_IMPORT if layer == "reference" else set(LAYERS[: LAYERS.index(layer) + 1])
    assert own_layers(path) <= allowed | ANNOTATION_ONLY.get(layer, set())


def test_the_package_top_imports_little_but_the_standard_library() -> None:
    statements = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")).body
    executed = [node for node in statements if isinstance(node, (ast.Import, ast.ImportFrom))]
    modules = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in executed}
    for module in modules - {"maskwright.errors", "maskwright._forks"}:
        assert module is not None and module.split(".")[0] in sys.stdlib_module_names
