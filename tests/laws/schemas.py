"""Random small JSON Schemas with every supported keyword, nested and recursive, and the styles they are written in."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from laws import coverage
from maskwright.reference.json_text import Style

NAMES = ("a", "b", "ab", "abc", "é", 'q"', "a b", "", "\n", "😀", "type", "0")
PATTERNS = ("^[ab]+$", "a", "^a.b", "b$", "^(ab|ba)*$", "[0-9]{2}", "^.{0,3}$", 'é|"', "^\\w+ \\w*$", "^$")
FORMATS = ("date", "time", "date-time", "uuid", "no-such-format")
STRINGS = ("", "a", "ab", "aé", 'a"b', "\\", "\n", "true", "😀", "a/b", "\x01")
STEPS = (1, 2, 3, 7, 12, 1000, 0.5, 0.25, 1.5, 0.1, 0.003)
NUMBERS = (0, 1, -1, 7, 10, 1.5, -0.25, 120)
VALUES: tuple[Any, ...] = (None, True, False, *NUMBERS, *STRINGS, [], [1, "a"], {}, {"a": 1}, {"b": "x", "a": [None]},
[[1], {"a": {}}])

coverage.expect(
    "schema",
    ["null", "boolean", "integer", "number", "string", "object", "array", "type-list", "untyped", "true", "false",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "multipleOf-fraction", "multipleOf+bounds",
    "minLength", "maxLength", "pattern",
    "pattern+length", "format", "properties", "required", "required-unlisted", "additional-false",
    "additional-schema", "forbidden-name", "items", "prefixItems", "items-false", "minItems", "maxItems", "uniqueItems",
    "enum",
    "enum-string", "enum-object", "const", "anyOf", "ref", "recursive-ref", "defs", "nested", "annotation", "compact",
    "bounded", "any-space", "minimal", "any-escape", "plain", "full-numbers", "schema-order", "any-order"],
)


@dataclass(frozen=True)
class SchemaCase:
    """A schema, the style of its texts, and the constructs in both."""

    schema: Any
    style: Style
    constructs: frozenset[str]


class _Writer:
    """Writes a schema at random; `uses` collects the constructs, `defs` are the names that `$ref` may use."""

    def __init__(self, rng: random.Random, size: int) -> None:
        self.pick = rng.randrange
        self.size = size
        self.uses: set[str] = set()
        self.defs = ("n", "m")[: self.pick(3)]

    def one_of(self, choices: tuple[Any, ...]) -> Any:
        return choices[self.pick(len(choices))]

    def some(self, choices: tuple[Any, ...], most: int) -> list[Any]:
        return list(dict.fromkeys(self.one_of(choices) for _ in range(self.pick(most + 1))))

    def schema(self, depth: int) -> Any:
        makers: tuple[Callable[[int], Any], ...] = (
            self.simple, self.integer, self.integer, self.string, self.string, self.enumeration, self.enumeration,
            self.boolean, self.reference, self.type_list, self.any_of, self.array, self.array, self.object,
            self.object, self.object,
        )  # fmt: skip
        first = 9 if 0 < depth == self.size and self.pick(4) else 0
        made = makers[first + self.pick((len(makers) if depth else 9) - first)](depth)
        if isinstance(made, dict) and self.pick(12) == 0:
            self.uses.add("annotation")
            made = {"title": "T", **made, "x-unknown": [1]}
        return made

    def simple(self, _depth: int) -> Any:
        kind = self.one_of(("null", "boolean", "number", "number"))
        self.uses.add(kind)
        return {"type": kind}

    def boolean(self, _depth: int) -> Any:
        value = self.pick(3) != 0
        self.uses.add(str(value).lower())
        return value

    def integer(self, _depth: int) -> Any:
        """An integer, or a number of which the multiples of another are meant, between bounds."""
        self.uses.add("integer")
        low = self.one_of((-120, -9, 0, 1, 5, 98))
        bounds: dict[str, Any] = {}
        if self.pick(3):
            bounds[self.one_of(("minimum", "exclusiveMinimum"))] = low
        if self.pick(3):
            bounds[self.one_of(("maximum", "exclusiveMaximum"))] = low + self.one_of((0, 1, 3, 25, 1000))
        made = {"type": "integer", **bounds}
        if self.pick(2):
            made["multipleOf"] = self.one_of(STEPS)
            self.uses.update({"multipleOf+bounds"} if bounds else ())
            self.uses.update({"multipleOf-fraction"} if made["multipleOf"] % 1 else ())
            if self.pick(2):
                made["type"] = "number"
                self.uses.add("number")
        self.uses.update(set(made) - {"type"})
        return made

    def string(self, _depth: int) -> Any:
        self.uses.add("string")
        made: dict[str, Any] = {"type": "string"}
        if self.pick(2):
            made["minLength"] = self.pick(3)
        if self.pick(2):
            made["maxLength"] = made.get("minLength", 0) + self.pick(4)
        if self.pick(3) == 0:
            made["pattern"] = self.one_of(PATTERNS)
            if len(made) > 2:
                self.uses.add("pattern+length")
        elif self.pick(5) == 0:
            made = {"type": "string", "format": self.one_of(FORMATS)}
        self.uses.update(set(made) - {"type"})
        return made

    def enumeration(self, _depth: int) -> Any:
        values = [self.one_of(VALUES) for _ in range(1 + self.pick(3))]
        if self.pick(3) == 0:
            self.uses.add("const")
            return {"const": values[0]}
        self.uses.add("enum")
        self.uses.update({"enum-string"} if any(isinstance(v, str) for v in values) else ())
        self.uses.update({"enum-object"} if any(isinstance(v, dict) for v in values) else ())
        return {"enum": values}

    def type_list(self, depth: int) -> Any:
        kinds = self.some(("null", "boolean", "integer", "number", "string", "array", "object"), 3)
        made: dict[str, Any] = {"maxLength": 2, "minimum": 0, "items": {"type": "null"}, "additionalProperties": False}
        made = {k: v for k, v in made.items() if self.pick(3) == 0 and (k != "minimum" or "number" not in kinds)}
        if kinds:
            self.uses.add("type-list")
            made["type"] = kinds
        else:
            self.uses.add("untyped")
            made.pop("minimum", None)
        return made

    def reference(self, _depth: int) -> Any:
        if not self.defs or self.pick(3) == 0:
            self.uses.add("recursive-ref")
            return {"$ref": "#"}
        self.uses.add("ref")
        return {"$ref": f"#/$defs/{self.one_of(self.defs)}"}

    def any_of(self, depth: int) -> Any:
        self.uses.add("anyOf")
        return {"anyOf": [self.schema(depth - 1) for _ in range(1 + self.pick(3))]}

    def array(self, depth: int) -> Any:
        self.uses.add("array")
        made: dict[str, Any] = {"type": "array"}
        if self.pick(3) == 0:
            made["prefixItems"] = [self.schema(depth - 1) for _ in range(1 + self.pick(2))]
        if self.pick(3):
            made["items"] = self.schema(depth - 1) if self.pick(4) else False
            self.uses.update({"items-false"} if made["items"] is False else ())
        if self.pick(3) == 0:
            made["minItems"] = self.pick(3)
        if self.pick(3) == 0:
            made["maxItems"] = made.get("minItems", 0) + self.pick(3)
        if self.pick(5) == 0:
            made = self.distinct()
        self.uses.update({"nested"} if self.nests(made) else ())
        self.uses.update(set(made) - {"type"})
        return made

    def distinct(self) -> dict[str, Any]:
        """An array whose items differ, of the kinds that the oracle decides: few values, or strings."""
        few: tuple[Any, ...] = ({"type": "boolean"}, {"type": ["null", "boolean"]}, {"enum": ["a", "ab", 'a"b']},
        {"enum": [1, 10, 1.5]}, {"enum": [[], [1], {"a": 1}]}, {"const": "a"})  # fmt: skip
        made: dict[str, Any] = {"type": "array", "uniqueItems": True, "items": self.one_of(few)}
        if self.pick(3) == 0:
            made["items"] = {"type": "string", **self.one_of(({}, {"maxLength": 1}, {"pattern": "^[ab]+$"}))}
        elif self.pick(3) == 0:
            made["prefixItems"] = [self.one_of(few) for _ in range(1 + self.pick(2))]
            made["maxItems"] = 3
        least = self.pick(2 if made["items"].get("type") == "string" else 4)
        return {**made, "minItems": least} if least else made

    def object(self, depth: int) -> Any:
        self.uses.add("object")
        names = self.some(NAMES, 3)
        made: dict[str, Any] = {"type": "object", "properties": {name: self.schema(depth - 1) for name in names}}
        if names and self.pick(4) == 0:
            made["properties"][names[0]] = False
        if any(sub is False for sub in made["properties"].values()):
            self.uses.add("forbidden-name")
        if self.pick(2):
            made["required"] = [name for name in names if self.pick(2)]
            if self.pick(6) == 0:
                made["required"] = list(dict.fromkeys([*made["required"], self.one_of(NAMES)]))
            self.uses.update({"required-unlisted"} if set(made["required"]) - set(names) else ())
        if self.pick(2):
            made["additionalProperties"] = self.schema(depth - 1) if self.pick(2) else False
            self.uses.add("additional-false" if made["additionalProperties"] is False else "additional-schema")
        self.uses.update({"nested"} if self.nests(made) else ())
        self.uses.update({"properties", "required"} & set(made))
        if self.pick(6) == 0:
            del made["type"]
            self.uses.add("untyped")
        return made

    @staticmethod
    def nests(made: dict[str, Any]) -> bool:
        inner = [*made.get("properties", {}).values(), made.get("items"), *made.get("prefixItems", ())]
        return any(isinstance(sub, dict) and sub.get("type") in ("object", "array") for sub in inner)


_STYLE_NAMES = {
    "compact": ("whitespace", "compact"),
    "bounded": ("whitespace", "bounded"),
    "any-space": ("whitespace", "any"),
    "minimal": ("escapes", "minimal"),
    "any-escape": ("escapes", "any"),
    "plain": ("numbers", "plain"),
    "full-numbers": ("numbers", "full"),
    "schema-order": ("key_order", "schema"),
    "any-order": ("key_order", "any"),
}


def schema_case(rng: random.Random, size: int) -> SchemaCase:
    """A schema of any supported keywords, nested up to `size` deep, with a style."""
    writer = _Writer(rng, size)
    schema = writer.schema(size)
    if writer.defs and isinstance(schema, dict):
        writer.uses.add("defs")
        schema = {**schema, "$defs": {name: writer.schema(min(size, 1)) for name in writer.defs}}
    style = Style(
        whitespace=writer.one_of(("bounded", "compact", "any")),
        escapes=writer.one_of(("minimal", "any")),
        numbers=writer.one_of(("plain", "full")),
        key_order=writer.one_of(("schema", "any")),
    )
    named = {name for name, (field, value) in _STYLE_NAMES.items() if getattr(style, field) == value}
    return SchemaCase(schema, style, frozenset(writer.uses | named))
