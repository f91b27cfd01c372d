"""Whether a vocabulary can spell some text of a language.

Where every byte is a token, a language can be spelled iff it is not empty. Elsewhere the texts that are sequences of
tokens form a regular language, the automaton of which has the nodes of the token trie as its states, and the question
is whether its intersection with an expression is empty. It is answered as for context-free grammars (Bar-Hillel,
Perles and Shamir, 1961): `ends(node, p)` is the set of states in which some text of `node` can leave the automaton
that was in state p. Recursion makes this a system of equations over the `Lazy` expressions met; its least solution is
iterated from nothing.

One thing is left out there: a `Member` remembers every key that was used, which is no finite system. The equations
forget it (`after(None)`), so they may find a spelling that uses one key twice. A "no" is therefore certain; a "yes"
that rests on such a key is confirmed by a search over token sequences, which the certain "no"s keep narrow. Should
that search run out, `Undecided` is raised.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import count

from maskwright.reference.language import EMPTY, Alt, Cat, Lazy, Member, Node, derive, is_empty
from maskwright.reference.lengths import Lengths

# Bytes that occur in UTF-8 (RFC 3629, section 3): a vocabulary that has all of them as tokens can spell any text.
UTF8_BYTES = frozenset(range(256)) - {0xC0, 0xC1, *range(0xF5, 0x100)}
SEARCH_LIMIT = 3000

State = int  # a node of the trie of the tokens; 0 is the root, where a token begins
_Ends = dict[tuple[Node, State], frozenset[State]]


class Undecided(Exception):
    """The search for a spelling without a repeated key gave up. An oracle may say so; the library never does."""


class Spelling:
    """The token sequences of a vocabulary.

    Args:
        tokens: the tokens that may spell text; empty ones are ignored.
    """

    def __init__(self, tokens: Iterable[bytes]) -> None:
        self.tokens = sorted(set(tokens) - {b""})
        self.is_byte_complete = {bytes((b,)) for b in UTF8_BYTES} <= set(self.tokens)
        self._next: list[dict[int, State]] = [{}]
        self._ends_token = [False]
        for token in self.tokens:
            self._insert(token)
        self._table: dict[tuple[Lazy, State], frozenset[State]] = {}
        self._solved: _Ends = {}
        self._regular_ends: _Ends = {}
        self._forgot_keys = False
        self._lengths = Lengths()
        self._known: dict[Node, bool] = {}

    def _insert(self, token: bytes) -> None:
        at = 0
        for byte in token:
            if byte not in self._next[at]:
                self._next[at][byte] = len(self._next)
                self._next.append({})
                self._ends_token.append(False)
            at = self._next[at][byte]
        self._ends_token[at] = True

    # -- the answer ----------------------------------------------------------------------------------------------------

    def can_finish(self, node: Node) -> bool:
        """Whether some sequence of tokens is a text of `node`."""
        if self.is_byte_complete or node.nullable:
            return not is_empty(node)
        if node not in self._known:
            possible = self._maybe(node)
            self._known[node] = possible and (not self._forgot_keys or node.regular or self._search(node))
        return self._known[node]

    def _search(self, node: Node) -> bool:
        return self.completion(node, SEARCH_LIMIT) is not None

    def completion(self, start: Node, limit: int) -> list[bytes] | None:
        """Some sequence of tokens that is a text of `start`; None where there is none.

        Best first: what leaves the shortest text is looked at before the rest.

        Raises:
            Undecided: `limit` expressions were met without an answer.
        """
        order = count()
        queue: list[tuple[float, int, Node, list[bytes]]] = [(0, next(order), start, [])]
        seen = {start}
        while queue:
            _, _, node, path = heapq.heappop(queue)
            if node.nullable:
                return path
            for token in self.tokens:
                after = derive(node, token)
                if after not in seen and (self.is_byte_complete or self._maybe(after)):
                    seen.add(after)
                    heapq.heappush(queue, (self._lengths.of(after), next(order), after, [*path, token]))
            if len(seen) > limit:
                raise Undecided
        return None

    # -- the equations -------------------------------------------------------------------------------------------------

    def _maybe(self, node: Node) -> bool:
        """Whether the least solution has a spelling of `node`."""
        if (node, 0) not in self._solved:
            self._solve(node)
        return 0 in self._solved[node, 0]

    def _solve(self, node: Node) -> None:
        """Iterate until the equations of all `Lazy` expressions behind a node hold; what was found before stays."""
        changed = True
        while changed:
            size = len(self._table)
            found: _Ends = {}
            self._ends(node, 0, found)
            grown = {
                (lazy, state): ends
                for lazy, state in list(self._table)
                if (lazy, state) not in self._solved
                and (ends := self._ends(lazy.expand(), state, found)) != self._table[lazy, state]
            }
            self._table.update(grown)
            changed = bool(grown) or len(self._table) > size
        self._solved.update(found)
        self._solved.update({(node, state): ends for (node, state), ends in self._table.items()})

    def _ends(self, node: Node, start: State, found: _Ends) -> frozenset[State]:
        """One evaluation of the right side of an equation, with the table as it is."""
        key = (node, start)
        if key in self._solved:
            return self._solved[key]
        if key not in found:
            found[key] = self._evaluate(node, start, found)
        return found[key]

    def _evaluate(self, node: Node, start: State, found: _Ends) -> frozenset[State]:
        if node.regular:
            return self._regular(node, start)
        if isinstance(node, Lazy):
            return self._table.setdefault((node, start), frozenset())
        if isinstance(node, Alt):
            return frozenset().union(*(self._ends(part, start, found) for part in node.parts))
        if isinstance(node, Cat):
            middle = self._ends(node.first, start, found)
            return frozenset().union(*(self._ends(node.rest, state, found) for state in middle))
        assert isinstance(node, Member)  # repeats, And and Not are regular
        self._forgot_keys = True
        rest = node.after(None)
        return frozenset().union(*(self._ends(rest, state, found) for state in self._regular(node.keys, start)))

    def _regular(self, node: Node, start: State) -> frozenset[State]:
        """All pairs (derivative, state of the trie) that can be reached: finite."""
        if (node, start) in self._regular_ends:
            return self._regular_ends[node, start]
        todo: list[tuple[Node, State]] = [(node, start)]
        seen = set(todo)
        while todo:
            at, state = todo.pop()
            for byte, child in self._next[state].items():
                after = derive(at, bytes((byte,)))
                for target in (child, 0) if self._ends_token[child] else (child,):
                    if after is not EMPTY and (after, target) not in seen:
                        seen.add((after, target))
                        todo.append((after, target))
        ends = self._regular_ends[node, start] = frozenset(state for at, state in seen if at.nullable)
        return ends


def shortest(spelling: Spelling, start: Node, limit: int) -> int | None:
    """The least number of tokens that completes a text, by breadth-first search over at most `limit` expressions."""
    level: Sequence[Node] = [start]
    seen = {start}
    for length in count():
        if any(node.nullable for node in level):
            return length
        reached = {derive(node, token) for node in level for token in spelling.tokens} - seen - {EMPTY}
        seen |= reached
        if not reached or len(seen) > limit:
            return None
        level = list(reached)
    return None
