"""Scalars under several schemas: the texts of each combination of truth values, as regular languages.

Values that some schema lists are looked at one by one. All other strings (or numbers) are cut into cells by what the
schemas say of them by themselves; in a cell, every formula has one value. So a set of schemas needs as many cells as
there are combinations that some value has, not 2^n.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from maskwright.errors import LimitError
from maskwright.grammar.automata import automaton
from maskwright.grammar.formats import doubtful_ir
from maskwright.grammar.ir import ALL, ANY, EMPTY, Ir, complement, intersect, literal, repeat, union
from maskwright.grammar.plan import Budget

from ..evaluate import distinct, identity
from ..kinds import BOOLEAN, NULL, NUMBER, STRING, type_of
from ..model import NEVER
from ..numbers import FREE, decimal_domain, exact_number_ir, free_domain, value_ir
from ..options import Options
from .judge import fits_number, fits_string
from .nodes import Ids, Node, Nodes
from .truth import Truth, certain, evaluate

MOST_CELLS = 256


class Cell(NamedTuple):
    """Scalars of a type that the same schemas accept: texts of words and numbers, or contents of strings."""

    type: int
    language: Ir
    truth: Truth


class _View(NamedTuple):
    """The schemas of one question: all, those that hold for sure, and those with something to say of one type."""

    closure: Ids
    base: frozenset[int]
    here: list[Node]


class Scalars:
    """The cells of sets of schemas, memoised."""

    def __init__(self, nodes: Nodes, options: Options, budget: Budget, where: Callable[[int], str]) -> None:
        self._nodes = nodes
        self._options = options
        self._budget = budget
        self._where = where
        self._memo: dict[tuple[Ids, Ids], list[Cell]] = {}
        self._strings: dict[int, Ir] = {}
        self._languages: dict[tuple[int, int], Ir | None] = {}
        self._interned: dict[Ir, Ir] = {}
        self._inhabited: dict[Ir, bool] = {}

    def cells(self, must: Ids, may: Ids) -> list[Cell]:
        """The cells in which all of `must` hold, with the truth of all that `must` and `may` depend on."""
        key = (must, may)
        if key not in self._memo:
            self._memo[key] = self._make(must, may)
        return self._memo[key]

    def strings_of(self, number: int) -> Ir:
        """The strings that satisfy one schema."""
        if number < 0:
            return EMPTY if number == NEVER else ALL
        found = self._strings.get(number)
        if found is None:
            cells = self.cells((number,), ())
            found = self._strings[number] = union(*(c.language for c in cells if c.type == STRING))
        return found

    def _make(self, must: Ids, may: Ids) -> list[Cell]:
        base = certain(self._nodes, must)
        if NEVER in must or NEVER in base:
            return []
        closure = self._nodes.closure((*must, *may))
        found: dict[tuple[int, Ids], tuple[Cell, list[Ir]]] = {}
        for kind, cells in ((NULL | BOOLEAN, self._words), (STRING, self._texts), (NUMBER, self._numbers)):
            if all(self._nodes[n].types & kind for n in base):
                here = [n for n in map(self._nodes.__getitem__, closure) if n.types & kind]
                for cell in cells(_View(closure, base, here)):
                    if all(cell.truth[n] for n in must):
                        key = (cell.type, tuple(n for n in may if cell.truth[n]))
                        found.setdefault(key, (cell, []))[1].append(cell.language)
        return [cell._replace(language=union(*languages)) for cell, languages in found.values()]

    # ------------------------------------------------------------------ one by one

    def _words(self, view: _View) -> Iterator[Cell]:
        for bit, text, value in ((NULL, "null", None), (BOOLEAN, "true", True), (BOOLEAN, "false", False)):
            fitting = {
                n.number for n in view.here if n.types & bit and (n.values is None or any(v is value for v in n.values))
            }
            yield Cell(bit, literal(text), self._truth(view, fitting))

    def _texts(self, view: _View) -> Iterator[Cell]:
        listed = list(dict.fromkeys(v for n in view.here for v in n.values or () if isinstance(v, str)))
        names = dict.fromkeys(name[1:] for node in view.here for name, _ in node.regexes if name[0] in "ft")
        doubtful = [ir for name in names if (ir := doubtful_ir(name)) is not None]  # nobody knows whether they fit
        sure = [v for v in listed if not any(automaton(ir).matches(v) for ir in doubtful)]
        yield from self._listed(view, STRING, sure, fits_string, literal)
        left_out = union(*map(literal, listed), *doubtful)
        yield from self._others(view, STRING, complement(left_out), self._string)

    def _numbers(self, view: _View) -> Iterator[Cell]:
        listed = distinct([v for n in view.here for v in n.values or () if type_of(v) & NUMBER])
        exact = bool(listed) or any(map(_speaks_of_numbers, view.here))
        rest = decimal_domain(self._options) if exact else free_domain(self._options)

        def text(value: Any) -> Ir:
            return value_ir(value, self._options)

        yield from self._listed(view, NUMBER, listed, fits_number, text)
        if listed:
            rest = intersect(rest, complement(union(*map(text, listed))))
        yield from self._others(view, NUMBER, rest, self._number)

    def _listed(
        self,
        view: _View,
        kind: int,
        values: list[Any],
        fits: Callable[[Node, Any], bool],
        text: Callable[[Any], Ir],
    ) -> Iterator[Cell]:
        """Cells of values that an `enum` or `const` names; those that all schemas treat alike make one."""
        holders: dict[Hashable, set[int]] = {}
        for node in view.here:
            for value in node.values or ():
                holders.setdefault(identity(value), set()).add(node.number)
        alike: dict[frozenset[int], list[Any]] = {}
        for value in values:
            bit = type_of(value, self._nodes.scan.draft)
            named = holders[identity(value)]
            fitting = {
                n.number
                for n in view.here
                if n.types & bit and (n.values is None or n.number in named) and fits(n, value)
            }
            alike.setdefault(frozenset(fitting), []).append(value)
        for schemas, members in alike.items():
            yield Cell(kind, union(*map(text, members)), self._truth(view, schemas))

    # ------------------------------------------------------------------ all others, in cells

    def _others(self, view: _View, kind: int, rest: Ir, local: Callable[[Node], Ir | None]) -> Iterator[Cell]:
        """Cells of the values that no schema names."""
        own = {n.number: self._language(n, kind, local) for n in view.here if n.values is None}
        if any(self._nodes[n].values is not None for n in view.base):
            return
        refined = intersect(rest, *(ir for n in view.base if (ir := own.get(n)) is not None))
        if refined is EMPTY or (refined is not rest and not self._has_text(refined, view)):
            return
        cells: list[tuple[Ir, frozenset[int]]] = [(refined, frozenset())]
        predicates = {id(ir): ir for n, ir in own.items() if ir is not None and n not in view.base}
        for predicate in predicates.values():
            cells = list(self._split(cells, predicate, view))
        for language, held in cells:
            fitting = {n for n, ir in own.items() if ir is None or n in view.base or id(ir) in held}
            yield Cell(kind, language, self._truth(view, fitting))

    def _split(
        self, cells: Iterable[tuple[Ir, frozenset[int]]], predicate: Ir, view: _View
    ) -> Iterator[tuple[Ir, frozenset[int]]]:
        made = 0
        for language, held in cells:
            for holds in (True, False):
                part = intersect(language, predicate if holds else complement(predicate))
                if self._has_text(part, view):
                    made += 1
                    if made > MOST_CELLS:
                        raise LimitError(
                            f"Scalars fall into more than {MOST_CELLS} classes by the schemas that apply here",
                            location=self._where(view.closure[-1]),
                            hint="Let fewer patterns, formats and bounds meet in one place",
                        )
                    yield part, held | {id(predicate)} if holds else held

    def _language(self, node: Node, kind: int, local: Callable[[Node], Ir | None]) -> Ir | None:
        """What a node says of strings or numbers, None for nothing; equal languages are one object."""
        key = (node.number, kind)
        if key not in self._languages:
            language = local(node)
            self._languages[key] = None if language is None else self._interned.setdefault(language, language)
        return self._languages[key]

    def _truth(self, view: _View, fitting: Iterable[int]) -> Truth:
        return evaluate(self._nodes, view.closure, set(view.closure).difference(fitting))

    def _has_text(self, language: Ir, view: _View) -> bool:
        if language in (EMPTY, ALL):
            return language == ALL
        found = self._inhabited.get(language)
        if found is None:
            budget, where = self._budget, view.closure[-1]
            states = budget.limits.states
            verdict = automaton(language).is_empty_within(states, lambda: budget.check(self._where(where)))
            if verdict < 0:
                raise LimitError(
                    "Whether any string or number fits several schemas together was not settled",
                    location=self._where(where),
                    hint="Raise CompileLimits.states, or let fewer patterns and lengths meet in one place",
                )
            found = self._inhabited[language] = not verdict
        return found

    def _string(self, node: Node) -> Ir | None:
        parts = [ir for _, ir in node.regexes]
        if node.min_length or node.max_length >= 0:
            parts.append(repeat(ANY, node.min_length, None if node.max_length < 0 else node.max_length))
        return intersect(*parts) if parts else None

    def _number(self, node: Node) -> Ir | None:
        if not _speaks_of_numbers(node):
            return None
        return exact_number_ir(node.low, node.high, node.types, node.excluded, self._options, node.steps)


def _speaks_of_numbers(node: Node) -> bool:
    bounded = node.low is not None or node.high is not None or bool(node.excluded) or node.steps is not FREE
    return bounded or node.types & NUMBER != NUMBER
