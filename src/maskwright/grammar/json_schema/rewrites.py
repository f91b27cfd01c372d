"""Keywords that can be said exactly by others: they become synthetic schemas that apply in place. Others are refused.

`dependentRequired: {a: [b]}` is "no a, or both", an `anyOf` of two object schemas, and so on. Every rewriting here is
an equivalence for values of all types, not just for those that the keyword is about.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, NoReturn

from maskwright.errors import SchemaError

from .assertions import check_text, count_of, read_pattern
from .kinds import EVERY, OBJECT
from .model import TYPES, words
from .paths import Path
from .strings import is_everything

if TYPE_CHECKING:
    from .scan import Scan

# A rewriting into more alternatives than this is refused: each is a machine that runs beside the others.
MOST_BRANCHES = 64
IN_PLACE = words("$ref $dynamicRef $recursiveRef allOf anyOf oneOf not if dependentSchemas dependencies")


def refuse(scan: Scan, i: int, keyword: str, hint: str, what: str = "is not supported") -> NoReturn:
    """Raises the SchemaError that names a keyword which cannot be enforced."""
    raise SchemaError(f"{keyword} {what}", location=scan.where(i, keyword), hint=hint)


def says_nothing(schema: Any) -> bool:
    """Whether a subschema is plainly satisfied by everything."""
    return schema is True or schema == {}


def on_dependencies(keyword: str) -> Any:
    """The handler of `dependentRequired`, `dependentSchemas` and `dependencies`, which is both."""

    def handle(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        if not isinstance(value, dict):
            scan.bad(i, keyword, "an object", value)
        for name, needed in value.items():
            check_text(scan, i, keyword, name)
            path = ((scan.paths[i], keyword), name)
            absent = scan.synthetic({"properties": {name: False}}, path)
            there: dict[Any, Any] = {TYPES: OBJECT, "properties": {name: True}}
            if isinstance(needed, list) and keyword != "dependentSchemas":
                present = scan.synthetic(there | {"required": [name, *needed]}, path)
            elif isinstance(needed, dict | bool) and keyword != "dependentRequired":
                scan.add(needed, path, in_place=True)  # under its own path, before the synthetic schema names it
                present = scan.synthetic(there | {"required": [name], "allOf": [needed]}, path)
            else:
                scan.bad(i, keyword, "an object of lists of names, or of schemas", needed)
            scan.apply(i, "any", keyword, (absent, present))

    return handle


def on_property_names(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`propertyNames`: exact where it lists the names, or says nothing about strings."""
    path: Path = (scan.paths[i], "propertyNames")
    scan.add(value, path)
    if says_nothing(value) or value == {"type": "string"}:
        return
    if value is False:
        scan.apply(i, "all", "propertyNames", (scan.synthetic({"additionalProperties": False}, path),))
        return
    if not isinstance(value, dict):
        scan.bad(i, "propertyNames", "a schema", value)
    values = value.get("enum", [value["const"]] if "const" in value else None)
    if (
        not isinstance(values, list)
        or not set(value) <= {"enum", "const", "type", "title", "description"}
        or len(value) > 2
    ):
        scan.join(i, "propertyNames")
        return
    names = {name: True for name in values if isinstance(name, str)}
    if value.get("type", "string") != "string":
        names = {}
    closed = scan.synthetic({"properties": names, "additionalProperties": False}, path)
    scan.apply(i, "all", "propertyNames", (closed,))


def _closed_names(schema: dict[str, Any]) -> list[str] | None:
    """The names that an object of this schema can have, where they are finitely many."""
    properties = schema.get("properties", {})
    if (
        schema.get("additionalProperties") is not False
        or schema.get("patternProperties")
        or not isinstance(properties, dict)
    ):
        return None
    return list(properties)


def _required_names(schema: dict[str, Any]) -> int:
    required = schema.get("required")
    return len(set(map(str, required))) if isinstance(required, list) else 0


def on_min_properties(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`minProperties`: exact where `required` says it, or over a few names by choosing which are there."""
    least = count_of(scan, i, "minProperties", value)
    if least <= _required_names(schema):
        return
    names = _closed_names(schema)
    if names is None or comb(len(names), least) > MOST_BRANCHES:
        scan.join(i, "minProperties")
        return
    _choose(scan, i, "minProperties", [{"required": list(some)} for some in combinations(names, least)])


def on_max_properties(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`maxProperties`: exact for 0, and over a few names by choosing which may be there."""
    most = count_of(scan, i, "maxProperties", value)
    names = _closed_names(schema) if most else []
    if names is None or comb(len(names), most) > MOST_BRANCHES:
        scan.join(i, "maxProperties")
        return
    if most and most >= len(names):
        return
    some = combinations(names, most)
    _choose(
        scan, i, "maxProperties", [{"properties": dict.fromkeys(s, True), "additionalProperties": False} for s in some]
    )


def _choose(scan: Scan, i: int, keyword: str, schemas: list[dict[str, Any]]) -> None:
    path = (scan.paths[i], keyword)
    without: dict[Any, Any] = {TYPES: EVERY & ~OBJECT}  # where no object fits
    scan.apply(i, "any", keyword, tuple([scan.synthetic(s, path) for s in schemas or [without]]))
    scan.suspect = True


def on_pattern_properties(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`patternProperties`: exact where it is about no name, or about every name."""
    if not isinstance(value, dict):
        scan.bad(i, "patternProperties", "an object of schemas", value)
    path = (scan.paths[i], "patternProperties")
    noted = scan.patterns.setdefault(i, [])
    for pattern, sub in value.items():
        scan.add(sub, (path, pattern))
        ir = read_pattern(scan, i, "patternProperties", pattern)
        noted.append((pattern, ir, sub))
        if says_nothing(sub) and not {"additionalProperties", "unevaluatedProperties"} & set(schema):
            continue
        if not is_everything(ir):
            scan.join(i, "patternProperties")
            continue
        every = scan.synthetic({"additionalProperties": sub}, path)
        scan.apply(i, "all", "patternProperties", (every,))
        scan.matched.add(i)


def on_unevaluated(keyword: str, beside: tuple[str, ...]) -> Any:
    """The handler of `unevaluatedProperties` and `unevaluatedItems`: plain where nothing in place could evaluate."""

    def handle(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        if not says_nothing(value) and any(k in schema for k in (*IN_PLACE, *beside)):
            scan.join(i, keyword)
            scan.whole = True
        scan.add(value, (scan.paths[i], keyword))

    return handle


def on_contains(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`contains`: exact where any item will do, or none is asked for."""
    counted = scan.draft >= 2019
    least = count_of(scan, i, "minContains", schema["minContains"]) if counted and "minContains" in schema else 1
    most = schema.get("maxContains") if counted else None
    scan.add(value, (scan.paths[i], "contains"))
    if most is not None:
        count_of(scan, i, "maxContains", most)
    if says_nothing(value):
        bounds = {"minItems": least} | ({} if most is None else {"maxItems": count_of(scan, i, "maxContains", most)})
        scan.apply(i, "all", "contains", (scan.synthetic(bounds, (scan.paths[i], "contains")),))
        scan.suspect = True
    elif least or most is not None:
        scan.join(i, "contains")


def on_unique(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`uniqueItems`: exact where it has to hold; says nothing where there is at most one item."""
    if not isinstance(value, bool):
        scan.bad(i, "uniqueItems", "true or false", value)
    most = schema.get("maxItems")
    if value and not (isinstance(most, int) and most <= 1):
        scan.unique.add(i)
        scan.doubt(i)
