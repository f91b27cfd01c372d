"""Regular expressions mean what Python's `re` says, in the front end and the oracle."""

from __future__ import annotations

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from laws import coverage
from laws.profiles import laws
from laws.regexes import Pattern, patterns, texts
from laws.vocabularies import sample
from maskwright.grammar.regex import pattern_ir
from maskwright.reference.language import Node, contains, derive, is_empty
from maskwright.reference.regex import regex


def matching(node: Node, seed: int) -> list[str]:
    """Texts that mostly match, and prefixes of some."""
    rng = random.Random(seed)
    return [] if is_empty(node) else [sample(node, rng, 12).decode(errors="ignore") for _ in range(8)]


@laws(400)
@given(patterns(), st.lists(texts(), min_size=5, max_size=20), st.integers(0, 1 << 32))
def test_oracle_and_front_end_agree_with_re(pattern: Pattern, samples: list[str], seed: int) -> None:
    coverage.note("regex", pattern.constructs)
    compiled = re.compile(pattern.text, pattern.flags)
    node = regex(pattern_ir(pattern.text, flags=pattern.flags))
    for text in samples + matching(node, seed):
        assert contains(node, text.encode()) == (compiled.fullmatch(text) is not None), (pattern, text)
        if compiled.fullmatch(text):
            assert all(not is_empty(derive(node, text.encode()[:n])) for n in range(len(text.encode())))


@laws(150)
@given(patterns(), texts(), st.integers(0, 1 << 32))
def test_search_agrees_with_re(pattern: Pattern, text: str, seed: int) -> None:
    compiled = re.compile(pattern.text, pattern.flags)
    node = regex(pattern_ir(pattern.text, match="search", flags=pattern.flags))
    for sampled in [text, *matching(node, seed)]:
        assert contains(node, sampled.encode()) == (compiled.search(sampled) is not None), (pattern, sampled)
