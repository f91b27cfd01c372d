"""`uniqueItems` against `jsonschema` over a small universe of values; walks over the masks always come to an end."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import maskwright as mw
from laws.unique_schemas import Maker, values

_MERGES = [b'","', b'",', b'"]', b"true", b"1,", b",1", b"[1,1", b"ab", b'ab"', b"12", b"[[", b"],[", b"0]", b'{"a":']
TOKENS = [bytes([i]) for i in range(256)] + [*_MERGES, b',"b":1}', b"],", b"<eos>"]
EOS = len(TOKENS) - 1
VOCABULARY = mw.Vocabulary(TOKENS, eos_ids=[EOS])
PRINTABLE = [t for t, token in enumerate(TOKENS[:-1]) if all(32 <= b < 127 for b in token)]
UNIVERSE = [(value, json.dumps(value, separators=(",", ":"))) for value in values()]


def check_values(compiled: mw.CompiledGrammar, validator: Any) -> None:
    """Exactly the valid values are accepted, and each byte of a valid text is in the mask."""
    for value, text in UNIVERSE:
        matcher = compiled.matcher()
        valid = validator.is_valid(value)
        assert (matcher.accept_text(text) and matcher.is_accepting) == valid, text
        if valid:
            matcher.reset()
            for byte in text.encode():
                assert byte in matcher.allowed_tokens(), text
                matcher.accept(byte)


def walk(matcher: mw.Matcher, rng: random.Random, budget: int | None) -> bytes | None:
    """The text of a random walk, without a budget cut off after some steps; asserts that there always is a way on."""
    text = b""
    for step in range(60):
        allowed = matcher.allowed_tokens(None if budget is None else budget - step)
        assert allowed, f"no way on after {text!r}, {step} of {budget} tokens"
        if EOS in allowed and (len(allowed) == 1 or rng.random() < 0.3):
            return text
        choices = [t for t in allowed if t in PRINTABLE] or [t for t in allowed if t != EOS]
        token = rng.choice(choices)
        assert matcher.accept(token), (text, TOKENS[token])
        text += TOKENS[token]
    assert budget is None
    return None


def check_schema(seed: int) -> str:
    """A random schema by its seed; what became of it."""
    rng = random.Random(seed)
    schema = Maker(rng, joint=seed % 2 == 1).array(2)
    validator = Draft202012Validator(schema)
    try:
        space: Any = ("compact", "bounded", "any")[seed // 2 % 3]
        compiled = mw.compile(mw.JsonSchema(schema, whitespace=space, key_order="any"), VOCABULARY)
    except mw.UnsatisfiableError:
        assert not any(validator.is_valid(value) for value, _ in UNIVERSE), schema
        return "unsatisfiable"
    except mw.SchemaError as error:
        assert "uniqueItems" in str(error), schema
        return "refused"
    check_values(compiled, validator)
    least = compiled.matcher().min_tokens_to_accept() + 1
    for budget in (None, least, least + 1, least + rng.randint(2, 6)):
        text = walk(compiled.matcher(), rng, budget if budget is None or budget < 60 else None)
        assert text is None or validator.is_valid(json.loads(text)), (schema, text)
    return "compiled"


def test_random_schemas() -> None:
    outcomes = [check_schema(seed) for seed in range(120)]
    assert outcomes.count("compiled") > 70


@pytest.mark.slow
def test_many_random_schemas() -> None:
    for seed in range(1000, 5000):
        check_schema(seed)
