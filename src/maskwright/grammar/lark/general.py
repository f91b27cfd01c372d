"""The LR(0) automaton of a context-free grammar without empty rules, for the generalised parser of the core.

Empty rules are eliminated (Hopcroft, Motwani, Ullman, "Introduction to Automata Theory", 7.1.3), rules that derive
nothing are left out; left recursion, cycles of unit rules and ambiguity stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise, product

from maskwright.grammar.lark.tables import Rule, Symbol, Tables

_MAX_NULLABLE = 4  # nullable symbols of a rule that are dropped in all combinations; longer rules are split


def productive(rules: Iterable[Rule]) -> set[str]:
    """The nonterminals that derive some sequence of terminals."""
    found: set[str] = set()
    waiting: dict[str, list[Rule]] = defaultdict(list)  # for a nonterminal of their bodies
    work = list(rules)
    while work:
        rule = work.pop()
        missing = next((s.name for s in rule.body if not s.terminal and s.name not in found), None)
        if missing is not None:
            waiting[missing].append(rule)
        elif rule.lhs not in found:
            found.add(rule.lhs)
            work += waiting.pop(rule.lhs, [])
    return found


def nullable(rules: list[Rule]) -> set[str]:
    """The nonterminals that derive the empty sequence."""
    found: set[str] = set()
    while True:
        more = {r.lhs for r in rules if all(not s.terminal and s.name in found for s in r.body)} - found
        if not more:
            return found
        found |= more


def without_empty(rules: list[Rule], empty: set[str]) -> list[Rule]:
    """An equivalent grammar, apart from the empty sequence."""
    out: dict[Rule, None] = {}
    work = list(dict.fromkeys(rules))
    fresh = 0
    while work:
        rule = work.pop()
        optional = [i for i, s in enumerate(rule.body) if not s.terminal and s.name in empty]
        if len(optional) > _MAX_NULLABLE:
            cut = optional[_MAX_NULLABLE // 2]
            name = f"{rule.lhs}${fresh}"
            fresh += 1
            rest = rule.body[cut:]
            if all(not s.terminal and s.name in empty for s in rest):
                empty.add(name)
            work += [Rule(rule.lhs, (*rule.body[:cut], Symbol(name, False))), Rule(name, rest)]
            continue
        for kept in product((True, False), repeat=len(optional)):
            dropped = {i for i, keep in zip(optional, kept, strict=True) if not keep}
            body = tuple(s for i, s in enumerate(rule.body) if i not in dropped)
            if body:
                out[Rule(rule.lhs, body)] = None
    made = list(out)
    good = productive(made)
    return [r for r in made if r.lhs in good and all(s.terminal or s.name in good for s in r.body)]


def follow_sets(rules: list[Rule], starts: Iterable[str], terminals: dict[str, int], end: str) -> dict[str, int]:
    """The terminals that may stand behind each nonterminal, a bit each, in a grammar without empty rules."""
    first: dict[str, int] = defaultdict(int)
    follow: dict[str, int] = defaultdict(int)

    def first_of(symbol: Symbol) -> int:
        return 1 << terminals[symbol.name] if symbol.terminal else first[symbol.name]

    before: dict[str, int] | None = None
    while before != first:
        before = dict(first)
        for r in rules:
            first[r.lhs] |= first_of(r.body[0])
    inherit: dict[str, set[str]] = defaultdict(set)  # whose follow set is part of whose
    for start in starts:
        follow[start] |= 1 << terminals[end]
    for r in rules:
        for symbol, behind in pairwise(r.body):
            if not symbol.terminal:
                follow[symbol.name] |= first_of(behind)
        if not r.body[-1].terminal:
            inherit[r.lhs].add(r.body[-1].name)
    work = list(follow)
    while work:
        name = work.pop()
        for to in inherit[name]:
            if follow[name] & ~follow[to]:
                follow[to] |= follow[name]
                work.append(to)
    return follow


Moves = dict[Symbol, frozenset[int]]


class _Automaton:
    """The items are numbered: those of a rule one after the other, by position."""

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.first: list[int] = []  # by rule: its item at the start
        self.rule_of: list[int] = []
        self.symbol: list[Symbol | None] = []  # behind an item
        self.by_lhs: dict[str, list[int]] = defaultdict(list)
        for at, rule in enumerate(rules):
            self.first.append(len(self.symbol))
            self.symbol += [*rule.body, None]
            self.rule_of += [at] * (len(rule.body) + 1)
            self.by_lhs[rule.lhs].append(at)
        self.numbers: dict[frozenset[int], int] = {}
        self.kernels: list[frozenset[int]] = []
        self._predicted: dict[frozenset[str], Moves] = {}

    def state(self, kernel: frozenset[int]) -> int:
        """The number of a state, which may be new."""
        if kernel not in self.numbers:
            self.numbers[kernel] = len(self.kernels)
            self.kernels.append(kernel)
        return self.numbers[kernel]

    def moves(self, kernel: frozenset[int]) -> Moves:
        """The kernels behind a state, by symbol."""
        own: dict[Symbol, set[int]] = defaultdict(set)
        for item in kernel:
            if (symbol := self.symbol[item]) is not None:
                own[symbol].add(item + 1)
        predicted = self.predicted(frozenset(s.name for s in own if not s.terminal))
        return predicted | {s: frozenset(items) | predicted.get(s, frozenset()) for s, items in own.items()}

    def predicted(self, names: frozenset[str]) -> Moves:
        """Those over the rules that may begin where these nonterminals may."""
        if names not in self._predicted:
            found: dict[Symbol, set[int]] = defaultdict(set)
            seen, work = set(names), list(names)
            for name in work:
                for rule in self.by_lhs[name]:
                    symbol = self.rules[rule].body[0]
                    found[symbol].add(self.first[rule] + 1)
                    if not symbol.terminal and symbol.name not in seen:
                        seen.add(symbol.name)
                        work.append(symbol.name)
            self._predicted[names] = {symbol: frozenset(items) for symbol, items in found.items()}
        return self._predicted[names]


def general_tables(rules: list[Rule], starts: list[str], terminals: dict[str, int], end: str) -> Tables:
    """The tables of the generalised parser."""
    good = productive(rules)
    all_rules = [r for r in rules if r.lhs in good and all(s.terminal or s.name in good for s in r.body)]
    empty = nullable(all_rules)
    wanted = [s for s in starts if s in good]
    made = without_empty(all_rules, set(empty))
    made += [Rule(f"$all_{s}", (Symbol(s, False),)) for s in wanted]
    automaton = _Automaton(made)
    tables = Tables(general=True, reduced=len(made) > 0)
    tables.set_rules(made)
    tops = automaton.first[len(made) - len(wanted) :]
    first = [automaton.state(frozenset({item})) for item in tops]
    _fill(automaton, tables, terminals)
    for start, state in zip(wanted, first, strict=True):
        go = tables.gotos[state]
        behind = go[tables.nonterminals[start]]
        top = tables.nonterminals[f"$all_{start}"]
        go[top] = tables.add_state()
        tables.starts.append((state, go[top], behind if start in empty else -1))
    follow = follow_sets(made, [f"$all_{s}" for s in wanted], terminals, end)
    tables.follow = [[t for t in terminals.values() if follow[n] >> t & 1] for n in tables.nonterminals]
    return tables


def _fill(automaton: _Automaton, tables: Tables, terminals: dict[str, int]) -> None:
    state = 0
    while state < len(automaton.kernels):
        kernel = automaton.kernels[state]
        tables.add_state()
        tables.reduces[state] = sorted(automaton.rule_of[item] for item in kernel if automaton.symbol[item] is None)
        tables.in_progress[state] = {automaton.rules[automaton.rule_of[item]].lhs for item in kernel}
        for symbol, items in automaton.moves(kernel).items():
            to = automaton.state(items)
            if symbol.terminal:
                tables.actions[state][terminals[symbol.name]] = to + 1
            else:
                tables.gotos[state][tables.nonterminals[symbol.name]] = to
        state += 1
