"""Reading a schema document strictly: JSON text to plain data.

JSON (RFC 8259) with three points settled: numbers are exact (a fraction is a `decimal.Decimal`), NaN and infinities
are refused, and so is a name that occurs twice in one object.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from maskwright.errors import LimitError, SchemaError

from .paths import ROOT, Path, pointer

# Python reads integers up to this many digits (sys.set_int_max_str_digits); exponents get the same bound, so that no
# number in a schema stands for more digits than a text could hold.
MAX_DIGITS = 4300
_DEEP = "The schema is nested too deeply to be read"
_DEEP_HINT = "Move inner schemas to $defs and point to them with $ref"


def dump(schema: object) -> str:
    """The JSON text of a schema given as Python data: a snapshot that later changes of the data cannot reach.

    Raises:
        SchemaError: the data is no JSON (NaN, an object that JSON has no form for, a container inside itself).
        LimitError: the data is nested deeper than the interpreter's recursion limit.
    """
    try:
        return json.dumps(schema, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise LimitError(_DEEP, location="", hint=_DEEP_HINT) from None
    except (TypeError, ValueError) as error:
        raise SchemaError(f"The schema is no JSON: {error}", location="") from None


def load(text: str | bytes, root: Path = ROOT) -> Any:
    """The document of a JSON text.

    Args:
        text: JSON; bytes in UTF-8 (or UTF-16 or -32, as `json.loads` tells them apart).
        root: the path of the document, for the errors.

    Raises:
        SchemaError: the text is no JSON, holds NaN, or names a member twice.
        LimitError: it is nested too deeply, or a number has more than 4,300 digits.
    """
    try:
        if isinstance(text, str) and not text.startswith("\ufeff"):
            return _STRICT.decode(text)
    except (_Twice, RecursionError, ValueError):
        pass  # once more, to learn where
    return _load_with_care(text, root)


class _Twice(Exception):
    """An object names a member twice."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Twice
    return made


def _load_with_care(text: str | bytes, root: Path) -> Any:
    """The same, slower, and with the errors."""
    twice: list[tuple[dict[str, Any], str]] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            names = [name for name, _ in pairs]
            twice.append((made, next(n for n in names if names.count(n) > 1)))
        return made

    where = pointer(root)
    try:
        document = json.loads(text, parse_float=_decimal, parse_constant=_constant, object_pairs_hook=members)
    except RecursionError:
        raise LimitError(_DEEP, location=where, hint=_DEEP_HINT) from None
    except json.JSONDecodeError as error:
        message = f"The schema is no JSON: {error.msg}, line {error.lineno} column {error.colno}"
        raise SchemaError(message, location=where) from None
    except UnicodeDecodeError as error:
        raise SchemaError(f"The schema is not in UTF-8: {error.reason}, byte {error.start}", location=where) from None
    except ValueError as error:
        raise LimitError(f"A number in the schema cannot be read: {error}", location=where) from None
    if twice:
        _refuse_twice(document, root, *twice[0])
    return document


def check_depth(document: Any, text: str, most: int) -> None:
    """Refuses a document nested deeper than `most`. O(1) where the text has no more brackets than that.

    Raises:
        LimitError: at the place where it gets too deep.
    """
    if text.count("{") + text.count("[") <= most:
        return
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > most:
            where = pointer(_path_to(document, level[0]))
            raise LimitError(
                f"{_DEEP}: over {most} levels", location=where, hint=f"{_DEEP_HINT}, or raise CompileLimits.depth"
            )
        level = [v for c in level for v in (c.values() if type(c) is dict else c) if type(v) is dict or type(v) is list]


def _path_to(document: Any, wanted: object, root: Path = ROOT) -> Path:
    """The path of a container that is part of a document, found by identity; else that of the document."""
    stack: list[tuple[Any, Path]] = [(document, root)]
    while stack:
        value, path = stack.pop()
        if value is wanted:
            return path
        if isinstance(value, dict):
            stack.extend((v, (path, k)) for k, v in value.items())
        elif isinstance(value, list):
            stack.extend((v, (path, i)) for i, v in enumerate(value))
    return root


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"the exponent of {text[:40]} is out of range") from None
    if value and not -MAX_DIGITS <= value.adjusted() <= MAX_DIGITS:
        raise ValueError(f"the exponent of {text[:40]} is beyond {MAX_DIGITS}")
    return value


def _constant(name: str) -> NoReturn:
    raise SchemaError(f"The schema is no JSON: {name}", location="", hint="JSON has no NaN and no infinities")


# Made once: most texts are read by it alone.
_STRICT = json.JSONDecoder(parse_float=_decimal, parse_constant=_constant, object_pairs_hook=_members)


def _refuse_twice(document: object, root: Path, holder: dict[str, Any], name: str) -> NoReturn:
    # Where the object was itself the first of two members of one name it is gone, and the root has to do.
    where = pointer(_path_to(document, holder, root), name)
    raise SchemaError(f"The member {name!r} occurs twice", location=where, hint="Keep one of the two")
