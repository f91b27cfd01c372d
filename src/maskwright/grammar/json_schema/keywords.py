"""The table from keyword to handler, for each draft; what is not in it asserts nothing and is an annotation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from . import applicators as ap
from . import assertions as at
from . import conditions as co
from . import rewrites as rw
from .facets import bounds_of, steps_of
from .kinds import EVERY
from .model import APART, EXCEPT, OUTSIDE, TYPES
from .numbers import FREE, is_range_empty
from .strings import has_strings, is_string_empty

if TYPE_CHECKING:
    from .scan import Scan

Handler = Callable[["Scan", int, dict[str, Any], Any], None]

# Keyword: handler, first draft, last draft.
_HANDLERS: dict[str, tuple[Handler, int, int]] = {
    "type": (at.on_type, 4, 2020),
    "enum": (at.on_enum, 4, 2020),
    "const": (at.on_const, 6, 2020),
    "minimum": (at.on_bound("minimum"), 4, 2020),
    "maximum": (at.on_bound("maximum"), 4, 2020),
    "exclusiveMinimum": (at.on_bound("exclusiveMinimum"), 4, 2020),
    "exclusiveMaximum": (at.on_bound("exclusiveMaximum"), 4, 2020),
    "multipleOf": (at.on_multiple, 4, 2020),
    "minLength": (at.on_least("minLength", "maxLength"), 4, 2020),
    "maxLength": (at.on_most("maxLength"), 4, 2020),
    "pattern": (at.on_pattern, 4, 2020),
    "format": (at.on_format, 4, 2020),
    "minItems": (at.on_least("minItems", "maxItems"), 4, 2020),
    "maxItems": (at.on_most("maxItems"), 4, 2020),
    "uniqueItems": (rw.on_unique, 4, 2020),
    "prefixItems": (ap.on_prefix("prefixItems"), 2020, 2020),
    "additionalItems": (ap.on_additional_items, 4, 2019),
    "contains": (rw.on_contains, 6, 2020),
    "unevaluatedItems": (rw.on_unevaluated("unevaluatedItems", ("contains",)), 2019, 2020),
    "properties": (ap.on_properties, 4, 2020),
    "required": (ap.on_required, 4, 2020),
    "additionalProperties": (ap.on_schema("additionalProperties"), 4, 2020),
    "patternProperties": (rw.on_pattern_properties, 4, 2020),
    "propertyNames": (rw.on_property_names, 6, 2020),
    "minProperties": (rw.on_min_properties, 4, 2020),
    "maxProperties": (rw.on_max_properties, 4, 2020),
    "dependencies": (rw.on_dependencies("dependencies"), 4, 2020),
    "dependentRequired": (rw.on_dependencies("dependentRequired"), 2019, 2020),
    "dependentSchemas": (rw.on_dependencies("dependentSchemas"), 2019, 2020),
    "unevaluatedProperties": (rw.on_unevaluated("unevaluatedProperties", ()), 2019, 2020),
    "allOf": (ap.on_group("all", "allOf"), 4, 2020),
    "anyOf": (ap.on_group("any", "anyOf"), 4, 2020),
    "oneOf": (co.on_one_of, 4, 2020),
    "not": (co.on_not, 4, 2020),
    "if": (co.on_if, 7, 2020),
    "$ref": (ap.on_ref, 4, 2020),
    "$dynamicRef": (ap.on_dynamic_ref("$dynamicRef", "$dynamicAnchor"), 2020, 2020),
    "$recursiveRef": (ap.on_dynamic_ref("$recursiveRef", "$recursiveAnchor"), 2019, 2019),
}


@cache
def table_of(draft: int) -> dict[Any, Handler]:
    """The handlers of a draft."""
    table = {name: handler for name, (handler, first, last) in _HANDLERS.items() if first <= draft <= last}
    table |= {TYPES: at.on_type_bits, EXCEPT: at.on_except, OUTSIDE: at.on_outside, APART: at.on_apart}
    table["items"] = ap.on_schema("items") if draft == 2020 else ap.on_prefix("items")
    return table


def conclude(scan: Scan, i: int, schema: dict[str, Any], asserted: int) -> None:
    """What the keywords of a schema mean together: only an alias, only a union, perhaps empty."""
    groups = scan.groups.get(i)
    if asserted <= 1 and i not in scan.joint:
        if not asserted:
            scan.aliases[i] = ()
        elif groups is not None and len(groups) == 1:
            group = groups[0]
            if group.kind != "all":
                scan.unions[i] = group
            elif len(group.branches) == 1 and group.branches[0] not in scan.synthetics:  # which evaluate nothing
                scan.aliases[i] = () if group.branches[0] == -2 else group.branches
    if "enum" in schema or "const" in schema:
        at.suspect_values(scan, i, schema, asserted)
    regexes = scan.regexes.get(i)
    if regexes is not None and (
        len(regexes) > 1 or "minLength" in schema or "maxLength" in schema or not has_strings(*regexes[0])
    ):
        least, most = schema.get("minLength", 0), at.clamp(schema.get("maxLength"))
        if is_string_empty(regexes, int(least), most, scan.budget, lambda: scan.where(i)):
            scan.doubt(i)
    steps = steps_of(schema) if "multipleOf" in schema or APART in schema else FREE
    if asserted > 1 and (steps is not FREE or "minimum" in schema or "exclusiveMinimum" in schema):
        low, high = bounds_of(schema, scan.draft)
        if is_range_empty(low, high, scan.types.get(i, EVERY), scan.options, (), steps):
            scan.doubt(i)
    if steps is not FREE:
        at.check_steps(scan, i, scan.types.get(i, EVERY), steps)
