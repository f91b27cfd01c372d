"""Rules and parse tables, as the core wants them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Symbol(NamedTuple):  # tuples, since they are hashed a great deal
    """A terminal or a nonterminal."""

    name: str
    terminal: bool


class Rule(NamedTuple):
    """A production."""

    lhs: str
    body: tuple[Symbol, ...]


@dataclass(slots=True)
class Tables:
    """A parse table.

    Args:
        general: all actions at once, over an LR(0) automaton; else lark's LALR table, one action for a look-ahead.
        reduced: no rule is useless and no conflict was resolved.
        actions: by state: look-ahead to `s + 1`, shift to s, or `-(r + 1)`, reduce by rule r.
        gotos: by state: nonterminal to state.
        reduces: by state, general: the rules to reduce by.
        rules: the productions.
        nonterminals: their numbers.
        follow: by nonterminal, general: the look-aheads that may stand behind it.
        in_progress: by state: the rules that go on there, for people.
        starts: (state, state behind the start symbol, the one behind an empty start symbol or -1).
    """

    general: bool
    reduced: bool
    actions: list[dict[int, int]] = field(default_factory=list)
    gotos: list[dict[int, int]] = field(default_factory=list)
    reduces: list[list[int]] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    nonterminals: dict[str, int] = field(default_factory=dict)
    follow: list[list[int]] = field(default_factory=list)
    starts: list[tuple[int, int, int]] = field(default_factory=list)
    lexer_of: list[int] = field(default_factory=list)
    in_progress: list[set[str]] = field(default_factory=list)

    def add_state(self) -> int:
        """Another state without actions."""
        self.actions.append({})
        self.gotos.append({})
        self.reduces.append([])
        self.in_progress.append(set())
        return len(self.actions) - 1

    def number(self, nonterminal: str) -> int:
        """The number of a nonterminal."""
        return self.nonterminals.setdefault(nonterminal, len(self.nonterminals))

    def set_rules(self, rules: list[Rule]) -> None:
        """Takes the productions, and numbers their nonterminals."""
        self.rules = list(rules)
        for r in rules:
            self.number(r.lhs)
            for s in r.body:
                if not s.terminal:
                    self.number(s.name)
