"""compile_many, acompile, cancelling."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import maskwright as mw
import process_workers as workers
from maskwright.grammar.plan import Cancel, CompileLimits, Constraint, Plan, RootPlan

BYTES = mw.Vocabulary([*(bytes([b]) for b in range(256)), b"<eos>"], eos_ids=[256])


# ---------------------------------------------------------------- compile_many


class _Quick(Constraint):
    """The text "a"; counts its plans, and may be told to wait or to fail."""

    def __init__(self, name: str = "quick", fail: str = "", gate: threading.Event | None = None) -> None:
        self._set(name=name, fail=fail, gate=gate, planned=[], seen=threading.Event())

    name: str
    fail: str
    gate: threading.Event | None
    planned: list[str]
    seen: threading.Event

    def fingerprint(self) -> str:
        return f"quick:{self.name}:{id(self.gate)}"

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        self.planned.append(threading.current_thread().name)
        self.seen.set()
        while self.gate is not None and not self.gate.wait(0.005):
            if cancel is not None and cancel.is_set():
                raise mw.LimitError("the compile was cancelled", location=self.name)
        if self.fail:
            raise mw.SchemaError(self.fail, location=self.name)
        return RootPlan(lambda program, node: program.define_choice(node, [b"a"]))


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_many_in_their_order_and_equal_ones_once(threads: int | None) -> None:
    twice = _Quick(f"twice{threads}")
    constraints = [mw.Regex(f"a{threads}{n}") for n in range(20)]
    done = mw.compile_many([*constraints, twice, constraints[3], twice], BYTES, threads=threads)
    assert [c.constraint for c in done[:20]] == constraints
    assert done[20] is done[22]
    assert done[21] is done[3] is mw.compile(constraints[3], BYTES)
    assert len(twice.planned) == 1


def test_none_and_options() -> None:
    assert mw.compile_many([], BYTES) == []
    limits = mw.CompileLimits(states=99)
    (one,) = mw.compile_many(iter([mw.Regex("[ab]")]), BYTES, limits, banned_ids=[97])
    assert (one.limits, one.matcher().allowed_tokens()) == (limits, [98])
    for wrong in ({"errors": "ignore"}, {"threads": 0}):
        with pytest.raises(ValueError):
            mw.compile_many([mw.Regex("a")], BYTES, **wrong)  # type: ignore[call-overload]


def test_what_is_no_constraint_is_refused_before_anything_is_compiled() -> None:
    first = _Quick("before")
    with pytest.raises(TypeError, match=r"constraint 1 is a Regex, .*, not str"):
        mw.compile_many([first, "a"], BYTES)  # type: ignore[list-item]
    assert first.planned == []


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_error_counts_whichever_thread_is_faster(threads: int) -> None:
    late = threading.Event()
    slow = _Quick(f"slow{threads}", fail="first", gate=late)
    fast = _Quick(f"fast{threads}", fail="second")
    threading.Timer(0.2, late.set).start()
    with pytest.raises(mw.SchemaError, match=r"^constraint 1: first at slow") as caught:
        mw.compile_many([mw.Regex("a"), slow, fast, mw.Regex("b")], BYTES, threads=threads)
    assert caught.value.location == slow.name


@pytest.mark.timeout(20)
def test_an_error_stops_what_is_still_under_way() -> None:
    never = threading.Event()
    waiting = [_Quick(f"waiting{n}", gate=never) for n in range(8)]
    with pytest.raises(mw.SchemaError, match="constraint 0: wrong"):
        mw.compile_many([_Quick("failing", fail="wrong"), *waiting], BYTES, threads=3)
    assert sum(bool(item.planned) for item in waiting) <= 3


def test_errors_can_be_collected() -> None:
    bad = mw.Regex("(a")
    done = mw.compile_many([mw.Regex("a"), bad, mw.JsonSchema({"type": "x"}), bad], BYTES, errors="collect")
    assert isinstance(done[0], mw.CompiledGrammar)
    assert isinstance(done[1], mw.RegexError)
    assert done[1] is done[3]
    assert isinstance(done[2], mw.SchemaError)
    assert done[2].location == "/type"
    with pytest.raises(mw.VocabularyError):  # this is no matter of one of them
        mw.compile_many([mw.Regex("a")], BYTES, banned_ids=[256], errors="collect")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("errors", ["raise", "collect"])
def test_many_can_be_cancelled(errors: Any) -> None:
    cancel, never = threading.Event(), threading.Event()
    items = [_Quick(f"{errors}{n}", gate=never) for n in range(6)]
    threading.Timer(0.1, cancel.set).start()
    with pytest.raises(mw.LimitError, match="cancelled"):
        mw.compile_many(items, BYTES, cancel=cancel, errors=errors)
    assert not items[5].planned


def test_a_progress_bar_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    constraints = [mw.Regex(f"b{n}") for n in range(120)]
    mw.compile_many(constraints, BYTES)  # the standard error is no terminal here
    assert capsys.readouterr().err == ""
    mw.compile_many(constraints, BYTES, progress=True)
    assert "120/120" in capsys.readouterr().err


# ---------------------------------------------------------------- acompile, cancelling


@pytest.mark.timeout(20)
def test_acompile_lets_the_event_loop_go_on() -> None:
    gate = threading.Event()
    constraint = _Quick("async", gate=gate)

    async def main() -> mw.CompiledGrammar:
        task = asyncio.create_task(mw.acompile(constraint, BYTES))
        while not constraint.seen.is_set():
            await asyncio.sleep(0.001)
        assert not task.done()
        gate.set()
        return await task

    compiled = asyncio.run(main())
    assert compiled.constraint is constraint
    assert asyncio.run(mw.acompile(constraint, BYTES)) is compiled
    assert len(constraint.planned) == 1
    assert constraint.planned[0] != threading.current_thread().name


def test_acompile_raises_what_compile_raises() -> None:
    with pytest.raises(mw.RegexError):
        asyncio.run(mw.acompile(mw.Regex("(a"), BYTES))
    with pytest.raises(TypeError):
        asyncio.run(mw.acompile("a", BYTES))  # type: ignore[arg-type]


@pytest.mark.timeout(30)
def test_cancelling_the_task_ends_the_compile() -> None:
    seen = threading.Event()

    class Watched(mw.JsonSchema):
        def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Any:
            try:
                return super().plan(limits, cancel)
            except mw.LimitError:
                seen.set()
                raise

    async def main() -> None:
        task = asyncio.create_task(mw.acompile(Watched(workers.HARD), BYTES, workers.PATIENT))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert seen.is_set()


@pytest.mark.slow  # by the clock: not for a busy machine
@pytest.mark.timeout(30)
@pytest.mark.parametrize("constraint", [mw.JsonSchema(workers.HARD), mw.Regex(r"(?=[ab]*a[ab]{21}\Z)[ab]*b[ab]{21}")])
def test_cancel_comes_through_while_the_core_decides_emptiness(constraint: Constraint) -> None:
    cancel = threading.Event()
    sent = [0.0]

    def press() -> None:
        sent[0] = time.perf_counter()
        cancel.set()

    threading.Timer(0.3, press).start()
    with pytest.raises(mw.LimitError, match="the compile was cancelled"):
        mw.compile(constraint, BYTES, workers.PATIENT, cancel)
    assert time.perf_counter() - sent[0] < 1


@pytest.mark.slow  # by the clock: not for a busy machine
@pytest.mark.timeout(30)
def test_seconds_hold_while_the_core_decides_emptiness() -> None:
    start = time.perf_counter()
    with pytest.raises(mw.LimitError, match=r"longer than 0.3 s"):
        mw.compile(mw.JsonSchema(workers.HARD), BYTES, mw.CompileLimits(seconds=0.3, states=10**9))
    assert time.perf_counter() - start < 2


def test_a_compile_that_is_cancelled_already_does_nothing() -> None:
    cancel = threading.Event()
    cancel.set()
    for constraint in (mw.Regex("cancelled"), mw.JsonSchema({"title": "cancelled"})):
        with pytest.raises(mw.LimitError, match="cancelled"):
            mw.compile(constraint, BYTES, cancel=cancel)


def test_the_clock_of_a_compile_does_not_run_on_into_the_generation() -> None:
    cancel = threading.Event()
    parts = [{"pattern": "^a"}, {"minLength": 2}, {"type": "string"}]
    schema = {"type": "object", "properties": {"a": {"allOf": parts}}}
    compiled = mw.compile(mw.JsonSchema(schema), BYTES, mw.CompileLimits(seconds=0.5), cancel)
    cancel.set()
    time.sleep(0.6)
    assert compiled.matcher().accept_text('{"a": "ab"}')
