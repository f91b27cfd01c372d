"""Random schemas over all keywords, and a small universe of values to hold them against."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

NAMES = ["a", "b", "ab", "c"]
SCALARS: list[Any] = [None, True, False, 0, 1, 2, 3, 1.5, -1, "", "a", "b", "ab", "abc"]
PATTERNS = ["^a", "b$", "a", "^.$", "^(a|b)$", "c*", "^$"]
TYPES = ["null", "boolean", "integer", "number", "string", "object", "array"]


def universe() -> list[Any]:
    """Some 200 values, containers up to three members and two levels."""
    small: list[Any] = [0, 1, "a", True, None, [], {}]
    out = [*SCALARS, [], {}]
    out += (
        [[x] for x in SCALARS[:12]] + [[x, y] for x in small for y in small] + [[0, 1, 0], [0, 1, 2], ["a", "b", "ab"]]
    )
    out += [
        [[0]],
        [[0], [0]],
        [{"a": 0}],
        [{"a": 0}, {"a": 0}],
        [{"a": 0, "b": 1}, {"b": 1, "a": 0}],
        [[[]]],
        [0, 1, 2, 3],
    ]
    out += [{n: x} for n in NAMES for x in [0, 1, "a", "b", 1.5, True, None, [], [0], {}, {"a": 0}]]
    out += [
        {m: x, n: y} for m, n in (("a", "b"), ("b", "ab"), ("a", "ab")) for x in (0, "a", {}) for y in (0, "b", [0])
    ]
    out += [{"a": 0, "b": 0, "c": 0}, {"a": 0, "b": 1, "ab": "a"}, {"a": {"b": {"a": 0}}}, {"a": {"a": 0}, "b": {}}]
    return out


class Maker:
    """Makes one schema; `used` collects its keywords."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.used: set[str] = set()
        self._keywords: dict[str, Callable[[int], Any]] = {
            "type": lambda d: rng.choice(TYPES) if rng.random() < 0.7 else rng.sample(TYPES, 3),
            "enum": lambda d: rng.sample(universe(), rng.randint(1, 5)),
            "const": lambda d: rng.choice(universe()),
            "minimum": lambda d: rng.choice([0, 1, 1.5]),
            "maximum": lambda d: rng.choice([0, 1, 2]),
            "exclusiveMinimum": lambda d: rng.choice([-1, 0, 1]),
            "exclusiveMaximum": lambda d: rng.choice([1, 2, 3]),
            "multipleOf": lambda d: rng.choice([0.5, 1.5, 2, 3]),
            "minLength": lambda d: rng.randint(0, 2),
            "maxLength": lambda d: rng.randint(0, 2),
            "pattern": lambda d: rng.choice(PATTERNS),
            "properties": lambda d: {n: self.schema(d) for n in rng.sample(NAMES, rng.randint(1, 3))},
            "patternProperties": lambda d: {p: self.schema(d) for p in rng.sample(PATTERNS, rng.randint(1, 2))},
            "additionalProperties": self.schema,
            "propertyNames": self.schema,
            "required": lambda d: rng.sample(NAMES, rng.randint(1, 2)),
            "minProperties": lambda d: rng.randint(0, 3),
            "maxProperties": lambda d: rng.randint(0, 3),
            "dependentRequired": lambda d: {rng.choice(NAMES): rng.sample(NAMES, 1)},
            "dependentSchemas": lambda d: {rng.choice(NAMES): self.schema(d)},
            "unevaluatedProperties": self.schema,
            "prefixItems": lambda d: [self.schema(d) for _ in range(rng.randint(1, 2))],
            "items": self.schema,
            "contains": self.schema,
            "minContains": lambda d: rng.randint(0, 2),
            "maxContains": lambda d: rng.randint(0, 2),
            "minItems": lambda d: rng.randint(0, 3),
            "maxItems": lambda d: rng.randint(0, 3),
            "unevaluatedItems": self.schema,
            "uniqueItems": lambda d: rng.random() < 0.8,
            "allOf": lambda d: [self.schema(d) for _ in range(rng.randint(1, 2))],
            "anyOf": lambda d: [self.schema(d) for _ in range(rng.randint(1, 3))],
            "oneOf": lambda d: [self.schema(d) for _ in range(rng.randint(1, 3))],
            "not": self.schema,
            "if": self.schema,
            "then": self.schema,
            "else": self.schema,
            "$ref": lambda d: "#/$defs/x",
        }
        self.keywords = sorted(self._keywords)

    def schema(self, depth: int) -> Any:
        """A schema at most so deep."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.1:
            return rng.choice([True, False, {}, {"type": rng.choice(TYPES)}, {"const": rng.choice(SCALARS)}])
        out: dict[str, Any] = {}
        for keyword in rng.sample(self.keywords, rng.randint(1, 4)):
            out[keyword] = self._keywords[keyword](depth - 1)
        if rng.random() < 0.1:  # rarely by chance: what others in place evaluate makes a difference
            inner = {rng.choice(["properties", "patternProperties", "prefixItems"]) for _ in range(2)}
            parts = [{k: self._keywords[k](depth - 1)} for k in sorted(inner)]
            out[rng.choice(["allOf", "anyOf"])] = parts
            out[rng.choice(["unevaluatedProperties", "unevaluatedItems"])] = self.schema(0)
        if "then" in out or "else" in out:
            out.setdefault("if", self.schema(depth - 1))
        if ("minContains" in out or "maxContains" in out) and "contains" not in out:
            out["contains"] = self.schema(depth - 1)
        self.used |= set(out)
        return out


def schema_of(rng: random.Random, depth: int = 3) -> tuple[dict[str, Any], set[str]]:
    """A schema, and the keywords in it."""
    maker = Maker(rng)
    schema = maker.schema(depth)
    while not isinstance(schema, dict):
        schema = maker.schema(depth)
    if "$ref" in maker.used:
        schema = {**schema, "$defs": {"x": maker.schema(depth - 1)}}
    return schema, maker.used
