"""Whether a vocabulary can spell some text of a language, and with how many tokens.

Where every byte is a token, a language can be spelled iff it is not empty. Elsewhere the texts that are sequences of
tokens form a regular language, the automaton of which has the nodes of the token trie as its states, and the question
is whether its intersection with an expression is empty. It is answered as for context-free grammars (Bar-Hillel, Perles
and Shamir, 1961): `ends(node, p)` are the states in which some text of `node` can leave the automaton that was in state
p, each with the least number of tokens that are completed on the way. Recursion makes this a system of equations over
the `Lazy` expressions met; its least solution is iterated from nothing.

One thing is left out there: a `Member` remembers every key that was used, which is no finite system. The equations
forget it (`after(None)`), so they may find a spelling that uses one key twice. A "no" is therefore certain; a "yes"
that may rest on such a key is confirmed by a search over token sequences, which the equations lead and keep narrow.
Should that search run out, `Undecided` is raised.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from itertools import count

from maskwright.reference.language import EMPTY, Alt, Cat, Lazy, Member, Node, derive, is_empty

# Bytes that occur in UTF-8 (RFC 3629, section 3): a vocabulary that has all of them as tokens can spell any text.
UTF8_BYTES = frozenset(range(256)) - {0xC0, 0xC1, *range(0xF5, 0x100)}
SEARCH_LIMIT = 3000

State = int  # a node of the trie of the tokens; 0 is the root, where a token begins
Ends = dict[State, int]  # how a text may leave the automaton: the state, and the tokens completed
_Known = dict[tuple[Node, State], Ends]


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
        self._open: dict[tuple[Lazy, State], Ends] = {}  # equations that are not solved yet
        self._solved: _Known = {}
        self._forgot_keys = False
        self._live: dict[Node, bool] = {}
        self._distance: dict[Node, int | None] = {}

    def _insert(self, token: bytes) -> None:
        at = 0
        for byte in token:
            if byte not in self._next[at]:
                self._next[at][byte] = len(self._next)
                self._next.append({})
                self._ends_token.append(False)
            at = self._next[at][byte]
        self._ends_token[at] = True

    # -- the answers ---------------------------------------------------------------------------------------------------

    def can_finish(self, node: Node) -> bool:
        """Whether some sequence of tokens is a text of `node`."""
        if self.is_byte_complete or node.nullable:
            return not is_empty(node)
        if node not in self._live:
            self._live[node] = self.tokens_left(node) is not None
            if self._live[node] and self._forgot_keys and not node.regular:
                self._live[node] = self.completion(node) is not None
        return self._live[node]

    def tokens_left(self, node: Node) -> int | None:
        """The least number of tokens that spell a text of `node`, repeated keys allowed; None where there are none."""
        if node.regular:
            return self._nearest(node)
        if (node, 0) not in self._solved:
            self._solve(node)
        return self._solved[node, 0].get(0)

    def _nearest(self, start: Node) -> int | None:
        """For regular nodes: breadth-first over whole tokens, until a level is as far as the best end known."""
        if start in self._distance:
            return self._distance[start]
        best: int | None = None
        level, seen = [start], {start, EMPTY}
        for length in count():
            ends = [0 if node.nullable else self._distance.get(node) for node in level]
            best = min((length + end for end in ends if end is not None), default=best)
            if not level or (best is not None and best <= length + 1):
                break
            level = [node for node in level if node not in self._distance]
            level = list({derive(node, token) for node in level for token in self.tokens} - seen)
            seen.update(level)
        self._distance[start] = best
        return best

    def completion(self, start: Node, limit: int = SEARCH_LIMIT) -> list[bytes] | None:
        """Some sequence of tokens that is a text of `start`; None where there is none.

        What is found is remembered.

        Raises:
            Undecided: `limit` expressions were met without an answer.
        """
        return self._descend(start) or self._search(start, limit)

    def _descend(self, node: Node) -> list[bytes] | None:
        """Token by token to where the equations promise fewer; None where a repeated key breaks their promise."""
        passed, tokens = [node], list[bytes]()
        while not node.nullable:
            left = self.tokens_left(node)
            if left is None:
                return None
            steps = ((token, derive(node, token)) for token in self.tokens)
            closer = ((t, after) for t, after in steps if after.nullable or self.tokens_left(after) == left - 1)
            token, node = next(closer, (b"", EMPTY))
            tokens.append(token)
            passed.append(node)
        self._live.update(dict.fromkeys(passed, True))
        return tokens

    def _search(self, start: Node, limit: int) -> list[bytes] | None:
        """Best first: what has the fewest tokens left is looked at before the rest."""
        order = count()
        queue: list[tuple[int, int, Node]] = [(0, next(order), start)]
        came: dict[Node, tuple[Node, bytes] | None] = {start: None}
        while queue:
            node = heapq.heappop(queue)[2]
            if node.nullable:
                return self._path(came, node)
            for token in self.tokens:
                after = derive(node, token)
                left = None if after in came or self._live.get(after) is False else self.tokens_left(after)
                if left is not None:
                    came[after] = (node, token)
                    heapq.heappush(queue, (left, next(order), after))
            if len(came) > limit:
                raise Undecided
        self._live.update(dict.fromkeys(came, False))
        return None

    def _path(self, came: dict[Node, tuple[Node, bytes] | None], node: Node) -> list[bytes]:
        tokens: list[bytes] = []
        while (step := came[node]) is not None:
            self._live[node] = True
            node, token = step
            tokens.append(token)
        return tokens[::-1]

    # -- the equations -------------------------------------------------------------------------------------------------

    def _solve(self, node: Node) -> None:
        """Iterate until the equations of all `Lazy` expressions behind a node hold; what was found before stays."""
        changed = True
        while changed:
            size = len(self._open)
            found: _Known = {}
            self._ends(node, 0, found)
            now = {(lazy, state): self._ends(lazy.expand(), state, found) for lazy, state in list(self._open)}
            better = {key: ends for key, ends in now.items() if ends != self._open[key]}
            self._open.update(better)
            changed = bool(better) or len(self._open) > size
        self._solved.update(found)
        self._open.clear()

    def _ends(self, node: Node, start: State, found: _Known) -> Ends:
        """One evaluation of the right side of an equation, with the unknowns as they are."""
        key = (node, start)
        if key in self._solved:
            return self._solved[key]
        if key not in found:
            found[key] = self._evaluate(node, start, found)
        return found[key]

    def _evaluate(self, node: Node, start: State, found: _Known) -> Ends:
        if node.regular:
            ends = self._solved[node, start] = self._regular(node, start)
            return ends
        if isinstance(node, Lazy):
            return self._open.setdefault((node, start), {})
        if isinstance(node, Alt):
            return _least(pair for part in node.parts for pair in self._ends(part, start, found).items())
        if isinstance(node, Cat):
            first, rest = self._ends(node.first, start, found), node.rest
        else:
            assert isinstance(node, Member)  # repeats, And and Not are regular
            self._forgot_keys = True
            first, rest = self._ends(node.keys, start, found), node.after(None)
        return _least(
            (end, tokens + more)
            for middle, tokens in first.items()
            for end, more in self._ends(rest, middle, found).items()
        )

    def _regular(self, node: Node, start: State) -> Ends:
        """Breadth-first over the finitely many pairs (derivative, state of the trie); completing a token costs 1."""
        queue: deque[tuple[Node, State, int]] = deque([(node, start, 0)])
        settled: set[tuple[Node, State]] = set()
        ends: list[tuple[State, int]] = []
        while queue:
            at, state, tokens = queue.popleft()
            if (at, state) in settled:
                continue
            settled.add((at, state))
            if (at, state) in self._solved:
                ends += [(end, tokens + more) for end, more in self._solved[at, state].items()]
                continue
            if at.nullable:
                ends.append((state, tokens))
            for byte, child in self._next[state].items():
                after = at.step(byte)
                if not is_empty(after):
                    queue.appendleft((after, child, tokens))
                    if self._ends_token[child]:
                        queue.append((after, 0, tokens + 1))
        return _least(ends)


def _least(pairs: Iterable[tuple[State, int]]) -> Ends:
    ends: Ends = {}
    for state, tokens in pairs:
        ends[state] = min(tokens, ends.get(state, tokens))
    return ends
