"""The exceptions of the package.

Whatever is wrong with a constraint, a vocabulary or a generation is reported by a
subclass of :class:`MaskwrightError` which says where it is (``location``) and, in its
text, what was found and what to write instead (``hint``). Arguments of a wrong Python
type raise :class:`TypeError`, as everywhere.

All of them can be pickled, so that they cross process pools with their details.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskwright.engine.result import Result

__all__ = [
    "MaskwrightError",
    "ConstraintError",
    "SchemaError",
    "RegexError",
    "LarkError",
    "UnsatisfiableError",
    "LimitError",
    "VocabularyError",
    "GenerationError",
    "BudgetError",
]


class MaskwrightError(Exception):
    """The base of all errors of this package.

    Args:
        message: what was found, a sentence without its full stop.
        location: where it is: a JSON pointer (``/properties/a/minLength``, the root is
            ``""`` and shown as ``#``), ``offset 7`` in a regex, ``line 3, column 5`` in
            a grammar, or a short text.
        hint: what to write instead, a sentence of its own.
    """

    def __init__(self, message: str, *, location: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.hint = hint

    def __str__(self) -> str:
        text = self.message
        if self.location is not None:
            text += f" at {self.location or '#'}"
        if self.hint is not None:
            text += f". {self.hint}"
        return text

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own pickling passes `args` alone and would lose the keywords; the
        # whole __dict__ carries them and what a subclass adds.
        return (_rebuild, (type(self), self.message, self.__dict__.copy()))


def _rebuild(kind: type[MaskwrightError], message: str, details: dict[str, object]) -> MaskwrightError:
    """Make an unpickled error without running the constructor of a subclass."""
    error = kind.__new__(kind, message)
    error.__dict__.update(details)
    return error


class ConstraintError(MaskwrightError):
    """A constraint cannot be enforced exactly as it stands; raised at compile time.

    ``location`` is always a string here; a place that cannot be told is ``""``, the
    constraint as a whole.
    """

    location: str

    def __init__(self, message: str, *, location: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, location=location or "", hint=hint)


class SchemaError(ConstraintError):
    """A JSON Schema is malformed or uses what is not supported; ``location`` is a JSON pointer."""


class RegexError(ConstraintError):
    """A regular expression is malformed or uses what is not supported; ``location`` is an offset."""


class LarkError(ConstraintError):
    """A grammar is malformed or uses what is not supported; ``location`` is a line and column."""


class UnsatisfiableError(ConstraintError):
    """No text at all satisfies the constraint, or none that the vocabulary can spell."""


class LimitError(ConstraintError):
    """A limit of :class:`maskwright.CompileLimits` was reached before the constraint was compiled."""


class VocabularyError(MaskwrightError):
    """A tokenizer cannot be read, or its tokens do not make a usable vocabulary."""


class GenerationError(MaskwrightError):
    """A generation cannot be started, or ended before its output was complete.

    Args:
        message: what happened, a sentence without its full stop.
        result: what was generated until then; None where nothing was.
        results: the results of all rows, in order, where this row was one of a batch.
        location: see :class:`MaskwrightError`.
        hint: see :class:`MaskwrightError`.
    """

    def __init__(
        self,
        message: str,
        *,
        result: Result | None = None,
        results: Sequence[Result] = (),
        location: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, location=location, hint=hint)
        self.result = result
        self.results = tuple(results)


class BudgetError(GenerationError):
    """A lookahead sampler made as many forwards as it was allowed, and has no output to give.

    Args:
        message: what happened, a sentence without its full stop.
        log_Z: bounds ``(low, high)`` on the log of the probability that the model, unmasked, obeys the constraint.
        best: valid outputs that were found, the most probable first.
        result: see :class:`GenerationError`, as the others.
        results: what other prompts of the call got.
        location: see :class:`MaskwrightError`.
        hint: see :class:`MaskwrightError`.
    """

    def __init__(
        self,
        message: str,
        *,
        log_Z: tuple[float, float] = (-math.inf, 0.0),
        best: Sequence[Result] = (),
        result: Result | None = None,
        results: Sequence[Result] = (),
        location: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, result=result, results=results, location=location, hint=hint)
        self.log_Z = log_Z
        self.best = tuple(best)
