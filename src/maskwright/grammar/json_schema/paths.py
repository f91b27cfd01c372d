"""Places in a schema document, kept as linked tuples and written as JSON pointers (RFC 6901) only when somebody asks.

A path is `()` for the root of the caller's document, `(uri,)` for the root of a document of the registry, and
`(parent, token)` for a member of either. One tuple a schema is all that the scan pays.
"""

from __future__ import annotations

from typing import Any

Path = tuple[Any, ...]
ROOT: Path = ()


def pointer(path: Path, *tokens: object) -> str:
    """The JSON pointer of a path and of `tokens` below it; the root of the caller's document is `""`.

    A place in a document of the registry reads `uri#/pointer`.
    """
    parts = [str(token) for token in reversed(tokens)]
    while len(path) == 2:
        path, token = path
        parts.append(str(token))
    text = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in reversed(parts))
    return f"{path[0]}#{text}" if path else text


def document_of(path: Path) -> str | None:
    """The URI of the document that a place is in; None for the caller's."""
    while len(path) == 2:
        path = path[0]
    return path[0] if path else None


def tokens_of(path: Path) -> tuple[str | None, list[str | int]]:
    """The URI of the document (None: the caller's) and the tokens from its root."""
    tokens: list[str | int] = []
    while len(path) == 2:
        path, token = path
        tokens.append(token)
    tokens.reverse()
    return (path[0] if path else None), tokens
