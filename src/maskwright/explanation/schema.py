"""The schemas that apply to a place of a JSON value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maskwright.errors import ConstraintError
from maskwright.grammar.automata import automaton
from maskwright.grammar.json_schema import JsonSchema
from maskwright.grammar.json_schema.dialect import DRAFTS, draft_of
from maskwright.grammar.json_schema.paths import ROOT, Path, pointer
from maskwright.grammar.json_schema.refs import References
from maskwright.grammar.json_schema.source import load
from maskwright.grammar.regex import pattern_ir

__all__ = ["Schemas"]

_IN_PLACE = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("then", "else")
_MOST = 200  # schemas followed for one place


class Schemas:
    """The schemas at a place, with their paths; the most general first.

    Args:
        constraint: the schema.
        path: keys and indices that lead to the value.
    """

    def __init__(self, constraint: JsonSchema, path: tuple[str | int, ...]) -> None:
        document = load(constraint.text)
        self.draft = draft_of(document, DRAFTS[constraint.options.default_draft], ROOT, constraint.registry)
        self._references = References(document, self.draft, False, constraint.registry)
        self.places = self._in_place([(document, ROOT)])
        for step in path:
            below = [place for schema, at in self.places for place in self._below(schema, at, step)]
            self.places = self._in_place(below)

    def keyword(self, *names: str) -> Iterator[tuple[str, Any, str]]:
        """Name, value and pointer of keywords, wherever they stand."""
        for schema, path in self.places:
            for name in names:
                if isinstance(schema, dict) and name in schema:
                    yield name, schema[name], pointer(path, name)

    def pointers(self) -> Iterator[tuple[Any, str]]:
        """The schemas, with their JSON pointers."""
        for schema, path in self.places:
            yield schema, pointer(path)

    def _in_place(self, places: list[tuple[Any, Path]]) -> list[tuple[Any, Path]]:
        """The schemas and all that they refer to or combine for the same value."""
        found: list[tuple[Any, Path]] = []
        seen: set[int] = set()
        todo = places[::-1]
        while todo and len(found) < _MOST:
            schema, path = todo.pop()
            if not isinstance(schema, dict):
                found.append((schema, path))
                continue
            if id(schema) in seen:
                continue
            seen.add(id(schema))
            alone = self.draft <= 7 and "$ref" in schema
            if not alone:
                found.append((schema, path))
                todo += list(_combined(schema, path))[::-1]
            todo += self._referred(schema, path)
        return found

    def _referred(self, schema: dict[str, Any], path: Path) -> list[tuple[Any, Path]]:
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(ref := schema.get(keyword), str):
                try:
                    return [self._references.resolve(ref, path)]
                except ConstraintError:  # of a schema that nothing reaches: the compile has judged the others
                    return []
        return []

    def _below(self, schema: Any, path: Path, step: str | int) -> list[tuple[Any, Path]]:
        if not isinstance(schema, dict):
            return []
        return self._item(schema, path, step) if isinstance(step, int) else self._member(schema, path, step)

    def _member(self, schema: dict[str, Any], path: Path, key: str) -> list[tuple[Any, Path]]:
        found: list[tuple[Any, Path]] = []
        if key in (named := schema.get("properties", {})):
            found.append((named[key], ((path, "properties"), key)))
        for pattern, inner in schema.get("patternProperties", {}).items():
            if automaton(pattern_ir(pattern, "ecma", "search")).matches(key):
                found.append((inner, ((path, "patternProperties"), pattern)))
        if found:
            return found
        others = ("additionalProperties", "unevaluatedProperties")
        return [(schema[keyword], (path, keyword)) for keyword in others if keyword in schema]

    def _item(self, schema: dict[str, Any], path: Path, index: int) -> list[tuple[Any, Path]]:
        listed = "prefixItems" if self.draft >= 2020 else "items"
        items = schema.get(listed)
        if isinstance(items, list):
            if index < len(items):
                return [(items[index], ((path, listed), index))]
            rest = "items" if self.draft >= 2020 else "additionalItems"
            return [(schema[rest], (path, rest))] if rest in schema else []
        others = ("items", "unevaluatedItems")
        return [(schema[keyword], (path, keyword)) for keyword in others if keyword in schema]


def _combined(schema: dict[str, Any], path: Path) -> Iterator[tuple[Any, Path]]:
    for keyword in _IN_PLACE:
        if isinstance(schema.get(keyword), list):
            for number, branch in enumerate(schema[keyword]):
                yield branch, ((path, keyword), number)
    for keyword in _BRANCHES:
        if keyword in schema:
            yield schema[keyword], (path, keyword)

