"""Dead ends of lark's LALR automaton: transitions behind which only rules go on that can never be finished.

A rule that leads back to itself alone is of use in lark: its terminals are in the lexers of the states that want them,
where they take text that would be passed over otherwise. The core must not take such ways. What is left is the
automaton of the productive rules, if every state means the same on all ways to it.
"""

from __future__ import annotations

from typing import Any

from maskwright.grammar.lark.general import productive
from maskwright.grammar.lark.tables import Rule, Symbol

Items = frozenset[Any]  # lark's RulePtr: a rule and a position in it


class LiveItems:
    """The items of productive rules, by state, in the automaton that lark's analyser has made.

    Args:
        analyzer: a lark LALR_Analyzer after `compute_lr0_states`.
    """

    def __init__(self, analyzer: Any) -> None:
        self.order = {id(s): at for at, s in enumerate(analyzer.lr0_itemsets)}
        self.by_origin: dict[Any, list[Any]] = {}
        rules = {p.rule for s in analyzer.lr0_itemsets for p in s.closure}
        good = productive(_plain(r) for r in rules)
        for rule in rules:
            if all(s.is_term or s.name in good for s in rule.expansion):
                self.by_origin.setdefault(rule.origin, []).append(rule)
        self.good = {r for found in self.by_origin.values() for r in found}
        self.dead: set[tuple[int, str]] = set()  # state and symbol of a transition
        self.live: set[int] = set()  # states that can be reached
        self.in_progress = [
            {str(p.rule.origin.name) for p in s.kernel if p.rule in self.good} for s in analyzer.lr0_itemsets
        ]
        self.consistent = True
        self._walk(analyzer)

    def _walk(self, analyzer: Any) -> None:
        kernels: dict[int, Items] = {}
        work = []
        for state in analyzer.lr0_start_states.values():
            kernels[id(state)] = frozenset(p for p in state.kernel if p.rule in self.good)
            self.consistent = self.consistent and bool(kernels[id(state)])
            work.append(state)
        for state in work:
            self.live.add(self.order[id(state)])
            moved = self._moves(kernels[id(state)])
            for symbol, to in state.transitions.items():
                kernel = frozenset(moved.get(symbol, ()))
                if not kernel:
                    self.dead.add((self.order[id(state)], str(symbol.name)))
                elif id(to) not in kernels:
                    kernels[id(to)] = kernel
                    work.append(to)
                elif kernels[id(to)] != kernel:
                    self.consistent = False

    def _moves(self, kernel: Items) -> dict[Any, list[Any]]:
        items, seen = list(kernel), set()
        moved: dict[Any, list[Any]] = {}
        for item in items:
            if item.is_satisfied:
                continue
            symbol = item.next
            moved.setdefault(symbol, []).append(item.advance(symbol))
            if not symbol.is_term and symbol not in seen:
                seen.add(symbol)
                items += [type(item)(rule, 0) for rule in self.by_origin.get(symbol, ())]
        return moved


def _plain(rule: Any) -> Rule:
    return Rule(str(rule.origin.name), tuple(Symbol(str(s.name), bool(s.is_term)) for s in rule.expansion))
