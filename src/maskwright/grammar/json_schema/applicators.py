"""The keywords that hold schemas: their shape is checked, the schemas below are queued.

JSON Schema Core 2020-12, section 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskwright.errors import SchemaError

from .assertions import check_names, check_text

if TYPE_CHECKING:
    from .scan import Scan


def on_properties(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`properties`: name to schema."""
    if not isinstance(value, dict):
        scan.bad(i, "properties", "an object of schemas", value)
    path = (scan.paths[i], "properties")
    if scan.long:
        required = schema.get("required")
        check_names(scan, scan.where(i, "properties"), [*value, *(required if isinstance(required, list) else [])])
    for name in value:
        if not name.isascii():
            check_text(scan, i, "properties", name)
    scan.add_members(value, path)


def on_required(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`required`: a list of names."""
    if not isinstance(value, list):
        scan.bad(i, "required", "a list of names", value)
    properties = schema.get("properties")
    rest = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    for name in value:
        if not isinstance(name, str):
            scan.bad(i, "required", "a list of names", name)
        sub = properties.get(name, rest) if isinstance(properties, dict) else rest
        if sub is False:
            scan.doubt(i)
        if not name.isascii():
            check_text(scan, i, "required", name)
    if scan.long and "properties" not in schema:
        check_names(scan, scan.where(i, "required"), dict.fromkeys(value))


def on_schema(keyword: str) -> Any:
    """The handler of `additionalProperties` and of `items` in its newest form: one schema."""

    def handle(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        if isinstance(value, list) and keyword == "items":
            raise SchemaError(
                "items is a list of schemas, which draft 2020-12 calls prefixItems",
                location=scan.where(i, "items"),
                hint='Write prefixItems (and items for the rest), or name the draft: "$schema" or default_draft="7"',
            )
        scan.add(value, (scan.paths[i], keyword))

    return handle


def on_prefix(keyword: str) -> Any:
    """The handler of `prefixItems`, and of `items` up to 2019-09: a list of schemas, or (`items` only) one."""

    def handle(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        if keyword == "items" and not isinstance(value, list):
            scan.add(value, (scan.paths[i], "items"))
            return
        if not isinstance(value, list):
            scan.bad(i, keyword, "a list of schemas", value)
        path = (scan.paths[i], keyword)
        for n, sub in enumerate(value):
            scan.add(sub, (path, n))

    return handle


def on_additional_items(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`additionalItems`: says something beside a list of `items` only."""
    if isinstance(schema.get("items"), list):
        scan.add(value, (scan.paths[i], "additionalItems"))


def on_group(kind: str, keyword: str) -> Any:
    """The handler of `allOf`, `anyOf` and `oneOf`."""

    def handle(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        if not isinstance(value, list) or not value:
            scan.bad(i, keyword, "a list of one or more schemas", "an empty list" if value == [] else value)
        path = (scan.paths[i], keyword)
        scan.apply(i, kind, keyword, tuple([scan.add(sub, (path, n), True) for n, sub in enumerate(value)]))

    return handle


def on_ref(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`$ref`: applies in place, beside its neighbours from 2019-09 on."""
    if not isinstance(value, str):
        scan.bad(i, "$ref", "a URI reference", value)
    scan.apply(i, "all", "$ref", (scan.refer(value, i),))


def on_dynamic_ref(keyword: str, anchor: str) -> Any:
    """The handler of `$dynamicRef` and `$recursiveRef`."""

    def handle(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        if not isinstance(value, str):
            scan.bad(i, keyword, "a URI reference", value)
        scan.apply(i, "all", keyword, (scan.refer_dynamically(value, i, anchor),))

    return handle
