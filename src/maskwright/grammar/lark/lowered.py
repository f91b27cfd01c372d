"""A grammar lowered to the flat words that the core reads (src/core/lark/source.cc)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maskwright.grammar.lark.assembly import Assembly
    from maskwright.grammar.lark.lexers import LexerStart
    from maskwright.grammar.lark.tables import Tables

VERSION = 3  # of the words
FORM = 3  # of the files that hold them


@dataclass(frozen=True, slots=True)
class Lowered:
    """What the core needs, and names for people.

    Args:
        words: the tables.
        terminals: how they are shown to people, by number: strings in quotes, others by name.
        rules: the rules in progress, by state of the parser, separated by commas.
        survey: what the core found out when it compiled them first; a 0 if nothing.
    """

    words: array[int]
    terminals: tuple[str, ...]
    rules: tuple[str, ...] = ()
    survey: tuple[int, ...] = (0,)

    @property
    def surveyed(self) -> bool:
        """Whether the survey was made."""
        return self.survey != (0,)

    def with_survey(self, survey: list[int]) -> Lowered:
        """The same with what `_core.LarkGrammar.survey_words` tells."""
        return replace(self, survey=tuple(survey))

    @property
    def form(self) -> array[int]:
        """For `_core.LarkGrammar`."""
        return self.words + array("i", self.survey)


def flatten(
    assembly: Assembly,
    kind: int,
    lexers: list[LexerStart],
    ignored: list[bool],
    tables: Tables,
    terminals: dict[str, int],
    layout: list[int],
) -> array[int]:
    """The words."""
    out = array("i", [VERSION])

    def listed(items: Iterable[int]) -> None:
        items = list(items)
        out.append(len(items))
        out.extend(items)

    out.append(len(assembly.code))
    for instruction in assembly.code:
        out.extend(instruction)
    out.append(len(assembly.classes))
    for ranges in assembly.classes:
        out.append(len(ranges))
        for lo, hi in ranges:
            out.extend((lo, hi))
    listed(assembly.behind_programs)
    out.extend((kind, len(lexers)))
    for start in lexers:
        listed(start.programs)
        listed(start.words)
        out.append(len(start.unless))
        for triple in start.unless:
            out.extend(triple)
    listed(int(i) for i in ignored)
    _flatten_tables(tables, terminals, out)
    out.extend(layout)
    return out


def _flatten_tables(tables: Tables, terminals: dict[str, int], out: array[int]) -> None:
    out.extend((len(tables.actions), len(tables.nonterminals), int(tables.general), int(tables.reduced)))
    out.append(len(tables.rules))
    for rule in tables.rules:
        out.extend((tables.nonterminals[rule.lhs], len(rule.body)))
        out.extend(terminals[s.name] if s.terminal else len(terminals) + tables.nonterminals[s.name] for s in rule.body)
    for both in zip(tables.actions, tables.gotos, strict=True):
        for row in both:
            out.append(len(row))
            out.extend(chain.from_iterable(row.items()))
    if tables.general:
        for numbers in (*tables.reduces, *tables.follow):
            out.append(len(numbers))
            out.extend(numbers)
    out.append(len(tables.starts))
    for start in tables.starts:
        out.extend(start)
    out.append(len(tables.lexer_of))
    out.extend(tables.lexer_of)
