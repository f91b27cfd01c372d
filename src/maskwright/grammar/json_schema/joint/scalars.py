"""Scalars under several schemas: the texts of each combination of truth values, as regular languages.

Values that some schema lists are looked at one by one. What a schema says of all other strings (or numbers) is one
regular language, with union, intersection and complement for the schemas in place; the observed ones cut those that
have to hold into cells. So there are as many cells as combinations that some value has, not 2^n.
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
from ..model import NEVER, Group
from ..numbers import FREE, decimal_domain, exact_number_ir, free_domain, value_ir
from ..options import Options
from .judge import fits_number, fits_string
from .nodes import Ids, Node, Nodes
from .truth import certain, evaluate

MOST_CELLS = 256
MOST_NODES = 200_000


class Cell(NamedTuple):
    """Scalars of a type and with one vector: texts of words and numbers, or contents of strings."""

    type: int
    language: Ir
    vector: int


class _View(NamedTuple):
    """One question, with all schemas that it depends on, and those of them with something to say of one type."""

    must: Ids
    may: Ids
    closure: Ids
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
        self._formulas: dict[tuple[int, int], Ir] = {}
        self._interned: dict[Ir, Ir] = {}
        self._inhabited: dict[Ir, bool] = {}

    def cells(self, must: Ids, may: Ids) -> list[Cell]:
        """The cells in which all of `must` hold, by vectors of `may`."""
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
        found: dict[tuple[int, int], list[Ir]] = {}
        for kind, cells in ((NULL | BOOLEAN, self._words), (STRING, self._texts), (NUMBER, self._numbers)):
            if all(self._nodes[n].types & kind for n in base):
                here = [n for n in map(self._nodes.__getitem__, closure) if n.types & kind]
                for cell in cells(_View(must, may, closure, here)):
                    found.setdefault((cell.type, cell.vector), []).append(cell.language)
        return [Cell(kind, union(*languages), vector) for (kind, vector), languages in found.items()]

    # ------------------------------------------------------------------ one by one

    def _words(self, view: _View) -> Iterator[Cell]:
        for bit, text, value in ((NULL, "null", None), (BOOLEAN, "true", True), (BOOLEAN, "false", False)):
            fitting = {
                n.number for n in view.here if n.types & bit and (n.values is None or any(v is value for v in n.values))
            }
            yield from self._cell(view, Cell(bit, literal(text), 0), fitting)

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
            yield from self._cell(view, Cell(kind, union(*map(text, members)), 0), schemas)

    def _cell(self, view: _View, cell: Cell, fitting: Iterable[int]) -> Iterator[Cell]:
        """A cell of values that some nodes of the closure accept by themselves, with its vector."""
        truth = evaluate(self._nodes, view.closure, set(view.closure).difference(fitting))
        if all(truth[n] for n in view.must):
            yield cell._replace(vector=sum(1 << n for n, number in enumerate(view.may) if truth[number]))

    # ------------------------------------------------------------------ all others, in cells

    def _others(self, view: _View, kind: int, rest: Ir, local: Callable[[Node], Ir | None]) -> Iterator[Cell]:
        """Cells of the values that no schema names."""
        for number in view.closure:
            self._formula(number, kind, local)
        base = intersect(rest, *(self._formulas[n, kind] for n in view.must))
        cells = [(base, 0)] if self._has_text(base, view) else []
        for place, number in enumerate(view.may):
            cells = list(self._split(cells, self._formulas[number, kind], 1 << place, view))
        for language, vector in cells:
            yield Cell(kind, language, vector)

    def _split(self, cells: Iterable[tuple[Ir, int]], predicate: Ir, bit: int, view: _View) -> Iterator[tuple[Ir, int]]:
        made = 0
        for language, vector in cells:
            for holds in (True, False):
                part = intersect(language, predicate if holds else complement(predicate))
                if part is language or self._has_text(part, view):
                    made += 1
                    if made > MOST_CELLS:
                        raise LimitError(
                            f"Scalars fall into more than {MOST_CELLS} classes by the schemas that apply here",
                            location=self._where(view.closure[-1]),
                            hint="Let fewer patterns, formats and bounds meet in one place",
                        )
                    yield part, vector | bit if holds else vector

    def _formula(self, number: int, kind: int, local: Callable[[Node], Ir | None]) -> None:
        """Notes the strings or numbers that satisfy a node, of those that none names; its parts were noted before."""
        if (number, kind) in self._formulas:
            return
        node = self._nodes[number]
        if not node.types & kind or node.values is not None:
            self._formulas[number, kind] = EMPTY
            return
        own = local(node)
        parts = [self._part(part, kind) for part in node.parts]
        language = intersect(*parts) if own is None else intersect(own, *parts)
        if language.size > MOST_NODES:
            raise LimitError(
                f"What schemas in place say of strings or numbers takes more than {MOST_NODES} terms to write down",
                location=self._where(number),
                hint="Let fewer of anyOf, oneOf, not and if be nested in one another",
            )
        self._formulas[number, kind] = self._interned.setdefault(language, language)

    def _part(self, part: Group, kind: int) -> Ir:
        branches = [self._branch(b, kind) for b in part.branches]
        if part.kind == "all":
            return intersect(*branches)
        if part.kind == "any":
            return union(*branches)
        if part.kind == "one":
            some = [b for b in branches if b is not EMPTY]
            return union(*(_alone(some, n) for n in range(len(some))))
        if part.kind == "not":
            return complement(branches[0])
        condition, then, other = branches
        return union(intersect(condition, then), intersect(complement(condition), other))

    def _branch(self, number: int, kind: int) -> Ir:
        if number < 0:
            return EMPTY if number == NEVER else ALL
        return self._formulas[number, kind]

    def _has_text(self, language: Ir, view: _View) -> bool:
        if language in (EMPTY, ALL):
            return language == ALL
        found = self._inhabited.get(language)
        if found is None:
            budget, where = self._budget, view.closure[-1] if view.closure else 0
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


def _alone(languages: list[Ir], n: int) -> Ir:
    """What belongs to the n-th language and to no other."""
    return intersect(languages[n], *(complement(other) for m, other in enumerate(languages) if m != n))


def _speaks_of_numbers(node: Node) -> bool:
    bounded = node.low is not None or node.high is not None or bool(node.excluded) or node.steps is not FREE
    return bounded or node.types & NUMBER != NUMBER
