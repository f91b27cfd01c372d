"""JSON values and schemas as data: equality, types, pointers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from urllib.parse import unquote

Schema = bool | dict[str, Any]
Place = tuple[str | int, ...]  # the way from the root schema to one below it

TYPES = ("null", "boolean", "object", "array", "string", "number")
_CLASSES = (("null", type(None)), ("boolean", bool), ("string", str), ("array", list), ("object", dict))


def type_of(value: object) -> str:
    """The JSON type of a value."""
    return next((name for name, kind in _CLASSES if isinstance(value, kind)), "number")


def decimal(value: float | Decimal) -> Decimal:
    """A number of a schema as it was written (Python keeps the shortest decimal that gives the same float)."""
    return value if isinstance(value, Decimal) else Decimal(repr(value))


def identity(value: Any) -> object:
    """A hashable that two values share iff JSON Schema calls them equal (core, 4.2.2): 1 is 1.0."""
    kind = type_of(value)
    if kind == "array":
        return (kind, tuple(identity(v) for v in value))
    if kind == "object":
        return (kind, frozenset((k, identity(v)) for k, v in value.items()))
    return (kind, decimal(value).normalize() if kind == "number" else value)


def resolve(root: Schema, reference: str) -> Place:
    """The place that a `$ref` of the form `#` or `#/...` means (RFC 6901, section 6)."""
    if reference != "#" and not reference.startswith("#/"):
        raise ValueError(f"not a reference into the schema: {reference!r}")
    place: list[str | int] = []
    at: Any = root
    for token in unquote(reference).split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        place.append(int(name) if isinstance(at, list) else name)
        at = at[place[-1]]
    return tuple(place)


def type_names(schema: dict[str, Any]) -> set[str]:
    """The types that `type` allows; all without it."""
    names = schema.get("type", list(TYPES))
    return {names} if isinstance(names, str) else set(names)
