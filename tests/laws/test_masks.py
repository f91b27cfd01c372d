"""The mask is the oracle's at every step, and so is everything else that a matcher says of a state."""

from __future__ import annotations

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import maskwright as mw
from laws import coverage
from laws.problems import Problem, choice_problems, mask_of, pick, regex_problems, schema_problems, show, walks
from laws.profiles import laws
from maskwright.reference import Undecided
from maskwright.reference.language import EMPTY
from maskwright.reference.oracle import State


def check_state(problem: Problem, matcher: mw.Matcher, state: State, allowed: set[int], taken: list[int]) -> None:
    """A matcher against the oracle at one place."""
    oracle = problem.oracle
    mask = mask_of(matcher, problem.size)
    assert mask == allowed, (
        f"after {[oracle.tokens[t] for t in taken]}: missing {show(oracle, allowed - mask)}, "
        f"too much {show(oracle, mask - allowed)}"
    )
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


@laws(250)
@given(regex_problems(), walks(10))
def test_regex_masks(problem: Problem, steps: list[int]) -> None:
    mask_law(problem, steps)


@laws(60)
@given(choice_problems(), walks(8))
def test_choice_masks(problem: Problem, steps: list[int]) -> None:
    mask_law(problem, steps)


@laws(400)
@given(schema_problems(), walks(16))
def test_schema_masks(problem: Problem, steps: list[int]) -> None:
    mask_law(problem, steps)


@laws(100)
@given(schema_problems(complete=False), walks(10))
def test_schema_masks_of_incomplete_vocabularies(problem: Problem, steps: list[int]) -> None:
    mask_law(problem, steps)


@laws(100)
@given(st.one_of(schema_problems(complete=True), regex_problems(complete=True)), walks(10))
def test_the_end_can_always_be_reached(problem: Problem, steps: list[int]) -> None:
    """From wherever a walk leads, the shortest way to the end is allowed to its last token."""
    if problem.language is EMPTY:
        reject()
    oracle, matcher, state = problem.oracle, problem.compile().matcher(), problem.oracle.start()
    for step in steps + [3] * 400:
        if state is None:
            break
        token = pick(oracle, state, set(matcher.allowed_tokens()), step)
        assert matcher.accept(token)
        state = oracle.advance(state, token)
    assert matcher.is_finished
