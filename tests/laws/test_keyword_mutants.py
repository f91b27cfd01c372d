"""Faults planted in the joint evaluation: the laws over schemas of all keywords notice each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from laws.test_keyword_schemas import check
from maskwright.errors import LimitError
from maskwright.grammar.json_schema import disjoint, productive
from maskwright.grammar.json_schema.joint import arrays, decided, members, objects, plans, truth

FIRST = 500_000  # seeds of schemas that no other law compiles, since compiled ones are remembered
MOST = 600


def _one_is_any(part: Any, values: Any) -> bool:
    return bool(_part_holds(part._replace(kind="any") if part.kind == "one" else part, values))


_part_holds = truth.part_holds

MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "oneOf is anyOf": (truth, "part_holds", _one_is_any),
    "names that are required may be absent": (objects.ObjectStates, "_absent", lambda self, key, state: state),
    "counts of items and contains do not matter": (arrays.ArrayFrame, "_fits_counts", lambda *_: True),
    "counts of members do not matter": (objects, "_fits_count", lambda *_: True),
    "nothing that failed matters in the end": (plans, "essential", lambda *_: frozenset()),
    "nothing in place evaluates members": (objects, "reached", lambda *_: iter(())),
    "nothing in place evaluates items": (arrays, "reached", lambda *_: iter(())),
    "keys fit any propertyNames": (members.Scalars, "strings_of", lambda *_: members.ALL),
    "what is needed is there": (productive.Productivity, "_plain_clause", lambda self, key: []),
    "branches of oneOf exclude each other": (disjoint, "_clash", lambda *_: True),
    "values that are listed fit nothing else": (disjoint, "_are_other_values", lambda *_: True),
    "every state is live": (plans.ObjectFrame, "is_live", lambda *_: True),
}


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_planted_faults_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, fault = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, fault)
    start = FIRST + MOST * sorted(MUTANTS).index(name)
    for seed in range(start, start + MOST):
        try:
            check(seed, 2 + seed % 2, Counter())
        except (AssertionError, IndexError, KeyError, LimitError, StopIteration, ValueError):
            return
    pytest.fail("nothing was noticed")


def test_the_formulas_are_those_that_are_planted_in() -> None:
    """Names that the faults replace are the ones that the code looks up."""
    assert decided.essential is plans.essential
    assert truth.reached is objects.reached is arrays.reached
