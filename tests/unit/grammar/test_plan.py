from __future__ import annotations

import threading
from typing import Any

import pytest

from maskwright.errors import LimitError
from maskwright.grammar.plan import Budget, CompileLimits, Constraint, Plan, Report, ReportEntry, RootPlan


class Word(Constraint):
    def __init__(self, text: str) -> None:
        self._set(text=text)

    def fingerprint(self) -> str:
        return self.text  # type: ignore[attr-defined, no-any-return]

    def plan(self, limits: CompileLimits, cancel: Any = None) -> Plan:
        return RootPlan(lambda program, node: program.define_choice(node, [b"x"]))


class Other(Word):
    pass


def test_equality_is_by_kind_and_content() -> None:
    assert Word("a") == Word("a") and hash(Word("a")) == hash(Word("a"))
    assert Word("a") != Word("b") and Word("a") != Other("a") and Word("a") != "a"


def test_constraints_are_immutable() -> None:
    word = Word("a")
    with pytest.raises(AttributeError, match="immutable"):
        word.text = "b"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="immutable"):
        del word.text  # type: ignore[attr-defined]


def test_a_constraint_needs_both_methods() -> None:
    with pytest.raises(TypeError):
        Constraint()  # type: ignore[abstract]


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"states": -1}, {"depth": 0}, {"seconds": float("nan")}])
def test_limits_are_positive(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="positive"):
        CompileLimits(**wrong)


@pytest.mark.parametrize("wrong", [{"seconds": "1"}, {"states": True}, {"nodes": None}, {"depth": 1e6}])
def test_limits_are_numbers(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="number"):
        CompileLimits(**wrong)


def test_budget() -> None:
    Budget(CompileLimits(), None).check("")
    with pytest.raises(LimitError) as caught:
        Budget(CompileLimits(seconds=1e-9)).check("/a")
    assert caught.value.location == "/a" and "limit" not in (caught.value.hint or "") and caught.value.hint
    cancel = threading.Event()
    budget = Budget(CompileLimits(), cancel)
    budget.check("")
    cancel.set()
    with pytest.raises(LimitError, match="cancelled"):
        budget.check("")


def test_report() -> None:
    entries = (ReportEntry("", "regex", "enforced"), ReportEntry("/a", "title", "annotation", "says nothing"))
    report = Report(entries)
    assert list(report) == list(entries) and len(report) == 2
    assert report.of("annotation") == entries[1:] and report.of("over-constrained") == ()
    assert str(report) == "#: regex: enforced\n/a: title: annotation (says nothing)"


def test_root_plan() -> None:
    calls: list[Any] = []

    class Program:
        def new_node(self) -> int:
            return 0

        def define_choice(self, node: int, texts: list[bytes]) -> None:
            calls.append((node, texts))

    program: Any = Program()
    plan = Word("a").plan(CompileLimits())
    plan.start(program)
    assert calls == [(0, [b"x"])] and plan.whitespace == 0 and len(plan.report) == 0
    with pytest.raises(AssertionError):
        plan.lower(program, 1)


def test_limits_are_what_the_core_can_count_to() -> None:
    with pytest.raises(ValueError, match="at most"):
        CompileLimits(states=2**63)


def test_a_closed_budget_has_no_end() -> None:
    cancel = threading.Event()
    budget = Budget(CompileLimits(seconds=1e-9), cancel)
    budget.close()
    cancel.set()
    budget.check("/a")
