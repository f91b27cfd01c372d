"""The complement of a schema as a list of schemas, where it has one: for `not`, `if`, a `oneOf` with overlaps.

De Morgan's laws, keyword by keyword: a value fails a schema iff it fails one of its keywords, and what fails a
keyword is mostly a schema again ("no string", "an object without that name"). What asks for *some* member that fails
(`items`, `additionalProperties`) is not, and neither is the complement of an array or object constant: those are
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .kinds import ARRAY, BOOLEAN, EVERY, NUMBER, OBJECT, STRING, type_of
from .model import APART, EXCEPT, NEVER, OUTSIDE, TYPES, words

if TYPE_CHECKING:
    from .scan import Scan

Schemas = list[dict[Any, Any]]
_MOST = 64
_DEEPEST = 16


class _NoComplement(Exception):
    """What is negated has no complement as schemas."""


def complement(scan: Scan, number: int) -> Schemas | None:
    """Schemas of which a value fits one exactly when it does not fit schema `number`; None where there are none."""
    try:
        return _negate(scan, number, 0)
    except _NoComplement:
        return None


def _negate(scan: Scan, number: int, depth: int) -> Schemas:
    if number < 0:
        return [{}] if number == NEVER else []
    if depth > _DEEPEST or number in scan.settling:
        raise _NoComplement  # the latter: a circle of complements
    if number in scan.later:
        scan.settle(number)
    if number in scan.joint or number in scan.unique:
        raise _NoComplement
    schema = scan.schemas[number]
    out = _negate_groups(scan, number, depth)
    out += [_outside(regex) for regex in scan.regexes.get(number, ())]
    if not (scan.draft <= 7 and "$ref" in schema):
        for keyword, value in schema.items():
            if keyword in _NEGATORS:
                out += _NEGATORS[keyword](scan, number, value, depth)
            elif keyword in _NO_COMPLEMENT and not _says_nothing(value):
                raise _NoComplement
    if len(out) > _MOST:
        raise _NoComplement
    return out


def _negate_groups(scan: Scan, number: int, depth: int) -> Schemas:
    out: Schemas = []
    for group in scan.groups.get(number, ()):
        if group.keyword == "not":
            continue  # its own complement is at hand
        if group.kind == "all" or len(group.branches) == 1:
            for branch in group.branches:
                out += _negate(scan, branch, depth + 1)
        elif group.kind == "any":
            out.append({"allOf": [_any(_negate(scan, branch, depth + 1)) for branch in group.branches]})
        else:
            raise _NoComplement
    return out


_NO_COMPLEMENT = words(
    "items prefixItems additionalItems unevaluatedItems additionalProperties unevaluatedProperties"
) | {EXCEPT, OUTSIDE}


def _says_nothing(schema: Any) -> bool:
    return schema is True or schema == {}


def _any(schemas: Schemas) -> Any:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas} if schemas else False


def _outside(regex: Any) -> dict[Any, Any]:
    return {TYPES: STRING, OUTSIDE: regex}


def _not_type(scan: Scan, number: int, value: Any, depth: int) -> Schemas:
    rest = EVERY & ~scan.types[number]
    return [{TYPES: rest}] if rest else []


def _not_enum(scan: Scan, number: int, value: Any, depth: int) -> Schemas:
    return _not_values(value)


def _not_const(scan: Scan, number: int, value: Any, depth: int) -> Schemas:
    return _not_values([value]) if scan.draft >= 6 else []


def _not_values(values: list[Any]) -> Schemas:
    kinds = 0
    for value in values:
        kinds |= type_of(value)
    if kinds & (OBJECT | ARRAY):
        raise _NoComplement
    if kinds & NUMBER:
        kinds |= NUMBER
    out: Schemas = [{TYPES: EVERY & ~kinds}]
    if kinds & STRING:
        out.append({TYPES: STRING, EXCEPT: [v for v in values if isinstance(v, str)]})
    if kinds & NUMBER:
        out.append({TYPES: NUMBER, EXCEPT: [v for v in values if type_of(v) & NUMBER]})
    if kinds & BOOLEAN and (rest := [b for b in (True, False) if not any(v is b for v in values)]):
        out.append({"enum": rest})
    return out


def _not_required(scan: Scan, number: int, value: Any, depth: int) -> Schemas:
    return [{TYPES: OBJECT, "properties": {name: False}} for name in dict.fromkeys(value)]


def _not_properties(scan: Scan, number: int, value: Any, depth: int) -> Schemas:
    out: Schemas = []
    for name, sub in value.items():
        inside = [{}] if sub is False else [] if sub is True else _negate(scan, scan.index[id(sub)], depth + 1)
        if inside:
            out.append({TYPES: OBJECT, "required": [name], "properties": {name: _any(inside)}})
    return out


def _not_count(types: int, opposite: str, step: int) -> Callable[..., Schemas]:
    """The negation of a bound of a length: the opposite bound, one further."""

    def negate(scan: Scan, number: int, value: Any, depth: int) -> Schemas:
        bound = int(value) + step
        return [{TYPES: types, opposite: bound}] if bound >= 0 else []

    return negate


def _not_bound(keyword: str) -> Callable[..., Schemas]:
    """The negation of a bound of numbers: the opposite one, closed where it was open."""
    opposite, open_opposite = (
        ("maximum", "exclusiveMaximum") if "inimum" in keyword else ("minimum", "exclusiveMinimum")
    )

    def negate(scan: Scan, number: int, value: Any, depth: int) -> Schemas:
        if scan.draft > 4:
            return [{TYPES: NUMBER, opposite if keyword.startswith("exclusive") else open_opposite: value}]
        if keyword.startswith("exclusive"):
            return []  # it says how to read the bound beside it
        is_open = scan.schemas[number].get("exclusive" + keyword.capitalize()) is True
        return [{TYPES: NUMBER, opposite: value, open_opposite: not is_open}]

    return negate


def _not_multiple(scan: Scan, number: int, value: Any, depth: int) -> Schemas:
    return [{TYPES: NUMBER, APART: value}]


def _not_apart(scan: Scan, number: int, value: Any, depth: int) -> Schemas:
    return [{TYPES: NUMBER, "multipleOf": value}]


def _not_not(scan: Scan, number: int, value: Any, depth: int) -> Schemas:
    return [] if value is False else [{}] if value is True else [value]


_NEGATORS: dict[Any, Callable[..., Schemas]] = {
    "type": _not_type,
    TYPES: _not_type,
    "enum": _not_enum,
    "const": _not_const,
    "required": _not_required,
    "properties": _not_properties,
    "minLength": _not_count(STRING, "maxLength", -1),
    "maxLength": _not_count(STRING, "minLength", 1),
    "minItems": _not_count(ARRAY, "maxItems", -1),
    "maxItems": _not_count(ARRAY, "minItems", 1),
    "minimum": _not_bound("minimum"),
    "maximum": _not_bound("maximum"),
    "exclusiveMinimum": _not_bound("exclusiveMinimum"),
    "exclusiveMaximum": _not_bound("exclusiveMaximum"),
    "multipleOf": _not_multiple,
    APART: _not_apart,
    "not": _not_not,
}
