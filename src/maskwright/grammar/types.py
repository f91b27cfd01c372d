"""Python types as constraints: the JSON Schema of whatever `pydantic.TypeAdapter` takes, and the way back.

pydantic writes the schema; what its parser refuses beyond the schema is cut off in the typed formats and numbers of
the JSON Schema front end, and what no mask can see (validator functions and the like) is listed for the report.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pydantic import PydanticUserError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from maskwright.errors import SchemaError
from maskwright.grammar.plan import ReportEntry

__all__ = ["adapter", "describe", "parse", "schema_text", "unseen_checks"]


class _Schema(GenerateJsonSchema):
    """pydantic's schemas for input, with decimals as numbers only: its strings for them are any strings."""

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        """A number between the bounds."""
        bounds = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
        said = {name: _inward(Decimal(schema[key]), key[0] == "g") for key, name in bounds.items() if key in schema}
        return {"type": "number", **said}

    def url_schema(self, schema: Any) -> dict[str, Any]:
        """URLs that WHATWG's rules surely take: a scheme, a host name, and plain characters after it."""
        schemes = schema.get("allowed_schemes") or ["https?", "ftp", "wss?", "[a-z][a-z0-9]{4,}"]
        after = _AFTER_SCHEME if "file" not in schemes else _AFTER_SCHEME.replace(_PORT, "")
        said: dict[str, Any] = {"type": "string", "pattern": f"^(?:{'|'.join(map(_escaped, schemes))}){after}$"}
        if "max_length" in schema:
            said["maxLength"] = schema["max_length"]
        return said


# The last label of a host begins with a letter, else it is read as a number; `xn--` would have to be valid punycode.
_LABEL = "[a-z0-9]+(?:-[a-z0-9]+)*"
_PORT = "(?::[1-9][0-9]{0,3})?"  # a file has none
_AFTER_SCHEME = rf"://(?:{_LABEL}\.)*[a-z][a-z0-9]*{_PORT}(?:/[A-Za-z0-9._~-]*)*(?:\?[A-Za-z0-9._~=&-]*)?"


def _escaped(scheme: str) -> str:
    return scheme if scheme[-1] in "?}" else scheme.replace("+", r"\+").replace(".", r"\.").replace("-", "[-]")


def _inward(bound: Decimal, lower: bool) -> int | float:
    """The bound as JSON can say it: where a double is not exact, the next one inside."""
    if bound == bound.to_integral_value():
        return int(bound)
    near = float(bound)
    outside = Decimal(repr(near)) < bound if lower else Decimal(repr(near)) > bound
    return math.nextafter(near, math.inf if lower else -math.inf) if outside else near


def adapter(target: Any) -> TypeAdapter[Any]:
    """What parses values of a type; made once a type.

    Raises:
        TypeError: it is no type that pydantic can read.
    """
    if isinstance(target, TypeAdapter):
        return target
    try:
        hash(target)
    except TypeError:
        return _make(target)
    return _cached(target)


def _make(target: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(target)
    except PydanticUserError as error:
        raise TypeError(
            f"a schema is a dict, a bool, JSON text or a type, not {type(target).__name__} {target!r:.60}"
            if not isinstance(target, type)
            else f"pydantic cannot read the type {target.__name__}: {error.message}"
        ) from error


_cached = lru_cache(maxsize=256)(_make)


def schema_text(target: Any) -> str:
    """The JSON Schema of a type, as JSON text.

    Raises:
        SchemaError: a part of the type has no JSON form.
        TypeError: it is no type that pydantic can read.
    """
    made = adapter(target)
    try:
        schema = made.json_schema(mode="validation", schema_generator=_Schema)
    except PydanticInvalidForJsonSchema as error:
        raise SchemaError(
            f"The type has no JSON Schema: {error.message.splitlines()[0]}",
            location="",
            hint="Give that field a type which JSON can hold",
        ) from error
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def parse(target: Any, text: str | bytes) -> Any:
    """The value that a JSON text stands for. Raises pydantic.ValidationError, a ValueError, where a check fails."""
    return adapter(target).validate_json(text)


def describe(target: Any) -> str:
    """What tells a type from others of the same schema, for the compile cache."""
    if isinstance(target, type):
        return f"{target.__module__}.{target.__qualname__}@{id(target):x}"
    return f"adapter@{id(target):x}" if isinstance(target, TypeAdapter) else repr(target)


# Core schemas that check what no JSON Schema says, with the words for it.
_FUNCTIONS = frozenset({"function-before", "function-after", "function-wrap", "function-plain"})
# Packages whose functions only build the value of a type that has a format of its own.
_OWN = (sys.stdlib_module_names - {"builtins", "__main__"}) | {"pydantic", "pydantic_core"}
_CHECKS = {
    "url": "plain URLs only are generated: lower-case host names, no user, no percent-encoding",
    "multi-host-url": "the URL is parsed by WHATWG's rules, which refuse some URIs",
    "json": "the string has to hold JSON",
    "is-instance": "the value has to be an instance of a class",
    "call": "the arguments are passed to a function",
}
# What of a core schema is not about reading JSON.
_NOT_JSON = frozenset({"metadata", "serialization", "cls", "default", "ref", "python_schema", "strict_schema"})
_DATED = ("le", "ge", "lt", "gt", "now_op", "tz_constraint")


def unseen_checks(target: Any) -> tuple[ReportEntry, ...]:
    """The checks of a type that no mask can see: they are made after the generation, by `parse`."""
    found: dict[tuple[str, str], ReportEntry] = {}
    stack: list[tuple[Any, str]] = [(adapter(target).core_schema, "")]
    while stack:
        node, where = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend((item, where) for item in node)
        elif isinstance(node, dict):
            for name, detail in _unseen(node):
                found.setdefault((where, name), ReportEntry(where, name, "not-in-mask", detail))
            stack.extend(_children(node, where))
    return tuple(sorted(found.values(), key=lambda entry: (entry.pointer, entry.keyword)))


def _children(node: dict[str, Any], where: str) -> Iterator[tuple[Any, str]]:
    for key, value in node.items():
        if key == "fields" and isinstance(value, dict):
            for name, field in value.items():
                alias = field.get("validation_alias", name) if isinstance(field, dict) else name
                shown = alias if isinstance(alias, str) else name
                yield field, f"{where}/properties/" + shown.replace("~", "~0").replace("/", "~1")
        elif key not in _NOT_JSON and isinstance(value, dict | list | tuple):
            yield value, where


def _unseen(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kind = node.get("type")
    if not isinstance(kind, str):
        return
    if kind in _FUNCTIONS:
        function = node.get("function")
        function = function.get("function") if isinstance(function, dict) else function
        package = str(getattr(function, "__module__", "")).split(".")[0]
        if package not in _OWN:
            yield (
                "validator",
                f"the function {getattr(function, '__qualname__', repr(function))} checks the value afterwards",
            )
    elif kind in _CHECKS:
        yield kind, _CHECKS[kind]
    elif kind in ("date", "time", "datetime", "timedelta") and any(name in node for name in _DATED):
        yield kind, "bounds of dates and times are checked afterwards"
    elif kind == "decimal" and ("max_digits" in node or "decimal_places" in node):
        yield kind, "the number of digits is checked afterwards"
    elif kind == "dict" and node.get("keys_schema", {}).get("type", "any") not in ("any", "str"):
        yield "keys", "keys are strings in JSON, and are converted afterwards"
    elif kind == "str" and (node.get("strip_whitespace") or node.get("to_lower") or node.get("to_upper")):
        yield kind, "the string is changed before its length and pattern are checked"
