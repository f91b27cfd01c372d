"""Scalars under several schemas: the texts of each combination of truth values, as regular languages.

The strings (or numbers) are cut into cells by what the schemas say of them by themselves; in a cell, every formula has
one value. So a set of schemas needs as many cells as there are combinations that some string has, not 2^n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from maskwright.errors import LimitError
from maskwright.grammar.automata import automaton
from maskwright.grammar.formats import doubtful_ir
from maskwright.grammar.ir import ALL, ANY, EMPTY, Ir, complement, intersect, literal, repeat, union
from maskwright.grammar.plan import Budget

from ..kinds import BOOLEAN, INTEGER, NULL, NUMBER, STRING, type_of
from ..model import NEVER
from ..numbers import FREE, decimal_domain, exact_number_ir, free_domain, value_ir
from ..options import Options
from .nodes import Ids, Node, Nodes
from .truth import Truth, certain, evaluate

MOST_CELLS = 256


class Cell(NamedTuple):
    """Scalars of a type that the same schemas of a closure accept.

    `word` is a text of its own (`null`, `true`); otherwise the content is that of a string, or the text of a number.
    """

    type: int
    language: Ir
    truth: Truth


class Scalars:
    """The cells of sets of schemas, memoised."""

    def __init__(self, nodes: Nodes, options: Options, budget: Budget, where: Callable[[int], str]) -> None:
        self._nodes = nodes
        self._options = options
        self._budget = budget
        self._where = where
        self._memo: dict[tuple[Ids, Ids], list[Cell]] = {}
        self._strings: dict[int, Ir] = {}

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
        if NEVER in must:
            return []
        nodes = self._nodes
        closure = nodes.closure((*must, *may))
        base = certain(nodes, must)
        if NEVER in base:
            return []
        out = [c for c in map(lambda word: self._word(closure, *word), _WORDS) if all(c.truth[n] for n in must)]
        for kind, domain, local in (
            (NUMBER, self._domain(closure), self._number), (STRING, self._string_domain(closure), self._string),
        ):
            out += [c for c in self._cut(closure, base, kind, domain, local) if all(c.truth[n] for n in must)]
        return out

    def _word(self, closure: Ids, bit: int, value: bool | None) -> Cell:
        text = {None: "null", True: "true", False: "false"}[value]

        def local(number: int, _: Truth) -> bool:
            node = self._nodes[number]
            return bool(node.types & bit) and (node.values is None or any(v is value for v in node.values))

        return Cell(bit, literal(text), evaluate(self._nodes, closure, local))

    def _cut(
        self, closure: Ids, base: frozenset[int], kind: int, domain: Ir, local: Callable[[Node], Ir | None]
    ) -> list[Cell]:
        """The cells of one type; a language of None says nothing."""
        languages = {number: self._of_type(self._nodes[number], kind, local) for number in closure}
        for number in base:
            if (language := languages[number]) is not None:
                domain = intersect(domain, language)
        cells: list[tuple[Ir, dict[Ir, bool]]] = [(domain, {})] if self._has_text(domain, closure) else []
        predicates = dict.fromkeys(languages[n] for n in closure if n not in base and languages[n] not in (None, EMPTY))
        for predicate in predicates:
            assert predicate is not None
            cells = list(self._split(cells, predicate, closure))
        return [
            Cell(kind, language, self._truth(closure, base, languages, known)) for language, known in cells
        ]

    def _of_type(self, node: Node, kind: int, local: Callable[[Node], Ir | None]) -> Ir | None:
        return local(node) if node.types & kind else EMPTY

    def _split(
        self, cells: Iterable[tuple[Ir, dict[Ir, bool]]], predicate: Ir, closure: Ids
    ) -> Iterable[tuple[Ir, dict[Ir, bool]]]:
        made = 0
        for language, known in cells:
            for holds in (True, False):
                part = intersect(language, predicate if holds else complement(predicate))
                if self._has_text(part, closure):
                    made += 1
                    if made > MOST_CELLS:
                        raise LimitError(
                            f"Scalars fall into more than {MOST_CELLS} classes by the schemas that apply here",
                            location=self._where(closure[-1]),
                            hint="Let fewer patterns, formats and bounds meet in one place",
                        )
                    yield part, {**known, predicate: holds}

    def _truth(
        self, closure: Ids, base: frozenset[int], languages: dict[int, Ir | None], known: dict[Ir, bool]
    ) -> Truth:
        def local(number: int, _: Truth) -> bool:
            language = languages[number]
            return language is None or number in base or known.get(language, False)

        return evaluate(self._nodes, closure, local)

    def _has_text(self, language: Ir, closure: Ids) -> bool:
        if language in (EMPTY, ALL):
            return language == ALL
        budget = self._budget
        verdict = automaton(language).is_empty_within(
            budget.limits.states, lambda: budget.check(self._where(closure[-1]))
        )
        if verdict < 0:
            raise LimitError(
                "Whether any string or number fits several schemas together was not settled",
                location=self._where(closure[-1]),
                hint="Raise CompileLimits.states, or let fewer patterns and lengths meet in one place",
            )
        return not verdict

    def _string(self, node: Node) -> Ir | None:
        if node.values is not None:
            return union(*(literal(v) for v in node.values if isinstance(v, str)))
        parts = [ir for _, ir in node.regexes]
        if node.min_length or node.max_length >= 0:
            parts.append(repeat(ANY, node.min_length, None if node.max_length < 0 else node.max_length))
        return intersect(*parts) if parts else None

    def _number(self, node: Node) -> Ir | None:
        if node.values is not None:
            numbers = [v for v in node.values if type_of(v) & NUMBER]
            return union(*(value_ir(v, self._options, node.types) for v in numbers))
        if not _speaks_of_numbers(node):
            return None
        return exact_number_ir(node.low, node.high, node.types, node.excluded, self._options, node.steps)

    def _string_domain(self, closure: Ids) -> Ir:
        """Any text, but those of which nobody knows whether they have a format that a schema asks for."""
        names = dict.fromkeys(name[1:] for n in closure for name, _ in self._nodes[n].regexes if name[0] in "ft")
        doubtful = [ir for name in names if (ir := doubtful_ir(name)) is not None]
        return intersect(*map(complement, doubtful))

    def _domain(self, closure: Ids) -> Ir:
        """The texts of numbers: with exponents only where no schema asks for a value."""
        options = self._options
        nodes = [self._nodes[n] for n in closure]
        if any(_speaks_of_numbers(n) or n.values is not None for n in nodes if n.types & NUMBER):
            return decimal_domain(options)
        return free_domain(options)


_WORDS: list[tuple[int, bool | None]] = [(NULL, None), (BOOLEAN, True), (BOOLEAN, False)]


def _speaks_of_numbers(node: Node) -> bool:
    bounded = node.low is not None or node.high is not None or bool(node.excluded) or node.steps is not FREE
    return bounded or node.types & NUMBER not in (NUMBER, 0) or not node.types & INTEGER
