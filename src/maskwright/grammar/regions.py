"""Outputs of several parts: one after the other, one of several, free text, named parts.

Parts that are texts compile like any constraint, and tokens may span their borders. Special tokens, and free text that
is counted in tokens, are regions of tokens: `generate` leads through them, and a token never spans their borders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from maskwright.errors import ConstraintError
from maskwright.grammar.automata import automaton
from maskwright.grammar.choice import Choice
from maskwright.grammar.ir import MAX_CODE_POINT, Ir, Ranges, chars, complement, concat, intersect, literal, repeat
from maskwright.grammar.plan import Cancel, CompileLimits, Constraint, Plan, Report, ReportEntry, RootPlan

if TYPE_CHECKING:
    from maskwright._core import Program

__all__ = ["Alt", "Capture", "Free", "Part", "Seq", "Special", "Thinking", "is_of_tokens"]

Part: TypeAlias = "Constraint | Special | str"


@dataclass(frozen=True)
class Special:
    """A token by its name, such as ``Special("<|tool_call|>")``, whether or not the tokenizer calls it special."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a special token has a name, not {self.name!r}")


@dataclass(frozen=True)
class Thinking:
    """Reasoning before the answer: free text up to a marker.

    Args:
        end: the marker, a token by its name or a text; it must come.
        max_tokens: the most tokens of the reasoning, the marker included.

    Results have it as ``regions["thinking"]``, and what follows as ``regions["answer"]``.
    """

    end: str | Special
    max_tokens: int | None = None

    def around(self, answer: Constraint | None) -> Seq:
        """The output as a whole: the reasoning, then an answer (free text if None)."""
        return Seq(Capture("thinking", Free(self.end, self.max_tokens)), Capture("answer", answer or Free()))

    def __post_init__(self) -> None:
        Free(self.end, self.max_tokens)  # the same checks


class _Composite(Constraint):
    """A constraint made of parts."""

    parts: tuple[Part, ...]

    def fingerprint(self) -> str:
        """The content key of the compile cache."""
        digest = hashlib.sha256()
        for part in self.parts:
            data = _fingerprint(part).encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        return f"{type(self).__name__.lower()}:{self._own()}:{digest.hexdigest()}"

    def _own(self) -> str:
        return ""

    def _plans(self, limits: CompileLimits, cancel: Cancel | None) -> list[Plan]:
        if is_of_tokens(self):
            raise ConstraintError(
                "special tokens and free text of so many tokens are regions of tokens, not texts",
                location=repr(self)[:80],
                hint="Pass the constraint itself to generate(), which leads through its regions; what works on texts "
                "(compile and its save, explain, sample) takes the parts that are texts",
            )
        return [as_constraint(part).plan(limits, cancel) for part in self.parts]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parts))})"


class Seq(_Composite):
    """Parts one after the other: constraints, strings (as they stand), special tokens.

    Raises:
        TypeError: a part is none of these.
    """

    def __init__(self, *parts: Part) -> None:
        self._set(parts=tuple(map(_checked, parts)))

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        """Scans all parts."""
        return CompositePlan(self._plans(limits, cancel), _define_sequence)


class Alt(_Composite):
    """One of several parts. Where several fit a text, the first counts for what is captured."""

    def __init__(self, *parts: Part) -> None:
        if not parts:
            raise ValueError("Alt needs a part at least")
        self._set(parts=tuple(map(_checked, parts)))

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        """Scans all parts."""
        return CompositePlan(self._plans(limits, cancel), _define_union)


class Capture(_Composite):
    """A part whose text, value and tokens a Result gives by a name.

    Where a text can be cut into parts in several ways, earlier parts are as long as they can be.
    """

    name: str

    def __init__(self, name: str, part: Part) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a capture has a name, not {name!r}")
        self._set(name=name, parts=(_checked(part),))

    def _own(self) -> str:
        return self.name

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        """Scans the part."""
        return CompositePlan(self._plans(limits, cancel), _define_union)

    def __repr__(self) -> str:
        return f"Capture({self.name!r}, {self.parts[0]!r})"


class Free(Constraint):
    """Any text.

    Args:
        until: where it ends: after the first occurrence of a text, or at a special token; None for anywhere.
        max_tokens: the most tokens, those of the end included. Near it only tokens are allowed after which the end
            still fits.
    """

    until: str | Special | None
    max_tokens: int | None

    def __init__(self, until: str | Special | None = None, max_tokens: int | None = None) -> None:
        if until is not None and not isinstance(until, str | Special):
            raise TypeError(f"until is a str or a Special, not {type(until).__name__}")
        if until == "":
            raise ValueError("until is empty; the text would end before it began")
        if max_tokens is not None and (isinstance(max_tokens, bool) or not isinstance(max_tokens, int)):
            raise TypeError(f"max_tokens is an int, not {type(max_tokens).__name__}")
        if max_tokens is not None and max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; it must be at least 1")
        self._set(until=until, max_tokens=max_tokens)

    def fingerprint(self) -> str:
        """The content key of the compile cache."""
        return f"free:{self.max_tokens}:{self.until!r}"

    def language(self) -> Ir:
        """The set of texts; of one that ends at a special token, what comes before it."""
        anything = chars([(0, MAX_CODE_POINT)])
        if not isinstance(self.until, str):
            return repeat(anything)
        ends = concat(repeat(anything), literal(self.until))
        return intersect(ends, complement(concat(ends, repeat(anything, 1))))

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        """The language as an automaton."""
        if is_of_tokens(self):
            return Seq(self).plan(limits, cancel)  # refuses
        return text_plan(self)

    def __repr__(self) -> str:
        shown = [repr(self.until)] if self.until is not None else []
        return f"Free({', '.join([*shown, *([f'max_tokens={self.max_tokens}'] if self.max_tokens else [])])})"


def text_plan(free: Free) -> Plan:
    """The plan of free text up to, and without, a special token, and however many tokens it may have."""
    term = free.language()
    report = Report((ReportEntry("", "free", "enforced", repr(free)),))
    return RootPlan(lambda program, node: program.define_regex(node, automaton(term)), report)


def _define_sequence(program: Program, node: int, parts: list[int]) -> None:
    program.define_sequence(node, parts)


def _define_union(program: Program, node: int, parts: list[int]) -> None:
    program.define_union(node, parts)


class CompositePlan:
    """Plans of parts, and how their roots become one.

    Args:
        plans: of the parts.
        define: defines a node from the roots of the parts.
    """

    def __init__(self, plans: list[Plan], define: Callable[[Program, int, list[int]], None]) -> None:
        self._plans = plans
        self._define = define
        self._owners: dict[int, Plan] = {}
        self.whitespaces = frozenset[int]().union(*(_whitespaces(plan) for plan in plans))
        if len(self.whitespaces) > 1:
            raise ConstraintError(
                "the JSON schemas of one output have different white space",
                location="whitespace",
                hint="Give them the same whitespace=",
            )
        self._report = Report(tuple(entry for plan in plans for entry in plan.report))

    @property
    def whitespace(self) -> int:
        """White space policy of the JSON among the parts."""
        return next(iter(self.whitespaces), 0)

    @property
    def report(self) -> Report:
        """What became of every keyword of every part, in order."""
        return self._report

    def spares(self, lacking: Ranges) -> bool:
        """Whether no part misses some code points."""
        return all(plan.spares(lacking) for plan in self._plans)

    def start(self, program: Program) -> None:
        """Defines the root; those of the parts start at once, and are defined on reach."""
        root = program.new_node()
        roots = []
        for plan in self._plans:
            roots.append(program.node_count)
            plan.start(self._owned(program, plan))
        self._define(program, root, roots)

    def lower(self, program: Program, node: int) -> None:
        """Lets the part define a node of its own."""
        plan = self._owners[node]
        plan.lower(self._owned(program, plan), node)

    def _owned(self, program: Program, plan: Plan) -> Program:
        proxy: Any = _Owned(program, self._owners, plan)
        return proxy  # type: ignore[no-any-return]


class _Owned:
    """A program that notes whose the nodes are that it hands out."""

    def __init__(self, program: Any, owners: dict[int, Plan], plan: Plan) -> None:
        self._program = program
        self._owners = owners
        self._plan = plan

    def new_node(self) -> int:
        node: int = self._program.new_node()
        self._owners[node] = self._plan
        return node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)


def _whitespaces(plan: Plan) -> frozenset[int]:
    """The policies that matter to a plan: none where it has no JSON."""
    if isinstance(plan, CompositePlan):
        return plan.whitespaces
    return frozenset() if isinstance(plan, RootPlan) else frozenset([plan.whitespace])


def is_of_tokens(part: Part) -> bool:
    """Whether a part is, or holds, a region of tokens."""
    if isinstance(part, _Composite):
        return any(map(is_of_tokens, part.parts))
    if isinstance(part, Free):
        return isinstance(part.until, Special) or part.max_tokens is not None
    return isinstance(part, Special)


def as_constraint(part: Part) -> Constraint:
    """A part that is a text as a constraint."""
    if isinstance(part, str):
        return Choice([part])
    assert isinstance(part, Constraint)
    return part


def _checked(part: Any) -> Part:
    if isinstance(part, str | Special | Constraint):
        return part
    raise TypeError(f"a part is a constraint, a str or a Special, not {type(part).__name__}")


def _fingerprint(part: Part) -> str:
    return part.fingerprint() if isinstance(part, Constraint) else f"{type(part).__name__}:{part}"
