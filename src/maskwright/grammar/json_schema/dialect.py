"""Which draft a document speaks, and where its keywords hold schemas.

Drafts are numbered 4, 6, 7, 2019, 2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from maskwright.errors import SchemaError

from .model import words
from .paths import Path, pointer
from .source import load

# OpenAPI 3.0 took its Schema Object from draft 5, which asserts as draft 4 does, and gave it `nullable`.
OPENAPI = "openapi-3.0"
DRAFTS = {"4": 4, "6": 6, "7": 7, "2019-09": 2019, "2020-12": 2020, OPENAPI: 4}
_URIS = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
    "spec.openapis.org/oas/3.1/dialect/base": 2020,
}
_VOCABULARIES = {
    "https://json-schema.org/draft/2019-09/vocab/": 2019,
    "https://json-schema.org/draft/2020-12/vocab/": 2020,
}
# Keywords whose value is one schema, a list of schemas, a map of schemas. `items` and `dependencies` may be two of
# these.
ONE = words(
    "additionalItems additionalProperties contains else if items not propertyNames then unevaluatedItems "
    "unevaluatedProperties contentSchema"
)
LIST = words("allOf anyOf items oneOf prefixItems")
KEPT = words("$defs definitions")  # only references get there
MAP = KEPT | words("dependencies dependentSchemas patternProperties properties")


def draft_of(schema: object, default: int, path: Path, registry: Mapping[str, str] | None = None) -> int:
    """The draft that `$schema` names; `default` where it names none, or "the latest".

    A metaschema in the registry stands for the draft that it is written in.

    Raises:
        SchemaError: `$schema` is no string, or names a dialect that is not one of the five drafts; or one that leaves
            out a vocabulary that asserts something, or needs one that we do not know.
    """
    uri = schema.get("$schema") if isinstance(schema, dict) else None
    if uri is None:
        return default
    where = pointer(path, "$schema")
    if not isinstance(uri, str):
        raise SchemaError("$schema is a URI", location=where)
    name = uri.removeprefix("http://").removeprefix("https://").removesuffix("#")
    if name == "json-schema.org/schema":
        return default
    draft = _URIS.get(name)
    if draft is None and registry and uri.removesuffix("#") in registry:
        return _custom_draft(uri.removesuffix("#"), default, where, registry)
    if draft is None:
        raise SchemaError(
            f"$schema names the unknown dialect {uri!r}",
            location=where,
            hint="Known are the drafts 2020-12, 2019-09, 7, 6 and 4; leave $schema out to have default_draft",
        )
    return draft


def _custom_draft(uri: str, default: int, where: str, registry: Mapping[str, str]) -> int:
    metaschema = load(registry[uri], (uri,))
    used = metaschema.get("$vocabulary") if isinstance(metaschema, dict) else None
    if isinstance(used, dict):
        for name, required in used.items():
            if required is True and not any(name.startswith(start) for start in _VOCABULARIES):
                raise SchemaError(f"$schema needs the vocabulary {name!r}, which is not supported", location=where)
        draft = next((d for start, d in _VOCABULARIES.items() if any(name.startswith(start) for name in used)), default)
        names = {name.rpartition("/")[2] for name in used}
        lacking = [n for n in ("applicator", "validation", *["unevaluated"] * (draft == 2020)) if n not in names]
        if lacking:
            raise SchemaError(
                f"$schema names a dialect without the vocabulary {lacking[0]!r}, which is not supported",
                location=where,
                hint="Leave the keywords out that it does not have, and name a draft",
            )
        return draft
    others = {name: text for name, text in registry.items() if name != uri}
    return draft_of(metaschema, default, (uri,), others)


def members(schema: dict[str, Any]) -> Iterator[Any]:
    """What stands where a schema has others that apply to something: those it only keeps are left out."""
    for keyword, value in schema.items():
        if isinstance(value, dict):
            if keyword in ONE:
                yield value
            elif keyword in MAP and keyword not in KEPT:
                yield from value.values()
        elif isinstance(value, list) and keyword in LIST:
            yield from value


def subschemas(schema: dict[str, Any], path: Path) -> Iterator[tuple[Any, Path]]:
    """The schemas directly below one, with their paths; what is no schema by its keyword is left out."""
    for keyword, value in schema.items():
        if isinstance(value, dict):
            if keyword in MAP:
                yield from ((v, ((path, keyword), k)) for k, v in value.items() if isinstance(v, dict))
            elif keyword in ONE:
                yield value, (path, keyword)
        elif isinstance(value, list) and keyword in LIST:
            yield from ((v, ((path, keyword), k)) for k, v in enumerate(value) if isinstance(v, dict))
