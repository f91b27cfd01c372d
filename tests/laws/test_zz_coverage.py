"""The laws meet every construct: each in at least two per cent of the examples. Runs last, by its name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from laws import coverage
from laws.problems import Problem, problems

ENOUGH = 300
_GENERATORS = {"regex": problems("regex"), "schema": problems("schema"), "vocabulary": problems("regex")}


def draw_more(group: str, count: int) -> None:
    """Examples without a law, where too few laws ran before to judge the generators."""

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(_GENERATORS[group])
    def collect(problem: Problem) -> None:
        problem.note()

    collect()


@pytest.mark.parametrize("group", sorted(coverage.expected))
def test_no_construct_is_rare(group: str, record_property: Callable[[str, object], None]) -> None:
    missing = ENOUGH - coverage.examples[group]
    if missing > 0:
        draw_more(group, missing)
    record_property("constructs", coverage.line(group))  # printed at the end, see tests/conftest.py
    assert coverage.rare(group) == [], coverage.line(group)
