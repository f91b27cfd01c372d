"""Schemas as the joint evaluation sees them: what each says by itself, and the formula over those that apply in place.

A node is a schema by its number, or the constant value of an `enum` or `const` that is a container (numbers from
`FIRST_CONSTANT` on), which is a closed object with all its names, or a tuple.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from maskwright.grammar.ir import Ir

from ..evaluate import distinct, identity
from ..facets import ABSENT, bounds_of, steps_of
from ..kinds import ARRAY, EVERY, OBJECT
from ..model import ALWAYS, NEVER, Group, words
from ..numbers import FREE, Bound, Steps

if TYPE_CHECKING:
    from ..scan import Scan

FIRST_CONSTANT = 1 << 40
_OF_OBJECTS = words(
    "properties patternProperties additionalProperties propertyNames required minProperties maxProperties "
    "unevaluatedProperties"
)
_OF_ARRAYS = words(
    "items prefixItems additionalItems minItems maxItems contains minContains maxContains unevaluatedItems uniqueItems"
)
Ids = tuple[int, ...]


@dataclass
class Node:
    """What one schema says. Other schemas are named by their ids: numbers, or NEVER and ALWAYS.

    Attributes:
        parts: what applies in place; all of it has to hold.
        values: with `enum` or `const`, the scalars among them; None where neither stands.
        constants: the containers among them.
        names, patterns, rest: what applies to members; None where nothing is said of the others.
        keys: what applies to names of members.
        leftover: `unevaluatedProperties`.
        prefix, items, contains, others: what applies to items; `others` is `unevaluatedItems`.
        annotates: its keywords count as evaluating members for the `unevaluated` keywords of others.
    """

    number: int
    parts: tuple[Group, ...] = ()
    types: int = EVERY
    values: list[Any] | None = None
    constants: Ids = ()
    regexes: list[tuple[str, Ir]] = field(default_factory=list)
    min_length: int = 0
    max_length: int = -1
    low: Bound | None = None
    high: Bound | None = None
    excluded: tuple[Any, ...] = ()
    steps: Steps = FREE
    names: dict[str, int] = field(default_factory=dict)
    patterns: list[tuple[str, Ir, int]] = field(default_factory=list)
    rest: int | None = None
    keys: int = ALWAYS
    required: tuple[str, ...] = ()
    min_members: int = 0
    max_members: int | None = None
    leftover: int | None = None
    prefix: list[int] = field(default_factory=list)
    items: int | None = None
    contains: int | None = None
    min_contains: int = 1
    max_contains: int | None = None
    min_items: int = 0
    max_items: int | None = None
    others: int | None = None
    unique: bool = False
    annotates: bool = True

    def covers_name(self, name_subs: Ids) -> bool:
        """Whether a member to which these schemas of it apply is evaluated where it holds."""
        return self.annotates and (bool(name_subs) or self.rest is not None or self.leftover is not None)

    def covers_item(self, n: int) -> bool:
        """Whether item `n` is evaluated where it holds, whatever its value."""
        return self.annotates and (n < len(self.prefix) or self.items is not None or self.others is not None)


class Nodes:
    """The nodes of a scanned document, made on demand."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self._nodes: dict[int, Node] = {}
        self._constants: dict[Hashable, int] = {}
        self._values: dict[int, Any] = {}
        self._closures: dict[Ids, Ids] = {}
        self._formulas: dict[Ids, list[tuple[int, tuple[Group, ...]]]] = {}

    def __getitem__(self, number: int) -> Node:
        found = self._nodes.get(number)
        if found is None:
            make = self._constant_node if number >= FIRST_CONSTANT else self._schema_node
            found = self._nodes[number] = make(number)
        return found

    @staticmethod
    def is_constant(number: int) -> bool:
        """Whether an id is that of a constant."""
        return number >= FIRST_CONSTANT

    def value_of(self, number: int) -> Any:
        """The value of a constant."""
        return self._values[number]

    def constant(self, value: Any) -> int:
        """The id of the constant `value`."""
        key = identity(value)
        number = self._constants.get(key)
        if number is None:
            number = self._constants[key] = FIRST_CONSTANT + len(self._constants)
            self._values[number] = value
        return number

    def sub(self, value: Any) -> int:
        """The id of a subschema of the document."""
        if value is True:
            return ALWAYS
        if value is False:
            return NEVER
        return self.scan.canonical(self.scan.index[id(value)])

    def closure(self, ids: Ids) -> Ids:
        """These nodes and all that apply in place below them, each after those it depends on."""
        found = self._closures.get(ids)
        if found is None:
            found = self._closures[ids] = self._close(ids)
        return found

    def _close(self, ids: Ids) -> Ids:
        out: dict[int, None] = {}
        stack = [(i, False) for i in reversed(ids)]
        while stack:
            number, done = stack.pop()
            if number in out or number < 0:
                continue
            if done:
                out[number] = None
                continue
            stack.append((number, True))
            stack.extend((b, False) for b in self.below(number))
        return tuple(out)

    def formulas(self, closure: Ids) -> list[tuple[int, tuple[Group, ...]]]:
        """The nodes of a closure with what applies in place."""
        found = self._formulas.get(closure)
        if found is None:
            found = self._formulas[closure] = [(n, self[n].parts) for n in closure]
        return found

    def preorder(self, ids: Ids) -> Ids:
        """The closure, each node before those it depends on."""
        out: dict[int, None] = {}
        stack = [i for i in reversed(ids) if i >= 0]
        while stack:
            number = stack.pop()
            if number not in out:
                out[number] = None
                stack.extend(reversed([b for b in self.below(number) if b not in out]))
        return tuple(out)

    def below(self, number: int) -> Iterator[int]:
        """The nodes that a node's truth depends on directly."""
        node = self[number]
        for part in node.parts:
            yield from (b for b in part.branches if b >= 0)
        yield from node.constants

    def _schema_node(self, number: int) -> Node:
        scan, schema = self.scan, self.scan.schemas[number]
        node = Node(number, tuple(_canonical(scan, group) for group in scan.parts_of(number)))
        node.annotates = number not in scan.synthetics
        if scan.draft <= 7 and "$ref" in schema:
            return node
        node.types = scan.types.get(number, EVERY)
        node.regexes = scan.regexes.get(number, [])
        if "minLength" in schema or "maxLength" in schema:
            node.min_length, most = int(schema.get("minLength", 0)), schema.get("maxLength")
            node.max_length = -1 if most is None else int(most)
        node.low, node.high = bounds_of(schema, scan.draft)
        node.excluded = scan.excluded.get(number, ())
        node.steps = steps_of(schema)
        self._read_values(node, schema)
        if not _OF_OBJECTS.isdisjoint(schema):
            self._read_object(node, schema)
        if not _OF_ARRAYS.isdisjoint(schema):
            self._read_array(node, schema)
        return node

    def _read_values(self, node: Node, schema: dict[str, Any]) -> None:
        values = schema.get("enum")
        if "const" in schema and self.scan.draft >= 6:
            const = schema["const"]
            values = [const] if values is None else [v for v in values if identity(v) == identity(const)]
        if values is None:
            return
        values = distinct(values)
        node.values = [v for v in values if not isinstance(v, list | dict)]
        node.constants = tuple(self.constant(v) for v in values if isinstance(v, list | dict))

    def _read_object(self, node: Node, schema: dict[str, Any]) -> None:
        scan, sub = self.scan, self.sub
        node.names = {name: sub(s) for name, s in schema.get("properties", {}).items()}
        node.patterns = [(name, ir, sub(s)) for name, ir, s in scan.patterns.get(node.number, ())]
        node.rest = None if "additionalProperties" not in schema else sub(schema["additionalProperties"])
        if scan.draft >= 6 and "propertyNames" in schema:
            node.keys = sub(schema["propertyNames"])
        required = schema.get("required", ())
        node.required = tuple(dict.fromkeys(required)) if isinstance(required, list | tuple) else ()
        node.min_members = int(schema.get("minProperties", 0))
        node.max_members = _count(schema, "maxProperties")
        if scan.draft >= 2019 and "unevaluatedProperties" in schema:
            node.leftover = sub(schema["unevaluatedProperties"])

    def _read_array(self, node: Node, schema: dict[str, Any]) -> None:
        scan, sub = self.scan, self.sub
        items = schema.get("items", ABSENT)
        if scan.draft < 2020 and isinstance(items, list):
            node.prefix, items = [sub(s) for s in items], schema.get("additionalItems", ABSENT)
        elif scan.draft >= 2020:
            node.prefix = [sub(s) for s in schema.get("prefixItems", ())]
        node.items = None if items is ABSENT else sub(items)
        node.min_items, node.max_items = int(schema.get("minItems", 0)), _count(schema, "maxItems")
        if scan.draft >= 6 and "contains" in schema:
            node.contains = sub(schema["contains"])
            if scan.draft >= 2019:
                node.min_contains = int(schema.get("minContains", 1))
                node.max_contains = _count(schema, "maxContains")
        if scan.draft >= 2019 and "unevaluatedItems" in schema:
            node.others = sub(schema["unevaluatedItems"])
        node.unique = node.number in scan.unique

    def _constant_node(self, number: int) -> Node:
        value = self._values[number]
        node = Node(number, annotates=False)
        if isinstance(value, dict):
            node.types, node.rest = OBJECT, NEVER
            node.names = {name: self.constant(v) for name, v in value.items()}
            node.required = tuple(value)
        elif isinstance(value, list):
            node.types, node.items = ARRAY, NEVER
            node.prefix = [self.constant(v) for v in value]
            node.min_items = len(value)
        else:
            node.values = [value]
        return node


def _canonical(scan: Scan, group: Group) -> Group:
    return group._replace(branches=tuple(b if b < 0 else scan.canonical(b) for b in group.branches))


def _count(schema: dict[str, Any], keyword: str) -> int | None:
    return int(schema[keyword]) if keyword in schema else None


def unique_ids(ids: Iterable[int]) -> Ids:
    """Sorted, once each, without those that everything satisfies."""
    return tuple(sorted(set(ids) - {ALWAYS}))
