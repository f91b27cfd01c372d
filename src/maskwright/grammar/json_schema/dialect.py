"""Which draft a document speaks, and where its keywords hold schemas.

Drafts are numbered 4, 6, 7, 2019, 2020.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maskwright.errors import SchemaError

from .model import words
from .paths import Path, pointer

DRAFTS = {"4": 4, "6": 6, "7": 7, "2019-09": 2019, "2020-12": 2020}
_URIS = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
}
# Keywords whose value is one schema, a list of schemas, a map of schemas. `items` and `dependencies` may be two of
# these.
ONE = words(
    "additionalItems additionalProperties contains else if items not propertyNames then unevaluatedItems "
    "unevaluatedProperties contentSchema"
)
LIST = words("allOf anyOf items oneOf prefixItems")
MAP = words("$defs definitions dependencies dependentSchemas patternProperties properties")


def draft_of(schema: object, default: int, path: Path) -> int:
    """The draft that `$schema` names; `default` where it names none, or "the latest".

    Raises:
        SchemaError: `$schema` is no string, or names a dialect that is not one of the five drafts.
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
    if draft is None:
        raise SchemaError(
            f"$schema names the unknown dialect {uri!r}",
            location=where,
            hint="Known are the drafts 2020-12, 2019-09, 7, 6 and 4; leave $schema out to have default_draft",
        )
    return draft


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
