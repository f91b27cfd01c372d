r"""Properties of code points, as ``\p{..}`` names them in both dialects.

General categories are those of the running Python's `unicodedata`; scripts and binary properties come from a table
(`properties.txt`, written by tools/unicode_properties.py) of the Unicode version in its first line. Names are spelled
as in UAX #44, which ECMA-262 (tables 66 to 69) asks for.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from maskwright.grammar.ir import ANY, Ranges, merge_ranges, negate_ranges
from maskwright.grammar.regex.unicode import general_category

_VALUED = {"Script": "sc", "sc": "sc", "Script_Extensions": "scx", "scx": "scx"}


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], str]:
    """The written ranges, by the kind of property (sc, scx, b for binary) and its name."""
    text = Path(__file__).with_name("properties.txt").read_text(encoding="ascii")
    found: dict[tuple[str, str], str] = {}
    for line in text.splitlines()[1:]:
        kind, names, ranges = line.split(" ", 2)
        found.update(((kind, name), ranges) for name in names.split("="))
    return found


@lru_cache(maxsize=64)
def _tabled(kind: str, name: str) -> Ranges | None:
    written = _table().get((kind, name))
    if written is None:
        return _tabled("sc", name) if kind == "scx" else None  # where the extensions are none
    found, at = [], 0
    for entry in written.split():
        gap, _, length = entry.partition("-")
        at += int(gap, 16)
        end = at + int(length or "1", 16)
        found.append((at, end - 1))
        at = end
    return merge_ranges(found)


def lookup_property(name: str) -> Ranges | None:
    r"""The code points of what stands between the braces of ``\p{..}``; None for no known property."""
    key, equals, value = name.partition("=")
    if equals:
        if key in ("gc", "General_Category"):
            return general_category(value)
        return _tabled(_VALUED[key], value) if key in _VALUED else None
    if name == "ASCII":
        return ((0, 127),)
    if name == "Any":
        return ANY.ranges
    if name == "Assigned":
        return negate_ranges(general_category("Cn") or ())
    category = general_category(name)
    return _tabled("b", name) if category is None else category
