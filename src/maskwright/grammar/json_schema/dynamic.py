"""`$dynamicRef` and `$recursiveRef`: schemas are copied for each dynamic scope that they can be evaluated in.

Of a dynamic scope only one thing matters: which resource, of those entered so far, was the first with a dynamic anchor
of each name. There are finitely many of these scopes, mostly one or two, and a schema in a known scope refers to one
other schema in a known scope. So the copies make an ordinary document, and everything after the scan sees only that.

JSON Schema Core 2020-12, 8.2.3.2; 2019-09, 8.2.4.2. A document that has nothing dynamic is never copied.
"""

from __future__ import annotations

from typing import Any

from .dialect import KEPT, LIST, MAP, ONE
from .paths import ROOT, Path
from .refs import Place, References

# Anchor name (RECURSIVE: that of `$recursiveAnchor`) and the URI of the resource that was the first to have it, sorted.
Scope = tuple[tuple[str, str], ...]


class NeedsCopies(Exception):
    """The scan met a reference that may be dynamic, and has to be done again with copies."""


class Copies:
    """The copies of the schemas of some documents.

    Args:
        refs: of these documents.
    """

    def __init__(self, refs: References) -> None:
        self._refs = refs
        self._scopes: dict[int, Scope] = {}  # by the id() of a copy
        self._copies: dict[tuple[int, Scope], dict[str, Any]] = {}

    def enter(self, place: Place, scope: Scope) -> Any:
        """The schema at a place for one who comes there by a reference in a scope."""
        value, path = place
        if not isinstance(value, dict):
            return value
        return self._copy(value, self._within(scope, self._refs.base(path)))

    def root(self, document: Any) -> Any:
        """The document, for its own scope."""
        return self.enter((document, ROOT), ())

    def refer(self, holder: dict[str, Any], ref: str, path: Path) -> Place:
        """The copy that a `$ref` of a copy means, with the place of the original."""
        target = self._refs.resolve(ref, path)
        return self.enter(target, self._scope(holder)), target[1]

    def refer_dynamically(self, holder: dict[str, Any], ref: str, path: Path) -> Place:
        """The same for `$dynamicRef` and `$recursiveRef`."""
        target, anchor = self._refs.resolve_dynamic(ref, path)
        scope = self._scope(holder)
        if anchor is not None:
            first = dict(scope).get(anchor)
            if first is not None:
                target = self._refs.dynamic[first][anchor]
        return self.enter(target, scope), target[1]

    def _scope(self, holder: dict[str, Any]) -> Scope:
        return self._scopes.get(id(holder), ())

    def _within(self, scope: Scope, resource: str) -> Scope:
        """The scope inside a resource: the anchors that it is the first to have are its own."""
        known = dict(scope)
        fresh = {name: resource for name in self._refs.dynamic.get(resource, ()) if name not in known}
        return tuple(sorted({**known, **fresh}.items())) if fresh else scope

    def _copy(self, schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
        resource = self._refs.resource_at(schema)
        if resource is not None:
            scope = self._within(scope, resource)
        key = (id(schema), scope)
        made = self._copies.get(key)
        if made is None:
            made = self._copies[key] = {}
            self._scopes[id(made)] = scope
            made.update((keyword, self._copy_value(keyword, value, scope)) for keyword, value in schema.items())
        return made

    def _copy_value(self, keyword: str, value: Any, scope: Scope) -> Any:
        def copy(sub: Any) -> Any:
            return self._copy(sub, scope) if isinstance(sub, dict) else sub

        if isinstance(value, dict) and keyword in MAP and keyword not in KEPT:
            return {name: copy(sub) for name, sub in value.items()}
        if isinstance(value, list) and keyword in LIST:
            return list(map(copy, value))
        return copy(value) if keyword in ONE else value
