"""What must not matter: the way to a state, other matchers, other grammars, what was asked before, caches."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given

import maskwright as mw
from laws.problems import Problem, difference, mask_of, pick, problems
from laws.profiles import laws
from maskwright.reference.language import EMPTY
from maskwright.reference.spelling import Undecided

Picture = tuple[frozenset[int], bool, bool, int, int]


def solvable(problem: Problem) -> bool:
    """Whether the constraint and the vocabulary leave any text."""
    try:
        return problem.language is not EMPTY and bool(problem.oracle.mask(problem.oracle.start()))
    except Undecided:
        return False


solvable_problems = problems("schema", "regex").filter(solvable)


def picture(matcher: mw.Matcher, size: int) -> Picture:
    """Everything that a matcher says of its state."""
    mask = frozenset(mask_of(matcher, size))
    assert list(matcher.allowed_tokens()) == sorted(mask)
    return mask, matcher.is_accepting, matcher.is_finished, matcher.num_tokens, matcher.min_tokens_to_accept()


def walk(problem: Problem, matcher: mw.Matcher, steps: list[int]) -> tuple[list[int], list[Picture]]:
    """Random allowed tokens, and the picture before each and after the last."""
    taken, pictures = [], [picture(matcher, problem.size)]
    rng = random.Random(repr(steps))
    for step in steps:
        ids = sorted(pictures[-1][0])
        if not ids or pictures[-1][2]:
            break
        longest = sorted(ids, key=lambda i: -len(problem.vocabulary.tokens[i]))[:5]
        taken.append(ids[step % len(ids)] if step % 3 else rng.choice(longest))
        assert matcher.accept(taken[-1])
        pictures.append(picture(matcher, problem.size))
    return taken, pictures


@laws(80)
@given(solvable_problems)
def test_rollback_restores_every_state(problem: Problem) -> None:
    rng = problem.rng("rollback")
    matcher = problem.compile().matcher()
    taken, pictures = walk(problem, matcher, problem.steps(14))
    at = len(taken)
    for _ in range(6):
        back = rng.randint(0, at)
        matcher.rollback(back)
        at -= back
        assert picture(matcher, problem.size) == pictures[at]
        forward = rng.randint(0, len(taken) - at)
        assert matcher.accept_tokens(taken[at : at + forward]) == forward
        at += forward
        assert picture(matcher, problem.size) == pictures[at]
    with pytest.raises((ValueError, mw.MaskwrightError)):
        matcher.rollback(at + 1)
    assert picture(matcher, problem.size) == pictures[at]
    matcher.reset()
    assert picture(matcher, problem.size) == pictures[0]
    assert matcher.accept_tokens(taken) == len(taken)


@laws(50)
@given(solvable_problems)
def test_forks_are_independent(problem: Problem) -> None:
    others = problem.steps(10, "others")
    matcher = problem.compile().matcher()
    taken, pictures = walk(problem, matcher, problem.steps(10))
    twin = matcher.fork()
    twin.rollback(len(taken) // 2)
    walk(problem, twin, others)
    assert picture(matcher, problem.size) == pictures[-1]
    second = matcher.fork()
    matcher.reset()
    walk(problem, matcher, others)
    assert picture(second, problem.size) == pictures[-1]
    second.rollback(len(taken))
    assert picture(second, problem.size) == pictures[0]


@laws(50)
@given(solvable_problems)
def test_caches_change_nothing(problem: Problem) -> None:
    """A used matcher, a new one of the same compiled object, one compiled anew over a vocabulary prepared anew."""
    compiled = problem.compile()
    matcher = compiled.matcher()
    taken, pictures = walk(problem, matcher, problem.steps(10))
    matcher.reset()
    plan = problem.constraint.plan(mw.CompileLimits())
    fresh = mw.CompiledGrammar(problem.constraint, problem.prepared, plan)
    for again in (matcher, compiled.matcher(), fresh.matcher()):
        for token, expected in zip([*taken, None], pictures, strict=True):
            assert picture(again, problem.size) == expected
            assert token is None or again.accept(token)


@laws(40)
@given(solvable_problems, solvable_problems)
def test_requests_do_not_disturb_each_other(one: Problem, other: Problem) -> None:
    """Interleaved in any order, each request sees what it sees alone; so does a batch filled at once."""
    many, steps, rng = [one, other, one], one.steps(8), one.rng("order")
    alone = [walk(problem, problem.compile().matcher(), steps) for problem in many]
    running = [problem.compile().matcher() for problem in many]
    order = [i for i, (taken, _) in enumerate(alone) for _ in taken]
    rng.shuffle(order)
    at = [0] * len(many)
    for i in order:
        assert picture(running[i], many[i].size) == alone[i][1][at[i]]
        assert running[i].accept(alone[i][0][at[i]])
        at[i] += 1
    words = max((problem.size + 31) // 32 for problem in many)
    bitmask = np.zeros((len(many) + 1, words), dtype=np.int32)
    mw.fill_bitmask([*running, None], bitmask)
    for i, problem in enumerate(many):
        bits = np.flatnonzero(np.unpackbits(bitmask[i].view(np.uint8), bitorder="little"))
        assert frozenset(bits.tolist()) == alone[i][1][-1][0], problem
    assert (bitmask[-1] == -1).all()


@laws(60)
@given(solvable_problems)
def test_looking_ahead_has_no_side_effect(problem: Problem) -> None:
    matcher = problem.compile().matcher()
    taken, pictures = walk(problem, matcher.fork(), problem.steps(10))
    draft = [*taken, *(number % (problem.size + 2) for number in problem.steps(6, "wild"))]
    count = matcher.count_accepted(draft)
    assert count >= len(taken)
    assert picture(matcher, problem.size) == pictures[0]
    forced = list(matcher.forced_tokens())
    assert matcher.count_accepted(forced) == len(forced)
    assert picture(matcher, problem.size) == pictures[0]
    assert matcher.accept_tokens(draft) == count
    assert matcher.num_tokens == count


@laws(60)
@given(solvable_problems)
def test_text_is_accepted_like_its_tokens(problem: Problem) -> None:
    """All or nothing: `accept_text` takes text wherever byte tokens would spell it, and refuses it without a trace."""
    matcher = problem.compile().matcher()
    taken, pictures = walk(problem, matcher.fork(), problem.steps(10))
    ends = set(problem.vocabulary.eos_ids)
    text = b"".join(problem.vocabulary.tokens[t] for t in taken if t not in ends)
    if "byte-complete" in problem.vocabulary.constructs:
        assert matcher.accept_text(text)
        mask, accepting, _, _, least = pictures[len([t for t in taken if t not in ends])]
        assert frozenset(mask_of(matcher, problem.size)) == mask
        assert (matcher.is_accepting, matcher.min_tokens_to_accept()) == (accepting, least)
        before = picture(matcher, problem.size)
        assert not matcher.accept_text(b"\xff")
        assert picture(matcher, problem.size) == before


@laws(60)
@given(problems("regex").filter(solvable))
def test_budgets_of_regular_languages_are_exact(problem: Problem) -> None:
    """`min_tokens_to_accept` is the oracle's least number of tokens, and the mask within a budget the exact set.

    Where tokens of several bytes cut characters, both may be on the safe side (docs/limits.md).
    """
    oracle, matcher, state = problem.oracle, problem.compile().matcher(), problem.oracle.start()
    slack = problem.rng("slack").randrange(12)
    exact = "split-utf8" not in problem.vocabulary.constructs
    for step in [*problem.steps(8), None]:
        least, said = oracle.min_tokens(state), matcher.min_tokens_to_accept()
        assert least is not None
        assert said == least if exact else said >= least
        for budget in {said + 1, said + slack, 1, 2}:
            mask, expected = mask_of(matcher, problem.size, budget), oracle.mask_within(state, budget)
            right = mask == expected if exact else mask <= expected
            assert right, f"{budget} left: {difference(oracle, mask, expected)}"
            assert mask or budget <= said
        allowed = oracle.mask(state)
        if step is None or state is None:
            break
        token = pick(oracle, state, allowed, step)
        assert matcher.accept(token)
        state = oracle.advance(state, token)


@laws(100)
@given(solvable_problems)
def test_a_budget_is_always_kept(problem: Problem) -> None:
    """Whatever allowed tokens are taken, the text ends within the budget, the end-of-sequence token included."""
    matcher = problem.compile().matcher()
    rng = problem.rng("budget")
    least = problem.oracle.min_tokens(problem.oracle.start())
    assert least is not None
    assert matcher.min_tokens_to_accept() >= least
    budget = matcher.min_tokens_to_accept() + 1 + rng.randrange(25)
    while not matcher.is_finished:
        everything = mask_of(matcher, problem.size)
        allowed = mask_of(matcher, problem.size, budget)
        assert allowed <= everything
        assert allowed, f"nothing fits into {budget} tokens, {matcher.min_tokens_to_accept()} are needed"
        assert matcher.accept(rng.choice(sorted(allowed)))
        budget -= 1
    assert budget >= 0
