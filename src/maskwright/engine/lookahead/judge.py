"""A predicate asked about the texts of particles, each text once."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maskwright.errors import GenerationError

if TYPE_CHECKING:
    from maskwright.engine.request import Grammar, Guide
    from maskwright.grammar.predicate import Check, Predicate

__all__ = ["Judge", "JudgedGrammar", "PredicateError"]


class PredicateError(GenerationError):
    """A function of a Predicate raised: `__cause__` is what, with its traceback."""


class Judge:
    """The answers of a predicate for one request.

    Args:
        predicate: whose functions are asked.

    Attributes:
        questions: how many calls the functions took.
    """

    def __init__(self, predicate: Predicate) -> None:
        self._predicate = predicate
        self._known: dict[tuple[bool, str], bool] = {}
        self.questions = 0

    @property
    def has_prefix(self) -> bool:
        """Whether beginnings are asked about at all."""
        return self._predicate.prefix is not None

    def may_begin(self, data: bytes) -> bool:
        """Whether a valid text may begin like this; an incomplete character at the end is left out."""
        return self._ask(self._predicate.prefix, False, data)

    def may_end(self, data: bytes) -> bool:
        """Whether this is a valid text."""
        if self._predicate.complete is None:
            return self.may_begin(data)
        return self._ask(self._predicate.complete, True, data)

    def _ask(self, check: Check | None, whole: bool, data: bytes) -> bool:
        if check is None:
            return True
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(data)
        found = self._known.get((whole, text))
        if found is None:
            self.questions += 1
            try:
                found = bool(check(text))
            except Exception as error:
                name = "complete" if whole else "prefix"
                raise PredicateError(
                    f"the {name} function of the Predicate raised {type(error).__name__}: {error}",
                    location=f"text {text[-40:]!r}",
                ) from error
            self._known[whole, text] = found
        return found


@dataclass(frozen=True)
class JudgedGrammar:
    """A predicate as a request's grammar: its masks are those of what can be masked of it.

    Attributes:
        constraint: the predicate.
        masked: the compiled part.
    """

    constraint: Predicate
    masked: Grammar

    def matcher(self) -> Guide:
        """A guide at the start."""
        guide: Guide = self.masked.matcher()
        return guide
