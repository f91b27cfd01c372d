"""`CompiledGrammar.stats`, the limits of the caches, and a guard on what masks cost, in counters and not in seconds."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

import maskwright as mw

SYLLABLES = ("ba", "co", "di", "fe", "gu", "lo", "mi", "na", "pe", "qu", "ri", "so", "tu", "vo", "xe", "zy")
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "code": {"type": "string", "pattern": "^[a-z]+(-[a-z0-9]+)*$"},
        "mail": {"type": "string", "format": "email"},
        "tags": {"type": "array", "items": {"enum": ["new", "old", "sold"]}},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
    },
    "required": ["name", "code"],
}
# What masks of SCHEMA along VALUE cost each, a little above what was measured; and all bases that they need.
LIVE_NODES, DEAD_PROBES, CONFIGURATIONS, BASES = 3.0, 1.2, 0.3, 28
VALUE = {"name": "bacodi fegulo", "code": "mina-pe7", "mail": "ri@so.tu", "tags": ["old", "new"], "age": 6, "z": [1.5]}


def tokens() -> list[bytes]:
    """All bytes, and some 17,000 tokens like those of a language: words, spaces and quotes before them, punctuation."""
    words = ["".join(parts) for n in (1, 2, 3) for parts in product(SYLLABLES, repeat=n)]
    spelled = [prefix + word for word in words for prefix in ("", " ", '"', " " if len(word) > 4 else ' "')]
    marks = ["{" + '"', '",', '":', '": "', '", "', "},", "]}", "[]", "  ", "    ", "\n", "\n  ", "10", "36", "2026"]
    beyond = [a + b for a in ("é", "ß", "中", "\u2028", "😀", " à", "ba") for b in ("", "é", "文", "\u2029", "di", "-")]
    cut = [text.encode()[:-1] for text in beyond if not text.isascii()]
    encoded = [t.encode() for t in dict.fromkeys(spelled + marks + beyond)]
    return [*dict.fromkeys([bytes([b]) for b in range(256)] + encoded + cut), b"<end>"]


def fresh() -> mw.Vocabulary:
    """A vocabulary that shares its tables with no other."""
    fresh.count += 1  # type: ignore[attr-defined]
    made = [*tokens()[:-1], b"<%d>" % fresh.count, b"<end>"]  # type: ignore[attr-defined]
    return mw.Vocabulary(made, eos_ids=[len(made) - 1], special_ids=[len(made) - 2])


fresh.count = 0  # type: ignore[attr-defined]


def spell(vocabulary: mw.Vocabulary, text: str) -> list[int]:
    """Longest tokens first."""
    ids = {token: i for i, token in enumerate(vocabulary.tokens) if not vocabulary.kinds[i]}
    data, out = text.encode(), list[int]()
    while data:
        width = next(w for w in range(min(len(data), 16), 0, -1) if data[:w] in ids)
        out.append(ids[data[:width]])
        data = data[width:]
    return out


def masks_along(matcher: mw.Matcher, ids: list[int], size: int, budget: int | None = None) -> list[bytes]:
    """The mask before each token, and the last; within so many tokens."""
    row, out = np.zeros((size + 31) // 32, dtype=np.uint32), []
    for at, token in enumerate([*ids, None]):
        matcher.fill_mask(row, max_tokens=None if budget is None else budget - at)
        out.append(row.tobytes())
        assert token is None or matcher.accept(token)
    return out


def test_stats_count_masks_and_memo_hits() -> None:
    vocabulary = fresh()
    compiled = mw.compile(mw.Regex("(ab)*c"), vocabulary)
    before = compiled.stats
    assert {before[name] for name in ("masks", "memo_hits", "live_nodes", "configurations")} == {0}
    row = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
    matcher = compiled.matcher()
    matcher.fill_mask(row)
    once = compiled.stats
    assert (once["masks"], once["memo_hits"]) == (1, 0)
    matcher.fill_mask(row)
    assert (compiled.stats["masks"], compiled.stats["memo_hits"]) == (1, 1)
    compiled.matcher().fill_mask(row)  # another request at the same time: it remembers nothing
    assert compiled.stats["masks"] == 2
    del matcher
    compiled.matcher().fill_mask(row)  # one after the others: it goes on with what they left
    assert compiled.stats["masks"] == 2
    assert compiled.stats["nodes"] == 1


def test_stats_count_bases_once() -> None:
    vocabulary = fresh()
    first = mw.compile(mw.Regex("[a-z]+x"), vocabulary)
    masks_along(first.matcher(), spell(vocabulary, "baco"), vocabulary.size)
    built = first.stats["bases_built"]
    assert built > 0
    assert first.stats["base_bytes"] > 0
    masks_along(first.matcher(), spell(vocabulary, "baco"), vocabulary.size)
    assert first.stats["bases_built"] == built


@pytest.mark.parametrize(
    "pattern", [r"[^@/]+", r"\S+", ".+", r"[^b]{2,6}", r"[^é中-]+x", r"[\s\S]+#.*", "[^0-9\u2028]+"]
)
@pytest.mark.parametrize("kind", ["text", "json"])
def test_wide_classes_allow_what_each_token_alone_may(pattern: str, kind: str) -> None:
    """Large vocabularies get such a class from that of all characters: held against taking the tokens one by one."""
    vocabulary = fresh()
    json_schema = mw.JsonSchema({"type": "string", "pattern": f"^(?:{pattern})$"})
    matcher = mw.compile(mw.Regex(pattern) if kind == "text" else json_schema, vocabulary).matcher()
    if kind == "json":
        assert matcher.accept_text('"')
    for _ in range(2):
        allowed = set(matcher.allowed_tokens())
        rest = [t for t in range(vocabulary.size) if (t in allowed) != bool(matcher.count_accepted([t]))]
        assert rest == [], [vocabulary.tokens[t] for t in rest[:10]]
        assert matcher.accept_text("co")


COUNTED = {
    "words": mw.Regex("[a-z ]{100,4000}"),
    "not one": mw.Regex("[^x]{10,800}"),
    "pattern": mw.JsonSchema({"type": "string", "pattern": "^[a-z ]{100,4000}$"}),
    "pattern and length": mw.JsonSchema({"type": "string", "pattern": "[a-z]+", "maxLength": 300}),
    "found somewhere": mw.JsonSchema({"type": "string", "pattern": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}"}),
    "length": mw.JsonSchema({"type": "string", "minLength": 30, "maxLength": 500}),
    "key": mw.JsonSchema({"type": "object", "patternProperties": {"^[a-z ]{3,400}$": True}, "minProperties": 1}),
    "plain": mw.JsonSchema(SCHEMA),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_budget_that_is_far_away_costs_nothing(name: str) -> None:
    """Masks are those without a budget, and no more of the vocabulary is walked for them."""
    opening = {"words": "", "not one": "", "key": '{"', "plain": '{"name": "'}.get(name, '"')
    costs = []
    for budget in (None, 5000):
        vocabulary = fresh()
        compiled = mw.compile(COUNTED[name], vocabulary)
        ids = spell(vocabulary, opening + "bacodi fegulo mina pequ")
        masks = masks_along(compiled.matcher(), ids, vocabulary.size, budget)
        costs.append((masks, compiled.stats["live_nodes"] + compiled.stats["dead_probes"]))
    (plain, walked), (budgeted, more) = costs
    assert budgeted == plain
    assert more <= walked + 10


def test_a_limit_of_the_cache_drops_bases_and_changes_no_mask() -> None:
    vocabulary, cold = fresh(), fresh()
    text = json.dumps(VALUE)
    compiled = mw.compile(mw.JsonSchema(SCHEMA), vocabulary)
    ids = spell(vocabulary, text)
    first, second, again = (compiled.matcher() for _ in range(3))  # at the same time, so each has a memo of its own
    kept = masks_along(first, ids, vocabulary.size)
    assert compiled.stats["base_evictions"] == 0
    vocabulary.limit_cache(0)
    compiled._program.limit_memo(0)
    assert masks_along(second, ids, vocabulary.size) == kept
    other = mw.JsonSchema({"type": "string", "pattern": "^[b-y]+(/[a-z]+)*$"})
    masks_along(mw.compile(other, vocabulary).matcher(), spell(vocabulary, '"b'), vocabulary.size)
    assert masks_along(again, ids, vocabulary.size) == kept
    assert masks_along(mw.compile(mw.JsonSchema(SCHEMA), cold).matcher(), ids, cold.size) == kept
    assert compiled.stats["memo_evictions"] > 0
    with pytest.raises(ValueError, match="not negative"):
        vocabulary.limit_cache(-1)


def changing_schemas(rounds: int) -> dict[str, int]:
    """Masks of schemas whose patterns change all the time, under a small limit; the counters at the end."""
    vocabulary = fresh()
    limit = 400_000
    vocabulary.limit_cache(limit)
    held = []
    most = 0
    for n in range(rounds):
        letters = f"{chr(97 + n % 8)}-{chr(110 + n // 8 % 12)}"
        pattern = f"^[{letters}]+(-[{letters}0-9]{{1,{2 + n % 7}}})*$"
        compiled = mw.compile(mw.JsonSchema({"type": "string", "pattern": pattern}), vocabulary)
        matcher = compiled.matcher()
        masks_along(matcher, spell(vocabulary, f'"{chr(106 + n % 3)}j-k'), vocabulary.size)
        held.append((pattern, matcher))
        most = max(most, compiled.stats["base_bytes"])
    assert most < limit, "what the counters say is kept"
    cold = fresh()
    for pattern, matcher in held[:: max(1, rounds // 100)]:  # after all those evictions
        matcher.reset()
        new = mw.compile(mw.JsonSchema({"type": "string", "pattern": pattern}), cold).matcher()
        ids = spell(vocabulary, '"jk-k')
        assert masks_along(matcher, ids, vocabulary.size) == masks_along(new, ids, cold.size)
    return compiled.stats


def test_memory_of_bases_is_bounded_over_changing_schemas() -> None:
    assert changing_schemas(120)["base_evictions"] > 2


@pytest.mark.slow
def test_memory_of_bases_is_bounded_over_many_changing_schemas() -> None:
    assert changing_schemas(4000)["base_evictions"] > 100


def test_memory_of_a_request_is_bounded() -> None:
    vocabulary = fresh()
    compiled = mw.compile(mw.JsonSchema({"type": "string", "maxLength": 3000}, escapes="any"), vocabulary)
    compiled._program.limit_memo(100_000)
    masks_along(compiled.matcher(), spell(vocabulary, '"' + "ba co " * 400), vocabulary.size)
    assert compiled.stats["memo_evictions"] > 1


def test_masks_cost_what_they_used_to() -> None:
    """A guard: more walking than this for the same masks is a step back. (Less is welcome: lower the numbers then.)"""
    vocabulary = fresh()
    compiled = mw.compile(mw.JsonSchema(SCHEMA), vocabulary)
    ids = spell(vocabulary, json.dumps(VALUE))
    masks_along(compiled.matcher(), ids, vocabulary.size)
    stats = compiled.stats
    per_mask = {name: stats[name] / stats["masks"] for name in ("live_nodes", "dead_probes", "configurations")}
    assert per_mask["live_nodes"] < LIVE_NODES, per_mask
    assert per_mask["dead_probes"] < DEAD_PROBES, per_mask
    assert per_mask["configurations"] < CONFIGURATIONS, per_mask
    assert stats["bases_built"] <= BASES, stats
    masks_along(compiled.matcher(), ids, vocabulary.size)
    assert compiled.stats["bases_built"] == stats["bases_built"]
