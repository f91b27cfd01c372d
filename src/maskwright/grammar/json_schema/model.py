"""What the steps of the front end hand to each other."""

from __future__ import annotations

from typing import Any, NamedTuple

from maskwright.grammar.plan import Status

# What stands for the boolean schemas where a schema number is due.
NEVER, ALWAYS = -1, -2
# The schemas that all apply to one value, without repetition, in the order met. () is anything, NOTHING no value at
# all.
Key = tuple[int, ...]
ANYTHING: Key = ()
NOTHING: Key = (NEVER,)

# Keywords of synthetic schemas, which no document can hold: type bits; strings or numbers that are left out; a
# language of strings (with its name) that is left out; a number whose multiples are left out.
TYPES: Any = object()
EXCEPT: Any = object()
OUTSIDE: Any = object()
APART: Any = object()


class Group(NamedTuple):
    """Schemas that apply to the same value as the one they stand in: "all" of them, "any", or exactly "one"."""

    kind: str
    keyword: str
    branches: tuple[int, ...]


class Note(NamedTuple):
    """What the report says of a keyword, where that is not just "enforced"."""

    status: Status
    detail: str


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def join(keys: list[Key]) -> Key:
    """The conjunction of keys."""
    if len(keys) == 1:
        return keys[0]
    out = tuple(dict.fromkeys(number for key in keys for number in key))
    return NOTHING if NEVER in out else out
