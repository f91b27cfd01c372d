"""The grammars that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# The options that each is written for.
SHIPPED: dict[str, dict[str, Any]] = {
    "arithmetic": {"parser": "lalr"},
    "csv": {"parser": "lalr"},
    "iso8601": {"parser": "earley", "lexer": "dynamic"},
    "json": {"parser": "lalr"},
    "python": {"parser": "lalr", "postlex": "python"},
    "sql": {"parser": "lalr", "lexer": "basic"},
}


def shipped_path(name: str) -> Path:
    """The file of a shipped grammar. Raises ValueError for other names, with those that there are."""
    if name not in SHIPPED:
        raise ValueError(f"no grammar {name!r} is shipped: there are {', '.join(sorted(SHIPPED))}")
    from maskwright import _core

    package = Path(__file__).resolve().parents[2]
    # Installed beside the package, beside the core of an editable install, or in the checkout.
    homes = (package, Path(str(_core.__file__)).parent, package.parents[1])
    folders = [home / "grammars" for home in homes]
    for folder in folders:
        if (found := folder / f"{name}.lark").is_file():
            return found
    raise FileNotFoundError(f"the package was installed without its grammars: {name}.lark is not in {folders[0]}")


def write_lowered_forms() -> None:
    """Writes the lowered forms beside the grammars of a checkout: `python -m maskwright.grammar.lark.shipped`."""
    from maskwright.grammar.lark import Lark
    from maskwright.grammar.lark.stored import shipped_key, write_lowered

    for name, options in SHIPPED.items():
        path = Path(__file__).resolve().parents[4] / "grammars" / f"{name}.lark"
        text = path.read_text(encoding="utf-8")
        write_lowered(path.with_suffix(".lowered"), shipped_key(text), Lark(text, **options).surveyed())


if __name__ == "__main__":
    write_lowered_forms()
