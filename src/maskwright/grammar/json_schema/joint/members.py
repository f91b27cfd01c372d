"""The classes of keys of an object under several schemas: keys of one class are alike to all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maskwright.grammar.automata import automaton
from maskwright.grammar.ir import ALL, EMPTY, Ir, complement, intersect, literal, union

from ..model import ALWAYS
from .judge import matches
from .nodes import Ids, Node, Nodes
from .scalars import Scalars

# Finite classes with more keys than this count as endless, where counting matters: nobody types as many.
MANY = 1 << 16


@dataclass(frozen=True)
class KeyClass:
    """A named key, or all other keys that the same patterns match.

    Attributes:
        name: of a class of one key.
        language: the keys of the others; empty for a name.
        size: how many keys it has, at most `MANY`.
        applied: by node, the schemas that apply to the member.
        wrong: the nodes whose `propertyNames` it does not fit.
        covered: the nodes that evaluate the member by keywords of their own, where they hold.
    """

    name: str | None
    language: Ir
    size: int
    applied: dict[int, Ids]
    wrong: frozenset[int]
    covered: frozenset[int]


class KeyClasses:
    """Finds the classes of keys for closures."""

    def __init__(self, nodes: Nodes, scalars: Scalars) -> None:
        self._nodes = nodes
        self._scalars = scalars
        self._cells: dict[tuple[Ir, ...], list[tuple[Ir, frozenset[Ir]]]] = {}
        self._all_named: dict[Ids, list[KeyClass]] = {}
        self._unnamed: dict[tuple[str, ...], Ir] = {}

    def of(self, closure: Ids, base: frozenset[int]) -> list[KeyClass]:
        """The classes that the schemas of `base`, which have to hold, allow: named ones first, in their order."""
        nodes = [self._nodes[n] for n in closure]
        named = self._all_named.get(closure)
        if named is None:
            named = self._all_named[closure] = [self._named(name, nodes) for name in self._names(nodes)]
        names = [c.name for c in named if c.name is not None]
        out = [c for c in named if not c.wrong & base]
        out += self._others(self._all_but(tuple(names)), nodes, base)
        return out

    def _all_but(self, names: tuple[str, ...]) -> Ir:
        """The keys beside these; one term for the same names, so that it is found again without being compared."""
        found = self._unnamed.get(names)
        if found is None:
            found = self._unnamed[names] = complement(union(*map(literal, names))) if names else ALL
        return found

    def _names(self, nodes: list[Node]) -> list[str]:
        """`properties` in their order, then names known from `required` alone."""
        names = dict.fromkeys(name for node in nodes for name in node.names)
        names |= dict.fromkeys(name for node in nodes for name in node.required)
        return list(names)

    def _named(self, name: str, nodes: list[Node]) -> KeyClass:
        applied, wrong, covered = dict[int, Ids](), set[int](), set[int]()
        for node in nodes:
            own = [node.names[name]] if name in node.names else []
            own += [sub for key, ir, sub in node.patterns if matches(key, ir, name)]
            self._note(node, tuple(own), applied, covered)
            if node.keys != ALWAYS and not automaton(self._scalars.strings_of(node.keys)).matches(name):
                wrong.add(node.number)
        return KeyClass(name, EMPTY, 1, applied, frozenset(wrong), frozenset(covered))

    def _note(self, node: Node, own: Ids, applied: dict[int, Ids], covered: set[int]) -> None:
        if node.covers_name(own):
            covered.add(node.number)
        subs = own or (() if node.rest is None else (node.rest,))
        if subs:
            applied[node.number] = subs

    def _others(self, rest: Ir, nodes: list[Node], base: frozenset[int]) -> Iterator[KeyClass]:
        """Cells of the remaining keys by what matches them."""
        predicates: dict[Ir, None] = {}
        for node in nodes:
            predicates |= dict.fromkeys(ir for _, ir, _ in node.patterns)
            if node.keys != ALWAYS:
                language = self._scalars.strings_of(node.keys)
                if node.number in base:
                    rest = intersect(rest, language)
                else:
                    predicates[language] = None
        cells = ((intersect(rest, cell), held) for cell, held in self._cells_of(tuple(predicates)))
        cells = ((language, held) for language, held in cells if self._has_text(language))
        merged: dict[Any, tuple[KeyClass, list[Ir]]] = {}
        for language, held in cells:
            found = self._cell(language, held, nodes, base)
            key = (tuple(found.applied.items()), found.wrong, found.covered)
            merged.setdefault(key, (found, []))[1].append(language)
        for found, languages in merged.values():
            language = union(*languages)
            size = automaton(language).count(MANY)
            yield KeyClass(None, language, size, found.applied, found.wrong, found.covered)

    def _has_text(self, language: Ir) -> bool:
        return language == ALL or (language != EMPTY and not automaton(language).is_empty)

    def _cells_of(self, predicates: tuple[Ir, ...]) -> list[tuple[Ir, frozenset[Ir]]]:
        """The cells of all keys by some languages; memoised, since the same patterns meet in many places."""
        found = self._cells.get(predicates)
        if found is None:
            cells: list[tuple[Ir, frozenset[Ir]]] = [(ALL, frozenset())]
            for predicate in predicates:
                if predicate not in (ALL, EMPTY):
                    cells = list(self._split(cells, predicate))
            if ALL in predicates:
                cells = [(language, held | {ALL}) for language, held in cells]
            found = self._cells[predicates] = cells
        return found

    def _split(self, cells: list[tuple[Ir, frozenset[Ir]]], predicate: Ir) -> Iterator[tuple[Ir, frozenset[Ir]]]:
        for language, held in cells:
            for holds in (True, False):
                part = intersect(language, predicate if holds else complement(predicate))
                if self._has_text(part):
                    yield part, held | {predicate} if holds else held

    def _cell(self, language: Ir, held: frozenset[Ir], nodes: list[Node], base: frozenset[int]) -> KeyClass:
        applied, wrong, covered = dict[int, Ids](), set[int](), set[int]()
        for node in nodes:
            self._note(node, tuple(sub for _, ir, sub in node.patterns if ir in held), applied, covered)
            if node.keys != ALWAYS and node.number not in base and self._scalars.strings_of(node.keys) not in held:
                wrong.add(node.number)
        return KeyClass(None, language, 0, applied, frozenset(wrong), frozenset(covered))
