"""Vocabularies that lack characters: schemas that spare them are known without exploring, and masks stay the same."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from laws.keyword_schemas import schema_of
from maskwright.grammar.json_schema import SchemaPlan
from maskwright.grammar.plan import CompileLimits


def without(*bytes_: int) -> mw.Vocabulary:
    kept = [bytes([b]) for b in range(256) if b not in bytes_]
    longer = [b'"}', b'",', b'": ', b"aa" if 0xC3 in bytes_ else "éa".encode()]
    return mw.Vocabulary([*kept, *longer, b"<eos>"], [len(kept) + len(longer)])


# As in the packaged model: some control characters, and most planes that nothing is assigned in.
PLANES = without(4, 6, 0xC0, 0xC1, 0xF1, 0xF2, *range(0xF5, 0x100))
ACCENTS = without(0xC3)  # U+00C0 to U+00FF
SAMPLES: list[tuple[Any, bool, bool]] = [
    # schema, spares the planes 4 to 11, spares the accents
    ({"type": "string"}, True, True),
    ({}, True, True),
    ({"type": "string", "pattern": "^[a-z]{2,}$"}, True, True),
    ({"type": "string", "pattern": "^[é-ë]+$"}, True, False),
    ({"type": "string", "pattern": "[^é-ë]"}, True, False),
    ({"type": "string", "pattern": "^\\u{40000}|a$"}, False, True),
    ({"type": "string", "pattern": "^[\\u{40000}-\\u{AFFFF}]*$"}, False, True),
    ({"type": "string", "pattern": "^[\\u{20000}-\\u{10FFFF}]*$"}, True, True),
    ({"type": "string", "pattern": "^\\p{L}+$"}, True, True),
    ({"type": "string", "format": "iri"}, True, True),
    ({"enum": ["\U00045678", "a"]}, False, True),
    ({"enum": ["é", "a"]}, True, False),
    ({"properties": {"é": {}}, "required": ["é"]}, True, False),
    ({"patternProperties": {"^é": False}}, True, False),
    ({"type": "object", "propertyNames": {"format": "iri"}}, False, True),
    ({"patternProperties": {"^a.$": True}, "additionalProperties": False, "minProperties": 300}, True, True),
    ({"type": "array", "items": {"type": "string", "pattern": "^.$"}, "uniqueItems": True}, True, True),
]


def plan_of(schema: Any, **options: Any) -> SchemaPlan:
    text = schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False)
    return mw.JsonSchema(text, **options).plan(CompileLimits())


@pytest.mark.parametrize(("schema", "planes", "accents"), SAMPLES)
def test_which_schemas_spare_what(schema: Any, planes: bool, accents: bool) -> None:
    plan = plan_of(schema)
    assert plan.spares(tuple(PLANES.core.lacking)) is planes
    assert plan.spares(tuple(ACCENTS.core.lacking)) is accents


def test_escaped_characters_are_seen() -> None:
    assert not plan_of('{"const": "\\u00e9"}').spares(tuple(ACCENTS.core.lacking))
    assert not plan_of('{"const": "\\ud8d5\\ude78"}').spares(tuple(PLANES.core.lacking))
    assert plan_of('{"const": "\\u00e9"}').spares(tuple(PLANES.core.lacking))


def test_documents_of_the_registry_are_seen() -> None:
    registry = {"urn:x": '{"const": "é"}'}
    assert not plan_of({"$ref": "urn:x"}, registry=registry).spares(tuple(ACCENTS.core.lacking))


def test_with_all_escapes_nothing_is_missed() -> None:
    assert plan_of({"const": "é"}, escapes="any").spares(tuple(ACCENTS.core.lacking))


def same_masks(schema: Any, vocabulary: mw.Vocabulary, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Walks one compiled grammar that is known to spare what is lacking, beside one that explored."""
    constraint = mw.JsonSchema(json.dumps(schema), key_order="any")
    try:
        plan = constraint.plan(CompileLimits())
    except mw.ConstraintError:
        return False
    if not plan.spares(tuple(vocabulary.core.lacking)):
        return False
    quick = mw.CompiledGrammar(constraint, vocabulary, plan)
    with monkeypatch.context() as patched:
        patched.setattr(SchemaPlan, "spares", lambda self, lacking: False)
        explored = mw.CompiledGrammar(constraint, vocabulary, constraint.plan(CompileLimits()))
    one, other = quick.matcher(), explored.matcher()
    rows = np.zeros((2, (vocabulary.size + 31) // 32), dtype=np.int32)
    for _ in range(25):
        one.fill_mask(rows[0])
        other.fill_mask(rows[1])
        assert (rows[0] == rows[1]).all(), (schema, one.allowed_tokens(), other.allowed_tokens())
        allowed = one.allowed_tokens()
        assert allowed
        token = rng.choice(allowed)
        assert one.accept(token) and other.accept(token)
        if one.is_finished:
            break
    return True


def test_masks_are_those_of_exploring(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    for seed in range(120):
        rng = random.Random(seed)
        schema, _ = schema_of(rng, 2)
        compared += same_masks(schema, rng.choice([PLANES, ACCENTS]), rng, monkeypatch)
    for schema, _, _ in SAMPLES:
        for vocabulary in (PLANES, ACCENTS):
            compared += same_masks(schema, vocabulary, random.Random(1), monkeypatch)
    assert compared > 80
