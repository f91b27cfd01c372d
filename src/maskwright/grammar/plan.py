"""What a constraint is, and what it hands to the compiler.

Everything expensive or fallible happens in `Constraint.plan`, the support scan: every pattern is parsed, limits are
checked, emptiness is decided. The resulting `Plan` only *lowers* parts of the constraint to machines of the core when a
matcher reaches them, and cannot fail.
"""

from __future__ import annotations

import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from maskwright.errors import LimitError

if TYPE_CHECKING:
    from maskwright._core import Program
    from maskwright.grammar.ir import Ranges
    from maskwright.vocabulary import Vocabulary

Whitespace = Literal["compact", "bounded", "any"]
Status = Literal["enforced", "annotation", "over-constrained", "not-in-mask"]
WHITESPACE_CODES: dict[str, int] = {"compact": 0, "bounded": 1, "any": 2}


@dataclass(frozen=True, slots=True)
class CompileLimits:
    """Bounds of the support scan; none of them can fire during a generation.

    Args:
        seconds: wall-clock time of one compile.
        states: automaton states explored to decide whether a regular language is empty.
        nodes: nodes of a compiled constraint, and of one regular expression.
        depth: nesting of schemas and values in a constraint's description.
    """

    seconds: float = 10.0
    states: int = 100_000
    nodes: int = 1_000_000
    depth: int = 200

    def __post_init__(self) -> None:
        for name in ("seconds", "states", "nodes", "depth"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"CompileLimits.{name} is a number, not {type(value).__name__}")
            if isinstance(value, float) and name != "seconds":
                raise TypeError(f"CompileLimits.{name} is a whole number, not {value!r}")
            if not value > 0:
                raise ValueError(f"CompileLimits.{name} is positive, not {value!r}")
            if isinstance(value, int) and value > sys.maxsize:
                raise ValueError(f"CompileLimits.{name} is at most {sys.maxsize}, not {value!r}")


class Cancel(Protocol):
    """Whatever tells that a compile is no longer wanted: a `threading.Event`, or the like."""

    def is_set(self) -> bool:
        """True once the compile should stop."""


class Budget:
    """The clock of one support scan; `check` is called from every loop that can run long."""

    __slots__ = ("_cancel", "_deadline", "limits")

    def __init__(self, limits: CompileLimits, cancel: Cancel | None = None) -> None:
        self.limits = limits
        self._cancel = cancel
        self._deadline = time.monotonic() + limits.seconds

    def check(self, location: str | Callable[[], str]) -> None:
        """Raises LimitError at `location`, or at what it returns, when the compile was cancelled or ran out of time."""
        self.check_cancel(location)
        if time.monotonic() > self._deadline:
            raise LimitError(
                f"the compile took longer than {self.limits.seconds} s",
                location=location if isinstance(location, str) else location(),
                hint="Raise CompileLimits.seconds, or write a smaller constraint",
            )

    def check_cancel(self, location: str | Callable[[], str]) -> None:
        """The same for cancelling alone."""
        if self._cancel is not None and self._cancel.is_set():
            where = location if isinstance(location, str) else location()
            raise LimitError("the compile was cancelled", location=where)

    @property
    def seconds_left(self) -> float:
        """Until the compile is out of time."""
        return self._deadline - time.monotonic()

    @property
    def is_closed(self) -> bool:
        """Whether the scan is over: from then on no limit may fire."""
        return self._deadline == math.inf

    def close(self) -> None:
        """Stops the clock: what is looked at again when nodes are lowered was allowed by the scan."""
        self._cancel = None
        self._deadline = math.inf


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """How one keyword of the constraint is treated.

    Args:
        pointer: its place: JSON pointer, offset, or "" for the whole.
        keyword: its name.
        status: "enforced" exactly; "annotation": asserts nothing; "over-constrained": fewer texts than the standard
            allows, `detail` says which; "not-in-mask": checked only after the generation.
        detail: a sentence for people.
        cost: "joint" where it makes several schemas be evaluated side by side, state by state, as the text grows; else
            "plain": lowered once to a machine of its own.
    """

    pointer: str
    keyword: str
    status: Status
    detail: str = ""
    cost: Literal["plain", "joint"] = "plain"

    def __str__(self) -> str:
        cost = ", evaluated jointly" if self.cost == "joint" else ""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.pointer or '#'}: {self.keyword}: {self.status}{cost}{detail}"


@dataclass(frozen=True, slots=True)
class Report:
    """What becomes of every part of a constraint, in the order of the support scan."""

    entries: tuple[ReportEntry, ...] = ()

    def __iter__(self) -> Iterator[ReportEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def of(self, status: Status) -> tuple[ReportEntry, ...]:
        """The entries of one status."""
        return tuple(e for e in self.entries if e.status == status)

    def __str__(self) -> str:
        return "\n".join(str(e) for e in self.entries)


class Plan(Protocol):
    """A scanned constraint, ready to be lowered into a program of the core."""

    @property
    def whitespace(self) -> int:
        """White space policy of JSON machines: 0 compact, 1 bounded, 2 any."""

    @property
    def report(self) -> Report:
        """What became of every keyword."""

    def spares(self, lacking: Ranges) -> bool:
        """Whether nothing is missed where a vocabulary cannot spell some code points; False: to be explored.

        Args:
            lacking: first and last of each range, ascending.
        """

    def start(self, program: Program) -> None:
        """Allocates node 0, the root, and may define it."""

    def lower(self, program: Program, node: int) -> None:
        """Defines a node handed out by `program.new_node()`; cannot fail."""


class Constraint(ABC):
    """An immutable description of a set of texts: `Regex`, `Choice`, `JsonSchema` and the like.

    Equality and hash are those of `fingerprint()`, so that equal descriptions share one compiled object. Subclasses set
    their attributes in `__init__` through `_set` and keep only what pickles by content.
    """

    @abstractmethod
    def fingerprint(self) -> str:
        """The content key of the compile cache: equal exactly for constraints of the same meaning and writing."""

    @abstractmethod
    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        """The support scan. Raises a ConstraintError naming what cannot be enforced exactly, and where."""

    def reading(self, vocabulary: Vocabulary, banned: Collection[int]) -> Vocabulary:
        """The vocabulary as it is read under this constraint; by default as it is.

        Args:
            vocabulary: those banned are special in it.
            banned: ids that are never produced.

        Raises:
            ConstraintError: it needs other tokens.
        """
        return vocabulary

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: make another one")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraint):
            return NotImplemented
        return type(self) is type(other) and self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.fingerprint()))


@dataclass(frozen=True, slots=True)
class RootPlan:
    """A plan with one node, defined at once: `define(program, 0)`."""

    define: Callable[[Program, int], None]
    report: Report = field(default_factory=Report)
    whitespace: int = 0

    def spares(self, lacking: Ranges) -> bool:
        """Never known beforehand: one node is quickly explored."""
        return False

    def start(self, program: Program) -> None:
        """Allocates and defines the root."""
        self.define(program, program.new_node())

    def lower(self, program: Program, node: int) -> None:
        """Never called: no node is left undefined."""
        raise AssertionError(f"node {node} was defined at the start")
