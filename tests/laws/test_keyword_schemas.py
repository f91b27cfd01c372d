"""All keywords together, against an independent validator: the same values, and every walk over the masks ends in one.

The validator is `jsonschema`; its own errors (floats under `multipleOf`) do not occur among these values.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any

import jsonschema
import numpy as np
import pytest

import maskwright as mw
from laws.keyword_schemas import Maker, schema_of, universe

VALUES = universe()
TEXTS = [json.dumps(value, separators=(",", ":")) for value in VALUES]
# What the validator reads otherwise: numbers, as doubles, and ends of lines, by the rules of Python's `re`.
READ_OTHERWISE = re.compile(r"[0-9.]{15}|[0-9][eE]|\\[nr]|\\u202[89]|Infinity")
BYTES = mw.Vocabulary([*(bytes([b]) for b in range(256)), b"<eos>"], eos_ids=[256], special_ids=[256])


def expected(schema: Any) -> list[bool] | None:
    """The validator's verdicts; None where a schema refers to itself in place, which has none."""
    validator = jsonschema.Draft202012Validator(schema)
    try:
        return [validator.is_valid(value) for value in VALUES]
    except RecursionError:
        return None
    except BaseException as error:  # the same, met inside the validator's own extension module
        if type(error).__name__ != "PanicException":
            raise
        return None


def walk(compiled: mw.CompiledGrammar, rng: random.Random) -> str:
    """A random text within a budget of tokens; every second step is one that leaves the shortest rest."""
    matcher, text = compiled.matcher(), bytearray()
    left = matcher.min_tokens_to_accept() + 1 + rng.randrange(40)
    while not matcher.is_finished:
        allowed = matcher.allowed_tokens(left)
        assert allowed, f"dead end after {bytes(text)!r}, {left} tokens left"
        token = 256 if allowed[-1] == 256 and rng.random() < 0.5 else rng.choice(allowed)
        assert matcher.accept(token)
        left -= 1
        if token != 256:
            text.append(token)
    return text.decode()


def check(seed: int, depth: int, counts: Counter[str]) -> None:
    """One random schema."""
    rng = random.Random(seed)
    schema, used = schema_of(rng, depth)
    counts.update(used)
    counts["examples"] += 1
    verdicts = expected(schema)
    options: dict[str, Any] = {
        "key_order": "any",
        "whitespace": rng.choice(["compact", "bounded", "any"]),
        "numbers": rng.choice(["plain", "full"]),
        "escapes": rng.choice(["minimal", "any"]),
    }
    try:
        compiled = mw.compile(mw.JsonSchema(json.dumps(schema), **options), BYTES)
    except mw.UnsatisfiableError:
        counts["unsatisfiable"] += 1
        assert verdicts is None or not any(verdicts), (seed, schema)
        return
    except mw.ConstraintError as error:
        counts["refused"] += "uniqueItems" not in str(error.location)  # which is taken only where it has to hold
        assert verdicts is None or error.location is not None, (seed, schema, error)
        return
    if verdicts is None:
        return  # a circle through an `if` that decides nothing
    for text, valid in zip(TEXTS, verdicts, strict=True):
        matcher = compiled.matcher()
        accepted = bool(matcher.accept_text(text) and matcher.is_accepting)
        assert accepted == valid, (seed, schema, text)
    validator = jsonschema.Draft202012Validator(schema)
    ordered = mw.compile(mw.JsonSchema(json.dumps(schema), **options | {"key_order": "schema"}), BYTES)
    for _ in range(3):
        for way in (compiled, ordered):
            text = walk(way, rng)
            if READ_OTHERWISE.search(json.dumps(json.loads(text))):
                continue
            assert validator.is_valid(json.loads(text)), (seed, schema, text)


def check_many(seeds: range) -> None:
    """Many random schemas, no keyword rare and few refused."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        check(seed, 2 + seed % 2, counts)
    rare = [k for k in Maker(random.Random()).keywords if counts[k] < 0.02 * counts["examples"]]
    assert rare == []
    assert counts["refused"] <= 0.05 * counts["examples"]


@pytest.mark.parametrize("block", range(4))
def test_random_schemas_of_all_keywords(block: int) -> None:
    check_many(range(75 * block, 75 * (block + 1)))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("block", range(20))
def test_many_random_schemas_of_all_keywords(block: int) -> None:
    check_many(range(10_000 + 1000 * block, 10_000 + 1000 * (block + 1)))


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_masks_do_not_depend_on_tokens(seed: int) -> None:
    """Where one byte after the other is allowed, so are the tokens that spell them, and no others."""
    rng = random.Random(seed)
    schema, _ = schema_of(rng, 2)
    pieces = [b'{"', b'":', b'","', b'"}', b"],", b"[[", b'"a', b'a"', b"null", b"tr", b"0,", b"1}", b'"b":0', b"ab"]
    vocabulary = mw.Vocabulary([*(bytes([b]) for b in range(256)), *pieces, b"<eos>"], eos_ids=[256 + len(pieces)])
    constraint = mw.JsonSchema(json.dumps(schema), key_order="any")
    try:
        compiled = mw.compile(constraint, vocabulary)
    except mw.ConstraintError:
        return
    for _ in range(4):
        matcher = compiled.matcher()
        for _ in range(12):
            row = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
            matcher.fill_mask(row)
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: vocabulary.size]
            for token in range(256 + len(pieces)):
                text = bytes([token]) if token < 256 else pieces[token - 256]
                assert bool(matcher.fork().accept_text(text)) == bool(bits[token]), (schema, text)
            allowed = matcher.allowed_tokens()
            token = rng.choice(allowed)
            matcher.accept(token)
            if matcher.is_finished:
                break
