"""Print the requirements of pyproject.toml, with those of the named extras.

The development environment installs dependencies and the package in two steps, so
that recompiling the core never asks the package index.

Usage: python tools/extras.py pyproject.toml EXTRA...
"""

import re
import sys
from pathlib import Path


def array(text: str, name: str) -> list[str]:
    """Return the strings of a TOML array of strings (tomllib needs Python 3.11)."""
    found = re.search(rf"^{re.escape(name)} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"{name}: no such array")
    return re.findall(r'"([^"]+)"', found.group(1))


def main() -> None:
    """Print one requirement a line."""
    path, *extras = sys.argv[1:]
    text = Path(path).read_text(encoding="utf-8")
    for name in ["dependencies", *extras]:
        print("\n".join(array(text, name)))


if __name__ == "__main__":
    main()
