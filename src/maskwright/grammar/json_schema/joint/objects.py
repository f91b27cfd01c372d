"""Objects under several schemas: what has to be remembered of the members so far, and what they can still become.

A state keeps which schemas failed, which `unevaluated` clauses are open, and counts; never which schemas hold, since
that is settled at the closing brace. Members commute, so all completions are found by one pass over the classes of
keys in a fixed order: absent, or present with one of the effects that its values can have.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from maskwright.errors import LimitError

from ..kinds import OBJECT
from ..model import ALWAYS, NEVER
from .decided import essential, known
from .members import MANY, KeyClass
from .nodes import Ids, Node, unique_ids
from .truth import Truth, annotating, certain, evaluate, reached, relevant, settle

if TYPE_CHECKING:
    from .engine import Engine, Goal

MOST_STATES = 4096
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


class Step(NamedTuple):
    """A member that may come: its class, the values it may have, and the state after it."""

    key: int
    vectors: frozenset[int]
    after: State


class ObjectFrame:
    """The objects under two sets of schemas: those that have to hold, and those that are observed."""

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
        self._active = [key for key in range(self.names) if not self._is_inert(key)]
        self._closed = self._closed_at()
        self._essential: dict[tuple[int, frozenset[int]], frozenset[int] | None] = {}
        self._effects: dict[int, tuple[int, list[Effect]]] = {}
        self._live: dict[tuple[int, State, Goal], int | None] = {}
        self._ends: dict[tuple[State, Goal], tuple[tuple[int, int], ...] | None] = {}
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

    def _is_inert(self, key: int) -> bool:
        """Whether it plainly makes no difference if a name comes or not: no plan needs to look at it."""
        _, may, leftovers = self._children[key]
        cls = self.classes[key]
        watched = any(n in self._watched and subs != (ALWAYS,) for n, subs in cls.applied.items())
        return not (watched or may or leftovers or cls.wrong & self._watched or self._needers[key] or self._cap)

    def _planned(self, state: State) -> State:
        """A state by what matters to plans: which of the active names were seen."""
        if self._any_order:
            return state._replace(seen=sum(1 << n for n, key in enumerate(self._active) if state.seen >> key & 1))
        return state._replace(seen=bisect_left(self._active, state.seen))

    def _closed_at(self) -> list[frozenset[int]]:
        """By place among the active names: the nodes that neither it nor what comes after can make fail."""
        others = {n for key in range(self.names, len(self.classes)) for n in self._touched(key)}
        open_ = frozenset(others | set(self._bounded) | set(self._checks))
        out = [open_]
        for key in reversed(self._active):
            out.append(out[-1] | self._touched(key))
        every = frozenset(self.closure)
        return [every - nodes for nodes in reversed(out)]

    def _touched(self, key: int) -> frozenset[int]:
        """The nodes that a member of a class, or its absence, can make fail."""
        cls = self.classes[key]
        leftovers = {n for n, _, _ in self._children[key][2]}
        return frozenset({n for n, subs in cls.applied.items() if subs != (ALWAYS,)} | cls.wrong | leftovers) | (
            self._needers[key]
        )

    def _reduced(self, place: int, state: State) -> State | None:
        """A plan's state without what cannot matter any more; None where something failed that has to hold."""
        if not self._watched:
            return state
        key = (place, state.failed)
        if key not in self._essential:
            nodes = self.engine.nodes
            values = known(nodes, self.closure, state.failed | self._failing, self._closed[place])
            dead = any(values[n] is False for n in self.must)
            kept = frozenset[int]() if dead else essential(nodes, (*self.must, *self.may), values) - self._failing
            self._essential[key] = None if dead else state.failed if self._annotated else kept
        failed = self._essential[key]
        if failed is None or failed == state.failed:
            return None if failed is None else state
        return state._replace(failed=failed, clauses=frozenset(c for c in state.clauses if c[0] not in failed))

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
        for key in self._active:
            if not self._is_seen(key, state):
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

        def check(truth: Truth) -> bool:
            annotated = set(reached(self.engine.nodes, number, truth))
            return all(clause & annotated for clause in own)

        return check

    # ------------------------------------------------------------------ what can follow

    def vectors(self) -> set[int]:
        """The vectors of all objects, by what is known of their members so far."""
        self._live.clear()
        self._ends.clear()
        if not self.possible:
            return set()
        if not self.may:
            return {0} if self.is_live(self.start(), None) else set()
        start = self._reduced(0, self.start())
        states = set() if start is None else {start}
        for place in range(len(self._active)):
            states = {after for state in states for _, after in self._choices(place, state)}
            self._check(states)
        found = {self._final(s) for s in self._close(states)}
        return {v for v in found if v is not None}

    def _close(self, states: set[State]) -> set[State]:
        """All states that any number of unnamed members lead to."""
        seen, stack = set(states), list(states)
        while stack:
            state = stack.pop()
            for after in self._more(state):
                if after not in seen:
                    seen.add(after)
                    stack.append(after)
                    self._check(seen)
        return seen

    def _more(self, state: State) -> Iterator[State]:
        for key in range(self.names, len(self.classes)):
            if not self._exhausted(key, state):
                yield from (self._present(key, state, effect) for effect in self.effects(key))

    def _check(self, states: set[State]) -> None:
        if len(states) > MOST_STATES:
            raise LimitError(
                f"Members that several schemas are about can come to more than {MOST_STATES} different states",
                location=self.engine.where(self.must or self.may),
                hint="Let fewer of anyOf, oneOf, not, if and unevaluatedProperties meet in one place",
            )

    # ------------------------------------------------------------------ ways to the end

    def is_live(self, state: State, goal: Goal) -> bool:
        """Whether some members lead from a state to an object that fits the goal."""
        planned = self._reduced(0, self._planned(state))
        return planned is not None and self._plan(planned, goal) is not None

    def may_end(self, state: State, goal: Goal) -> bool:
        """Whether the object may end in a state."""
        return fits(self.final(state), goal)

    def steps(self, state: State, goal: Goal) -> list[Step]:
        """All members that may come next, and leave a way to the goal."""
        found: dict[tuple[int, State], set[int]] = {}
        passed: State | None = state
        for key in range(len(self.classes)):
            named = key < self.names
            if named and self._is_seen(key, state):
                continue
            if passed is None:
                break
            if not self._exhausted(key, passed):
                for effect in self.effects(key):
                    after = self._moved(key, self._present(key, passed, effect))
                    found.setdefault((key, after), set()).update(effect.vectors)
            if named and not self._any_order:
                passed = self._absent(key, passed)
        return [Step(k, frozenset(v), after) for (k, after), v in found.items() if self.is_live(after, goal)]

    def _moved(self, key: int, state: State) -> State:
        if not self._any_order:
            return state._replace(seen=min(key + 1, self.names))
        return state._replace(seen=state.seen | 1 << key) if key < self.names else state

    def witness(self, state: State, goal: Goal, steps: list[Step]) -> int:
        """Which of the steps begins a shortest plan to the goal."""
        key, effect = self._first_member(state, goal)
        vectors = self.effects(key)[effect].vectors
        return next(n for n, step in enumerate(steps) if step.key == key and vectors <= step.vectors)

    def _first_member(self, state: State, goal: Goal) -> tuple[int, int]:
        now = self._reduced(0, self._planned(state))
        for place, key in enumerate(self._active):
            assert now is not None
            choice = self._live[place, now, goal]
            assert choice is not None
            if choice > 0:
                return key, choice - 1
            now = next(after for n, after in self._choices(place, now) if n == 0)
        assert now is not None
        way = self._ends[now, goal]
        assert way
        return way[0]

    def _plan(self, state: State, goal: Goal) -> int | None:
        """The choice for the first active name on some way to the goal: 0 absent, n+1 with effect n; None: no way.

        Depth first with a stack of its own, since objects may have thousands of names; absent first, so that the ways
        found are short.
        """
        memo = self._live
        stack = [(0, state)]
        while stack:
            place, now = at = stack[-1]
            if (*at, goal) in memo:
                stack.pop()
            elif place == len(self._active):
                memo[(*at, goal)] = None if self._way(now, goal) is None else 0
            else:
                self._choose(place, now, goal, stack)
        return memo[(0, state, goal)]

    def _choose(self, place: int, now: State, goal: Goal, stack: list[tuple[int, State]]) -> None:
        for choice, after in self._choices(place, now):
            if (place + 1, after, goal) not in self._live:
                stack.append((place + 1, after))
                return
            if self._live[place + 1, after, goal] is not None:
                self._live[place, now, goal] = choice
                return
        self._live[place, now, goal] = None

    def _is_past(self, place: int, state: State) -> bool:
        """Whether an active name, by its place among them, was seen or left out, in a state of a plan."""
        return bool(state.seen >> place & 1) if self._any_order else place < state.seen

    def _choices(self, place: int, state: State) -> Iterator[tuple[int, State]]:
        for choice, after in self._all_choices(place, state):
            reduced = None if after is None else self._reduced(place + 1, after)
            if reduced is not None:
                yield choice, reduced

    def _all_choices(self, place: int, state: State) -> Iterator[tuple[int, State | None]]:
        if self._is_past(place, state):
            yield 0, state
            return
        key = self._active[place]
        yield 0, self._absent(key, state)
        for n, effect in enumerate(self.effects(key)):
            yield n + 1, self._present(key, state, effect)

    def _way(self, state: State, goal: Goal) -> tuple[tuple[int, int], ...] | None:
        """The fewest unnamed members (class, effect) after which the goal is met; None where there is no way."""
        if (state, goal) not in self._ends:
            self._ends[state, goal] = self._search(state, goal)
        return self._ends[state, goal]

    def _search(self, start: State, goal: Goal) -> tuple[tuple[int, int], ...] | None:
        seen = {start}
        queue: list[tuple[State, tuple[tuple[int, int], ...]]] = [(start, ())]
        for state, way in queue:
            if fits(self._final(state), goal):
                return way
            for key in range(self.names, len(self.classes)):
                if self._exhausted(key, state):
                    continue
                for n, effect in enumerate(self.effects(key)):
                    after = self._present(key, state, effect)
                    if after not in seen:
                        seen.add(after)
                        queue.append((after, (*way, (key, n))))
            self._check(seen)
        return None


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
