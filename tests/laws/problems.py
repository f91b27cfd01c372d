"""A constraint, its language by the oracle, and a vocabulary: what every law about masks starts from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

import maskwright as mw
from laws import coverage
from laws.regexes import CHARACTERS, patterns
from laws.schemas import schema_cases
from laws.vocabularies import VocabularyCase, vocabularies
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


@st.composite
def schema_problems(draw: st.DrawFn, complete: bool | None = None) -> Problem:
    """A JSON Schema and a vocabulary."""
    case = draw(schema_cases())
    style = case.style
    constraint = mw.JsonSchema(
        case.schema,
        key_order=style.key_order,
        whitespace=style.whitespace,
        numbers=style.numbers,
        escapes=style.escapes,
    )
    try:
        language = SchemaLanguage(case.schema, style, schema_pattern).language
    except CycleError:
        return Problem(constraint, EMPTY, _NO_TOKENS, "schema", case.constructs, mw.SchemaError)
    return _problem(draw, constraint, language, "schema", case.constructs, complete)


@st.composite
def regex_problems(draw: st.DrawFn, complete: bool | None = None) -> Problem:
    """A regex and a vocabulary."""
    case = draw(patterns())
    language = regex(pattern_ir(case.text, flags=case.flags))
    constraint = mw.Regex(case.text, flags=case.flags)
    return _problem(draw, constraint, language, "regex", case.constructs, complete)


@st.composite
def choice_problems(draw: st.DrawFn, complete: bool | None = None) -> Problem:
    """A list of choices and a vocabulary."""
    texts = draw(st.lists(st.text(st.sampled_from(CHARACTERS), min_size=1, max_size=6), min_size=1, max_size=5))
    return _problem(draw, mw.Choice(texts), choice(texts), "choice", frozenset(), complete)


def _problem(
    draw: st.DrawFn, constraint: Any, language: Node, group: str, constructs: frozenset[str], complete: bool | None
) -> Problem:
    language = EMPTY if is_empty(language) else language
    vocabulary = _NO_TOKENS if language is EMPTY else draw(vocabularies(language, complete))
    return Problem(constraint, language, vocabulary, group, constructs)


def without_token(problem: Problem, lost: int) -> Problem:
    """The same with one more special token."""
    case = problem.vocabulary
    return replace(problem, vocabulary=replace(case, special_ids=(*case.special_ids, lost)))


def walks(most: int) -> st.SearchStrategy[list[int]]:
    """Numbers that say how to go on, by `pick`."""
    return st.lists(st.integers(0, 1 << 16), min_size=1, max_size=most)


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


def show(oracle: Oracle, ids: Iterable[int]) -> list[tuple[int, bytes]]:
    """Tokens for people."""
    return [(i, oracle.tokens[i]) for i in sorted(ids)][:12]
