"""Whether given values satisfy schemas: for `enum` and `const`, whose members are candidates and no languages."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from maskwright.grammar.ir import Ir
from maskwright.grammar.multiples import is_multiple

from ..evaluate import identity
from ..kinds import type_of
from ..model import ALWAYS
from ..strings import string_automaton
from .nodes import Ids, Node, Nodes
from .truth import Truth, evaluate, reached


class Judge:
    """Evaluates nodes on values. Recursion goes as deep as a value is nested."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._draft = nodes.scan.draft

    def holds(self, number: int, value: Any) -> bool:
        """Whether a value satisfies a node."""
        if number < 0:
            return number == ALWAYS
        closure = self._nodes.closure((number,))
        local = self._local(value)
        checks = {n: lambda truth, n=n: local(n, truth) for n in closure}
        return evaluate(self._nodes, closure, (), checks)[number]

    def _local(self, value: Any) -> Callable[[int, Truth], bool]:
        kind = type_of(value, self._draft)
        if isinstance(value, str):
            fits: Callable[[Node, Any, Truth], bool] = _alone(fits_string)
        elif isinstance(value, dict):
            fits = self._fits_object
        elif isinstance(value, list):
            fits = self._fits_array
        elif isinstance(value, int | Decimal) and not isinstance(value, bool):
            fits = _alone(fits_number)
        else:
            fits = _alone(_fits_word)

        def local(number: int, truth: Truth) -> bool:
            node = self._nodes[number]
            if not node.types & kind:
                return False
            if node.values is not None and not self._is_listed(node, value):
                return False
            return fits(node, value, truth)

        return local

    def _is_listed(self, node: Node, value: Any) -> bool:
        if isinstance(value, dict | list):
            return self._nodes.constant(value) in node.constants
        key = identity(value)
        return any(identity(v) == key for v in node.values or ())

    def _fits_object(self, node: Node, value: dict[str, Any], truth: Truth) -> bool:
        if any(name not in value for name in node.required) or len(value) < node.min_members:
            return False
        if node.max_members is not None and len(value) > node.max_members:
            return False
        if node.keys != ALWAYS and not all(self.holds(node.keys, name) for name in value):
            return False
        leftover = []
        for name, member in value.items():
            own = self._own(node, name)
            subs = own or (() if node.rest is None else (node.rest,))
            if not all(self.holds(sub, member) for sub in subs):
                return False
            if not subs:
                leftover.append(name)
        if node.leftover is None or node.leftover == ALWAYS or not leftover:
            return True
        below = [self._nodes[n] for n in reached(self._nodes, node.number, truth)]
        left = [n for n in leftover if not any(b.covers_name(self._own(b, n)) for b in below)]
        return all(self.holds(node.leftover, value[name]) for name in left)

    def _own(self, node: Node, name: str) -> Ids:
        own = [node.names[name]] if name in node.names else []
        return (*own, *(sub for key, ir, sub in node.patterns if matches(key, ir, name)))

    def _fits_array(self, node: Node, value: list[Any], truth: Truth) -> bool:
        if len(value) < node.min_items or (node.max_items is not None and len(value) > node.max_items):
            return False
        if node.unique and len(set(map(identity, value))) < len(value):
            return False
        for n, item in enumerate(value):
            sub = node.prefix[n] if n < len(node.prefix) else node.items
            if sub is not None and not self.holds(sub, item):
                return False
        if node.contains is not None:
            count = sum(self.holds(node.contains, item) for item in value)
            if count < node.min_contains or (node.max_contains is not None and count > node.max_contains):
                return False
        if node.others is None or node.others == ALWAYS or node.items is not None:
            return True
        below = [node, *(self._nodes[n] for n in reached(self._nodes, node.number, truth))]
        return all(
            self.holds(node.others, item) for n, item in enumerate(value) if not self._is_evaluated(below, n, item)
        )

    def _is_evaluated(self, nodes: list[Node], n: int, item: Any) -> bool:
        for node in nodes:
            if node is nodes[0]:
                if n < len(node.prefix):
                    return True
            elif node.covers_item(n):
                return True
            if self._draft >= 2020 and node.contains is not None and self.holds(node.contains, item):
                return True
        return False


def _alone(fits: Callable[[Node, Any], bool]) -> Callable[[Node, Any, Truth], bool]:
    return lambda node, value, _: fits(node, value)


def matches(pattern: str, ir: Ir, name: str) -> bool:
    """Whether a key of `patternProperties` is found in a name."""
    return string_automaton([(f"p{pattern}", ir)], 0, -1).matches(name)


def fits_string(node: Node, value: str) -> bool:
    """Whether a string fits the pattern, format and lengths of a node."""
    if len(value) < node.min_length or 0 <= node.max_length < len(value):
        return False
    return all(string_automaton([regex], 0, -1).matches(value) for regex in node.regexes)


def fits_number(node: Node, value: int | Decimal) -> bool:
    """Whether a number fits the bounds of a node."""
    low, high = node.low, node.high
    if low is not None and (value < low[0] or (low[1] and value == low[0])):
        return False
    if high is not None and (value > high[0] or (high[1] and value == high[0])):
        return False
    if any(not is_multiple(value, s) for s in node.steps.of) or any(is_multiple(value, s) for s in node.steps.not_of):
        return False
    return value not in node.excluded


def _fits_word(node: Node, value: Any) -> bool:
    return True
