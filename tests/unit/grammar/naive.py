"""Two matchers for terms of the IR.

`matches` is obviously right and slow: it computes all pairs (i, j) such that text[i:j] belongs. `runs` takes
derivatives (Brzozowski 1964), for longer texts.
"""

from __future__ import annotations

from functools import lru_cache

from maskwright.grammar.ir import (
    EMPTY,
    EPSILON,
    Alt,
    And,
    Cat,
    Chars,
    Ir,
    Not,
    Repeat,
    complement,
    concat,
    intersect,
    repeat,
    union,
)

Spans = frozenset[tuple[int, int]]


def compose(left: Spans, right: Spans) -> Spans:
    return frozenset((i, k) for i, j in left for j2, k in right if j == j2)


def power(body: Spans, least: int, most: int | None, identity: Spans) -> Spans:
    # Every further iteration only adds spans once the empty ones are in, so counts beyond the fixpoint change nothing.
    exact, total = identity, frozenset[tuple[int, int]]()
    seen: dict[Spans, int] = {}
    count = 0
    while True:
        if count >= least:
            if exact <= total and count > least and exact in seen:
                return total
            total |= exact
        if count == most or (not exact and count):
            return total
        if exact in seen and count < least:
            # The sequence of powers is periodic: skip whole periods towards the least count.
            period = count - seen[exact]
            count += (least - count) // period * period
            seen = {}
        seen[exact] = count
        exact = compose(exact, body)
        count += 1


def spans(term: Ir, text: str) -> Spans:
    n = len(text)
    identity = frozenset((i, i) for i in range(n + 1))
    every = frozenset((i, j) for i in range(n + 1) for j in range(i, n + 1))
    if isinstance(term, Chars):
        return frozenset((i, i + 1) for i, c in enumerate(text) if any(lo <= ord(c) <= hi for lo, hi in term.ranges))
    if isinstance(term, Repeat):
        return power(spans(term.body, text), term.min, term.max, identity)
    if isinstance(term, Not):
        return every - spans(term.body, text)
    parts = [spans(p, text) for p in term.children]
    if isinstance(term, Cat):
        for p in parts:
            identity = compose(identity, p)
        return identity
    if isinstance(term, And):
        return every.intersection(*parts)
    assert isinstance(term, Alt)
    return frozenset().union(*parts)


def matches(term: Ir, text: str) -> bool:
    """Whether the whole text belongs; texts with a lone surrogate never do."""
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        return False
    return (0, len(text)) in spans(term, text)


@lru_cache(maxsize=100_000)
def derive(term: Ir, code_point: int) -> Ir:
    """The rests of the strings that start with a code point."""
    if isinstance(term, Chars):
        return EPSILON if any(lo <= code_point <= hi for lo, hi in term.ranges) else EMPTY
    if isinstance(term, Repeat):
        least = 0 if term.body.nullable else max(term.min - 1, 0)
        rest = repeat(term.body, least, None if term.max is None else term.max - 1)
        return concat(derive(term.body, code_point), rest)
    if isinstance(term, Not):
        return complement(derive(term.body, code_point))
    if isinstance(term, Cat):
        found = EMPTY
        for at, part in enumerate(term.parts):
            found = union(found, concat(derive(part, code_point), *term.parts[at + 1 :]))
            if not part.nullable:
                break
        return found
    parts = [derive(p, code_point) for p in term.children]
    return intersect(*parts) if isinstance(term, And) else union(*parts)


def runs(term: Ir, text: str) -> bool:
    """Whether the whole text belongs."""
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        return False
    for c in text:
        term = derive(term, ord(c))
    return term.nullable
