"""Which schemas apply where: what holds at a value is a set of schema objects, and all of them must be satisfied.

A `$ref` adds its target to the set, `allOf` its members, `anyOf` splits it into one set for each member, and the
members and items of a value get the sets that `properties`, `additionalProperties`, `prefixItems` and `items` of all
these schemas name. No schemas are merged or rewritten.

JSON Schema 2020-12, core 8.2 (`$ref`), 10.2 (`allOf`, `anyOf`), 10.3 (members and items), validation 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from maskwright.reference.json_value import TYPES, Place, Schema, decimal, resolve, type_names
from maskwright.reference.numbers import Bound

Places = tuple[Place, ...]
_Reached = tuple[Place, frozenset[Place]]  # a place and those that it was reached from without taking text


class CycleError(ValueError):
    """A schema applies itself to the same value: JSON Schema leaves its meaning undefined (core, 9.4.1)."""


class Applicable:
    """A schema and the sets of its subschemas. In a *branch*, `$ref` and `anyOf` have been followed already."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def at(self, place: Place) -> Schema:
        """The subschema at a place."""
        schema: Any = self.schema
        for step in place:
            schema = schema[step]
        assert isinstance(schema, bool | dict), place
        return schema

    def objects(self, branch: Places) -> list[tuple[Place, dict[str, Any]]]:
        """The schemas of a branch, with their places."""
        return [(place, schema) for place in branch if isinstance(schema := self.at(place), dict)]

    def said(self, branch: Places, keyword: str) -> list[Any]:
        """What the schemas of a branch say under a keyword."""
        return [schema[keyword] for _, schema in self.objects(branch) if keyword in schema]

    # -- references and unions -----------------------------------------------------------------------------------------

    def branches(self, places: Places) -> Iterator[Places]:
        """All ways to choose one member of each `anyOf`."""
        yield from self._choose([(place, frozenset()) for place in places], [], ())

    def _choose(self, todo: list[_Reached], choices: list[_Reached], done: Places) -> Iterator[Places]:
        """Follow what must apply first, then split by the first `anyOf` met."""
        if not todo:
            if not choices:
                yield tuple(dict.fromkeys(done))
                return
            (place, above), *choices = choices
            for i in range(len(self._said_at(place, "anyOf"))):
                yield from self._choose([((*place, "anyOf", i), above)], choices, done)
            return
        (place, above), *todo = todo
        if place in above:
            raise CycleError(place)
        schema = self.at(place)
        if schema is False:
            return
        above |= {place}
        if isinstance(schema, dict):
            targets = [resolve(self.schema, schema["$ref"])] if "$ref" in schema else []
            targets += [(*place, "allOf", i) for i in range(len(schema.get("allOf", ())))]
            todo = [*((target, above) for target in targets), *todo]
            choices = [*choices, (place, above)] if "anyOf" in schema else choices
            done = (*done, place)
        yield from self._choose(todo, choices, done)

    def _said_at(self, place: Place, keyword: str) -> list[Any]:
        return next(schema[keyword] for _, schema in self.objects((place,)))

    # -- types and bounds ----------------------------------------------------------------------------------------------

    def kinds(self, branch: Places) -> list[str]:
        """The types that a value may have; `integer` counts as `number`."""
        names = [type_names(schema) for _, schema in self.objects(branch)]
        return [kind for kind in TYPES if all(kind in n or (kind == "number" and "integer" in n) for n in names)]

    def integers_only(self, branch: Places) -> bool:
        """Whether its numbers must be integers."""
        return any("number" not in type_names(schema) for _, schema in self.objects(branch))

    def counts(self, branch: Places, least: str, most: str) -> tuple[int, int | None]:
        """The bounds of a length: the greatest minimum and the least maximum."""
        return max(map(int, self.said(branch, least)), default=0), min(map(int, self.said(branch, most)), default=None)

    def number_bounds(self, branch: Places) -> tuple[Bound | None, Bound | None]:
        """The greatest lower and the least upper bound of numbers; of two equal ones, that which excludes its value."""
        low = [(decimal(v), False) for v in self.said(branch, "minimum")]
        low += [(decimal(v), True) for v in self.said(branch, "exclusiveMinimum")]
        high = [(decimal(v), False) for v in self.said(branch, "maximum")]
        high += [(decimal(v), True) for v in self.said(branch, "exclusiveMaximum")]
        return max(low, default=None), min(high, key=lambda bound: (bound[0], not bound[1]), default=None)

    def steps(self, branch: Places) -> list[Fraction]:
        """What its numbers must be multiples of."""
        return [Fraction(decimal(v)) for v in self.said(branch, "multipleOf")]

    # -- members and items ---------------------------------------------------------------------------------------------

    def names(self, branch: Places) -> list[str]:
        """The names known to the schema, in order: those of `properties`, then those of `required` alone."""
        listed = [name for names in self.said(branch, "properties") for name in names]
        return list(dict.fromkeys([*listed, *(name for names in self.said(branch, "required") for name in names)]))

    def required(self, branch: Places) -> set[str]:
        """The names that must be present."""
        return {name for names in self.said(branch, "required") for name in names}

    def member(self, branch: Places, name: str | None) -> Places:
        """What applies to the value of a name; None: of a name that `properties` does not list."""
        places: list[Place] = []
        for place, schema in self.objects(branch):
            if name is not None and name in schema.get("properties", {}):
                places.append((*place, "properties", name))
            elif "additionalProperties" in schema:
                places.append((*place, "additionalProperties"))
        return tuple(places)

    def prefix(self, branch: Places) -> int:
        """From this index on all items have the same schemas."""
        return max(map(len, self.said(branch, "prefixItems")), default=0)

    def item(self, branch: Places, index: int) -> Places:
        """What applies to the item of an index."""
        places: list[Place] = []
        for place, schema in self.objects(branch):
            if index < len(schema.get("prefixItems", ())):
                places.append((*place, "prefixItems", index))
            elif "items" in schema:
                places.append((*place, "items"))
        return tuple(places)
