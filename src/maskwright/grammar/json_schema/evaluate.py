"""Whether a value belongs to a schema: an exact evaluator, for the candidates of `enum` and `const`.

Numbers are compared by value (1 is 1.0, but true is not 1). Recursion goes as deep as the value is nested, and as the
chain of references is long; `plan` turns a RecursionError into a LimitError.
"""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from maskwright.grammar.multiples import is_multiple

from .facets import ABSENT, bounds_of, steps_of, tuple_of
from .kinds import type_of
from .model import NEVER, Group
from .strings import string_automaton

if TYPE_CHECKING:
    from .scan import Scan


def identity(value: Any) -> Hashable:
    """What two JSON values have in common exactly when JSON Schema calls them equal (Core 2020-12, 4.2.2)."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is dict:
        return frozenset((name, identity(v)) for name, v in value.items())
    if kind is list:
        return ("list", tuple([identity(v) for v in value]))
    if kind is int or kind is Decimal:
        return ("number", value)
    return ("word", str(value))


def distinct(values: list[Any]) -> list[Any]:
    """The values without repetition, in order."""
    first: dict[Hashable, Any] = {}
    for value in values:
        first.setdefault(identity(value), value)
    return list(first.values())


def is_valid(scan: Scan, number: int, value: Any) -> bool:
    """Whether the schema of a number accepts a value."""
    if number < 0:
        return number != NEVER
    if scan.judge is not None:
        return scan.judge(number, value)
    schema = scan.schemas[number]
    if not all(_holds(scan, group, value) for group in scan.groups.get(number, ())):
        return False
    return (scan.draft <= 7 and "$ref" in schema) or fits_locally(scan, number, value)


def fits_locally(scan: Scan, number: int, value: Any) -> bool:
    """Whether a value fits all keywords of a schema but those that apply others in place."""
    schema, kind = scan.schemas[number], type_of(value, scan.draft)
    if not kind & scan.types.get(number, kind):
        return False
    if "enum" in schema and identity(value) not in listed(scan, number):
        return False
    if "const" in schema and scan.draft >= 6 and identity(value) != identity(schema["const"]):
        return False
    if isinstance(value, str):
        return _fits_string(scan, number, schema, value)
    if isinstance(value, dict):
        return _fits_object(scan, number, schema, value)
    if isinstance(value, list):
        return _fits_array(scan, schema, value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return _fits_number(scan, schema, value) and value not in scan.excluded.get(number, ())
    return True


def listed(scan: Scan, number: int) -> frozenset[Hashable]:
    """What the values of an `enum` are equal to; made once, since many candidates may be held against it."""
    found = scan.listed.get(number)
    if found is None:
        found = scan.listed[number] = frozenset(map(identity, scan.schemas[number]["enum"]))
    return found


def _holds(scan: Scan, group: Group, value: Any) -> bool:
    holding = (is_valid(scan, branch, value) for branch in group.branches)
    if group.kind == "all":
        return all(holding)
    return any(holding) if group.kind == "any" else sum(holding) == 1


def _fits_number(scan: Scan, schema: dict[str, Any], value: int | Decimal) -> bool:
    steps = steps_of(schema)
    if any(not is_multiple(value, step) for step in steps.of) or any(is_multiple(value, step) for step in steps.not_of):
        return False
    low, high = bounds_of(schema, scan.draft)
    if low is not None and (value < low[0] or (low[1] and value == low[0])):
        return False
    return high is None or not (value > high[0] or (high[1] and value == high[0]))


def _fits_string(scan: Scan, number: int, schema: dict[str, Any], value: str) -> bool:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    return all(string_automaton([regex], 0, -1).matches(value) for regex in scan.regexes.get(number, ()))


def _fits_object(scan: Scan, number: int, schema: dict[str, Any], value: dict[str, Any]) -> bool:
    if any(name not in value for name in schema.get("required", ())):
        return False
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties")
    if rest is None and scan.draft >= 2019:
        rest = schema.get("unevaluatedProperties")
    if rest is None or number in scan.matched:
        rest = True
    return all(_fits(scan, properties.get(name, rest), v) for name, v in value.items())


def _fits_array(scan: Scan, schema: dict[str, Any], value: list[Any]) -> bool:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return False
    if schema.get("uniqueItems") is True and len(set(map(identity, value))) < len(value):
        return False
    prefix, rest = tuple_of(schema, scan.draft)
    rest = True if rest is ABSENT else rest
    return all(_fits(scan, prefix[n] if n < len(prefix) else rest, v) for n, v in enumerate(value))


def _fits(scan: Scan, schema: Any, value: Any) -> bool:
    if isinstance(schema, bool):
        return schema
    return is_valid(scan, scan.index[id(schema)], value)
