"""Several schemas on one value, exactly: for `not`, `oneOf`, `if`, `contains`, `unevaluated*`, patterns of keys.

Plain conjunctions and unions never come here; see `maskwright.grammar.json_schema.forms`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..model import NEVER, Key
from .engine import Engine, Question
from .lowering import JointLowering
from .nodes import FIRST_CONSTANT, Ids, unique_ids

if TYPE_CHECKING:
    from ..distinct import Distinct
    from ..productive import Productivity
    from ..scan import Scan

__all__ = ["Joint", "JointLowering"]


class Joint:
    """Which keys need the joint evaluation, whether they have a value, and what lies below them.

    Attributes:
        productivity: what decides the plain keys; set once it is there.
        distinct: what lists values; the same.
        plain: the keys that members of jointly evaluated values lead to.
    """

    productivity: Productivity
    distinct: Distinct

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self.plain: list[Key] = []
        self._hard: dict[int, bool] = {}
        self._explored: set[Question] = set()
        self._crowded: set[Key] = set()
        self._tainted: set[int] | None = None

    @cached_property
    def engine(self) -> Engine:
        """What answers questions; most schemas never ask one."""
        made = Engine(self._scan, self._is_plain)
        made.distinct = self.distinct
        return made

    def is_joint(self, key: Key) -> bool:
        """Whether a key's schemas have to be evaluated jointly."""
        if not self._scan.joint and not self._crowded:
            return False
        return unique_ids(key) in self._crowded or any(self._is_hard(n) for n in key if n >= 0)

    def crowd(self, key: Key) -> None:
        """Takes a key that multiplies out to too many plain alternatives."""
        self._crowded.add(unique_ids(key))
        self._tainted = None

    def _is_hard(self, number: int) -> bool:
        found = self._hard.get(number)
        if found is None:
            joint = self._scan.joint
            found = self._hard[number] = any(n in joint for n in self.engine.nodes.closure((number,)))
        return found

    def has_value(self, key: Key) -> bool:
        """Whether any value satisfies a joint key."""
        return bool(self.engine.reach(unique_ids(key), ()))

    def explore(self, key: Key) -> list[Key]:
        """Settles all questions that values of a joint key lead to; the plain keys among them that are new.

        Raises:
            LimitError: there are too many combinations.
        """
        start: Question = (unique_ids(key), ())
        found = list[Key]()
        stack = [start]
        while stack:
            question = stack.pop()
            if question in self._explored:
                continue
            self._explored.add(question)
            must, may = question
            if NEVER in must or not (must or may):
                continue
            if not may and question is not start and not any(n >= FIRST_CONSTANT for n in must):
                found.append(must)
                if not self.is_joint(must):
                    continue
            self.engine.reach(must, may)
            for child_must, child_may in self.engine.below(must, may):
                both = unique_ids((*child_must, *child_may))
                stack += [(child_must, child_may), (child_must, ()), (both, ())]
        self.plain += found
        return found

    def _is_plain(self, must: Ids) -> bool | None:
        """Whether schemas have a value, where the plain forms can tell; None where they cannot."""
        if any(n >= FIRST_CONSTANT for n in must):
            return True if len(must) == 1 else None
        if any(n in self._taint() for n in must):
            return None
        return self.productivity.has_value(must)

    def _taint(self) -> set[int]:
        """The schemas from which a joint one can be reached."""
        if self._tainted is None:
            before: dict[int, list[int]] = {}
            for number in range(len(self._scan.schemas)):
                for below in self._scan.edges(number):
                    before.setdefault(below, []).append(number)
            hard = set(self._scan.joint) | {n for key in self._crowded for n in key}
            self._tainted, stack = set(hard), list(hard)
            while stack:
                for number in before.get(stack.pop(), ()):
                    if number not in self._tainted:
                        self._tainted.add(number)
                        stack.append(number)
        return self._tainted
