"""Objects under several schemas: what has to be remembered of the members so far.

A state keeps which schemas failed, which `unevaluated` clauses are open, and counts; never which schemas hold, since
that is settled at the closing brace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..kinds import OBJECT
from ..model import ALWAYS, NEVER
from .members import MANY, KeyClass
from .nodes import Ids, Node, unique_ids
from .truth import Truth, annotating, certain, evaluate, reached, relevant, settle

if TYPE_CHECKING:
    from .engine import Engine, Goal

Clause = tuple[int, frozenset[int]]  # a node, and those of which one has to hold for its sake


class State(NamedTuple):
    """What the members so far came to.

    Attributes:
        seen: by `key_order`, the first name that may still come, or the set of names seen as bits.
        failed: nodes that do not hold any more.
        clauses: open ones; each needs one of its nodes to hold at the end, or its owner fails.
        members: their number, as far as it matters.
        used: keys taken from each finite class of unnamed keys.
    """

    seen: int
    failed: frozenset[int]
    clauses: frozenset[Clause]
    members: int
    used: Ids


class Effect(NamedTuple):
    """What a member of some class does to a state, for the values with one of these vectors."""

    failed: frozenset[int]
    clauses: frozenset[Clause]
    vectors: frozenset[int]


class ObjectStates:
    """The states of objects under two sets of schemas: those that have to hold, and those that are observed."""

    def __init__(self, engine: Engine, must: Ids, may: Ids) -> None:
        nodes = engine.nodes
        self.engine, self.must, self.may = engine, must, may
        self.closure = nodes.closure((*must, *may))
        self._failing = frozenset(n for n in self.closure if not nodes[n].types & OBJECT)
        self.base, false = settle(nodes, self.closure, must, self._failing)
        # Whether a node holds then matters to members, however the formulas come out.
        self._annotated = any(nodes[n].leftover not in (None, ALWAYS) for n in self.closure)
        self._watched = self._watch(false)
        self.possible = not self.base & false
        self.classes = engine.keys.of(nodes.preorder((*must, *may)), self.base) if self.possible else []
        self.names = sum(c.name is not None for c in self.classes)
        self._any_order = engine.any_order
        self._cap = max((_counted_to(nodes[n]) for n in self.closure), default=0)
        self._bounded = [n for n in self.closure if _counted_to(nodes[n])]
        self._checks = {n: is_constant(nodes[n]) for n in self.closure if nodes[n].values is not None}
        self._needers = [self._who_needs(c.name) for c in self.classes]
        self._missing = self._missing_names()
        self.possible = self.possible and not self._missing & self.base
        self._children = [self._child(c) for c in self.classes]
        self._effects: dict[int, tuple[int, list[Effect]]] = {}
        self._finals: dict[State, int | None] = {}

    def _watch(self, false: frozenset[int]) -> frozenset[int]:
        """The nodes that may or may not hold, and make a difference; evaluating members is one."""
        nodes = self.engine.nodes
        if self._annotated:
            return frozenset(self.closure) - self.base - false
        return relevant(nodes, (*self.must, *self.may), false) - self.base

    def _who_needs(self, name: str | None) -> frozenset[int]:
        if name is None:
            return frozenset()
        return frozenset(n for n in self.base | self._watched if name in self.engine.nodes[n].required)

    def _missing_names(self) -> frozenset[int]:
        """The nodes that require a name which no class has, because no key may be so: they fail."""
        there = {c.name for c in self.classes}
        nodes = self.engine.nodes
        return frozenset(n for n in self.base | self._watched if any(r not in there for r in nodes[n].required))

    # ------------------------------------------------------------------ members

    def _child(self, key: KeyClass) -> tuple[Ids, Ids, list[tuple[int, int, frozenset[int]]]]:
        """What applies to a member: all that has to hold, all that is observed, and the clauses of `unevaluated`."""
        nodes = self.engine.nodes
        must = {sub for n, subs in key.applied.items() if n in self.base for sub in subs}
        may = {sub for n, subs in key.applied.items() if n in self._watched for sub in subs}
        leftovers = []
        for n in self.base | self._watched:
            node = nodes[n]
            if node.leftover is None or node.leftover == ALWAYS or n in key.applied:
                continue
            if certain(nodes, (n,)) & key.covered - {n}:
                continue
            clause = frozenset(annotating(nodes, n) & key.covered - {n})
            if not clause and n in self.base:
                must.add(node.leftover)
            else:
                may.add(node.leftover)
                leftovers.append((n, node.leftover, clause))
        return unique_ids(must), unique_ids(may - must - {NEVER}), leftovers

    def child(self, key: int) -> tuple[Ids, Ids]:
        """The schemas that have to hold for a member of a class, and those that are observed."""
        must, may, _ = self._children[key]
        return must, may

    def effects(self, key: int) -> list[Effect]:
        """The distinct effects of a member, by the vectors that its values can have now."""
        must, may, leftovers = self._children[key]
        vectors = self.engine.reach(must, may)
        known = self._effects.get(key)
        if known is not None and known[0] == len(vectors):  # they only ever grow
            return known[1]
        found: dict[tuple[frozenset[int], frozenset[Clause]], set[int]] = {}
        place = {sub: n for n, sub in enumerate(may)}
        cls = self.classes[key]

        def holds(sub: int, vector: int) -> bool:
            return sub == ALWAYS or sub in must or (sub in place and bool(vector >> place[sub] & 1))

        for vector in sorted(vectors):
            failed = {
                n for n, subs in cls.applied.items()
                if n in self._watched and not all(holds(s, vector) for s in subs)
            }  # fmt: skip
            failed |= cls.wrong & self._watched
            clauses = set()
            for n, sub, clause in leftovers:
                if not holds(sub, vector):
                    if clause:
                        clauses.add((n, clause))
                    else:
                        failed.add(n)
            found.setdefault((frozenset(failed), frozenset(clauses)), set()).add(vector)
        out = [Effect(f, c, frozenset(v)) for (f, c), v in found.items()]
        self._effects[key] = (len(vectors), out)
        return out

    # ------------------------------------------------------------------ states

    def start(self) -> State:
        """The state of an empty object."""
        finite = sum(c.name is None and c.size < MANY for c in self.classes)
        return State(0, self._missing, frozenset(), 0, (0,) * finite)

    def _absent(self, key: int, state: State) -> State | None:
        """The state if a name does not come; None where it has to."""
        needers = self._needers[key]
        if needers & self.base:
            return None
        return state if needers <= state.failed else self._fail(state, needers)

    def _fail(self, state: State, failed: frozenset[int]) -> State:
        now = state.failed | failed
        return state._replace(failed=now, clauses=frozenset(c for c in state.clauses if c[0] not in now))

    def _present(self, key: int, state: State, effect: Effect) -> State:
        failed, clauses = state.failed, state.clauses
        if not effect.failed <= failed:
            failed |= effect.failed
        if not effect.clauses <= clauses or (clauses and failed is not state.failed):
            clauses = absorb(c for c in clauses | effect.clauses if c[0] not in failed)
        used = state.used
        at = self._finite(key)
        if at >= 0 and used[at] < self.classes[key].size:
            used = (*used[:at], used[at] + 1, *used[at + 1 :])
        return State(state.seen, failed, clauses, min(state.members + 1, self._cap), used)

    def _finite(self, key: int) -> int:
        if self.classes[key].name is not None or self.classes[key].size >= MANY:
            return -1
        return sum(c.name is None and c.size < MANY for c in self.classes[:key])

    def _exhausted(self, key: int, state: State) -> bool:
        at = self._finite(key)
        return at >= 0 and state.used[at] >= self.classes[key].size

    def _is_seen(self, key: int, state: State) -> bool:
        return bool(state.seen >> key & 1) if self._any_order else key < state.seen

    def final(self, state: State) -> int | None:
        """The vector of an object that ends in a state; None where something that has to hold does not."""
        for key in range(self.names):
            if self._needers[key] and not self._is_seen(key, state):
                absent = self._absent(key, state)
                if absent is None:
                    return None
                state = absent
        return self._final(state)

    def _final(self, state: State) -> int | None:
        state = state._replace(seen=0, used=())
        if state not in self._finals:
            self._finals[state] = self._judge(state)
        return self._finals[state]

    def _judge(self, state: State) -> int | None:
        nodes = self.engine.nodes
        failing = self._failing | state.failed
        if self._bounded:
            failing |= {n for n in self._bounded if not _fits_count(nodes[n], state.members)}
        checks = self._checks
        if state.clauses:
            checks = checks | {n: self._clause_check(n, state.clauses) for n, _ in state.clauses}
        truth = evaluate(nodes, self.closure, failing, checks)
        if not all(truth[n] for n in self.must):
            return None
        return sum(1 << n for n, number in enumerate(self.may) if truth[number])

    def _clause_check(self, number: int, clauses: frozenset[Clause]) -> Callable[[Truth], bool]:
        own = [clause for n, clause in clauses if n == number]

        listed = self._checks.get(number)

        def check(truth: Truth) -> bool:
            annotated = set(reached(self.engine.nodes, number, truth))
            return all(clause & annotated for clause in own) and (listed is None or listed(truth))

        return check


def is_constant(node: Node) -> Callable[[Truth], bool]:
    """For a node with `enum` or `const`: whether one of its containers holds."""
    return lambda truth: any(truth[c] for c in node.constants)


def _counted_to(node: Node) -> int:
    """The least count of members beyond which more make no difference to a node."""
    return max(node.min_members, 0 if node.max_members is None else node.max_members + 1)


def _fits_count(node: Node, count: int) -> bool:
    return count >= node.min_members and (node.max_members is None or count <= node.max_members)


def fits(vector: int | None, goal: Goal) -> bool:
    """Whether a vector is one that the goal asks for."""
    return vector is not None and (goal is None or vector in goal)


def absorb(clauses: Iterable[Clause]) -> frozenset[Clause]:
    """Clauses without those that others of the same node imply."""
    kept = set(clauses)
    return frozenset(c for c in kept if not any(o[0] == c[0] and o[1] < c[1] for o in kept))
