"""Random schemas over every keyword that is taken, on a small universe of values, against the `jsonschema` validator.

A schema that is refused says so by a ConstraintError; one that is taken accepts exactly the values that the validator
accepts; one that is unsatisfiable accepts none of them.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import jsonschema
import pytest

from maskwright.errors import ConstraintError, UnsatisfiableError
from unit.grammar.recorder import record

NAMES = ("a", "b", "c")
SCALARS: tuple[Any, ...] = (None, True, False, 0, 1, 2, 1.5, -1, "", "a", "ab", "abc", "b")
TYPES = ("null", "boolean", "integer", "number", "string", "object", "array")
PATTERNS = ("^a", "b", "^ab?$", "c$")


def values() -> list[Any]:
    inner: list[Any] = [None, 1, "a", "ab", True]
    arrays: list[Any] = [
        [],
        *([v] for v in SCALARS),
        *([v, w] for v in inner for w in inner),
        [1, 1, 1],
        [[]],
        [{}],
        ["a", 1, None],
    ]
    objects: list[Any] = [
        {},
        *({n: v} for n in NAMES for v in inner),
        *({"a": v, "b": w} for v in inner for w in inner),
    ]
    objects += [
        {"a": 1, "b": "a", "c": None},
        {"c": {"a": 1}},
        {"b": [1]},
        {"x": 1},
        {"a": {"a": 1}},
        {"a": {"b": "a"}},
    ]
    return [*SCALARS, *arrays, *objects]


class Writer:
    """Draws schemas; `uses` counts the keywords."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.uses: Counter[str] = Counter()

    def schema(self, depth: int) -> Any:
        draw = self.random
        if draw.random() < 0.06:
            return draw.random() < 0.7
        made: dict[str, Any] = {}
        for _ in range(draw.choice((1, 1, 2, 2, 3))):
            keyword = draw.choice(tuple(self.makers()) if depth else tuple(self.leaves()))
            made[keyword] = (self.makers() if depth else self.leaves())[keyword](depth - 1)
        if "if" in made and not {"then", "else"} & made.keys():
            made["then"] = self.schema(
                depth - 1
            )  # the validator follows an `if` that decides nothing, round in circles
        self.uses.update(made.keys())
        return made

    def leaves(self) -> dict[str, Any]:
        draw = self.random
        return {
            "type": lambda _: draw.choice((draw.choice(TYPES), draw.sample(TYPES, 2), "object", "string")),
            "enum": lambda _: draw.sample([*SCALARS, [], {}, [1], {"a": 1}], draw.randint(1, 4)),
            "const": lambda _: draw.choice([*SCALARS, ["a"], {"b": "a"}]),
            "minimum": lambda _: draw.choice((-1, 0, 1, 1.5)),
            "exclusiveMaximum": lambda _: draw.choice((0, 1, 2, 1.5)),
            "maximum": lambda _: draw.choice((0, 1, 2)),
            "multipleOf": lambda _: draw.choice((0.5, 1.5, 2, 3)),
            "minLength": lambda _: draw.randint(0, 3),
            "maxLength": lambda _: draw.randint(0, 3),
            "pattern": lambda _: draw.choice(PATTERNS),
            "required": lambda _: draw.sample(NAMES, draw.randint(1, 2)),
            "minItems": lambda _: draw.randint(0, 2),
            "maxItems": lambda _: draw.randint(0, 2),
            "$ref": lambda _: draw.choice(("#/$defs/p", "#/$defs/q", "#")),
        }

    def makers(self) -> dict[str, Any]:
        draw, schema = self.random, self.schema
        return self.leaves() | {
            "properties": lambda d: {n: schema(d) for n in draw.sample(NAMES, draw.randint(1, 2))},
            "additionalProperties": schema,
            "items": schema,
            "prefixItems": lambda d: [schema(d) for _ in range(draw.randint(1, 2))],
            "allOf": lambda d: [schema(d) for _ in range(draw.randint(1, 2))],
            "anyOf": lambda d: [schema(d) for _ in range(draw.randint(1, 3))],
            "oneOf": lambda d: [schema(d) for _ in range(draw.randint(1, 3))],
            "not": schema,
            "if": schema,
            "then": schema,
            "else": schema,
            "dependentRequired": lambda _: {draw.choice(NAMES): draw.sample(NAMES, 1)},
            "dependentSchemas": lambda d: {draw.choice(NAMES): schema(d)},
            "propertyNames": lambda _: {"enum": draw.sample(NAMES, 2)},
            "unevaluatedProperties": lambda d: schema(d),
            "minProperties": lambda _: draw.randint(0, 2),
            "maxProperties": lambda _: draw.randint(0, 2),
        }


def check(seed: int, universe: list[Any], tally: Counter[str]) -> None:
    writer = Writer(seed)
    schema = writer.schema(2)
    if not isinstance(schema, dict):
        return
    schema["$defs"] = {"p": writer.schema(1), "q": writer.schema(1)}
    tally["schemas"] += 1
    recorder = None
    try:
        recorder = record(schema, key_order="any", numbers="full")
    except UnsatisfiableError:
        tally["unsatisfiable"] += 1
    except ConstraintError as error:
        assert isinstance(error.location, str)
        tally["refused"] += 1
        return
    tally.update(writer.uses)
    validator = jsonschema.Draft202012Validator(schema)
    for value in universe:
        expected = validator.is_valid(value)
        accepted = recorder is not None and recorder.accepts(json.dumps(value))
        assert accepted == expected, f"seed {seed}: {json.dumps(schema)} on {json.dumps(value)}: {accepted}"


@pytest.mark.parametrize("block", range(4))
def test_random_schemas(block: int) -> None:
    universe, tally = values(), Counter[str]()
    for seed in range(100 * block, 100 * (block + 1)):
        check(seed, universe, tally)
    assert tally["schemas"] - tally["refused"] > 40, tally


@pytest.mark.slow
def test_many_random_schemas() -> None:
    universe, tally = values(), Counter[str]()
    for seed in range(10_000, 16_000):
        check(seed, universe, tally)
    taken = tally["schemas"] - tally["refused"]
    rare = {keyword: n for keyword, n in tally.items() if n < taken / 50}
    assert not rare.keys() - {"unsatisfiable"}, rare
