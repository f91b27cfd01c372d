"""The LR(0) automaton of a context-free grammar without empty rules, for the generalised parser of the core.

Empty rules are eliminated (Hopcroft, Motwani, Ullman, "Introduction to Automata Theory", 7.1.3), rules that derive
nothing are left out; left recursion, cycles of unit rules and ambiguity stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import product

from maskwright.grammar.lark.tables import Rule, Symbol, Tables

_MAX_NULLABLE = 4  # nullable symbols of a rule that are dropped in all combinations; longer rules are split


def productive(rules: Iterable[Rule]) -> set[str]:
    """The nonterminals that derive some sequence of terminals."""
    found: set[str] = set()
    left = list(rules)
    while True:
        rest = [r for r in left if not all(s.terminal or s.name in found for s in r.body)]
        found.update(r.lhs for r in left if all(s.terminal or s.name in found for s in r.body))
        if len(rest) == len(left):
            return found
        left = rest


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


def follow_sets(rules: list[Rule], starts: Iterable[str], end: str) -> dict[str, set[str]]:
    """The terminals that may stand behind each nonterminal, in a grammar without empty rules."""
    first: dict[str, set[str]] = defaultdict(set)
    follow: dict[str, set[str]] = defaultdict(set)

    def first_of(symbol: Symbol) -> set[str]:
        return {symbol.name} if symbol.terminal else first[symbol.name]

    def grow(target: set[str], more: set[str]) -> bool:
        before = len(target)
        target |= more
        return len(target) != before

    while any([grow(first[r.lhs], first_of(r.body[0])) for r in rules]):
        pass
    for start in starts:
        follow[start].add(end)
    changed = True
    while changed:
        changed = False
        for r in rules:
            for at, symbol in enumerate(r.body):
                if symbol.terminal:
                    continue
                behind = first_of(r.body[at + 1]) if at + 1 < len(r.body) else follow[r.lhs]
                changed |= grow(follow[symbol.name], set(behind))
    return follow


Item = tuple[int, int]  # rule, position


class _Automaton:
    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.by_lhs: dict[str, list[int]] = defaultdict(list)
        for at, rule in enumerate(rules):
            self.by_lhs[rule.lhs].append(at)
        self.numbers: dict[frozenset[Item], int] = {}
        self.kernels: list[frozenset[Item]] = []

    def state(self, kernel: frozenset[Item]) -> int:
        if kernel not in self.numbers:
            self.numbers[kernel] = len(self.kernels)
            self.kernels.append(kernel)
        return self.numbers[kernel]

    def closure(self, kernel: frozenset[Item]) -> list[Item]:
        items = list(kernel)
        seen: set[str] = set()
        for rule, at in items:
            body = self.rules[rule].body
            if at == len(body) or body[at].terminal or body[at].name in seen:
                continue
            seen.add(body[at].name)
            items.extend((r, 0) for r in self.by_lhs[body[at].name])
        return list(dict.fromkeys(items))


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
    first = [automaton.state(frozenset({(len(made) - len(wanted) + i, 0)})) for i in range(len(wanted))]
    _fill(automaton, tables, terminals)
    for start, state in zip(wanted, first, strict=True):
        go = tables.gotos[state]
        behind = go[tables.nonterminals[start]]
        top = tables.nonterminals[f"$all_{start}"]
        go[top] = tables.add_state()
        tables.starts.append((state, go[top], behind if start in empty else -1))
    follow = follow_sets(made, [f"$all_{s}" for s in wanted], end)
    tables.follow = [sorted(terminals[t] for t in follow[n]) for n in tables.nonterminals]
    return tables


def _fill(automaton: _Automaton, tables: Tables, terminals: dict[str, int]) -> None:
    state = 0
    while state < len(automaton.kernels):
        moves: dict[Symbol, set[Item]] = defaultdict(set)
        reduces = []
        for rule, at in automaton.closure(automaton.kernels[state]):
            body = automaton.rules[rule].body
            if at == len(body):
                reduces.append(rule)
            else:
                moves[body[at]].add((rule, at + 1))
        tables.add_state()
        tables.reduces[state] = sorted(reduces)
        tables.in_progress[state] = {automaton.rules[rule].lhs for rule, _ in automaton.kernels[state]}
        for symbol, items in moves.items():
            to = automaton.state(frozenset(items))
            if symbol.terminal:
                tables.actions[state][terminals[symbol.name]] = to + 1
            else:
                tables.gotos[state][tables.nonterminals[symbol.name]] = to
        state += 1
