"""Constraints as plain JSON data, and back, for files.

Python types and Enums are held by their names. They are looked up among what is imported already: nothing is imported,
called or unpickled because a file says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from enum import Enum, EnumMeta
from typing import Any

from maskwright.errors import MaskwrightError
from maskwright.grammar.choice import Choice
from maskwright.grammar.plan import Constraint
from maskwright.grammar.regex import Regex

__all__ = ["describe", "restore"]

Description = dict[str, Any]
# Types of the items of a Choice, by the name they have in a file.
_PLAIN: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": {"True": True, "False": False}.__getitem__,
    "NoneType": {"None": None}.__getitem__,
    "Decimal": Decimal,
}


def describe(constraint: Constraint) -> Description:
    """A constraint as JSON data.

    Raises:
        MaskwrightError: it holds what has no form in JSON; the location says where.
    """
    if type(constraint) is Regex:
        c = constraint
        return {"kind": "regex", "pattern": c.pattern, "dialect": c.dialect, "match": c.match, "flags": c.flags}
    if type(constraint) is Choice:
        return {"kind": "choice", "texts": list(constraint.texts), **_describe_items(constraint)}
    from maskwright.grammar.lark import Lark

    if type(constraint) is Lark:
        return constraint.describe()
    from maskwright.grammar.json_schema import JsonSchema

    if type(constraint) is JsonSchema:
        options = asdict(constraint.options)
        del options["typed"], options["lexical"]  # follow from the rest
        told = {"text": constraint.text, "options": options, "registry": constraint.registry}
        return {"kind": "json-schema", **told, "type": _name(constraint.type)}
    from maskwright.grammar.regions import Alt, Capture, Free, Seq

    if type(constraint) in (Seq, Alt, Capture, Free):
        return _describe_composite(constraint)
    raise MaskwrightError(
        f"a {type(constraint).__name__} has no form in a file",
        location="constraint",
        hint="Pickle the compiled grammar instead",
    )


def _describe_composite(constraint: Any) -> Description:
    kind = type(constraint).__name__.lower()
    if kind == "free":
        return {"kind": kind, "until": _describe_part(constraint.until), "max_tokens": constraint.max_tokens}
    told = {"name": constraint.name} if kind == "capture" else {}
    return {"kind": kind, **told, "parts": [_describe_part(part) for part in constraint.parts]}


def _describe_part(part: Any) -> Any:
    """Strings as they are, special tokens by their names, constraints by their descriptions."""
    from maskwright.grammar.regions import Special

    if part is None or isinstance(part, str):
        return part
    return {"kind": "special", "name": part.name} if isinstance(part, Special) else describe(part)


def restore(data: Description, path: str, target: Any = None) -> Constraint:
    """The constraint of `describe`'s data.

    Args:
        data: may be anything.
        path: of the file, for the errors.
        target: the Python type or Enum, where there is one; else it is looked up by its name.

    Raises:
        MaskwrightError: the data is damaged, or the type is not at hand or not the same.
    """
    makers = {"regex": _regex, "choice": _choice, "lark": _lark, "json-schema": _json_schema, "free": _free}
    makers |= dict.fromkeys(("seq", "alt", "capture"), _composite)
    try:
        return makers[data["kind"]](data, path, target)
    except MaskwrightError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, InvalidOperation, RecursionError) as error:
        how = f"its constraint cannot be read ({type(error).__name__}: {error!s:.100})"
        raise MaskwrightError(f"the file is damaged: {how}", location=path) from None


def _regex(data: Description, path: str, target: Any) -> Constraint:
    return Regex(data["pattern"], dialect=data["dialect"], match=data["match"], flags=data["flags"])


def _lark(data: Description, path: str, target: Any) -> Constraint:
    from maskwright.grammar.lark import Lark

    return Lark.from_description(data)


def _json_schema(data: Description, path: str, target: Any) -> Constraint:
    from maskwright.grammar.json_schema import JsonSchema

    typed = data["type"] is not None
    schema = _find(data["type"], path, target) if typed else data["text"]
    if not isinstance(data["text"], str):
        raise TypeError("a schema is kept as text")
    made = JsonSchema(schema, registry=data["registry"], **data["options"])
    if made.text != data["text"]:
        raise MaskwrightError(
            f"the type {data['type']} has another schema than when the file was saved",
            location=path,
            hint="Compile it again, and save that",
        )
    return made


def _composite(data: Description, path: str, target: Any) -> Constraint:
    from maskwright.grammar import regions

    parts = [_part(part, path, target) for part in data["parts"]]
    if data["kind"] == "capture":
        return regions.Capture(data["name"], *parts)
    return {"seq": regions.Seq, "alt": regions.Alt}[data["kind"]](*parts)


def _free(data: Description, path: str, target: Any) -> Constraint:
    from maskwright.grammar.regions import Free

    return Free(_part(data["until"], path, target), data["max_tokens"])


def _part(data: Any, path: str, target: Any) -> Any:
    from maskwright.grammar.regions import Special

    if data is None or isinstance(data, str):
        return data
    return Special(data["name"]) if data["kind"] == "special" else restore(data, path, target)


def _choice(data: Description, path: str, target: Any) -> Constraint:
    texts, items, enum = data["texts"], data["items"], data["enum"]
    if enum is not None:
        kind = _find(enum, path, target)
        if not isinstance(kind, EnumMeta):
            raise MaskwrightError(f"{enum} is no Enum any more", location=path)
        if unknown := [name for name in items if name not in kind.__members__]:
            raise MaskwrightError(f"the Enum {enum} has no member {unknown[0]!r:.60} any more", location=path)
        made = [kind.__members__[name] for name in items]
    else:
        made = list(texts) if items is None else [_PLAIN[name](value) for name, value in items]
    if not all(isinstance(text, str) for text in texts) or len(texts) != len(made):
        raise ValueError("texts and items do not fit together")
    choice = Choice(())
    choice.__setstate__({"texts": tuple(texts), "items": tuple(made)})
    return choice


def _describe_items(choice: Choice) -> Description:
    """The items of a choice: None where they are the texts."""
    kinds = {type(item) for item in choice.items}
    if kinds <= {str} and choice.items == choice.texts:
        return {"items": None, "enum": None}
    if len(kinds) == 1 and issubclass(kind := kinds.pop(), Enum):
        return {"items": [item.name for item in choice.items], "enum": _name(kind)}
    items = []
    for at, item in enumerate(choice.items):
        if _PLAIN.get(type(item).__name__) is None or type(item).__module__ not in ("builtins", "decimal"):
            raise MaskwrightError(
                f"the item {item!r:.60} of a Choice has no form in a file",
                location=f"choice {at}",
                hint="Save Choice(list of labels), or pickle the compiled grammar",
            )
        items.append([type(item).__name__, str(item) if isinstance(item, str | Decimal) else repr(item)])
    return {"items": items, "enum": None}


def _name(target: Any) -> str | None:
    """`module:qualified.name` of a class; of other types only how they are written."""
    if target is None:
        return None
    return f"{target.__module__}:{target.__qualname__}" if isinstance(target, type) else repr(target)


def _find(name: str, path: str, target: Any) -> Any:
    if target is not None:
        return target
    module, _, qualname = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    if not isinstance(found, type) or _name(found) != name:
        raise MaskwrightError(
            f"the file is about the type {name:.200}, which is not imported",
            location=path,
            hint="Import it before, or pass it: CompiledGrammar.load(path, vocabulary, target=...)",
        )
    return found
