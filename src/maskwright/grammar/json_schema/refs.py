"""References: by JSON pointer, to an anchor, to a resource by its `$id`; inside the document or the registry.

JSON Schema Core 2020-12, sections 8.2 and 9; RFC 3986, RFC 6901. Nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from maskwright.errors import SchemaError

from .dialect import draft_of, subschemas
from .metaschemas import metaschema_text
from .paths import ROOT, Path, document_of, pointer, tokens_of
from .source import dump, load

Place = tuple[Any, Path]
# The name under which a `$recursiveAnchor` is kept; no anchor of the standard has it.
RECURSIVE = "#"


class References:
    """Resolves the references of one document and of the registry beside it.

    Attributes:
        dynamic: the dynamic anchors of each resource met so far, by its URI.

    Args:
        document: the parsed schema.
        draft: its draft, which says what an identifier looks like.
        simple: the document has no identifier below its root, so that `#...` is always about the root.
        registry: URI to schema, the only other documents there are.
    """

    def __init__(self, document: Any, draft: int, simple: bool, registry: Mapping[str, str]) -> None:
        self._documents: dict[str | None, Any] = {None: document}
        self._draft = draft
        self._id = "id" if draft == 4 else "$id"
        self._simple = simple
        self._registry = registry
        self._places: dict[str, Place] = {}  # absolute URI of a resource or anchor -> the schema there
        self._bases: dict[int, str] = {}  # id() of a schema with an identifier -> the URI it gives
        self.dynamic: dict[str, dict[str, Place]] = {}  # URI of a resource -> its dynamic anchors
        self._indexed = False

    def resolve(self, ref: str, path: Path) -> Place:
        """The schema that the reference `ref` of the schema at `path` points to, and its path.

        Raises:
            SchemaError: it points nowhere, to no schema, or to a document that is not at hand.
        """
        if self._simple and ref.startswith("#") and len(path) != 1:
            fragment, place = ref[1:], (self._documents[None], ROOT)
            if not fragment:
                return place
            if fragment[0] == "/" and document_of(path) is None:
                return self._walk(place, fragment, ref, path)
        return self._by_uri(ref, path)

    def resolve_dynamic(self, ref: str, path: Path) -> tuple[Place, str | None]:
        """Where a `$dynamicRef` or `$recursiveRef` points at first, and the dynamic anchor there, if any."""
        uri, fragment = self._absolute(ref, path)
        place = self._by_uri(ref, path)
        name = RECURSIVE if self._draft < 2020 else unquote(fragment)
        found = self.dynamic.get(self.base(self._resource(uri, ref, path)[1]), {}).get(name)
        return place, name if found is not None and found[0] is place[0] else None

    def _absolute(self, ref: str, path: Path) -> tuple[str, str]:
        """The URI of a resource and the fragment that a reference means."""
        self.index()
        base = self.base(path)
        try:
            uri, fragment = urldefrag(base + ref if ref.startswith("#") else urljoin(base, ref))
        except ValueError:
            raise SchemaError(f"{ref!r} is no URI", location=pointer(path, "$ref")) from None
        return uri, fragment

    def _by_uri(self, ref: str, path: Path) -> Place:
        uri, fragment = self._absolute(ref, path)
        resource = self._resource(uri, ref, path)
        if not fragment or fragment.startswith("/"):
            return self._walk(resource, fragment, ref, path)
        # By the resource's own name, which may differ from the one it was asked for by.
        name = unquote(fragment)
        place = self._places.get(f"{uri}#{name}") or self._places.get(f"{self.base(resource[1])}#{name}")
        if place is None:
            raise SchemaError(f"$ref points to the anchor {ref!r}, which is nowhere", location=pointer(path, "$ref"))
        return place

    def _resource(self, uri: str, ref: str, path: Path) -> Place:
        place = self._places.get(uri)
        if place is None and (text := self._registry.get(uri) or metaschema_text(uri)) is not None:
            document = self._documents[uri] = load(text, (uri,))
            if draft_of(document, self._draft, (uri,), self._registry) != self._draft:
                raise SchemaError(
                    f"$ref points to {ref!r}, which speaks another draft",
                    location=pointer(path, "$ref"),
                    hint="Write both in one draft",
                )
            self._index(document, (uri,), uri)
            place = self._places.setdefault(uri, (document, (uri,)))
        if place is None:
            raise SchemaError(
                f"$ref points to {ref!r}, a document that is not at hand",
                location=pointer(path, "$ref"),
                hint="Put it into $defs, or give it in registry={uri: schema}; nothing is fetched",
            )
        return place

    def index(self) -> None:
        """Notes the identifiers of the document, where that has not been done."""
        if not self._indexed:
            self._indexed = True
            self._index(self._documents[None], ROOT, "")

    def _index(self, document: Any, root: Path, uri: str) -> None:
        """Note every identifier of a document. O(document), once, only where a reference needs it."""
        self._places.setdefault(uri, (document, root))
        stack: list[tuple[Any, Path, str]] = [(document, root, uri)]
        while stack:
            schema, path, base = stack.pop()
            if not isinstance(schema, dict):
                continue
            base = self._identify(schema, path, base)
            stack.extend((sub, at, base) for sub, at in subschemas(schema, path))

    def _identify(self, schema: dict[str, Any], path: Path, base: str) -> str:
        name = schema.get(self._id)
        if isinstance(name, str) and not (self._draft <= 7 and "$ref" in schema):
            uri, anchor = urldefrag(urljoin(base, name))
            if not name.startswith("#"):
                base = self._bases[id(schema)] = uri
                self._places.setdefault(uri, (schema, path))
            if anchor and self._draft <= 7:
                self._places.setdefault(f"{base}#{anchor}", (schema, path))
        if self._draft >= 2019:
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(schema.get(keyword), str):
                    self._places.setdefault(f"{base}#{schema[keyword]}", (schema, path))
            self._note_dynamic(schema, path, base)
        return base

    def _note_dynamic(self, schema: dict[str, Any], path: Path, base: str) -> None:
        name = schema.get("$dynamicAnchor") if self._draft >= 2020 else None
        is_root = len(path) != 2 or id(schema) in self._bases
        if self._draft < 2020 and schema.get("$recursiveAnchor") is True and is_root:
            name = RECURSIVE
        if isinstance(name, str):
            self.dynamic.setdefault(base, {}).setdefault(name, (schema, path))

    def resource_at(self, schema: dict[str, Any]) -> str | None:
        """The URI of the resource that begins at a schema; None where none does."""
        return self._bases.get(id(schema))

    def base(self, path: Path) -> str:
        """The URI that references at `path` are relative to."""
        root, tokens = tokens_of(path)
        value = self._documents[root]
        base = self._bases.get(id(value), root or "")
        for token in tokens:
            value = value[token]
            base = self._bases.get(id(value), base)
        return base

    def _walk(self, place: Place, fragment: str, ref: str, path: Path) -> Place:
        value, at = place
        if fragment:
            for token in unquote(fragment).split("/")[1:]:
                token = token.replace("~1", "/").replace("~0", "~")
                if isinstance(value, dict) and token in value:
                    value, at = value[token], (at, token)
                elif isinstance(value, list) and _is_index(token) and int(token) < len(value):
                    value, at = value[int(token)], (at, int(token))
                else:
                    raise SchemaError(f"$ref points to {ref!r}, which is nowhere", location=pointer(path, "$ref"))
        if not isinstance(value, dict | bool):
            raise SchemaError(f"$ref points to {ref!r}, which is no schema", location=pointer(path, "$ref"))
        return value, at


def _is_index(token: str) -> bool:
    return token.isascii() and token.isdigit() and len(token) < 10 and (token == "0" or token[0] != "0")


def registry_texts(registry: Mapping[str, object]) -> dict[str, str]:
    """The documents of a registry as JSON text: a snapshot, and content to compare by."""
    return {uri: schema if isinstance(schema, str) else dump(schema) for uri, schema in registry.items()}
