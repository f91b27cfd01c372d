"""A constraint, its language by the oracle, and a vocabulary: what every law about masks starts from."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

import maskwright as mw
from laws import coverage
from laws.regexes import CHARACTERS, pattern
from laws.schemas import schema_case
from laws.vocabularies import VocabularyCase, vocabulary
from maskwright.grammar.ir import Ir
from maskwright.grammar.regex import pattern_ir
from maskwright.reference import Oracle, SchemaLanguage, choice, regex
from maskwright.reference.applicable import CycleError
from maskwright.reference.language import EMPTY, Node, derive, is_empty
from maskwright.reference.lengths import Lengths
from maskwright.reference.oracle import State


@dataclass(frozen=True)
class Problem:
    """`language` is empty where nothing satisfies the constraint; compiling it has to raise `error`."""

    constraint: Any
    language: Node
    vocabulary: VocabularyCase
    group: str
    constructs: frozenset[str]
    error: type[mw.ConstraintError] = mw.UnsatisfiableError
    seed: bytes = b""
    size_class: int = 2

    def rng(self, use: str) -> random.Random:
        """Randomness for one use in a law."""
        return random.Random(self.seed + use.encode())

    def steps(self, most: int, use: str = "steps") -> list[int]:
        """Numbers that say how to go on from state to state, by `pick`: fewer for small examples."""
        rng = self.rng(use)
        return [rng.randrange(1 << 16) for _ in range(rng.randint(1, most * (1 + self.size_class) // 3 + 1))]

    def note(self) -> None:
        """Count its constructs."""
        coverage.note(self.group, self.constructs)
        coverage.note("vocabulary", self.vocabulary.constructs)

    @cached_property
    def oracle(self) -> Oracle:
        """The oracle for it."""
        case = self.vocabulary
        return Oracle(self.language, case.tokens, case.eos_ids, case.special_ids)

    @cached_property
    def prepared(self) -> mw.Vocabulary:
        """The vocabulary for the library."""
        case = self.vocabulary
        return mw.Vocabulary(list(case.tokens), eos_ids=list(case.eos_ids), special_ids=list(case.special_ids))

    def compile(self) -> mw.CompiledGrammar:
        """The compiled constraint."""
        return mw.compile(self.constraint, self.prepared)

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.vocabulary.tokens)


_NO_TOKENS = VocabularyCase((b"a", b"<eos>"), (1,), (), frozenset())


def schema_pattern(text: str) -> Ir:
    """The language of a JSON `pattern`."""
    return pattern_ir(text, "ecma", "search")


def _schema_problem(rng: random.Random, size: int, complete: bool | None) -> Problem:
    case = schema_case(rng, size)
    style = case.style
    constraint = mw.JsonSchema(
        case.schema,
        key_order=style.key_order,
        whitespace=style.whitespace,
        numbers=style.numbers,
        escapes=style.escapes,
    )
    if "uniqueItems" in case.constructs:
        complete = True  # others are refused
    try:
        language = SchemaLanguage(case.schema, style, schema_pattern).language
    except CycleError:
        return Problem(constraint, EMPTY, _NO_TOKENS, "schema", case.constructs, mw.SchemaError)
    return _problem(rng, constraint, language, "schema", case.constructs, complete)


def _regex_problem(rng: random.Random, size: int, complete: bool | None) -> Problem:
    case = pattern(rng, size)
    language = regex(pattern_ir(case.text, flags=case.flags))
    constraint = mw.Regex(case.text, flags=case.flags)
    return _problem(rng, constraint, language, "regex", case.constructs, complete)


def _choice_problem(rng: random.Random, size: int, complete: bool | None) -> Problem:
    texts = ["".join(rng.choices(CHARACTERS, k=rng.randint(1, 6))) for _ in range(1 + rng.randrange(2 + size))]
    return _problem(rng, mw.Choice(texts), choice(texts), "choice", frozenset(), complete)


def _problem(
    rng: random.Random,
    constraint: Any,
    language: Node,
    group: str,
    constructs: frozenset[str],
    complete: bool | None,
) -> Problem:
    language = EMPTY if is_empty(language) else language
    case = _NO_TOKENS if language is EMPTY else vocabulary(rng, language, complete)
    return Problem(constraint, language, case, group, constructs)


_MAKERS = {"schema": _schema_problem, "regex": _regex_problem, "choice": _choice_problem}
# An example is a seed and a size, and all else follows from them. Hypothesis repeats itself in longer lists of draws:
# two thirds of the examples of a law over integers and lists were duplicates. A failure shrinks by its size.
SEEDS = st.binary(min_size=8, max_size=8)
SIZES = st.integers(0, 2)


def problems(*kinds: str, complete: bool | None = None) -> st.SearchStrategy[Problem]:
    """Problems of some kinds ("schema", "regex", "choice")."""

    def make(seed: bytes, size: int) -> Problem:
        rng = random.Random(seed)
        return replace(_MAKERS[rng.choice(kinds)](rng, size, complete), seed=seed, size_class=size)

    return st.builds(make, SEEDS, SIZES)


_lengths = Lengths()


def pick(oracle: Oracle, state: State, allowed: set[int], number: int) -> int:
    """One of the allowed tokens: any, a long one, or one that leaves the shortest rest."""
    ids = sorted(allowed)
    mode, number = number % 4, number // 4
    if mode == 2:
        longest = sorted(ids, key=lambda i: -len(oracle.tokens[i]))
        return longest[number % min(len(ids), 6)]
    if mode == 3 and state is not None and not allowed & oracle.eos_ids:
        rests = {i: _lengths.of(derive(state, oracle.tokens[i])) for i in ids[:: max(1, len(ids) // 40)]}
        return min(rests, key=lambda i: rests[i])
    if mode == 3 and allowed & oracle.eos_ids:
        return min(allowed & oracle.eos_ids)
    return ids[number % len(ids)]


def mask_of(matcher: mw.Matcher, size: int, max_tokens: int | None = None) -> set[int]:
    """The set bits of `fill_mask`; the row has a word too many, which must come back empty."""
    row = np.full((size + 31) // 32 + 1, 0xFFFFFFFF, dtype=np.uint32)
    matcher.fill_mask(row, max_tokens)
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def difference(oracle: Oracle, mask: set[int], expected: set[int]) -> str:
    """Two masks, for people."""
    missing, extra = ([(i, oracle.tokens[i]) for i in sorted(ids)[:12]] for ids in (expected - mask, mask - expected))
    return f"missing {missing}, too much {extra}"
