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
    """

    productivity: Productivity
    distinct: Distinct

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._hard: dict[int, bool] = {}
        self._explored: set[Question] = set()
        self._crowded: set[Key] = set()
        self._tainted: dict[int, bool] = {}
        self._looked_at = 0

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
        if self._crowded and unique_ids(key) in self._crowded:
            return True
        return any(self._is_hard(n) for n in key if n >= 0)

    def crowd(self, key: Key) -> None:
        """Takes a key that multiplies out to too many plain alternatives."""
        self._crowded.add(unique_ids(key))
        self._tainted = {}

    def _is_hard(self, number: int) -> bool:
        scan = self._scan
        if number not in scan.groups and number not in scan.parts:
            return number in scan.joint
        found = self._hard.get(number)
        if found is None:
            seen, stack = {number}, [number]
            while stack and stack[-1] not in scan.joint:
                below = {b for part in scan.parts_of(stack.pop()) for b in part.branches if b >= 0} - seen
                seen |= below
                stack += below
            found = self._hard[number] = bool(stack)
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
        return found

    def _is_plain(self, must: Ids) -> bool | None:
        """Whether schemas have a value, where the plain forms can tell; None where they cannot."""
        if any(n >= FIRST_CONSTANT for n in must):
            return True if len(must) == 1 else None
        if self.is_joint(must):
            return None
        plain = self.productivity.plainly(must) if len(must) == 1 else None
        if plain is not None:
            return plain
        if any(map(self._is_tainted, must)):
            return None
        return self.productivity.has_value(must)

    def _is_tainted(self, number: int) -> bool:
        """Whether a joint schema can be reached from a schema.

        Depth first; where one is met, all on the way to it are known too. What the searches look at in vain is bounded
        by a few times the schemas: then all is settled at once.
        """
        known, scan = self._tainted, self._scan
        if not known:
            known |= dict.fromkeys((*scan.joint, *(n for key in self._crowded for n in key)), True)
        if self._looked_at > 4 * len(scan.schemas):
            self._looked_at = 0
            self._taint_all()
        found = known.get(number)
        if found is not None:
            return found
        way, seen = [(number, scan.edges(number))], {number}
        while way:
            if known.get(way[-1][0]):
                known |= dict.fromkeys((n for n, _ in way), True)
                return True
            below = next((b for b in way[-1][1] if b not in seen and known.get(b) is not False), None)
            if below is None:
                way.pop()
            else:
                seen.add(below)
                way.append((below, scan.edges(below)))
                self._looked_at += 1
        known |= dict.fromkeys(seen, False)
        return False

    def _taint_all(self) -> None:
        """Settles for every schema whether a joint one can be reached."""
        before: dict[int, list[int]] = {}
        for number in range(len(self._scan.schemas)):
            for below in self._scan.edges(number):
                before.setdefault(below, []).append(number)
        stack = [number for number, found in self._tainted.items() if found]
        while stack:
            for number in before.get(stack.pop(), ()):
                if not self._tainted.get(number):
                    self._tainted[number] = True
                    stack.append(number)
        for number in range(len(self._scan.schemas)):
            self._tainted.setdefault(number, False)
