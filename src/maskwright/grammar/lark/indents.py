"""Indentation: lark's Indenter as data, and what a grammar must be like for it.

The core follows columns and brackets itself, so an Indenter may only set the class attributes of lark's own. That
every prefix can be finished rests on the grammar: blocks and brackets must balance in every rule, so that the depth is
told by the parser's stack, and what stands between brackets must do without line ends, which are dropped there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maskwright.errors import LarkError
from maskwright.grammar.lark.source import Places
from maskwright.grammar.lark.tables import Rule, Tables

_NAMES = ("NL_type", "OPEN_PAREN_types", "CLOSE_PAREN_types", "INDENT_type", "DEDENT_type", "tab_len")
_STATE = {"paren_level", "indent_level"}
# Indenters by name, so that grammars with them can be kept in files. "python": of the shipped grammar.
NAMED: dict[str, dict[str, Any]] = {
    "python": {
        "NL_type": "_NEWLINE",
        "OPEN_PAREN_types": ["LPAR", "LSQB", "LBRACE"],
        "CLOSE_PAREN_types": ["RPAR", "RSQB", "RBRACE", "CONVERTED"],
        "INDENT_type": "_INDENT",
        "DEDENT_type": "_DEDENT",
        "tab_len": 8,
    }
}


@dataclass(frozen=True, slots=True)
class Indents:
    """The tokens of an Indenter, by name, and the width of a tab."""

    newline: str
    indent: str
    dedent: str
    tab: int
    opening: tuple[str, ...]
    closing: tuple[str, ...]

    def words(self, numbers: dict[str, int]) -> list[int]:
        """For the core; brackets that the grammar does not have are left out."""
        opening = [numbers[n] for n in self.opening if n in numbers]
        closing = [numbers[n] for n in self.closing if n in numbers]
        own = [numbers[self.newline], numbers[self.indent], numbers[self.dedent], self.tab]
        return [1, *own, len(opening), *opening, len(closing), *closing]


def resolved(postlex: Any) -> Any:
    """The Indenter of a name, for lark; other objects as they are. Raises LarkError for unknown names."""
    if not isinstance(postlex, str):
        return postlex
    if postlex not in NAMED:
        hint = f"Give an Indenter, or one of the names {', '.join(NAMED)}"
        raise LarkError(f"there is no Indenter {postlex!r}", location="option postlex", hint=hint)
    from lark.indenter import Indenter

    return type("NamedIndenter", (Indenter,), NAMED[postlex])()


def read_indenter(postlex: Any, lexer: str) -> Indents | None:
    """What an Indenter says. Raises LarkError for other objects, and where one overrides methods."""
    if postlex is None:
        return None
    from lark.indenter import Indenter

    postlex = resolved(postlex)

    if not isinstance(postlex, Indenter):
        hint = "It may change tokens while parsing; only Indenters that set class attributes are supported"
        raise LarkError(f"postlex={type(postlex).__name__} is not supported", location="option postlex", hint=hint)
    if lexer not in ("basic", "contextual"):
        hint = "Use parser='lalr'"
        raise LarkError(f"lexer={lexer!r} has no postlex", location="option lexer", hint=hint)
    for kind in type(postlex).__mro__:
        if kind is Indenter:
            break
        own = [n for n in vars(kind) if n not in _NAMES and not (n.startswith("__") or n.startswith("_abc_"))]
        if own or "__init__" in vars(kind):
            name = own[0] if own else "__init__"
            hint = "Set NL_type, OPEN_PAREN_types, CLOSE_PAREN_types, INDENT_type, DEDENT_type and tab_len alone"
            raise LarkError(f"{kind.__name__} overrides {name}", location="option postlex", hint=hint)
    values = {name: getattr(type(postlex), name) for name in _NAMES}
    if set(vars(postlex)) - _STATE or not all(isinstance(v, str | int | list | tuple) for v in values.values()):
        hint = "Set plain class attributes"
        raise LarkError(f"{type(postlex).__name__} computes its tokens", location="option postlex", hint=hint)
    return Indents(
        values["NL_type"],
        values["INDENT_type"],
        values["DEDENT_type"],
        int(values["tab_len"]),
        tuple(values["OPEN_PAREN_types"]),
        tuple(values["CLOSE_PAREN_types"]),
    )


def check_balance(indents: Indents, rules: list[Rule], places: Places) -> None:
    """Raises LarkError for rules in which blocks or brackets do not balance."""
    lines = _derive(rules, indents.newline)
    for rule in rules:
        blocks = brackets = 0
        previous = ""
        for symbol in rule.body:
            name = symbol.name
            if name == indents.indent and previous != indents.newline:
                _refuse(rule, places, f"has {name} without {indents.newline} right before it")
            blocks += (name == indents.indent) - (name == indents.dedent)
            brackets += (name in indents.opening) - (name in indents.closing)
            if blocks < 0 or brackets < 0:
                _refuse(rule, places, f"closes with {name} what it did not open")
            if brackets and (name == indents.newline or name in lines):
                _refuse(rule, places, "has a line end between brackets, where line ends are dropped")
            previous = name
        if blocks or brackets:
            _refuse(rule, places, f"does not close all that it opens: {indents.indent}, {', '.join(indents.opening)}")


def _refuse(rule: Rule, places: Places, how: str) -> None:
    hint = "Open and close blocks and brackets in one rule"
    raise LarkError(f"rule {rule.lhs} {how}", location=places.rule(rule.lhs), hint=hint)


def _derive(rules: list[Rule], terminal: str) -> set[str]:
    """The nonterminals that derive something with a terminal in it."""
    found: set[str] = set()
    while True:
        more = {r.lhs for r in rules if any(s.name == terminal or s.name in found for s in r.body)} - found
        if not more:
            return found
        found |= more


def check_lines(indents: Indents, tables: Tables, numbers: dict[str, int], places: Places) -> None:
    """Raises LarkError where behind a line end only another one may follow: the two would be one token."""
    newline = numbers[indents.newline]
    after = {
        action - 1
        for row in tables.actions
        for terminal, action in row.items()
        if action > 0 and terminal in (newline, numbers[indents.indent], numbers[indents.dedent])
    }
    for state in after:
        if not tables.general and set(tables.actions[state]) <= {newline}:
            hint = f"Two {indents.newline} in a row are read as one: take one out"
            raise LarkError(
                f"behind {indents.newline} only {indents.newline} may follow",
                location=places.terminal(indents.newline),
                hint=hint,
            )


def check_columns(indents: Indents, definitions: dict[str, Any], flags: int, places: Places) -> None:
    """Raises LarkError where the token that ends lines cannot reach every column."""
    import re

    where = places.terminal(indents.newline)
    if indents.newline not in definitions:
        raise LarkError(f"terminal {indents.newline} has no text", location=where, hint="Define it")
    pattern = re.compile(definitions[indents.newline].pattern.to_regexp(), flags)
    for width in range(64):
        text = "\n" + " " * width
        found = pattern.match(text)
        if found is None or found.group(0) != text:
            hint = r"Let it take blanks: /(\r?\n[ \t]*)+/"
            raise LarkError(f"terminal {indents.newline} cannot end in {width} blanks", location=where, hint=hint)
