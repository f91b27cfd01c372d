"""The file of a compiled grammar: versioned JSON with a digest, written atomically."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from maskwright._files import write_atomically
from maskwright.errors import MaskwrightError
from maskwright.grammar.plan import CompileLimits

__all__ = ["Saved", "read", "write"]

_FORMAT = "maskwright compiled grammar"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Saved:
    """What a file holds.

    Args:
        constraint: by `describe`.
        fingerprint: of the vocabulary.
        size: of the vocabulary, in ids.
        limits: those of the compile.
        banned_ids: ascending.
    """

    constraint: dict[str, Any]
    fingerprint: str
    size: int
    limits: CompileLimits
    banned_ids: tuple[int, ...]


def write(path: Path, content: Saved) -> None:
    """Writes a file whole or not at all. Raises OSError."""
    body = {
        "constraint": content.constraint,
        "vocabulary": {"fingerprint": content.fingerprint, "size": content.size},
        "limits": asdict(content.limits),
        "banned_ids": list(content.banned_ids),
    }
    head = {"format": _FORMAT, "version": _VERSION, "digest": _digest(body)}
    write_atomically(path, [json.dumps({**head, **body}, indent=1).encode(), b"\n"])


def read(path: Path) -> Saved:
    """Reads and checks a file.

    Raises:
        MaskwrightError: it is damaged, of another kind, or of another version.
        OSError: it cannot be read.
    """
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it is no JSON ({error!s:.100})") from None
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise MaskwrightError("the file holds no compiled grammar of maskwright", location=str(path))
    version = data.get("version")
    if version != _VERSION:
        raise MaskwrightError(
            f"the file is of version {version!r:.20}; this maskwright reads version {_VERSION}",
            location=str(path),
            hint="Compile the constraint again, and save that",
        )
    body = {key: value for key, value in data.items() if key not in ("format", "version", "digest")}
    try:
        if data.get("digest") != _digest(body):
            raise ValueError("its content is not what was written")
        return _checked(body)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error!s:.100}") from None


def _checked(body: dict[str, Any]) -> Saved:
    vocabulary, constraint = body["vocabulary"], body["constraint"]
    fingerprint, size, banned = vocabulary["fingerprint"], vocabulary["size"], body["banned_ids"]
    if not isinstance(constraint, dict) or not isinstance(fingerprint, str) or not isinstance(banned, list):
        raise TypeError("parts of a wrong type")
    if not all(type(number) is int for number in [size, *banned]):
        raise TypeError("a number is no integer")
    return Saved(constraint, fingerprint, size, CompileLimits(**body["limits"]), tuple(banned))


def _digest(body: dict[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(path: Path, how: str) -> MaskwrightError:
    hint = "Compile the constraint again, and save that"
    return MaskwrightError(f"the file is damaged: {how}", location=str(path), hint=hint)
