"""Which truth values several schemas can have together on one value: the basis of liveness.

A question is two sets of schemas: those that have to hold for the value, and those that are observed. Its answer, the
vectors, are the combinations of truth that some value gives the observed ones: bit n for the n-th of them. Questions
about containers depend on those about their members, so the answers are a least fixpoint: start from none, and ask
again whenever an answer that was used has grown (specs: JSON Schema by truth vectors).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from maskwright.errors import LimitError

from ..evaluate import identity
from ..kinds import ARRAY, EVERY, OBJECT
from ..model import NEVER
from ..scan import Scan
from .arrays import ArrayFrame
from .judge import Judge
from .members import KeyClasses
from .nodes import FIRST_CONSTANT, Ids, Nodes
from .plans import ObjectFrame
from .scalars import Scalars
from .truth import certain

if TYPE_CHECKING:
    from ..distinct import Distinct

Goal = frozenset[int] | None  # the vectors that will do; None: any
Question = tuple[Ids, Ids]
MOST_VECTORS = 256
Frame = ObjectFrame | ArrayFrame


class NoFrame:
    """Stands for containers that a type rules out."""

    possible = False

    def vectors(self) -> set[int]:
        """None."""
        return set()


NO_FRAME = NoFrame()


class Engine:
    """Answers questions about the schemas of one scan.

    Args:
        scan: the scanned document.
        is_plain: whether schemas that have to hold together can be left to the plain forms, which have a value.
    """

    distinct: Distinct  # set once it is there

    def __init__(self, scan: Scan, is_plain: Callable[[Ids], bool | None]) -> None:
        self.nodes = Nodes(scan)
        self.any_order = scan.options.key_order == "any"
        self.contains_evaluates = scan.draft >= 2020
        self.scalars = Scalars(self.nodes, scan.options, scan.budget, scan.where)
        self.keys = KeyClasses(self.nodes, self.scalars)
        self._scan = scan
        self._judge = Judge(self.nodes)
        self._is_plain = is_plain
        self._answers: dict[Question, frozenset[int]] = {}
        self._readers: dict[Question, set[Question]] = {}
        self._frames: dict[Question, tuple[ObjectFrame | NoFrame, ArrayFrame | NoFrame]] = {}
        self._candidates: dict[Ids, list[Any] | None] = {}
        self._stale: dict[Question, None] = {}
        self._asking: Question | None = None

    def where(self, ids: Ids, *tokens: object) -> str:
        """The place of a set of schemas, or below the first of them, for errors."""
        known = [n for n in ids if 0 <= n < FIRST_CONSTANT]
        return self._scan.where(known[0], *tokens) if known else ""

    @property
    def is_lowering(self) -> bool:
        """Whether the scan is over: searches may then be long, but must not be refused."""
        return self._scan.budget.is_closed

    def frames(self, must: Ids, may: Ids) -> tuple[ObjectFrame | NoFrame, ArrayFrame | NoFrame]:
        """The objects and the arrays of a question."""
        question = (must, may)
        found = self._frames.get(question)
        if found is None:
            types = EVERY
            for number in must:
                types &= self.nodes[number].types
            found = self._frames[question] = (
                ObjectFrame(self, must, may) if types & OBJECT else NO_FRAME,
                ArrayFrame(self, must, may) if types & ARRAY else NO_FRAME,
            )
        return found

    def reach(self, must: Ids, may: Ids) -> frozenset[int]:
        """The vectors of a question: settled, or, while others are being settled, what is known of them so far.

        Raises:
            LimitError: there are too many of them, or it took too long.
        """
        question = (must, may)
        if not may:
            trivial = self._trivial(must)
            if trivial is not None:
                return trivial
        if self._asking is not None:
            self._readers.setdefault(question, set()).add(self._asking)
        if question not in self._answers:
            self._schedule(question)
            if self._asking is None:
                self._settle()
        return self._answers[question]

    def _schedule(self, question: Question) -> None:
        """Queues a question and all that it leads to, those about members first: few are then asked twice."""
        stack = [(question, False)]
        while stack:
            asked, done = stack.pop()
            if done:
                self._stale[asked] = None
            elif asked not in self._answers and (asked[1] or self._trivial(asked[0]) is None):
                self._answers[asked] = frozenset()
                stack.append((asked, True))
                stack.extend((below, False) for below in self.below(*asked))

    def _trivial(self, must: Ids) -> frozenset[int] | None:
        if NEVER in must:
            return frozenset()
        if not must:
            return frozenset({0})
        some: object = self._is_plain(must)
        if some is None:
            some = self.candidates(must)
        return None if some is None else frozenset({0}) if some else frozenset()

    def _settle(self) -> None:
        while self._stale:
            question = next(iter(self._stale))
            del self._stale[question]
            self._scan.budget.check(partial(self.where, question[0] or question[1]))
            self._asking = question
            try:
                found = frozenset(self._vectors(*question))
            except BaseException:
                self._answers.clear()  # half done
                self._stale.clear()
                raise
            finally:
                self._asking = None
            if found != self._answers[question]:
                self._answers[question] = found
                self._stale |= dict.fromkeys(self._readers.get(question, ()))

    def _vectors(self, must: Ids, may: Ids) -> set[int]:
        values = self.candidates(must)
        if values is not None:
            return {self.vector_of(value, may) for value in values}
        found = {cell.vector for cell in self.scalars.cells(must, may)}
        for frame in self.frames(must, may):
            found |= frame.vectors()
            if len(found) > MOST_VECTORS:
                raise LimitError(
                    f"Schemas that meet in one place have more than {MOST_VECTORS} combinations of truth",
                    location=self.where(must or may),
                    hint="Let fewer of anyOf, oneOf, not, if and unevaluated keywords meet in one place",
                )
        return found

    # ------------------------------------------------------------------ lists of values

    def candidates(self, must: Ids) -> list[Any] | None:
        """The values that may satisfy schemas with an `enum` or `const` among them; None where none has one."""
        if must not in self._candidates:
            self._candidates[must] = self._find_candidates(must)
        return self._candidates[must]

    def _find_candidates(self, must: Ids) -> list[Any] | None:
        for number in sorted(certain(self.nodes, must)):
            node = self.nodes[number] if number >= 0 else None
            if node is not None and node.values is not None:
                values = [*node.values, *(self.nodes.value_of(c) for c in node.constants)]
                return [v for v in values if all(self.holds(n, v) for n in must)]
        return None

    def holds(self, number: int, value: object) -> bool:
        """Whether a value satisfies a node."""
        return self._judge.holds(number, value)

    def census(self, must: Ids, may: Ids, most: int) -> dict[int, list[Any]] | None:
        """Up to `most` different values of each vector of a question; None where there may be more of some."""
        plain = tuple(n for n in must if n < FIRST_CONSTANT)
        found: dict[int, dict[Hashable, Any]] = {vector: {} for vector in self.reach(must, may)}
        closure = [self.nodes[n] for n in self.nodes.closure((*must, *may))]
        named = [v for n in closure for v in (*(n.values or ()), *map(self.nodes.value_of, n.constants))]
        listed = ((v,) for v in named if all(self.holds(n, v) for n in plain))
        for value in chain(listed, self.distinct.some_values(plain)):
            if value is None:
                return None
            if len(plain) < len(must) and not all(self.holds(n, value[0]) for n in must):
                continue
            values = found.setdefault(self.vector_of(value[0], may), {})
            if len(values) < most:
                values[identity(value[0])] = value[0]
                if all(len(v) >= most for v in found.values()):
                    break
        return {vector: list(values.values()) for vector, values in found.items()}

    def vector_of(self, value: object, may: Ids) -> int:
        """The vector of one value."""
        return sum(1 << n for n, number in enumerate(may) if self.holds(number, value))

    # ------------------------------------------------------------------ goals

    def reduce(self, must: Ids, may: Ids, goal: Goal) -> tuple[Ids, Ids, Goal]:
        """An equivalent question with fewer schemas observed, where the goal allows it."""
        vectors = self.reach(must, may)
        if goal is None or vectors <= goal:
            return must, (), None
        every = (1 << len(may)) - 1
        if goal & vectors == {every}:
            return tuple(sorted({*must, *may})), (), None
        return must, may, goal & vectors

    def below(self, must: Ids, may: Ids) -> Iterator[Question]:
        """The questions about members and items."""
        if self.candidates(must) is not None:
            return
        objects, arrays = self.frames(must, may)
        if isinstance(objects, ObjectFrame) and objects.possible:
            yield from (objects.child(key) for key in range(len(objects.classes)))
        if isinstance(arrays, ArrayFrame) and arrays.possible:
            yield from (arrays.child(position) for position in arrays.positions())
