"""The metaschemas of the drafts, for references to them: from a package that `jsonschema` needs, never fetched."""

from __future__ import annotations

from functools import lru_cache

from .source import dump

_HOST = "//json-schema.org/draft"


def is_metaschema(uri: str | None) -> bool:
    """Whether a document is one of those that are built in."""
    return uri is not None and _HOST in uri and metaschema_text(uri) is not None


@lru_cache(maxsize=64)
def metaschema_text(uri: str) -> str | None:
    """The JSON text of the metaschema (or vocabulary of one) of a URI without fragment; None where it is another's."""
    if _HOST not in uri:
        return None
    from jsonschema_specifications import REGISTRY

    found = REGISTRY.get(uri)
    return None if found is None else dump(found.contents)
