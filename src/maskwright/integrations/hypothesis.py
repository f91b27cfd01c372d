"""Strategies for hypothesis: property tests over whatever a constraint lets through.

A test of a function over orders, say, is ``@given(from_constraint(mw.JsonSchema(Order)))``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st

from maskwright.texts import Walker, kind_of, walk_vocabulary

if TYPE_CHECKING:
    from maskwright.grammar.plan import Constraint

__all__ = ["from_constraint", "texts_of"]

# Beyond this a text ends by its shortest way: hypothesis refuses examples of too many choices.
_MOST_DRAWS = 400

_SIMPLEST_KINDS = ("key", "letter", "digit", "mark", "merged", "space", "other")


def texts_of(constraint: Constraint, *, max_spare: int = 100) -> st.SearchStrategy[str]:
    """A strategy of valid texts; failing examples shrink to short texts of simple characters.

    Args:
        constraint: a ``Regex``, ``Choice``, ``JsonSchema``, ...
        max_spare: how many tokens a text may have more than the shortest valid one; a token is at most a few bytes.

    Returns:
        A strategy of ``str``.

    Raises:
        ConstraintError: the constraint cannot be enforced, or nothing is valid.
        ValueError: ``max_spare`` is negative.
    """
    if max_spare < 0:
        raise ValueError(f"max_spare is {max_spare}; it must be at least 0")
    walker = Walker(constraint)

    @st.composite
    def texts(draw: st.DrawFn) -> str:
        # A fork for every example: two threads may draw from one strategy.
        return walker.fork().walk(draw(st.integers(0, max_spare)), _Drawn(draw).choose)

    return texts()


def from_constraint(constraint: Constraint, *, max_spare: int = 100) -> st.SearchStrategy[Any]:
    """A strategy of valid values: what the texts of `texts_of` stand for.

    Args:
        constraint: as in `texts_of`. Values that a validator function of a Python type refuses are not drawn.
        max_spare: as in `texts_of`.

    Returns:
        A strategy of the constraint's own values (parsed JSON, the object of a type, the chosen item), or of texts
        where it has none.

    Raises:
        ConstraintError, ValueError: as `texts_of`.
    """
    parse: Callable[[str], Any] | None = getattr(constraint, "parse", None)
    texts = texts_of(constraint, max_spare=max_spare)
    if parse is None:
        return texts

    def value(text: str) -> Any:
        try:
            return parse(text)
        except ValueError:
            assume(False)

    return texts.map(value)


class _Drawn:
    """Chooses tokens from hypothesis's data, the first being the simplest and those that end the text soonest."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._draws = 0

    def choose(self, allowed: list[int], closing: Callable[[], list[int]]) -> int:
        """A token for `Walker.walk`."""
        if self._draws >= _MOST_DRAWS:
            return closing()[0]
        self._draws += 2
        tokens = closing() if self._draw(st.integers(0, 7)) == 0 else allowed
        ordered = sorted(tokens, key=_simplicity)
        return ordered[self._draw(st.integers(0, len(ordered) - 1))]


@cache
def _simplicity(token: int) -> tuple[int, int]:
    ends = token in walk_vocabulary().eos_ids
    return (-1 if ends else _SIMPLEST_KINDS.index(kind_of(token)), token)
