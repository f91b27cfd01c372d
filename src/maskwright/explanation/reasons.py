"""What in a schema speaks against what stands at a place of a JSON text: the keywords, in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from maskwright.grammar.json_schema import JsonSchema
from maskwright.grammar.multiples import is_multiple

from .continuations import quote
from .json_text import Place
from .schema import Schemas

__all__ = ["Reason", "reasons"]

_KINDS = {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}
_MOST_DIGITS = 10_000  # of a number that is divided
_ON_NUMBERS = ("type", "enum", "const", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
_ON_STRINGS = ("enum", "const", "pattern", "format")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4}(?![0-9]))?")
_LONG = 80  # characters of a value that is quoted


class Reason(NamedTuple):
    """A keyword that a text breaks, or may.

    Args:
        text: in words.
        place: its pointer in the schema.
    """

    text: str
    place: str


def reasons(constraint: JsonSchema, place: Place, rest: str) -> list[Reason]:
    """What the schema says about a text that is refused.

    Args:
        constraint: the schema.
        place: up to where it is allowed; behind a number that may end there, the place "after" it.
        rest: the text from there on; not empty.
    """
    schemas = Schemas(constraint, place.path)
    letter = rest[0]
    if place.state == "value" and letter not in "]},:":
        return list(_of_value(schemas, letter))
    if place.state == "string":
        return list(_of_string(schemas, place.written, rest))
    if place.state == "scalar":
        return list(_of_number(schemas, place.written + rest))
    if place.state == "key-string" or (place.state == "key" and letter == '"'):
        return list(_of_key(constraint, schemas, place, rest))
    if place.container == "object":
        return list(_of_object(schemas, place, letter))
    return list(_of_array(schemas, place, letter))


def _said(schemas: Schemas, *names: str) -> Iterator[Reason]:
    """The keywords as they stand."""
    for name, value, place in schemas.keyword(*names):
        yield Reason(f"{name} is {_shown(value)}", place)


def _of_value(schemas: Schemas, letter: str) -> Iterator[Reason]:
    kind = _KINDS.get(letter, "number" if letter.isdigit() or letter == "-" else "")
    for schema, path in schemas.pointers():
        if schema is False:
            yield Reason("no value is allowed here", path)
    for _, value, place in schemas.keyword("type"):
        types = [value] if isinstance(value, str) else value
        if not kind:
            yield Reason(f"a value of type {' or '.join(types)} is due", place)
        elif kind not in types and not (kind == "number" and "integer" in types):
            yield Reason(f"{_article(kind)} is written, but the type is {' or '.join(types)}", place)
    yield from _said(schemas, "enum", "const", *(_ON_NUMBERS[3:] if kind == "number" else ()))


def _of_number(schemas: Schemas, text: str) -> Iterator[Reason]:
    """The bounds that the number breaks, or else all there are."""
    said = list(_said(schemas, *_ON_NUMBERS))
    number = _NUMBER.match(text)
    if number is None:
        yield from said
        return
    value = Decimal(number[0])
    broken = {place for name, bound, place in schemas.keyword(*_ON_NUMBERS) if _breaks(value, name, bound)}
    yield from [reason for reason in said if reason.place in broken] or said


def _breaks(value: Decimal, name: str, bound: Any) -> bool:
    if name == "type":
        return "integer" in bound and "number" not in bound and value != value.to_integral_value()
    if not isinstance(bound, int | Decimal) or isinstance(bound, bool):
        return False
    if name == "multipleOf":
        return abs(value.adjusted()) < _MOST_DIGITS and not is_multiple(value, bound)
    over = value > bound or (name == "exclusiveMaximum" and value == bound)
    under = value < bound or (name == "exclusiveMinimum" and value == bound)
    return (over and name.lower().endswith("maximum")) or (under and name.lower().endswith("minimum"))


def _of_string(schemas: Schemas, written: str, rest: str) -> Iterator[Reason]:
    letter = rest[0]
    if letter < " ":
        yield Reason(f"JSON writes this character as an escape, {json.dumps(letter)}", "")
    for name, bound, place in schemas.keyword("minLength", "maxLength"):
        if name == "minLength" and letter == '"' and len(written) < bound:
            yield Reason(f"the string has {_count(len(written), 'character')}, but minLength is {bound}", place)
        if name == "maxLength" and letter != '"' and len(written) >= bound:
            yield Reason(f"the string has {_count(len(written), 'character')} already, and maxLength is {bound}", place)
    yield from _said(schemas, *_ON_STRINGS)


def _of_key(constraint: JsonSchema, schemas: Schemas, place: Place, rest: str) -> Iterator[Reason]:
    key = place.written + rest.removeprefix('"' if place.state == "key" else "").split('"', 1)[0]
    if key in place.keys:
        yield Reason(f"the key {quote(key)} occurs twice", "")
        return
    named = [(value, path) for _, value, path in schemas.keyword("properties") if isinstance(value, dict)]
    for properties, path in named:
        if key in properties and constraint.options.key_order == "schema" and properties[key] is not False:
            last = [name for name in properties if name in place.keys]
            after = f" {quote(last[-1])}" if last else " others"
            yield Reason(f'the key {quote(key)} comes too late, after{after}; key_order="any" would allow it', path)
    if not any(key in properties for properties, _ in named):
        for _, value, path in schemas.keyword("additionalProperties", "unevaluatedProperties"):
            if value is False:
                yield Reason(f"no property {quote(key)} is allowed", path)
    yield from _said(schemas, "propertyNames", "maxProperties")


def _of_object(schemas: Schemas, place: Place, letter: str) -> Iterator[Reason]:
    if letter != "}":
        yield from _said(schemas, "maxProperties", "additionalProperties", "unevaluatedProperties")
        return
    if place.state == "key" and place.keys:
        yield Reason("a key has to follow the comma", "")
    for name, value, path in schemas.keyword("required", "minProperties"):
        if name == "required" and isinstance(value, list):
            if missing := [key for key in value if key not in place.keys]:
                yield Reason(f"required and not there: {', '.join(map(quote, missing))}", path)
        elif name == "minProperties" and len(place.keys) < value:
            yield Reason(f"the object has {_count(len(place.keys), 'key')}, but minProperties is {value}", path)


def _of_array(schemas: Schemas, place: Place, letter: str) -> Iterator[Reason]:
    for name, bound, path in schemas.keyword("minItems", "maxItems"):
        if name == "minItems" and letter == "]" and place.count < bound:
            yield Reason(f"the array has {_count(place.count, 'item')}, but minItems is {bound}", path)
        if name == "maxItems" and letter != "]" and place.count >= bound:
            yield Reason(f"the array has {_count(place.count, 'item')} already, and maxItems is {bound}", path)
    if letter == ",":
        for name, value, path in schemas.keyword("items", "additionalItems", "unevaluatedItems"):
            if value is False:
                yield Reason(f"no more items are allowed: {name} is false", path)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "ao" else kind if kind == "null" else f"a {kind}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=lambda v: float(v) if isinstance(v, Decimal) else str(v))
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
