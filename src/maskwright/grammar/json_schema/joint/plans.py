"""Ways to the end of an object: which members can still lead to one that fits, and the shortest such way.

Members commute, so all completions are found by one pass over the names in a fixed order, absent or present with one
of the effects that their values can have, and then any number of unnamed members.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from maskwright.errors import LimitError

from ..model import ALWAYS
from .decided import essential, known
from .nodes import Ids
from .objects import ObjectStates, State, fits

if TYPE_CHECKING:
    from .engine import Engine, Goal

MOST_STATES = 4096
COUNTING = -1  # stands for any of the names that matter by their number alone


class Step(NamedTuple):
    """A member that may come: its class, the values it may have, and the state after it."""

    key: int
    vectors: frozenset[int]
    after: State


class ObjectFrame(ObjectStates):
    """The objects under two sets of schemas, with what can follow in each state."""

    def __init__(self, engine: Engine, must: Ids, may: Ids) -> None:
        super().__init__(engine, must, may)
        inert = [key for key in range(self.names) if self._is_inert(key)]
        # Names that matter by their number alone. In a fixed order it would not do to know how many are left.
        self._counting = inert if self._cap and self._any_order else []
        passive = set(inert) if self._any_order or not self._cap else set()
        self._active = [key for key in range(self.names) if key not in passive]
        self._closed = self._closed_at()
        self._essential: dict[tuple[int, frozenset[int]], frozenset[int] | None] = {}
        self._live: dict[tuple[int, State, Goal], int | None] = {}
        self._ends: dict[tuple[State, Goal], tuple[tuple[int, int], ...] | None] = {}

    def _is_inert(self, key: int) -> bool:
        """Whether it plainly makes no difference, but for the number of members, if a name comes or not."""
        _, may, leftovers = self._children[key]
        cls = self.classes[key]
        watched = any(n in self._watched and subs != (ALWAYS,) for n, subs in cls.applied.items())
        return not (watched or may or leftovers or cls.wrong & self._watched or self._needers[key])

    def _planned(self, state: State) -> State:
        """A state by what matters to plans: which of the active names were seen, how many counting ones are left."""
        if not self._any_order:
            return state._replace(seen=bisect_left(self._active, state.seen))
        seen = sum(1 << n for n, key in enumerate(self._active) if state.seen >> key & 1)
        if not self._counting:
            return state._replace(seen=seen)
        missing, left = self._cap - state.members, 0
        for _ in zip(range(missing), self._unseen(state), strict=False):
            left += 1
        return state._replace(seen=seen, used=(*state.used, left))

    def _unseen(self, state: State) -> Iterator[int]:
        """The counting names that may still come."""
        return (k for k in self._counting if not state.seen >> k & 1 and self.engine.reach(*self.child(k)))

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
        return (
            frozenset({n for n, subs in cls.applied.items() if subs != (ALWAYS,)} | cls.wrong | leftovers)
            | (self._needers[key])
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

    # ------------------------------------------------------------------ what can follow

    def vectors(self) -> set[int]:
        """The vectors of all objects, by what is known of their members so far."""
        self._live.clear()
        self._ends.clear()
        if not self.possible:
            return set()
        if not self.may:
            return {0} if self.is_live(self.start(), None) else set()
        start = self._reduced(0, self._planned(self.start()))
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
            for _, _, after in self._more(state):
                if after not in seen:
                    seen.add(after)
                    stack.append(after)
                    self._check(seen)
        return seen

    def _more(self, state: State) -> Iterator[tuple[int, int, State]]:
        """The states after one more unnamed or counting member, with its class and effect."""
        for key in range(self.names, len(self.classes)):
            if not self._exhausted(key, state):
                for n, effect in enumerate(self.effects(key)):
                    yield key, n, self._present(key, state, effect)
        if self._counting and state.used[-1]:
            used = (*state.used[:-1], state.used[-1] - 1)
            yield COUNTING, 0, state._replace(members=min(state.members + 1, self._cap), used=used)

    def _check(self, states: set[State]) -> None:
        if len(states) > MOST_STATES and not self.engine.is_lowering:
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
        plan = self._choices_made(state, goal) if self._any_order else {}
        return [
            Step(key, frozenset(vectors), after)
            for (key, after), vectors in found.items()
            if self._keeps(plan, key, state, after) or self.is_live(after, goal)
        ]

    def _choices_made(self, state: State, goal: Goal) -> dict[int, int]:
        """By active name, what a plan from a live state chooses; empty where there is none."""
        now = self._reduced(0, self._planned(state))
        if now is None or self._plan(now, goal) is None:
            return {}
        made: dict[int, int] = {}
        for place, key in enumerate(self._active):
            choice = self._live[place, now, goal]
            assert choice is not None
            made[key] = choice
            now = next(after for n, after in self._choices(place, now) if n == choice)
        return made

    def _keeps(self, plan: dict[int, int], key: int, state: State, after: State) -> bool:
        """Whether a plan still leads to its goal after a member that it does without and that makes no difference."""
        return (
            plan.get(key) == 0
            and not self._needers[key]
            and (after.failed, after.clauses, after.members)
            == (
                state.failed,
                state.clauses,
                state.members,
            )
        )

    def _moved(self, key: int, state: State) -> State:
        if not self._any_order:
            return state._replace(seen=min(key + 1, self.names))
        return state._replace(seen=state.seen | 1 << key) if key < self.names else state

    def witness(self, state: State, goal: Goal, steps: list[Step]) -> int:
        """Which of the steps begins a shortest plan to the goal."""
        key, effect = self._first_member(state, goal)
        if key == COUNTING:
            key, effect = next(self._unseen(state)), 0
        vectors = self.effects(key)[effect].vectors
        return next(n for n, step in enumerate(steps) if step.key == key and vectors <= step.vectors)

    def _first_member(self, state: State, goal: Goal) -> tuple[int, int]:
        now = self._reduced(0, self._planned(state))
        assert now is not None
        self._plan(now, goal)
        for place, key in enumerate(self._active):
            choice = self._live[place, now, goal]
            assert choice is not None
            if choice > 0:
                return key, choice - 1
            now = next(after for n, after in self._choices(place, now) if n == 0)
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
                yield choice, self._without_past(place + 1, reduced)

    def _without_past(self, place: int, state: State) -> State:
        """A plan's state without the names that it is past, so that plans meet."""
        if not self._any_order or not state.seen:
            return state
        return state._replace(seen=state.seen >> place << place)

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
            for key, n, after in self._more(state):
                if after not in seen:
                    seen.add(after)
                    queue.append((after, (*way, (key, n))))
            self._check(seen)
        return None
