"""Languages of byte strings as expressions, recognised by derivatives; recursion is expanded on demand.

The derivative of a language by a byte is what may follow that byte (Brzozowski, "Derivatives of Regular Expressions",
JACM 11(4), 1964). A text belongs to a language iff the derivative by all its bytes is nullable; a text can be
continued to a member iff that derivative is not empty. Both questions are answered from the shape of the expression,
because the constructors keep one rule:

    every node but `And` and `Not` either is `EMPTY` itself or denotes a non-empty language,

so unproductive alternatives vanish when they are built. Emptiness of `And` and `Not` is decided by exploring their
derivatives over classes of bytes (Owens, Reppy and Turon, "Regular-expression derivatives re-examined", JFP 19(2),
2009); they may stand over regular parts only. `Lazy` and `Member` stand for expressions that are made when first
needed; their maker promises that they are not empty and that `Lazy` is not nullable.

Nodes are interned: equal expressions are the same object, so that derivatives are computed once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar
from weakref import WeakValueDictionary

ALL_BYTES = (1 << 256) - 1


class Node:
    """An expression. `nullable`: the empty text belongs to it; `regular`: no `Lazy` or `Member` inside."""

    __slots__ = ("__weakref__", "_classes", "_empty", "_steps", "nullable", "regular")
    _interned: ClassVar[WeakValueDictionary[tuple[object, ...], Node]] = WeakValueDictionary()

    def __init__(self, nullable: bool, regular: bool) -> None:
        self.nullable = nullable
        self.regular = regular
        self._steps: dict[int, Node] = {}
        self._empty: bool | None = None
        self._classes: frozenset[int] | None = None

    def step(self, byte: int) -> Node:
        """The derivative by a byte, memoised; an empty `And` or `Not` may come back unpruned (`derive` prunes)."""
        after = self._steps.get(byte)
        if after is None:
            after = self._steps[byte] = self._step(byte)
        return after

    def _step(self, byte: int) -> Node:
        raise NotImplementedError

    def classes(self) -> frozenset[int]:
        """A partition of the bytes, as bit sets, such that the derivative is the same within each part."""
        if self._classes is None:
            self._classes = self._partition()
        return self._classes

    def _partition(self) -> frozenset[int]:
        raise NotImplementedError


class _Empty(Node):
    """No text."""

    __slots__ = ()

    def _step(self, byte: int) -> Node:
        return self

    def _partition(self) -> frozenset[int]:
        return frozenset((ALL_BYTES,))


class _Epsilon(Node):
    """The empty text alone."""

    __slots__ = ()

    def _step(self, byte: int) -> Node:
        return EMPTY

    def _partition(self) -> frozenset[int]:
        return frozenset((ALL_BYTES,))


class ByteSet(Node):
    """One byte out of a set, given as bits of an integer."""

    __slots__ = ("bits",)

    def __init__(self, bits: int) -> None:
        super().__init__(False, True)
        self.bits = bits

    def _step(self, byte: int) -> Node:
        return EPSILON if self.bits >> byte & 1 else EMPTY

    def _partition(self) -> frozenset[int]:
        return frozenset(filter(None, (self.bits, ALL_BYTES & ~self.bits)))


class Cat(Node):
    """`first`, which is no `Cat`, then `rest`."""

    __slots__ = ("first", "rest")

    def __init__(self, first: Node, rest: Node) -> None:
        super().__init__(first.nullable and rest.nullable, first.regular and rest.regular)
        self.first, self.rest = first, rest

    def _step(self, byte: int) -> Node:
        after = cat(self.first.step(byte), self.rest)
        return alt(after, self.rest.step(byte)) if self.first.nullable else after

    def _partition(self) -> frozenset[int]:
        return meet(self.first.classes(), self.rest.classes()) if self.first.nullable else self.first.classes()


class Alt(Node):
    """Any of two or more parts, none of which is an `Alt`; at most one is a `ByteSet`."""

    __slots__ = ("parts",)

    def __init__(self, parts: frozenset[Node]) -> None:
        super().__init__(any(p.nullable for p in parts), all(p.regular for p in parts))
        self.parts = parts

    def _step(self, byte: int) -> Node:
        return alt(*(p.step(byte) for p in self.parts))

    def _partition(self) -> frozenset[int]:
        return meet(*(p.classes() for p in self.parts))


class Repeat(Node):
    """`body` between `low` and `high` times; no bound where `high` is None."""

    __slots__ = ("body", "high", "low")

    def __init__(self, body: Node, low: int, high: int | None) -> None:
        super().__init__(low == 0 or body.nullable, body.regular)
        self.body, self.low, self.high = body, low, high

    def _step(self, byte: int) -> Node:
        # Right for a nullable body too: a factor that takes nothing may always be moved behind those that take
        # something.
        left = repeat(self.body, max(self.low - 1, 0), None if self.high is None else self.high - 1)
        return cat(self.body.step(byte), left)

    def _partition(self) -> frozenset[int]:
        return self.body.classes()


class And(Node):
    """Texts that belong to all of two or more regular parts."""

    __slots__ = ("parts",)

    def __init__(self, parts: frozenset[Node]) -> None:
        assert all(p.regular for p in parts)
        super().__init__(all(p.nullable for p in parts), True)
        self.parts = parts

    def _step(self, byte: int) -> Node:
        return intersect(*(p.step(byte) for p in self.parts))

    def _partition(self) -> frozenset[int]:
        return meet(*(p.classes() for p in self.parts))


class Not(Node):
    """All byte strings that do not belong to a regular `body`."""

    __slots__ = ("body",)

    def __init__(self, body: Node) -> None:
        assert body.regular
        super().__init__(not body.nullable, True)
        self.body = body

    def _step(self, byte: int) -> Node:
        return complement(self.body.step(byte))

    def _partition(self) -> frozenset[int]:
        return self.body.classes()


class Lazy(Node):
    """What `make()` returns: a non-empty language without the empty text. Equal only to itself; the maker keeps it."""

    __slots__ = ("_made", "make", "name")

    def __init__(self, make: Callable[[], Node], name: object = None) -> None:
        super().__init__(False, False)
        self.make = make
        self.name = name
        self._made: Node | None = None

    def expand(self) -> Node:
        """The language it stands for."""
        if self._made is None:
            self._made = self.make()
        return self._made

    def _step(self, byte: int) -> Node:
        return self.expand().step(byte)

    def _partition(self) -> frozenset[int]:
        return self.expand().classes()


class Member(Node):
    """A key, then what depends on which key it was: the texts k·w with k in `keys` and w in `after(k)`.

    `keys` is regular and no member is a prefix of another; `text` is what was read of the key. `after(None)` stands
    for a key that differs from all others: what follows it when it need not be remembered (spelling.py says what that
    is good for).
    """

    __slots__ = ("after", "keys", "text")

    def __init__(self, keys: Node, text: bytes, after: Callable[[bytes | None], Node]) -> None:
        super().__init__(False, False)
        self.keys, self.text, self.after = keys, text, after

    def _step(self, byte: int) -> Node:
        return member(self.keys.step(byte), self.text + bytes((byte,)), self.after)

    def _partition(self) -> frozenset[int]:
        return self.keys.classes()


def _intern(kind: Callable[..., Node], *args: object) -> Node:
    key = (kind, *args)
    node = Node._interned.get(key)
    if node is None:
        node = Node._interned[key] = kind(*args)
    return node


EMPTY: Node = _Empty(False, True)
EPSILON: Node = _Epsilon(True, True)


def byte_set(bits: int) -> Node:
    """One of the bytes whose bits are set."""
    return _intern(ByteSet, bits) if bits else EMPTY


def byte_range(low: int, high: int) -> Node:
    """One byte from `low` to `high`, both included."""
    return byte_set(((1 << (high - low + 1)) - 1) << low if low <= high else 0)


def one_byte_of(data: bytes) -> Node:
    """One of the given bytes."""
    return byte_set(sum(1 << b for b in set(data)))


def literal(data: bytes) -> Node:
    """Exactly these bytes."""
    return cat(*(byte_range(b, b) for b in data))


def cat(*parts: Node) -> Node:
    """The parts one after the other, nested to the right."""
    whole = EPSILON
    for part in reversed(parts):
        if is_empty(part) or whole is EMPTY:
            return EMPTY
        stack = []
        while isinstance(part, Cat):
            stack.append(part.first)
            part = part.rest
        for first in (part, *reversed(stack)):
            whole = whole if first is EPSILON else first if whole is EPSILON else _intern(Cat, first, whole)
    return whole


def alt(*parts: Node) -> Node:
    """Any of the parts, flat, without duplicates and without empty ones."""
    bits = 0
    flat: set[Node] = set()
    for part in parts:
        for leaf in part.parts if isinstance(part, Alt) else (part,):
            if isinstance(leaf, ByteSet):
                bits |= leaf.bits
            elif not is_empty(leaf):
                flat.add(leaf)
    if bits:
        flat.add(byte_set(bits))
    if len(flat) < 2:
        return flat.pop() if flat else EMPTY
    return _intern(Alt, frozenset(flat))


def repeat(body: Node, low: int, high: int | None) -> Node:
    """`body` between `low` and `high` times; the count stays a number."""
    if high is not None and high < low:
        return EMPTY
    if is_empty(body):
        return EPSILON if low == 0 else EMPTY
    if high == 0 or body is EPSILON:
        return EPSILON
    return body if (low, high) == (1, 1) else _intern(Repeat, body, low, high)


def optional(body: Node) -> Node:
    """`body` or nothing."""
    return alt(EPSILON, body)


def intersect(*parts: Node) -> Node:
    """Texts of all parts. Not pruned: `is_empty` tells."""
    flat: set[Node] = set()
    for part in parts:
        flat.update(part.parts if isinstance(part, And) else (part,))
    if EMPTY in flat:
        return EMPTY
    return flat.pop() if len(flat) == 1 else _intern(And, frozenset(flat))


def complement(body: Node) -> Node:
    """All other byte strings. Not pruned: `is_empty` tells."""
    return body.body if isinstance(body, Not) else _intern(Not, body)


def member(keys: Node, text: bytes, after: Callable[[bytes | None], Node]) -> Node:
    """See `Member`; at the key's last byte it becomes what follows that key."""
    if is_empty(keys):
        return EMPTY
    return after(text) if keys.nullable else _intern(Member, keys, text, after)


def meet(*partitions: frozenset[int]) -> frozenset[int]:
    """The coarsest partition finer than all the given ones."""
    parts = frozenset((ALL_BYTES,))
    for other in partitions:
        parts = frozenset(p & q for p in parts for q in other if p & q)
    return parts


def is_empty(node: Node) -> bool:
    """Whether no text belongs to the node; exact."""
    if not isinstance(node, And | Not):
        return node is EMPTY
    if node._empty is None:
        _explore(node)
        assert node._empty is not None
    return node._empty


def _explore(start: Node) -> None:
    """Breadth-first search for a non-empty derivative of an `And` or `Not`; they have finitely many."""
    seen = {start}
    queue = deque(seen)
    while queue:
        node = queue.popleft()
        if node.nullable or node._empty is False or (node is not EMPTY and not isinstance(node, And | Not)):
            start._empty = False
            return
        if node._empty is None:  # else known to be empty
            for part in node.classes():
                after = node.step((part & -part).bit_length() - 1)
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
    for node in seen:
        node._empty = True


def derive(node: Node, data: bytes) -> Node:
    """What may follow `data`; `EMPTY` iff nothing does."""
    for byte in data:
        node = node.step(byte)
        if is_empty(node):
            return EMPTY
    return node


def first_bytes(node: Node) -> list[int]:
    """The bytes that some text of the node begins with, sorted."""
    live = 0
    for part in node.classes():
        if not is_empty(node.step((part & -part).bit_length() - 1)):
            live |= part
    return [b for b in range(256) if live >> b & 1]


def contains(node: Node, data: bytes) -> bool:
    """Whether the text belongs to the node."""
    return derive(node, data).nullable
