"""Terms of the IR as programs in reverse Polish notation: what the core reads, and what pickles hold."""

from __future__ import annotations

from array import array
from itertools import chain
from typing import Any

from maskwright.grammar.ir import EMPTY, EPSILON, Alt, And, Cat, Chars, Ir, Multiple, Not, Repeat

__all__ = ["from_bytes", "from_program", "to_program"]

OP_EMPTY, OP_EPSILON, OP_CHARS, OP_CAT, OP_ALT, OP_REPEAT, OP_AND, OP_NOT, OP_MULTIPLE = range(9)


def _emit(node: Ir, out: array[int]) -> None:
    if isinstance(node, Chars):
        ranges = node.ranges
        out.extend((OP_CHARS, 1, *ranges[0]) if len(ranges) == 1 else (OP_CHARS, len(ranges), *chain(*ranges)))
    elif isinstance(node, Repeat):
        out.extend((OP_REPEAT, node.min, -1 if node.max is None else node.max))
    elif isinstance(node, Not):
        out.append(OP_NOT)
    elif isinstance(node, Multiple):
        ends = (-1 if end is None else end for end in (node.most, node.room))
        out.extend((OP_MULTIPLE, node.modulus, node.scale, node.remainder, node.least, *ends, node.read))
    elif not node.children and not isinstance(node, And):
        out.append(OP_EMPTY if isinstance(node, Alt) else OP_EPSILON)
    else:
        op = OP_CAT if isinstance(node, Cat) else OP_ALT if isinstance(node, Alt) else OP_AND
        out.extend((op, len(node.children)))


def to_program(node: Ir) -> array[int]:
    """The term in reverse Polish notation, as 64-bit integers, for the core.

    `0` EMPTY | `1` EPSILON | `2` CHARS n lo hi ... (n ranges) | `3` CAT n | `4` ALT n | `5` REPEAT min max (max -1: no
    bound) | `6` AND n | `7` NOT | `8` MULTIPLE modulus scale remainder least most room read (most, room -1: no bound);
    operands stand before their operator. Iterative, in O(size), and quick where parts are shared: these are copied.
    """
    out: array[int] = array("q")
    places: dict[int, tuple[int, int]] = {}
    stack: list[tuple[Ir, int]] = [(node, -1)]  # and where its program begins, once its operands are under way
    while stack:
        top, start = stack.pop()
        children: tuple[Ir, ...] = ()
        if start < 0:
            place = places.get(id(top))
            if place is not None:
                out.extend(out[place[0] : place[1]])
                continue
            start, children = len(out), top.children
        known = 0
        for child in children:
            place = places.get(id(child))
            if place is None:
                break
            out.extend(out[place[0] : place[1]])
            known += 1
        if known < len(children):
            stack.append((top, start))
            stack.extend([(child, -1) for child in reversed(children[known:])])
            continue
        _emit(top, out)
        places[id(top)] = start, len(out)
    return out


def from_program(program: array[int]) -> Ir:
    """The inverse of `to_program`."""
    stack: list[Ir] = []
    at = 0
    while at < len(program):
        op = program[at]
        at += 1
        if op in (OP_EMPTY, OP_EPSILON):
            stack.append(EMPTY if op == OP_EMPTY else EPSILON)
        elif op == OP_CHARS:
            flat = program[at + 1 : at + 1 + 2 * program[at]]
            at += 1 + len(flat)
            stack.append(Chars(tuple(zip(flat[::2], flat[1::2], strict=True))))
        elif op == OP_REPEAT:
            stack.append(Repeat(stack.pop(), program[at], None if program[at + 1] < 0 else program[at + 1]))
            at += 2
        elif op == OP_NOT:
            stack.append(Not(stack.pop()))
        elif op == OP_MULTIPLE:
            modulus, scale, remainder, least, most, room, read = program[at : at + 7]
            at += 7
            bounds = None if most < 0 else most, None if room < 0 else room
            stack.append(Multiple(modulus, scale, remainder, least, *bounds, read))
        else:
            kind: Any = {OP_CAT: Cat, OP_ALT: Alt, OP_AND: And}[op]
            start = len(stack) - program[at]
            at += 1
            parts = tuple(stack[start:])
            del stack[start:]
            stack.append(kind(parts))
    (term,) = stack
    return term


def from_bytes(data: bytes) -> Ir:
    """The term of a program's bytes, as pickles hold it."""
    program: array[int] = array("q")
    program.frombytes(data)
    return from_program(program)
