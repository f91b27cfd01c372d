"""Forks, spawned children, pickles, threads, Ctrl-C."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
import process_workers as workers
from maskwright.grammar.plan import Cancel, CompileLimits, Constraint, Plan, RootPlan

TESTS = Path(__file__).parents[1]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
CONSTRAINTS: list[Constraint] = [
    mw.Regex("[a-z]{2,5}", flags=2),
    mw.Regex("a", dialect="ecma", match="search"),
    mw.Choice(["b", "a", "b"]),
    mw.Choice({"one": 1, "half": Decimal("0.5"), "none": None}),
    mw.JsonSchema(workers.SCHEMA, key_order="any", whitespace="compact", registry={"urn:x": {"type": "string"}}),
    mw.JsonSchema(workers.Person),
    mw.JsonSchema(list[workers.Person]),
]


@pytest.fixture(scope="module")
def vocab() -> mw.Vocabulary:
    return workers.vocabulary()


@pytest.fixture(scope="module")
def compiled(vocab: mw.Vocabulary) -> mw.CompiledGrammar:
    return mw.compile(mw.JsonSchema(workers.SCHEMA), vocab)


def run(name: str, seconds: float = 60) -> None:
    """Runs a function of process_workers in an interpreter of its own."""
    code = f"import process_workers; process_workers.{name}()"
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr[-3000:]


# ---------------------------------------------------------------- forks


@needs_fork
@pytest.mark.timeout(90)
def test_forks_while_other_threads_are_in_the_core() -> None:
    run("fork_under_load", 80)


@needs_fork
@pytest.mark.timeout(70)
def test_a_fork_waits_for_imports_of_other_threads() -> None:
    run("fork_during_import")


@needs_fork
@pytest.mark.timeout(70)
def test_children_of_children_make_pools_of_their_own() -> None:
    run("fork_again_in_children")


@needs_fork
@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_a_thread_that_lowers_a_node(vocab: mw.Vocabulary) -> None:
    slow = _Slow()
    matcher = mw.CompiledGrammar(slow, vocab, slow.plan(CompileLimits())).matcher()
    with ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(matcher.accept_text, "ab")
        assert slow.entered.wait(20)
        threading.Timer(0.3, slow.leave.set).start()
        start = time.perf_counter()
        workers.in_child(lambda: _check_after_fork(slow, matcher))
        assert time.perf_counter() - start > 0.2
        assert accepted.result(20)


def _check_after_fork(slow: _Slow, matcher: mw.Matcher) -> None:
    assert slow.leave.is_set()
    assert matcher.num_tokens == 1
    assert matcher.is_accepting


class _Slow(Constraint):
    """The text "ab", whose one node takes its time to be lowered."""

    def __init__(self) -> None:
        self._set(entered=threading.Event(), leave=threading.Event())

    entered: threading.Event
    leave: threading.Event

    def fingerprint(self) -> str:
        return f"slow@{id(self)}"

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        return _SlowPlan(self)


class _SlowPlan(RootPlan):
    def __init__(self, slow: _Slow) -> None:
        super().__init__(lambda program, node: None)
        object.__setattr__(self, "slow", slow)

    slow: _Slow

    def lower(self, program: Any, node: int) -> None:
        self.slow.entered.set()
        assert self.slow.leave.wait(20)
        program.define_choice(node, [b"ab"])


# ---------------------------------------------------------------- pickles


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_constraints_pickle_by_content(constraint: Constraint, vocab: mw.Vocabulary) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(constraint, protocol))
        assert again == constraint
        assert hash(again) == hash(constraint)
    assert copy.deepcopy(constraint) == constraint
    compiled = mw.compile(constraint, vocab)
    assert pickle.loads(pickle.dumps(compiled)) is compiled
    assert copy.copy(compiled) is compiled
    assert copy.deepcopy(compiled) is compiled


def test_a_compiled_grammar_pickles_with_its_limits_and_banned_ids(vocab: mw.Vocabulary) -> None:
    limits = mw.CompileLimits(states=12345)
    compiled = mw.compile(mw.Regex("[a-f]+"), vocab, limits, banned_ids=[97, 98])
    again = pickle.loads(pickle.dumps(compiled))
    assert again is compiled
    assert (again.limits, again.banned_ids) == (limits, (97, 98))
    assert 97 not in again.matcher().allowed_tokens()


def test_vocabularies_share_one_pickle(vocab: mw.Vocabulary) -> None:
    pair = [mw.compile(mw.Regex("a"), vocab), mw.compile(mw.Regex("b"), vocab)]
    assert len(pickle.dumps(pair)) < 1.1 * len(pickle.dumps(pair[0]))
    again = pickle.loads(pickle.dumps(vocab))
    assert again == vocab
    assert again.core is vocab.core


def test_what_lives_in_one_process_does_not_pickle(compiled: mw.CompiledGrammar, vocab: mw.Vocabulary) -> None:
    for thing in (compiled.matcher(), vocab.core):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(thing)


def test_cloudpickle(vocab: mw.Vocabulary) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")

    class Local(workers.Person):
        extra: int

    compiled = mw.compile(mw.JsonSchema(Local), vocab)
    send = cloudpickle.dumps(lambda: (compiled, compiled.matcher().accept_text('{"name"')))
    again, accepted = pickle.loads(send)()
    assert accepted
    assert again.constraint.text == compiled.constraint.text


@pytest.mark.timeout(120)
def test_spawned_children(compiled: mw.CompiledGrammar, vocab: mw.Vocabulary) -> None:
    limited = mw.compile(compiled.constraint, vocab, mw.CompileLimits(states=777), banned_ids=[1])
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        sent = pool.submit(workers.masks_of_pickled, limited)
        reports = [pool.submit(workers.report, constraint, vocab) for constraint in CONSTRAINTS]
        failed = pool.submit(workers.error_of, "(a")
        expected = (compiled.constraint.fingerprint(), 777, (1,), workers.masks(limited))
        assert sent.result() == expected
        for constraint, future in zip(CONSTRAINTS, reports, strict=True):
            assert future.result() == (constraint, str(mw.compile(constraint, vocab).report), vocab.fingerprint)
        error = failed.exception()
        assert isinstance(error, mw.RegexError)
        assert (error.location, error.hint) == ("offset 0", "Write a `)` for '('")


# ---------------------------------------------------------------- threads


@pytest.mark.timeout(60)
def test_one_matcher_from_two_threads_raises(vocab: mw.Vocabulary) -> None:
    slow = _Slow()
    matcher = mw.CompiledGrammar(slow, vocab, slow.plan(CompileLimits())).matcher()
    row = mw.allocate_bitmask(1, vocab)[0]
    with ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(matcher.accept_text, "a")
        assert slow.entered.wait(20)
        uses = [
            lambda: matcher.accept(1),
            lambda: matcher.fill_mask(row),
            lambda: matcher.fork(),
            lambda: matcher.rollback(0),
            lambda: matcher.reset(),
            lambda: matcher.is_accepting,
            lambda: mw.fill_bitmask([matcher], row.reshape(1, -1)),
        ]
        for use in uses:
            with pytest.raises(mw.MaskwrightError, match="two threads"):
                use()
        slow.leave.set()
        assert accepted.result(20)
    assert matcher.allowed_tokens() == [vocab.tokens.index(b"b")]
    mw.fill_bitmask([matcher, matcher], np.zeros((2, row.size), np.int32))  # one thread, twice: no conflict


@pytest.mark.timeout(90)
def test_64_threads_over_one_compiled_grammar(vocab: mw.Vocabulary) -> None:
    compiled = mw.compile(mw.JsonSchema({**workers.SCHEMA, "title": "threads"}), vocab)
    expected = workers.masks(mw.compile(mw.JsonSchema(workers.SCHEMA), vocab))
    start = threading.Barrier(64)

    def work(number: int) -> int:
        start.wait(30)
        rounds, end = 0, time.monotonic() + 1.2
        while time.monotonic() < end or rounds == 0:
            assert workers.masks(compiled) == expected
            rounds += 1
            if number % 8 == 0:  # others fill whole batches
                matchers = [compiled.matcher() for _ in range(4)]
                mw.fill_bitmask(matchers, mw.allocate_bitmask(4, vocab), max_tokens=[None, 50, 100, 200])
        return rounds

    with ThreadPoolExecutor(64) as pool:
        assert all(rounds > 0 for rounds in pool.map(work, range(64)))


@pytest.mark.timeout(60)
def test_forks_of_one_matcher_in_many_threads(compiled: mw.CompiledGrammar) -> None:
    root = compiled.matcher()
    assert root.accept_text(workers.TEXT[:10])
    forks = [root.fork() for _ in range(16)]

    def work(matcher: mw.Matcher) -> list[list[int]]:
        found = []
        for letter in workers.TEXT[10:]:
            found.append(matcher.allowed_tokens())
            assert matcher.accept_text(letter)
        return found

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(work, forks))
    assert all(result == results[0] for result in results)


@pytest.mark.timeout(60)
def test_threads_that_compile_the_same_get_the_same_object(vocab: mw.Vocabulary) -> None:
    constraint = mw.JsonSchema({**workers.SCHEMA, "title": "the same"})
    with ThreadPoolExecutor(16) as pool:
        made = set(pool.map(lambda _: mw.compile(constraint, vocab), range(64)))
    assert len(made) == 1


@pytest.mark.timeout(70)
def test_the_process_ends_well_while_daemon_threads_are_in_the_core() -> None:
    for _ in range(3):
        run("exit_under_load")


# ---------------------------------------------------------------- Ctrl-C


@posix
@pytest.mark.timeout(90)
def test_ctrl_c_stops_long_compiles_at_once() -> None:
    run("interrupt_long_compiles", 80)


@posix
@pytest.mark.timeout(90)
def test_ctrl_c_while_a_large_automaton_is_made() -> None:
    run("interrupt_large_automaton", 80)
