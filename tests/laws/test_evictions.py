"""The laws of masks hold with caches that keep nothing: every base and every remembered mask is dropped at once."""

from __future__ import annotations

from hypothesis import given, reject

import maskwright as mw
from laws.problems import Problem, problems
from laws.profiles import laws
from laws.test_masks import mask_law


def without_caches(problem: Problem, steps: list[int]) -> None:
    """The law of masks over a vocabulary that keeps no tables; it is the example's own."""
    problem.prepared.limit_cache(0)
    try:
        compiled = problem.compile()
    except mw.MaskwrightError:
        reject()
    compiled._program.limit_memo(0)
    mask_law(problem, steps)


@laws(60)
@given(problems("regex"))
def test_regex_masks_without_caches(problem: Problem) -> None:
    without_caches(problem, problem.steps(10))


@laws(60)
@given(problems("schema"))
def test_schema_masks_without_caches(problem: Problem) -> None:
    without_caches(problem, problem.steps(10))
