"""The regular intermediate representation: what every regular front end lowers to and the core consumes.

A node denotes a set of strings of code points (surrogates excluded: they have no UTF-8). Operators are those of
extended regular expressions (Brzozowski, "Derivatives of Regular Expressions", JACM 11(4), 1964), with counted repeats
kept symbolic.

Nodes are immutable. Hash, nullability and size are computed once from the children, comparison keeps its own stack, and
pickling goes through the flat program, so that no operation recurses: a pattern nested 50,000 deep is as safe as a flat
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]

MAX_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
# The core counts by moduli up to this.
MAX_MODULUS = (1 << 63) - 1
# Nested operators are flattened only below this width: copying wide ones at every level would be quadratic.
_FLATTEN_WIDTH = 32


class Ir:
    """Base of the nodes. `nullable`: the empty string belongs to the language; `size`: nodes of the term as a tree."""

    __slots__ = ("_hash", "nullable", "size")
    _hash: int
    nullable: bool
    size: int

    @property
    def children(self) -> tuple[Ir, ...]:
        """The operands, in order."""
        return ()

    @property
    def label(self) -> object:
        """What the node has beside its operands."""
        return None

    def _seal(self, key: object, nullable: bool, size: int) -> None:
        object.__setattr__(self, "_hash", hash((type(self).__name__, key)))
        object.__setattr__(self, "nullable", nullable)
        object.__setattr__(self, "size", size)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Ir):
            return NotImplemented
        if self._hash != other._hash:
            return False
        stack: list[tuple[Ir, Ir]] = [(self, other)]
        while stack:  # shared parts are not looked into
            left, right = stack.pop()
            if left is right:
                continue
            if type(left) is not type(right) or left._hash != right._hash or left.size != right.size:
                return False
            if left.label != right.label or len(left.children) != len(right.children):
                return False
            stack.extend(zip(left.children, right.children, strict=True))
        return True

    def __reduce__(self) -> tuple[Callable[[bytes], Ir], tuple[bytes]]:
        from maskwright.grammar.ir_program import from_bytes, to_program

        return from_bytes, (to_program(self).tobytes(),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.size} nodes, {abs(self._hash) % 16**8:08x}>"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Chars(Ir):
    """One code point out of `ranges`: inclusive, sorted, merged, without surrogates (`chars` makes any ranges so)."""

    ranges: Ranges

    def __post_init__(self) -> None:
        self._seal(self.ranges, False, 1)

    @property
    def label(self) -> object:
        """What the node has beside its operands."""
        return self.ranges


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Cat(Ir):
    """The parts one after the other; `EPSILON` is `Cat(())`."""

    parts: tuple[Ir, ...]

    def __post_init__(self) -> None:
        self._seal(self.parts, all(p.nullable for p in self.parts), 1 + sum(p.size for p in self.parts))

    @property
    def children(self) -> tuple[Ir, ...]:
        """The operands, in order."""
        return self.parts


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Alt(Ir):
    """Any of the parts; `EMPTY` is `Alt(())`."""

    parts: tuple[Ir, ...]

    def __post_init__(self) -> None:
        self._seal(self.parts, any(p.nullable for p in self.parts), 1 + sum(p.size for p in self.parts))

    @property
    def children(self) -> tuple[Ir, ...]:
        """The operands, in order."""
        return self.parts


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Repeat(Ir):
    """`body` between `min` and `max` times; `max` None has no bound."""

    body: Ir
    min: int
    max: int | None

    def __post_init__(self) -> None:
        self._seal((self.body, self.min, self.max), self.min == 0 or self.body.nullable, 1 + self.body.size)

    @property
    def label(self) -> object:
        """What the node has beside its operands."""
        return self.min, self.max

    @property
    def children(self) -> tuple[Ir, ...]:
        """The operands, in order."""
        return (self.body,)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class And(Ir):
    """Strings that belong to every part."""

    parts: tuple[Ir, ...]

    def __post_init__(self) -> None:
        self._seal(self.parts, all(p.nullable for p in self.parts), 1 + sum(p.size for p in self.parts))

    @property
    def children(self) -> tuple[Ir, ...]:
        """The operands, in order."""
        return self.parts


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Not(Ir):
    """All strings that do not belong to `body`."""

    body: Ir

    def __post_init__(self) -> None:
        self._seal(self.body, not self.body.nullable, 1 + self.body.size)

    @property
    def children(self) -> tuple[Ir, ...]:
        """The operands, in order."""
        return (self.body,)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Multiple(Ir):
    """The rest of a decimal numeral whose value is a multiple of `modulus / 10**scale`, without sign and exponent.

    First `least` to `most` more digits before the point, then perhaps the point and digits, `room` of them at most;
    None has no bound. `remainder` is that of what was read, counted in units of `10**-scale`, by the modulus. `read` is
    the number of digits read behind the point, -1 where the numeral has not come to it (0: one digit must follow).
    """

    modulus: int
    scale: int
    remainder: int
    least: int
    most: int | None
    room: int | None
    read: int

    def __post_init__(self) -> None:
        key = (self.modulus, self.scale, self.remainder, self.least, self.most, self.room, self.read)
        self._seal(key, not self.remainder and not self.least and self.read != 0, 1)

    @property
    def label(self) -> object:
        """What the node has beside its operands."""
        return self.modulus, self.scale, self.remainder, self.least, self.most, self.room, self.read


EMPTY: Ir = Alt(())
EPSILON: Ir = Cat(())
ANY = Chars(((0, SURROGATES[0] - 1), (SURROGATES[1] + 1, MAX_CODE_POINT)))
ALL: Ir = Repeat(ANY, 0, None)
_LETTERS: frozenset[type[Ir]] = frozenset({Chars})


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorts and merges inclusive ranges and cuts surrogates out."""
    merged: list[list[int]] = []
    for lo, hi in sorted(ranges):
        if merged and lo <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], hi)
        elif lo <= hi:
            merged.append([lo, hi])
    out: list[tuple[int, int]] = []
    for lo, hi in merged:
        if hi < SURROGATES[0] or lo > SURROGATES[1]:
            out.append((lo, hi))
            continue
        if lo < SURROGATES[0]:
            out.append((lo, SURROGATES[0] - 1))
        if hi > SURROGATES[1]:
            out.append((SURROGATES[1] + 1, hi))
    return tuple(out)


def negate_ranges(ranges: Ranges) -> Ranges:
    """The other code points, without surrogates."""
    out, at = [], 0
    for lo, hi in ranges:
        out.append((at, lo - 1))
        at = hi + 1
    out.append((at, MAX_CODE_POINT))
    return merge_ranges(r for r in out if r[0] <= r[1])


def intersect_ranges(left: Ranges, right: Ranges) -> Ranges:
    """Code points of both, by a merge of the two sorted lists."""
    out, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        lo, hi = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if lo <= hi:
            out.append((lo, hi))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


def chars(ranges: Iterable[tuple[int, int]]) -> Ir:
    """One code point of any ranges; `EMPTY` where nothing is left without the surrogates."""
    merged = merge_ranges(ranges)
    return Chars(merged) if merged else EMPTY


def one_of(letters: str) -> Ir:
    """One of the characters of a string."""
    return chars((ord(c), ord(c)) for c in letters)


@lru_cache(maxsize=1024)
def _character(letter: str) -> Ir:
    return chars([(ord(letter), ord(letter))])


@lru_cache(maxsize=4096)
def _short_literal(text: str) -> Ir:
    return concat(*map(_character, text))


def literal(text: str) -> Ir:
    """Exactly `text`; `EMPTY` where it holds a lone surrogate, which no output can.

    Short texts are remembered: comparing terms stops at parts that they share.
    """
    return _short_literal(text) if len(text) <= 64 else concat(*map(_character, text))


def concat(*parts: Ir) -> Ir:
    """The parts one after the other, in normal form."""
    if _LETTERS.issuperset(map(type, parts)):
        return Cat(parts) if len(parts) > 1 else parts[0] if parts else EPSILON
    out: list[Ir] = []
    for p in parts:
        if isinstance(p, Alt) and not p.parts:
            return EMPTY
        if isinstance(p, Cat) and len(p.parts) <= _FLATTEN_WIDTH:
            out.extend(p.parts)
        else:
            out.append(p)
    return out[0] if len(out) == 1 else Cat(tuple(out)) if out else EPSILON


def union(*parts: Ir) -> Ir:
    """Any of the parts, in normal form: characters merged, duplicates dropped."""
    parts = tuple(p for p in parts if p is not EMPTY)
    if len(parts) == 1:
        return parts[0]  # itself, not an equal term
    ranges: list[tuple[int, int]] = []
    out: dict[Ir, None] = {}
    for p in parts:
        for q in p.parts if isinstance(p, Alt) and len(p.parts) <= _FLATTEN_WIDTH else (p,):
            if isinstance(q, Chars):
                ranges.extend(q.ranges)
            else:
                out[q] = None
    alternatives = [Chars(merge_ranges(ranges)), *out] if ranges else list(out)
    return alternatives[0] if len(alternatives) == 1 else Alt(tuple(alternatives)) if alternatives else EMPTY


def intersect(*parts: Ir) -> Ir:
    """Strings of every part, in normal form."""
    parts = tuple(p for p in parts if p != ALL)
    if len(parts) == 1:
        return parts[0]  # itself, not an equal term
    ranges: Ranges | None = None
    out: dict[Ir, None] = {}
    for p in parts:
        for q in p.parts if isinstance(p, And) and len(p.parts) <= _FLATTEN_WIDTH else (p,):
            if isinstance(q, Chars):
                ranges = q.ranges if ranges is None else intersect_ranges(ranges, q.ranges)
            else:
                out[q] = None
    if EMPTY in out or ranges == ():
        return EMPTY
    operands = [*out] if ranges is None else [Chars(ranges), *out]
    return operands[0] if len(operands) == 1 else And(tuple(operands)) if operands else ALL


def complement(body: Ir) -> Ir:
    """All other strings."""
    if isinstance(body, Not):
        return body.body
    return ALL if body == EMPTY else EMPTY if body == ALL else Not(body)


def repeat(body: Ir, least: int = 0, most: int | None = None) -> Ir:
    """`body` between `least` and `most` times, in normal form; the count stays symbolic."""
    if most is not None and most < least:
        return EMPTY
    if most == 0 or body == EPSILON or (least == 0 and body == EMPTY):
        return EPSILON
    if body == EMPTY:
        return EMPTY
    if body.nullable:
        least = 0
    if (least, most) == (1, 1) or (most == 1 and body.nullable):
        return body
    if isinstance(body, Repeat) and body.min <= 1 and (body.max is None or most is None):
        # (r*){m,n}, (r+){m,}, (r{0,5})* and their like: every count from the least up is reached.
        return Repeat(body.body, least, None)
    return Repeat(body, least, most)


def optional(body: Ir) -> Ir:
    """`body` or nothing."""
    return body if body.nullable else repeat(body, 0, 1)
