"""Keys and values of prompts read before, in blocks of a fixed number of tokens.

Blocks form chains: one stands for its own tokens and all before it, so that a prompt finds the longest chain of blocks
that it begins with. Token ids are compared, not only their hash. Rows of caches hold references to the blocks that
their text begins with; blocks that no row holds are dropped, the one used longest ago first, when room is needed.

Source: PagedAttention, Kwon et al., SOSP 2023, for blocks with reference counts; rows here copy what they find into
memory of their own, which a CPU reads faster than scattered blocks.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["Block", "BlockStore", "Holds", "joined_holds", "load_prefixes", "store_prefixes", "with_prefixes"]

T = TypeVar("T")
Key = tuple[int, tuple[int, ...]]  # the block before (0: none), the tokens


@dataclass(slots=True)
class Block:
    """Keys and values of some tokens behind a chain of others.

    Attributes:
        number: unique in its store, from 1 on.
        key: the number of the block before, and the tokens.
        data: what the cache that was read gave.
        references: how many rows, and blocks behind it, need it.
        before: the block before.
    """

    number: int
    key: Key
    data: Any
    before: Block | None
    references: int = 0


@dataclass
class BlockStore:
    """The blocks of one model.

    Args:
        block_size: tokens of a block.
        capacity: the most blocks to keep; blocks in use may exceed it.
    """

    block_size: int = 16
    capacity: int = 128
    _blocks: OrderedDict[Key, Block] = field(default_factory=OrderedDict)
    _made: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def references(self) -> int:
        """References of all rows (those of blocks to the block before them are not counted)."""
        with self._lock:
            blocks = self._blocks.values()
            return sum(block.references for block in blocks) - sum(block.before is not None for block in blocks)

    def match(self, tokens: Sequence[int]) -> list[Block]:
        """The longest chain of blocks that the tokens begin with; each gets a reference."""
        chain: list[Block] = []
        with self._lock:
            for begin in range(0, len(tokens) - self.block_size + 1, self.block_size):
                key = (chain[-1].number if chain else 0, tuple(tokens[begin : begin + self.block_size]))
                block = self._blocks.get(key)
                if block is None:
                    break
                self._blocks.move_to_end(key)
                chain.append(block)
            self.acquire(chain)
        return chain

    def insert(self, tokens: Sequence[int], chain: list[Block], read: Callable[[int, int], Any]) -> list[Block]:
        """Completes a chain of :meth:`match` with blocks for all whole blocks of the tokens.

        Args:
            tokens: of a row.
            chain: what `match` gave.
            read: the keys and values of positions ``begin`` to ``end``.

        Returns:
            The chain, new blocks included; each has a reference.
        """
        size = self.block_size
        with self._lock:
            for begin in range(len(chain) * size, len(tokens) - size + 1, size):
                before = chain[-1] if chain else None
                key = (before.number if before else 0, tuple(tokens[begin : begin + size]))
                block = self._blocks.get(key)
                if block is None:
                    self._made += 1
                    block = Block(self._made, key, read(begin, begin + size), before)
                    self._blocks[key] = block
                    if before is not None:
                        before.references += 1
                self.acquire([block])
                chain.append(block)
            self._evict()
        return chain

    def acquire(self, blocks: Sequence[Block]) -> None:
        """Counts a reference to each block."""
        with self._lock:
            for block in blocks:
                block.references += 1

    def release(self, blocks: Sequence[Block]) -> None:
        """Gives references back."""
        with self._lock:
            for block in blocks:
                block.references -= 1
            self._evict()

    def _evict(self) -> None:
        while len(self._blocks) > self.capacity:
            unused = next((block for block in self._blocks.values() if block.references == 0), None)
            if unused is None:
                return
            del self._blocks[unused.key]
            if unused.before is not None:
                unused.before.references -= 1


class Holds:
    """The references of the rows of a cache; given back when it is gone."""

    def __init__(self, store: BlockStore, rows: list[list[Block]]) -> None:
        self._store = store
        self._rows = rows

    def fork(self, rows: Sequence[int]) -> Holds:
        """References of their own for a cache of these rows."""
        picked = [list(self._rows[row]) for row in rows]
        for blocks in picked:
            self._store.acquire(blocks)
        return Holds(self._store, picked)

    @property
    def store(self) -> BlockStore:
        """Of the blocks."""
        return self._store

    def take_over(self, other: Holds | None, rows: int) -> None:
        """Appends the references of other rows, and leaves their former owner none."""
        self._rows += [[] for _ in range(rows)] if other is None else other._rows
        if other is not None:
            other._rows = []

    def complete(self, tokens: Sequence[Sequence[int]], read: Callable[[int, int, int], Any]) -> None:
        """Makes blocks of what rows hold; ``read`` gives keys and values of a row from one position to another."""
        for row, (held, chain) in enumerate(zip(tokens, self._rows, strict=True)):
            self._store.insert(held, chain, lambda begin, end, row=row: read(row, begin, end))  # type: ignore[misc]

    def truncate(self, lengths: Sequence[int]) -> None:
        """Gives back the blocks that rows do not begin with any more."""
        for row, length in enumerate(lengths):
            whole = length // self._store.block_size
            self._store.release(self._rows[row][whole:])
            del self._rows[row][whole:]

    def __del__(self) -> None:
        for blocks in self._rows:
            self._store.release(blocks)
        self._rows = []


def joined_holds(one: Holds | None, rows: int, other: Holds | None, more: int) -> Holds | None:
    """The references of two caches of so many rows, for the one that has all rows then."""
    if one is None and other is None:
        return None
    if one is None:
        assert other is not None
        one = Holds(other.store, [[] for _ in range(rows)])
    one.take_over(other, more)
    return one


def load_prefixes(store: BlockStore, tokens: Sequence[Sequence[int]], cache: Any) -> list[int]:
    """Fills the empty rows of a cache with what the store knows of the texts that they will hold.

    Args:
        store: of the model of the cache.
        tokens: per row.
        cache: with ``read_block`` and ``load_blocks``.

    Returns:
        How many tokens the rows hold now: never all of them, as the logits after the last one are wanted.
    """
    chains = [store.match(row[:-1]) for row in tokens]
    counts = [len(chain) * store.block_size for chain in chains]
    cache.holds = Holds(store, chains)
    if any(chains):
        known = [row[:count] for row, count in zip(tokens, counts, strict=True)]
        cache.load_blocks([[block.data for block in chain] for chain in chains], known)
    return counts


def store_prefixes(tokens: Sequence[Sequence[int]], cache: Any) -> None:
    """Remembers rows of a cache of :func:`load_prefixes`, as far as they have been read.

    Args:
        tokens: what each row holds.
        cache: read to the end of these tokens at least.
    """
    cache.holds.complete(tokens, cache.read_block)


def with_prefixes(
    store: BlockStore | None, tokens: Sequence[Sequence[int]], cache: Any, run: Callable[[Sequence[Sequence[int]]], T]
) -> T:
    """Runs a forward that only wants the last logits, without what the store knows of empty rows.

    Args:
        store: None for no store.
        tokens: per row.
        cache: with ``read_block`` and ``load_blocks``; rows that hold tokens already are left alone.
        run: the forward, of the tokens that are left.
    """
    if store is None or any(cache.lengths) or not any(len(row) > store.block_size for row in tokens):
        return run(tokens)
    known = load_prefixes(store, tokens, cache)
    try:
        out = run([row[count:] for row, count in zip(tokens, known, strict=True)])
    except BaseException:
        cache.truncate([0] * len(tokens))
        raise
    store_prefixes(tokens, cache)
    return out
