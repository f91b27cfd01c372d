"""Random schemas of numbers against arithmetic with fractions, in several writings, and without dead ends."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

import maskwright as mw
from maskwright.grammar.json_schema import JsonSchema

DIGITS = mw.Vocabulary([bytes([i]) for i in range(256)] + [b"<eos>"], eos_ids=[256], special_ids=[256])
INTEGERS = [*range(-8, 25), 36, 49, 99, 100, 105, 210, 1000, 1001, -1000, 10**20, 6 * 10**20 + 6]
FRACTIONS = ["0.5", "-0.5", "0.25", "1.5", "2.25", "4.5", "0.1", "0.3", "-0.6", "10.5", "0.001", "0.003", "99.75"]
TEXTS = [*map(str, INTEGERS), "-0", *FRACTIONS, *(f"{t}.0" for t in ("0", "6", "7", "-3")), "0.50", "4.500", "10.00"]


ROWS: list[tuple[Any, list[str], list[str]]] = [
    ({"multipleOf": 1.5}, ["0", "-0", "4.5", "4.50", "-3", '"x"'], ["1", "35", "0.5"]),
    ({"multipleOf": 0.0001}, ["0.0075", "0.7"], ["0.00751"]),
    ({"type": "integer", "multipleOf": 1e-8}, ["12391239123"], ["1.5"]),
    ({"type": "integer", "multipleOf": 0.123456789}, ["0", "123456789", "-246913578"], ["1", "0.123456789"]),
    ({"type": "integer", "multipleOf": 7, "minimum": 10, "exclusiveMaximum": 21}, ["14"], ["7", "15", "21"]),
    ({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}], "type": "integer"}, ["0", "12", "-24"], ["4", "6", "18"]),
    ({"multipleOf": 5, "not": {"multipleOf": 3}, "type": "number"}, ["10", "-5"], ["15", "0", "3"]),
    ({"not": {"not": {"multipleOf": 3}}, "type": "number"}, ["9", "9.0"], ["10"]),
    ({"not": {"type": "integer"}, "type": "number", "multipleOf": 0.5}, ["1.5", "-0.50"], ["2", "0.25"]),
    ({"oneOf": [{"multipleOf": 3}, {"multipleOf": 5}], "type": "number"}, ["9", "10"], ["15", "7"]),
    ({"enum": [1, 2, 3, 4.5, "x"], "multipleOf": 1.5}, ["3", "4.5", '"x"'], ["1", "2"]),
    ({"type": "integer", "multipleOf": 7, "not": {"enum": [14, 21.0]}, "minimum": 10}, ["28"], ["14", "21"]),
    (
        {"type": "integer", "multipleOf": 1000000007, "minimum": 1000000008, "not": {"multipleOf": 999999937}},
        ["2000000014"],
        ["1000000007", "2000000015"],
    ),
]


class Writer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def leaf(self) -> dict[str, Any]:
        rng, out = self.rng, dict[str, Any]()
        makers = {
            "multipleOf": lambda: rng.choice([1, 2, 3, 7, 12, 0.5, 1.5, 0.25, 0.1, 0.003, 1e-8]),
            "type": lambda: rng.choice(["integer", "integer", "number", ["integer", "null"], "string"]),
            "minimum": lambda: rng.choice([-3, 0, 0.2, 6, 98.5, 1000]),
            "exclusiveMinimum": lambda: rng.choice([-1.5, 0, 7]),
            "maximum": lambda: rng.choice([-1, 0, 7, 10.5, 100, 10**21]),
            "exclusiveMaximum": lambda: rng.choice([0.5, 1, 105]),
            "enum": lambda: rng.sample([0, 3, 6, 7, 1.5, 0.25, 105, 1000, "x", None], 4),
        }
        for keyword in rng.sample(["multipleOf", *makers], rng.randint(1, 3)):
            out[keyword] = makers[keyword]()
        return out

    def schema(self, depth: int) -> Any:
        rng = self.rng
        out = self.leaf()
        if depth and rng.random() < 0.6:
            keyword = rng.choice(["allOf", "anyOf", "oneOf", "not", "if"])
            if keyword in ("allOf", "anyOf", "oneOf"):
                out[keyword] = [self.schema(depth - 1) for _ in range(rng.randint(1, 3))]
            else:
                out[keyword] = self.schema(depth - 1)
            if keyword == "if":
                out |= {"then": self.schema(0), "else": self.schema(0)}
        return out


def holds(schema: Any, value: Fraction) -> bool:
    """Straight from the standard, for numbers."""
    kinds = schema.get("type", "number")
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    if not ("number" in kinds or ("integer" in kinds and value.denominator == 1)):
        return False
    exact = {k: Fraction(str(v)) for k, v in schema.items() if isinstance(v, int | float)}
    if "multipleOf" in exact and (value / exact["multipleOf"]).denominator != 1:
        return False
    if not (exact.get("minimum", value) <= value <= exact.get("maximum", value)):
        return False
    if value <= exact.get("exclusiveMinimum", value - 1) or value >= exact.get("exclusiveMaximum", value + 1):
        return False
    if "enum" in schema and value not in [Fraction(str(v)) for v in schema["enum"] if isinstance(v, int | float)]:
        return False
    if not all(holds(s, value) for s in schema.get("allOf", ())):
        return False
    if "anyOf" in schema and not any(holds(s, value) for s in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(holds(s, value) for s in schema["oneOf"]) != 1:
        return False
    if "not" in schema and holds(schema["not"], value):
        return False
    return "if" not in schema or holds(schema["then" if holds(schema["if"], value) else "else"], value)


def accepts(grammar: mw.CompiledGrammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_text(text) and matcher.is_accepting


def walk(grammar: mw.CompiledGrammar, rng: random.Random) -> str:
    """A text by random steps, and straight to an end after a while. Fails at a dead end."""
    matcher, text = grammar.matcher(), b""
    while not matcher.is_finished:
        allowed = matcher.allowed_tokens()
        assert allowed, text
        ends = [token for token in allowed if token == 256]
        token = rng.choice(ends if ends and (len(text) > 12 or rng.random() < 0.3) else allowed)
        if len(text) > 12 and not ends:
            token = min(allowed, key=lambda t: _left(matcher, t))
        assert matcher.accept(token) and len(text) < 80
        text += bytes([token]) if token < 256 else b""
    return text.decode()


def _left(matcher: mw.Matcher, token: int) -> int:
    fork = matcher.fork()
    fork.accept(token)
    return fork.min_tokens_to_accept()


@pytest.mark.parametrize(("schema", "good", "bad"), ROWS)
def test_table(schema: Any, good: list[str], bad: list[str]) -> None:
    grammar = mw.compile(JsonSchema(schema), DIGITS)
    assert [text for text in good if not accepts(grammar, text)] == []
    assert [text for text in bad if accepts(grammar, text)] == []


def check(seed: int, tally: Counter[str]) -> None:
    rng = random.Random(seed)
    schema, numbers = Writer(seed).schema(2), rng.choice(["plain", "full"])
    try:
        number = {"allOf": [{"type": "number"}, schema]}
        grammar = mw.compile(JsonSchema(number, numbers=numbers, whitespace="compact"), DIGITS)
    except mw.UnsatisfiableError:
        assert not any(holds(schema, Fraction(text)) for text in TEXTS), schema
        tally["empty"] += 1
        return
    for text in TEXTS:
        if numbers == "plain" and "." in text and "integer" in str(schema):
            continue  # there an integer has no fraction
        assert accepts(grammar, text) == holds(schema, Fraction(text)), (seed, numbers, schema, text)
        tally["right"] += holds(schema, Fraction(text))
    for _ in range(3):
        assert holds(schema, Fraction(walk(grammar, rng))), schema
    tally["schemas"] += 1


@pytest.mark.parametrize("block", range(4))
def test_random_number_schemas(block: int) -> None:
    tally = Counter[str]()
    for seed in range(100 * block, 100 * (block + 1)):
        check(seed, tally)
    assert tally["schemas"] > 40 and tally["right"] > 400, tally


@pytest.mark.slow
def test_many_random_number_schemas() -> None:
    for seed in range(400, 6000):
        check(seed, Counter())


@pytest.mark.parametrize("numbers", ["plain", "full"])
@pytest.mark.parametrize("step", [1000000007, 123456789.123, 0.123456789, 1e-8, 10**17 + 3])
def test_large_steps_between_bounds_are_quick(step: float, numbers: Any) -> None:
    exact = Fraction(str(step))
    for low, high in ((0, 10**18), (1, 3 * 10**9), (10**15, 10**15 + 10**10), (2.5, 10**6)):
        schema = {"type": "number", "multipleOf": step, "minimum": low, "maximum": high, "not": {"const": step}}
        some = any(low <= k * exact <= high and k != 1 for k in range(int(low / exact), int(high / exact) + 2)[:5])
        try:
            grammar = mw.compile(JsonSchema(schema, numbers=numbers), DIGITS)
        except mw.UnsatisfiableError:
            assert not some
            continue
        assert some
        value = Fraction(walk(grammar, random.Random(1)))
        assert value % exact == 0 and low <= value <= high
