"""Automata of the core for terms of the IR, shared process-wide by content."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from maskwright._interrupt import interruptible
from maskwright.errors import LimitError, UnsatisfiableError
from maskwright.grammar.ir import Ir
from maskwright.grammar.ir_program import to_program
from maskwright.grammar.plan import Budget

if TYPE_CHECKING:
    from maskwright import _core

_LARGE = 10_000  # nodes of a term; below, its automaton is there in a few milliseconds


@lru_cache(maxsize=1024)
def automaton(term: Ir) -> _core.Regex:
    """The lazy automaton of a term. What it explored is kept and shared until it falls out of this cache."""
    from maskwright import _core

    if term.size < _LARGE:
        return _core.Regex(to_program(term))
    return interruptible(lambda: _core.Regex(to_program(term)))


def require_some_text(term: Ir, budget: Budget, what: str, location: str) -> None:
    """Decides that the language of a term is not empty.

    Raises:
        UnsatisfiableError: no text matches `what`.
        LimitError: it could not be told within `limits.states` automaton states, or the compile was cancelled.
    """
    limits = budget.limits
    verdict = automaton(term).is_empty_within(limits.states, lambda: budget.check(location))
    if verdict > 0:
        hint = "Some part of it contradicts another: remove one of them"
        raise UnsatisfiableError(f"no text matches {what}", location=location, hint=hint)
    if verdict < 0:
        hint = "Write a simpler one, or raise CompileLimits.states"
        message = f"whether any text matches {what} is not settled after the limit of {limits.states} states"
        raise LimitError(message, location=location, hint=hint)
