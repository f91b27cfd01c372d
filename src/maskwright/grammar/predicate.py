"""What a function says of texts, where no grammar does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maskwright.errors import ConstraintError
from maskwright.grammar.plan import Cancel, CompileLimits, Constraint, Plan

__all__ = ["Predicate"]

Check = Callable[[str], bool]


class Predicate(Constraint):
    r"""The texts that a function accepts.

    A function has no mask, so that only the particle sampler can draw from it:
    ``generate(model, prompt, Predicate(fn), lookahead="smc")``. Everything that compiles a constraint refuses it.

    Args:
        complete: whether a complete text is valid.
        prefix: whether a text may be the beginning of a valid one. It must never say False of what a valid text begins
            with; where it says True of what none does, particles are lost and nothing else. Texts end on whole
            characters. Without it all texts may be, and only complete ones are refused: rejection.
        within: another constraint that outputs obey besides, by its masks; any text without it.

    The functions are asked about a text at most once per place of an output. What they raise fails the request, with
    their traceback. Two predicates are equal where their functions are the same objects.

    Raises:
        TypeError: no function at all, or what is none.
    """

    complete: Check | None
    prefix: Check | None
    within: Constraint | None

    def __init__(
        self, complete: Check | None = None, *, prefix: Check | None = None, within: Constraint | None = None
    ) -> None:
        if complete is None and prefix is None:
            raise TypeError("a Predicate needs a function: Predicate(complete) or Predicate(prefix=...)")
        for name, each in (("complete", complete), ("prefix", prefix)):
            if each is not None and not callable(each):
                raise TypeError(f"{name} is {each!r}; it must be a function of a text")
        if isinstance(within, Predicate):
            raise TypeError("within is a Predicate; write one function that asks both")
        if within is not None and not isinstance(within, Constraint):
            raise TypeError(f"within is {type(within).__name__}; pass Regex(...), JsonSchema(...), ...")
        self._set(complete=complete, prefix=prefix, within=within)

    @property
    def masked(self) -> Constraint:
        """What masks can tell of it: `within`, or any text."""
        from maskwright.grammar.regex import Regex

        return Regex(r"[\s\S]*") if self.within is None else self.within

    def parse(self, text: str) -> Any:
        """The value of a valid text: that of `within`, else the text."""
        parse = getattr(self.within, "parse", None)
        return text if parse is None else parse(text)

    def fingerprint(self) -> str:
        """The functions by identity: another process has others."""
        inner = "" if self.within is None else f"{type(self.within).__name__}:{self.within.fingerprint()}"
        return f"predicate:{id(self.complete)}:{id(self.prefix)}:{inner}"

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        """Raises ConstraintError: there is nothing to compile."""
        raise ConstraintError(
            "a Predicate has no mask",
            location="constraint",
            hint="Draw from it with generate(model, prompt, Predicate(...), lookahead='smc'); greedy decoding, beams, "
            "LogitsProcessor and constraints of several parts need a grammar: write what it can tell as Regex, "
            "JsonSchema or Lark, and pass that as Predicate(..., within=...)",
        )

    def __repr__(self) -> str:
        shown = [repr(self.complete)] if self.complete is not None else []
        shown += [f"{name}={each!r}" for name in ("prefix", "within") if (each := getattr(self, name)) is not None]
        return f"Predicate({', '.join(shown)})"
