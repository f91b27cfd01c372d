"""Several schemas on one value, exactly: what `not`, `oneOf`, `if`, `contains`, `unevaluated*` and patterns of keys need.

Plain conjunctions and unions never come here; see `maskwright.grammar.json_schema.forms`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..model import NEVER, Key
from .engine import Engine, Question
from .lowering import JointLowering
from .nodes import FIRST_CONSTANT, Ids, unique_ids

if TYPE_CHECKING:
    from ..productive import Productivity
    from ..scan import Scan

__all__ = ["Joint", "JointLowering"]


class Joint:
    """Which keys need the joint evaluation, whether they have a value, and what lies below them.

    Attributes:
        productivity: what decides the plain keys; set once it is there.
    """

    productivity: Productivity

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self.engine = Engine(scan, self._is_plain)
        self._hard: dict[int, bool] = {}
        self._plain_below: dict[Key, list[Key]] = {}
        self.crowded: set[Key] = set()
        self._tainted: set[int] | None = None

    def is_joint(self, key: Key) -> bool:
        """Whether a key's schemas have to be evaluated jointly."""
        if not self._scan.joint and not self.crowded:
            return False
        return key in self.crowded or any(self._is_hard(n) for n in key if n >= 0)

    def _is_hard(self, number: int) -> bool:
        found = self._hard.get(number)
        if found is None:
            joint = self._scan.joint
            found = self._hard[number] = any(n in joint for n in self.engine.nodes.closure((number,)))
        return found

    def has_value(self, key: Key) -> bool:
        """Whether any value satisfies a joint key."""
        return bool(self.engine.reach(unique_ids(key), ()))

    def below(self, key: Key) -> list[Key]:
        """The plain keys that members of a joint key's values lead to; all questions on the way are settled.

        Raises:
            LimitError: there are too many combinations.
        """
        found = self._plain_below.get(key)
        if found is None:
            found = self._plain_below[key] = list(self._explore(unique_ids(key)))
        return found

    def _explore(self, must: Ids) -> Iterator[Key]:
        start: Question = (must, ())
        seen, stack = {start}, [start]
        while stack:
            must, may = question = stack.pop()
            if not may and question is not start and not any(n >= FIRST_CONSTANT for n in must):
                if must and NEVER not in must:
                    yield must
                    if not self.is_joint(must):
                        continue
                else:
                    continue
            self.engine.reach(must, may)
            for child_must, child_may in self.engine.below(must, may):
                both = unique_ids((*child_must, *child_may))
                for child in ((child_must, child_may), (child_must, ()), (both, ())):
                    if child not in seen:
                        seen.add(child)
                        stack.append(child)

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
            hard = set(self._scan.joint) | {n for key in self.crowded for n in key}
            self._tainted, stack = set(hard), list(hard)
            while stack:
                for number in before.get(stack.pop(), ()):
                    if number not in self._tainted:
                        self._tainted.add(number)
                        stack.append(number)
        return self._tainted
