"""The mask is the oracle's at every step, and so is everything else that a matcher says of a state."""

from __future__ import annotations

import pytest
from hypothesis import given, reject

import maskwright as mw
from laws import coverage
from laws.problems import Problem, difference, mask_of, pick, problems
from laws.profiles import laws
from maskwright.reference import Undecided
from maskwright.reference.language import EMPTY
from maskwright.reference.oracle import State


def check_state(problem: Problem, matcher: mw.Matcher, state: State, allowed: set[int], taken: list[int]) -> None:
    """A matcher against the oracle at one place."""
    oracle = problem.oracle
    mask = mask_of(matcher, problem.size)
    assert mask == allowed, f"after {[oracle.tokens[t] for t in taken]}: {difference(oracle, mask, allowed)}"
    assert list(matcher.allowed_tokens()) == sorted(allowed)
    assert bool(matcher.is_accepting) == oracle.is_accepting(state)
    assert bool(matcher.is_finished) == (state is None)


def check_accept(problem: Problem, matcher: mw.Matcher, allowed: set[int], numbers: list[int]) -> None:
    """Some tokens on forks, allowed or not; a refused one changes nothing."""
    for number in numbers:
        token = number % problem.size
        twin = matcher.fork()
        assert twin.accept(token) == (token in allowed), (token, problem.oracle.tokens[token])
        assert matcher.count_accepted([token]) == (token in allowed)
        if token not in allowed:
            assert mask_of(twin, problem.size) == allowed
            assert twin.num_tokens == matcher.num_tokens
    assert not matcher.fork().accept(problem.size)


def follow(problem: Problem, steps: list[int], matcher: mw.Matcher) -> list[int]:
    """Walk along allowed tokens, checking every state; the tokens taken."""
    oracle = problem.oracle
    state, taken = oracle.start(), list[int]()
    for step in [*steps, None]:
        allowed = oracle.mask(state)
        check_state(problem, matcher, state, allowed, taken)
        check_accept(problem, matcher, allowed, steps[:3])
        if step is None or state is None or not allowed:
            break
        token = pick(oracle, state, allowed, step)
        assert matcher.accept(token)
        taken.append(token)
        state = oracle.advance(state, token)
    assert matcher.num_tokens == len(taken)
    return taken


def mask_law(problem: Problem, steps: list[int]) -> None:
    problem.note()
    if problem.language is EMPTY:
        with pytest.raises(problem.error):
            problem.compile()
        return
    try:
        if not problem.oracle.mask(problem.oracle.start()):
            with pytest.raises(mw.MaskwrightError):
                problem.compile().matcher()
            return
        follow(problem, steps, problem.compile().matcher())
    except Undecided:
        coverage.note("undecided", [problem.group])
        reject()


@laws(120)
@given(problems("regex"))
def test_regex_masks(problem: Problem) -> None:
    mask_law(problem, problem.steps(10))


@laws(30)
@given(problems("choice"))
def test_choice_masks(problem: Problem) -> None:
    mask_law(problem, problem.steps(8))


@laws(200)
@given(problems("schema"))
def test_schema_masks(problem: Problem) -> None:
    mask_law(problem, problem.steps(16))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@laws(50)
@given(problems("schema", complete=False))
def test_schema_masks_of_incomplete_vocabularies(problem: Problem) -> None:
    mask_law(problem, problem.steps(10))


@laws(50)
@given(problems("schema", "regex"))
def test_the_end_can_always_be_reached(problem: Problem) -> None:
    """From wherever a walk leads, the matcher takes what the oracle found to complete the text."""
    if problem.language is EMPTY or not problem.oracle.spelling.can_finish(problem.language):
        reject()
    oracle, matcher, state = problem.oracle, problem.compile().matcher(), problem.oracle.start()
    for step in problem.steps(8):
        token = pick(oracle, state, set(matcher.allowed_tokens()), step)
        if token in oracle.eos_ids:
            break
        assert matcher.accept(token)
        state = oracle.advance(state, token)
    assert state is not None
    completion = oracle.spelling.completion(state)
    assert completion is not None
    for text in completion:
        assert matcher.accept(next(i for i in oracle.text_ids if oracle.tokens[i] == text))
    assert matcher.is_accepting
    assert matcher.min_tokens_to_accept() == 0
    assert matcher.accept(min(oracle.eos_ids))
    assert matcher.is_finished
