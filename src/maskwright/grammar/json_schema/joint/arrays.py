"""Arrays under several schemas: positions, what failed, counts of `contains`, clauses of `unevaluatedItems`.

Unlike objects they have few states, so all are explored once, and which are live is known from the closing ones back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from maskwright.errors import LimitError, SchemaError

from ..kinds import ARRAY
from ..model import ALWAYS, NEVER
from .nodes import Ids, Node, unique_ids
from .objects import Clause, absorb, fits, is_constant
from .truth import Truth, annotating, certain, evaluate, reached, relevant, settle

if TYPE_CHECKING:
    from .engine import Engine, Goal

MOST_STATES = 20_000


class State(NamedTuple):
    """What the items so far came to.

    Attributes:
        position: the number of items, as far as it matters.
        failed: nodes that do not hold any more.
        clauses: open ones, as for objects.
        counts: by node with `contains`, the items that fit, as far as they matter.
        used: where items must differ, by vector with few values, how many were taken.
    """

    position: int
    failed: frozenset[int]
    clauses: frozenset[Clause]
    counts: Ids
    used: Ids = ()


class Step(NamedTuple):
    """An item that may come: the values it may have, and the state after it."""

    vectors: frozenset[int]
    after: State


class ArrayFrame:
    """The arrays under two sets of schemas: those that have to hold, and those that are observed.

    Attributes:
        unique: items must differ.
        texts: then, values such that each item that has to come can be one of them; once there is a start.
    """

    def __init__(self, engine: Engine, must: Ids, may: Ids) -> None:
        nodes = engine.nodes
        self.engine, self.must, self.may = engine, must, may
        self.closure = nodes.closure((*must, *may))
        failing = [n for n in self.closure if not nodes[n].types & ARRAY]
        self.base, false = settle(nodes, self.closure, must, failing)
        self.possible = not self.base & false
        self._watched = self._watch(false)
        here = [nodes[n] for n in self.closure if n in self.base or n in self._watched]
        self._counted = [n for n in here if n.contains is not None and self._is_counted(n)]
        self._place = {n.number: at for at, n in enumerate(self._counted)}
        self._checks = {n.number: is_constant(n) for n in here if n.values is not None}
        self._caps = [max(n.min_contains, -1 if n.max_contains is None else n.max_contains + 1) for n in self._counted]
        limits = [max(n.min_items, -1 if n.max_items is None else n.max_items + 1, len(n.prefix)) for n in here]
        self._horizon = max(limits, default=0)
        self._most = min((n.max_items for n in here if n.max_items is not None and n.number in self.base), default=None)
        self._longest = max((len(n.prefix) for n in here), default=0)
        self.unique = self._must_differ(here) if self.possible else False
        # Positions that have to be filled, at most: of values that are as many there is always one left.
        self._needed = max((n.min_items for n in here), default=0) + sum(n.min_contains for n in self._counted)
        self._known: list[frozenset[int]] = []
        self._scarce: dict[int, int] = {}
        self.texts: list[Any] = []
        self._children: dict[int, tuple[Ids, Ids]] = {}
        self._finals: dict[State, int | None] = {}
        self._distance: dict[Goal, dict[State, int]] = {}

    def _watch(self, false: frozenset[int]) -> frozenset[int]:
        """The nodes that may or may not hold, and make a difference; evaluating items is one."""
        nodes = self.engine.nodes
        if any(nodes[n].others not in (None, ALWAYS) for n in self.closure):
            return frozenset(self.closure) - self.base - false
        return relevant(nodes, (*self.must, *self.may), false) - self.base

    def _is_counted(self, node: Node) -> bool:
        return bool(node.min_contains) or node.max_contains is not None or self.engine.contains_evaluates

    def _must_differ(self, here: list[Node]) -> bool:
        """Whether items must differ.

        Raises:
            SchemaError: some node asks for it that need not hold.
        """
        for node in here:
            if node.unique and node.number not in self.base and node.types & ARRAY:
                raise SchemaError(
                    "uniqueItems is not supported where it need not hold: under not, if, or a branch that may fail",
                    location=self.engine.where((node.number,), "uniqueItems"),
                    hint="Leave it out there and check the value afterwards",
                )
        return any(node.unique for node in here)

    def _count_values(self) -> None:
        """Where items must differ, finds the vectors that have fewer values than may be needed.

        Raises:
            SchemaError: it cannot be told, or depends on the position.
        """
        if self.unique:
            questions = dict.fromkeys(self.child(position) for position in self.positions())
            known = [self.engine.reach(*question) for question in questions]
            if known != self._known:
                self._known = known
                self._scarce = self._find_scarce(list(questions))

    def _find_scarce(self, questions: list[tuple[Ids, Ids]]) -> dict[int, int]:
        scarce: dict[int, int] = {}
        self.texts = []
        for must, may in questions:
            census = self.engine.census(must, may, max(self._needed, 1))
            if census is None:
                raise self._too_few()
            self.texts += [value for values in census.values() for value in values]
            scarce |= {vector: len(values) for vector, values in census.items() if len(values) < self._needed}
        if scarce and len(questions) > 1:
            raise self._too_few()
        return scarce

    def _too_few(self) -> SchemaError:
        number = next(n for n in self.closure if self.engine.nodes[n].unique)
        return SchemaError(
            "uniqueItems is not supported beside contains or minItems over items that may have too few values",
            location=self.engine.where((number,), "uniqueItems"),
            hint="Leave out the minimum, or give the items more values",
        )

    # ------------------------------------------------------------------ items

    def child(self, position: int) -> tuple[Ids, Ids]:
        """The schemas that have to hold for an item, and those that are observed."""
        position = min(position, self._longest)
        found = self._children.get(position)
        if found is None:
            found = self._children[position] = self._make_child(position)
        return found

    def positions(self) -> range:
        """One position of each kind."""
        last = self._longest if self._most is None else min(self._longest, self._most - 1)
        return range(last + 1)

    def _make_child(self, position: int) -> tuple[Ids, Ids]:
        must, may = set[int](), set[int]()
        for number in self.base | self._watched:
            node = self.engine.nodes[number]
            sub = _own(node, position)
            if sub is not None:
                (must if number in self.base else may).add(sub)
            elif node.others is not None:
                (must if number in self.base and self._is_plain(number, position) else may).add(node.others)
        may |= {n.contains for n in self._counted if n.contains is not None}
        return unique_ids(must), unique_ids(may - must - {NEVER})

    def _static(self, number: int, position: int) -> frozenset[int]:
        """The nodes below one that evaluate an item whatever its value is, where they hold."""
        nodes = self.engine.nodes
        return frozenset(n for n in annotating(nodes, number) if nodes[n].covers_item(position))

    def _counters(self, number: int) -> frozenset[int]:
        """The nodes below one, and itself, that may evaluate an item by `contains`."""
        if not self.engine.contains_evaluates:
            return frozenset()
        nodes = self.engine.nodes
        return frozenset(n for n in (*annotating(nodes, number), number) if nodes[n].contains is not None)

    def _is_plain(self, number: int, position: int) -> bool:
        """Whether an item has to fit `unevaluatedItems` in any case."""
        return not self._static(number, position) and not self._counters(number)

    def _after(self, state: State, vector: int, must: Ids, may: Ids) -> State | None:
        """The state after an item of a vector; None where something fails that has to hold."""
        nodes = self.engine.nodes
        place = {sub: n for n, sub in enumerate(may)}

        def holds(sub: int) -> bool:
            return sub == ALWAYS or sub in must or (sub in place and bool(vector >> place[sub] & 1))

        failed, clauses = set(state.failed), set(state.clauses)
        for number in self.base | self._watched:
            node = nodes[number]
            sub = _own(node, state.position)
            if sub is not None:
                if number not in self.base and not holds(sub):
                    failed.add(number)
            elif node.others is not None and not holds(node.others):
                clause = self._clause(number, state.position, holds)
                if clause is None:
                    continue
                if clause:
                    clauses.add((number, clause))
                elif number in self.base:
                    return None
                else:
                    failed.add(number)
        counts = tuple(
            min(count + (n.contains is not None and holds(n.contains)), cap)
            for count, n, cap in zip(state.counts, self._counted, self._caps, strict=True)
        )
        position = min(state.position + 1, self._horizon)
        open_ = absorb(c for c in clauses if c[0] not in failed)
        return State(position, frozenset(failed), open_, counts, self._use(state.used, vector))

    def _use(self, used: Ids, vector: int) -> Ids:
        return tuple(n + (v == vector) for n, v in zip(used, self._scarce, strict=True))

    def _is_used_up(self, used: Ids, vector: int) -> bool:
        scarce = self._scarce
        return any(v == vector and n >= scarce[v] for n, v in zip(used, scarce, strict=True))

    def _clause(self, number: int, position: int, holds: Callable[[int], bool]) -> frozenset[int] | None:
        """The nodes that would evaluate an item; None where one does for sure."""
        nodes = self.engine.nodes
        sure = certain(nodes, (number,))
        found = set(self._static(number, position))
        found |= {n for n in self._counters(number) if (sub := nodes[n].contains) is not None and holds(sub)}
        return None if found & sure else frozenset(found)

    # ------------------------------------------------------------------ states

    def start(self) -> State:
        """The state of an empty array."""
        self._count_values()
        return State(0, frozenset(), frozenset(), (0,) * len(self._counted), (0,) * len(self._scarce))

    def _successors(self, state: State) -> Iterator[tuple[int, State]]:
        if self._most is not None and state.position >= self._most:
            return
        must, may = self.child(state.position)
        for vector in sorted(self.engine.reach(must, may)):
            if self._is_used_up(state.used, vector):
                continue
            after = self._after(state, vector, must, may)
            if after is not None:
                yield vector, after

    def final(self, state: State) -> int | None:
        """The vector of an array that ends in a state; None where something that has to hold does not."""
        if state not in self._finals:
            self._finals[state] = self._judge(state)
        return self._finals[state]

    def _judge(self, state: State) -> int | None:
        nodes = self.engine.nodes
        failing = set(state.failed)
        failing.update(n for n in self.closure if not self._fits_counts(nodes[n], state))
        checks = self._checks | {n: self._clause_check(n, state.clauses) for n, _ in state.clauses}
        truth = evaluate(nodes, self.closure, failing, checks)
        if not all(truth[n] for n in self.must):
            return None
        return sum(1 << n for n, number in enumerate(self.may) if truth[number])

    def _fits_counts(self, node: Node, state: State) -> bool:
        if not node.types & ARRAY or state.position < node.min_items:
            return False
        if node.max_items is not None and state.position > node.max_items:
            return False
        place = self._place.get(node.number)
        if place is None:
            return True
        count = state.counts[place]
        return count >= node.min_contains and (node.max_contains is None or count <= node.max_contains)

    def _clause_check(self, number: int, clauses: frozenset[Clause]) -> Callable[[Truth], bool]:
        own = [clause for n, clause in clauses if n == number]

        listed = self._checks.get(number)

        def check(truth: Truth) -> bool:
            annotated = set(reached(self.engine.nodes, number, truth)) | {number}
            return all(clause & annotated for clause in own) and (listed is None or listed(truth))

        return check

    # ------------------------------------------------------------------ what can follow

    def _explore(self) -> dict[State, list[State]]:
        """All states, each with those it comes from."""
        before: dict[State, list[State]] = {self.start(): []}
        queue = [self.start()]
        for state in queue:
            for _, after in self._successors(state):
                if after not in before:
                    before[after] = []
                    queue.append(after)
                before[after].append(state)
            if len(before) > MOST_STATES:
                raise LimitError(
                    f"Items that several schemas are about can come to more than {MOST_STATES} different states",
                    location=self.engine.where(self.must or self.may),
                    hint="Let fewer of contains, anyOf, oneOf, not, if and unevaluatedItems meet in one place",
                )
        return before

    def vectors(self) -> set[int]:
        """The vectors of all arrays, by what is known of their items so far."""
        self._distance.clear()
        if not self.possible:
            return set()
        if self.unique:
            self._refuse_debts()
        return {v for state in self._explore() if (v := self.final(state)) is not None}

    def _refuse_debts(self) -> None:
        """Refuses items that must differ where, after some, others may still be due: their closing costs are not known.

        Raises:
            SchemaError: there is such a state.
        """
        live = self.distances(None)
        if self.may or any(live.get(after) for state in live for _, after in self._successors(state)):
            number = next(n for n in self.closure if self.engine.nodes[n].unique)
            raise SchemaError(
                "uniqueItems is not supported beside contains or conditions that ask for further items",
                location=self.engine.where((number,), "uniqueItems"),
                hint="Leave it out and check the value afterwards",
            )

    def distances(self, goal: Goal) -> dict[State, int]:
        """By live state, the number of items until the array may end."""
        found = self._distance.get(goal)
        if found is None:
            before = self._explore()
            found = {state: 0 for state in before if fits(self.final(state), goal)}
            queue = deque(found)
            while queue:
                state = queue.popleft()
                for earlier in before[state]:
                    if earlier not in found:
                        found[earlier] = found[state] + 1
                        queue.append(earlier)
            self._distance[goal] = found
        return found

    def is_live(self, state: State, goal: Goal) -> bool:
        """Whether some items lead from a state to an array that fits the goal."""
        return state in self.distances(goal)

    def may_end(self, state: State, goal: Goal) -> bool:
        """Whether the array may end in a state."""
        return fits(self.final(state), goal)

    def steps(self, state: State, goal: Goal) -> list[Step]:
        """All items that may come next, and leave a way to the goal."""
        found: dict[State, set[int]] = {}
        live = self.distances(goal)
        for vector, after in self._successors(state):
            if after in live:
                found.setdefault(after, set()).add(vector)
        return [Step(frozenset(vectors), after) for after, vectors in found.items()]

    def witness(self, state: State, goal: Goal, steps: list[Step]) -> int:
        """Which of the steps begins a shortest way to the goal."""
        live = self.distances(goal)
        return min(range(len(steps)), key=lambda n: live[steps[n].after])


def _own(node: Node, position: int) -> int | None:
    """What a node's `prefixItems` and `items` say of a position."""
    return node.prefix[position] if position < len(node.prefix) else node.items
