"""What one or several schemas without branches say of a value, type by type: their conjunction, exactly.

Bounds and counts take the tighter of two, patterns add up, and of each property or item all schemas hold that any of
them has for it: a name that one schema lists still has to fit the `additionalProperties` of those that do not list
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .assertions import check_steps, clamp
from .kinds import ARRAY, EVERY, NUMBER, OBJECT, STRING
from .model import ANYTHING, APART, EXCEPT, NOTHING, TYPES, Key, join
from .numbers import FREE, Bound, Steps, is_range_empty, tighter
from .strings import Regexes, is_string_empty

if TYPE_CHECKING:
    from .scan import Scan

ABSENT: Any = object()
# What a schema says of the members of a container: the named (or first) ones, and all others; ABSENT says nothing.
Shape = tuple[Any, Any]
Few = tuple[list[list[bytes]], list[bytes]]
# What most alternatives say nothing of: shared, so that each is a few objects only.
_NO_NAMES: Mapping[str, None] = {}
_NO_FEW: Few = [], []


class Facets:
    """The conjunction of the local keywords of `members`.

    Attributes:
        members: the numbers of the schemas.
        types: the types a value may have.
        low, high: bounds of numbers.
        steps: what numbers are multiples of, or not.
        min_length, max_length, regexes: of strings; -1 is no maximum.
        required: names that an object must have, in order.
        min_items, max_items: of arrays; -1 is no maximum.
        unique: items of arrays must differ.
        few: where they must, by position, the texts of the values of those that have to be filled and have few; and
            texts of which each of the others can have one.
        excluded: numbers that are left out.
        values: with `enum` or `const`, the only candidates; they still have to be held against the rest.
        reason: the schema and keyword that took a type away last, for the error where none is left.
    """

    __slots__ = (
        "_objects",
        "_tuples",
        "excluded",
        "few",
        "high",
        "low",
        "max_items",
        "max_length",
        "members",
        "min_items",
        "min_length",
        "reason",
        "regexes",
        "required",
        "steps",
        "types",
        "unique",
        "values",
    )

    def __init__(self, scan: Scan, members: tuple[int, ...]) -> None:
        self.members = members
        self.types = EVERY
        self.low: Bound | None = None
        self.high: Bound | None = None
        self.steps = FREE
        self.min_length = self.min_items = 0
        self.max_length = self.max_items = -1
        self.regexes: Regexes = ()
        self.required: Mapping[str, None] = _NO_NAMES
        self.excluded: tuple[Any, ...] = ()
        self.unique = not scan.unique.isdisjoint(members)
        self.few: Few = _NO_FEW
        self.values: list[Any] | None = None
        self.reason: tuple[int, str] | None = None
        self._objects: tuple[Shape, ...] = ()
        self._tuples: tuple[Shape, ...] = ()
        for i in members:
            schema = scan.schemas[i]
            if scan.draft <= 7 and "$ref" in schema:
                continue
            self._read(scan, i, schema)
        self._settle(scan)

    def _read(self, scan: Scan, i: int, schema: dict[str, Any]) -> None:
        for keyword, value in schema.items():
            read = _READERS.get(keyword)
            if read is not None:
                read(self, scan, i, schema, value)
        regexes = scan.regexes.get(i)
        if regexes is not None:
            self.regexes = (*self.regexes, *(r for r in regexes if r not in self.regexes))
        named, rest = schema.get("properties"), schema.get("additionalProperties", ABSENT)
        if rest is ABSENT and scan.draft >= 2019:
            rest = schema.get("unevaluatedProperties", ABSENT)
        if i in scan.matched:
            rest = ABSENT
        if named is not None or rest is not ABSENT:
            self._objects += ((named or {}, rest),)
        if "items" in schema or "prefixItems" in schema or "unevaluatedItems" in schema:
            self._tuples += (tuple_of(schema, scan.draft),)

    def narrow(self, types: int, i: int, keyword: str) -> None:
        """Leaves only some types, because of a keyword."""
        if self.types & ~types:
            self.reason = (i, keyword)
        self.types &= types

    def _settle(self, scan: Scan) -> None:
        """Drops the types for which the keywords contradict each other."""
        last = self.members[-1] if self.members else scan.root
        if self.types & NUMBER:
            if is_range_empty(self.low, self.high, self.types, scan.options, self.excluded, self.steps):
                self.narrow(~NUMBER, last, "minimum" if self.steps is FREE else "multipleOf")
            elif self.steps is not FREE:
                check_steps(scan, last, self.types, self.steps)
        if self.types & STRING and (self.regexes or self.max_length >= 0):
            least, most = self.min_length, self.max_length
            if is_string_empty(self.regexes, least, most, scan.budget, lambda: scan.where(last)):
                self.narrow(~STRING, last, "pattern" if self.regexes else "maxLength")
        if self.types & ARRAY and 0 <= self.max_items < self.min_items:
            self.narrow(~ARRAY, last, "minItems")

    def properties(self, scan: Scan) -> tuple[dict[str, Key], Key]:
        """The keys of the named properties, in order, and of all others."""
        shapes = self._objects
        if len(shapes) == 1:
            named, rest = shapes[0]
            names = {name: scan.key(sub) for name, sub in named.items()}
            others = ANYTHING if rest is ABSENT else scan.key(rest)
        else:
            names = {
                name: join([scan.key(sub) for n, r in shapes if (sub := n.get(name, r)) is not ABSENT] or [ANYTHING])
                for name in dict.fromkeys(name for named, _ in shapes for name in named)
            }
            others = join([scan.key(rest) for _, rest in shapes if rest is not ABSENT] or [ANYTHING])
        for name in self.required:
            names.setdefault(name, others)
        return names, others

    def items(self, scan: Scan) -> tuple[list[Key], Key]:
        """The keys of the first items, and of all others."""
        shapes = self._tuples
        prefix = [
            join([scan.key(sub) for p, r in shapes if (sub := p[n] if n < len(p) else r) is not ABSENT] or [ANYTHING])
            for n in range(max((len(p) for p, _ in shapes), default=0))
        ]
        return prefix, join([scan.key(rest) for _, rest in shapes if rest is not ABSENT] or [ANYTHING])

    def needs(self, scan: Scan) -> list[list[Key]]:
        """For each container type left, the keys that all need a value; an empty list: there is some value for sure."""
        if self.values is not None or self.types & ~(OBJECT | ARRAY):
            return [[]]
        out: list[list[Key]] = []
        if self.types & OBJECT:
            names, _ = self.properties(scan) if self.required else ({}, ANYTHING)
            out.append([names[name] for name in self.required])
        if self.types & ARRAY:
            prefix, rest = self.items(scan) if self.min_items else ([], ANYTHING)
            out.append(prefix[: self.min_items] + ([rest] if self.min_items > len(prefix) else []))
        return out

    def below(self, scan: Scan) -> list[Key]:
        """The keys of everything that a value may hold."""
        if self.values is not None:
            return []
        out: list[Key] = []
        if self.types & OBJECT:
            names, others = self.properties(scan)
            out += [*names.values(), others]
        if self.types & ARRAY:
            prefix, rest = self.items(scan)
            out += [*prefix, rest]
        return [key for key in out if key != NOTHING]


def tuple_of(schema: dict[str, Any], draft: int) -> Shape:
    """The schemas of the first items of an array, and of all others."""
    items = schema.get("items", ABSENT)
    if draft < 2020 and isinstance(items, list):
        prefix, rest = items, schema.get("additionalItems", ABSENT)
    else:
        prefix, rest = (schema.get("prefixItems", []) if draft == 2020 else []), items
    return prefix, schema.get("unevaluatedItems", ABSENT) if rest is ABSENT and draft >= 2019 else rest


def _read_type(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    facets.narrow(scan.types[i], i, "type")


def _read_except(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    facets.excluded += scan.excluded.get(i, ())


def _read_values(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    if facets.values is None:
        facets.values = value


def _read_const(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    if facets.values is None and scan.draft >= 6:
        facets.values = [value]


def _read_low(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    facets.low = tighter(facets.low, (value, scan.draft == 4 and schema.get("exclusiveMinimum") is True), 1)


def _read_high(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    facets.high = tighter(facets.high, (value, scan.draft == 4 and schema.get("exclusiveMaximum") is True), -1)


def _read_open_low(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    if scan.draft > 4:
        facets.low = tighter(facets.low, (value, True), 1)


def _read_open_high(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    if scan.draft > 4:
        facets.high = tighter(facets.high, (value, True), -1)


def _read_multiple(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    facets.steps = Steps((*facets.steps.of, value), facets.steps.not_of)


def _read_apart(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    facets.steps = Steps(facets.steps.of, (*facets.steps.not_of, value))


def _read_least(slot: str) -> Callable[..., None]:
    def read(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        setattr(facets, slot, max(getattr(facets, slot), int(value)))

    return read


def _read_most(slot: str) -> Callable[..., None]:
    def read(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        most, now = clamp(value), getattr(facets, slot)
        if most >= 0 and (now < 0 or most < now):
            setattr(facets, slot, most)

    return read


def _read_required(facets: Facets, scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    facets.required = {**facets.required, **dict.fromkeys(value)}


_READERS: dict[Any, Callable[..., None]] = {
    "type": _read_type,
    TYPES: _read_type,
    EXCEPT: _read_except,
    "enum": _read_values,
    "const": _read_const,
    "minimum": _read_low,
    "maximum": _read_high,
    "exclusiveMinimum": _read_open_low,
    "exclusiveMaximum": _read_open_high,
    "multipleOf": _read_multiple,
    APART: _read_apart,
    "minLength": _read_least("min_length"),
    "maxLength": _read_most("max_length"),
    "minItems": _read_least("min_items"),
    "maxItems": _read_most("max_items"),
    "required": _read_required,
}


def steps_of(schema: dict[Any, Any]) -> Steps:
    """What one schema says of multiples."""
    if "multipleOf" not in schema and APART not in schema:
        return FREE
    return Steps(*((schema[keyword],) if keyword in schema else () for keyword in ("multipleOf", APART)))


def bounds_of(schema: dict[str, Any], draft: int) -> tuple[Bound | None, Bound | None]:
    """The bounds that one schema gives numbers."""
    low = high = None
    if "minimum" in schema:
        low = (schema["minimum"], draft == 4 and schema.get("exclusiveMinimum") is True)
    if "maximum" in schema:
        high = (schema["maximum"], draft == 4 and schema.get("exclusiveMaximum") is True)
    if draft > 4:
        if "exclusiveMinimum" in schema:
            low = tighter(low, (schema["exclusiveMinimum"], True), 1)
        if "exclusiveMaximum" in schema:
            high = tighter(high, (schema["exclusiveMaximum"], True), -1)
    return low, high
