"""Regular expressions mean what Python's `re` says, in the front end and the oracle."""

from __future__ import annotations

import random
import re

from hypothesis import given

from laws import coverage
from laws.problems import SEEDS, SIZES
from laws.profiles import laws
from laws.regexes import pattern, random_text
from laws.vocabularies import sample
from maskwright.grammar.regex import pattern_ir
from maskwright.reference.language import Node, contains, derive, is_empty
from maskwright.reference.regex import regex


def matching(node: Node, rng: random.Random) -> list[str]:
    """Texts that mostly match, and prefixes of some."""
    return [] if is_empty(node) else [sample(node, rng, 12).decode(errors="ignore") for _ in range(8)]


@laws(300)
@given(SEEDS, SIZES)
def test_oracle_and_front_end_agree_with_re(seed: bytes, size: int) -> None:
    rng = random.Random(seed)
    case = pattern(rng, size)
    coverage.note("regex", case.constructs)
    compiled = re.compile(case.text, case.flags)
    node = regex(pattern_ir(case.text, flags=case.flags))
    for text in [random_text(rng) for _ in range(12)] + matching(node, rng):
        assert contains(node, text.encode()) == (compiled.fullmatch(text) is not None), (case, text)
        if compiled.fullmatch(text):
            assert all(not is_empty(derive(node, text.encode()[:n])) for n in range(len(text.encode())))


@laws(120)
@given(SEEDS, SIZES)
def test_search_agrees_with_re(seed: bytes, size: int) -> None:
    rng = random.Random(seed)
    case = pattern(rng, size)
    compiled = re.compile(case.text, case.flags)
    node = regex(pattern_ir(case.text, match="search", flags=case.flags))
    for text in [random_text(rng), *matching(node, rng)]:
        assert contains(node, text.encode()) == (compiled.search(text) is not None), (case, text)
