r"""Terminals under `regex=True`, which lark matches with the `regex` package: `\p{..}` and its own classes.

Expressions are read by the parser of `re`, with a private character for each property; what one of the packages reads
differently is refused. Which characters a class has is asked of the installed package itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from maskwright.errors import LarkError

_PROPERTY = re.compile(r"(\\\\)|\\([pP])(\{\^?[\w =:.&-]+\}|[A-Z])|\\(.)", re.S)
_FIRST = 0x10F000  # of plane 16, private use
_OTHERWISE = (
    (re.compile(r"\[\["), "nested classes"),
    (re.compile(r"\[:"), "POSIX classes"),
    (re.compile(r"(?<!\\)\{(?![0-9,]+\})"), "fuzzy matching"),
)


def need_regex() -> Any:
    """The package. Raises LarkError where it is not installed."""
    try:
        import regex
    except ImportError:
        hint = "Install the package `regex`: pip install regex"
        raise LarkError("regex=True needs the package regex", location="option regex", hint=hint) from None
    return regex


def with_placeholders(pattern: str, refuse: Callable[[str, str], Any]) -> tuple[str, dict[int, str]]:
    r"""The expression as `re` can read it, and what its private characters stand for.

    Args:
        pattern: with `\p{..}`.
        refuse: called with what is wrong and how to write it; raises.
    """
    properties: dict[int, str] = {}
    if any(_FIRST <= ord(c) < _FIRST + 0x1000 for c in pattern):
        refuse("has private characters beside regex=True", "Write them as a range of more characters")

    def put(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[0]
        properties[_FIRST + len(properties)] = f"\\{found[2]}{found[3]}"
        return chr(_FIRST + len(properties) - 1)

    made = _PROPERTY.sub(put, pattern)
    for mark, what in _OTHERWISE:
        if mark.search(made):
            refuse(f"has what the regex package may read as {what}", "Escape the bracket, or leave regex=True out")
    return made, properties


@lru_cache(maxsize=256)
def members(expression: str, flags: int) -> tuple[tuple[int, int], ...]:
    """The code points that an expression for one character matches, by the installed package."""
    regex = need_regex()
    names = {re.I: regex.I, re.A: regex.A, re.S: regex.S}
    used = sum(int(theirs) for ours, theirs in names.items() if flags & ours)
    try:
        found = regex.compile(f"(?:{expression})+", used | regex.V0)
    except regex.error as error:
        raise LarkError(f"regex refuses {expression}: {error}", location="option regex", hint="Correct it") from None
    out = []
    for first, text in _characters():
        out += [(first + m.start(), first + m.end() - 1) for m in found.finditer(text)]
    return tuple(out)


@lru_cache(maxsize=1)
def _characters() -> tuple[tuple[int, str], ...]:
    low, high = 0xD800, 0xE000  # surrogates are no characters
    return (0, "".join(map(chr, range(low)))), (high, "".join(map(chr, range(high, 0x110000))))
