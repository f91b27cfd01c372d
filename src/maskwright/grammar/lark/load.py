"""Loads a grammar with the lark package: its loader, its imports and templates, its LALR table."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from maskwright.errors import ConstraintError, LarkError
from maskwright.grammar.lark.dead_ends import LiveItems
from maskwright.grammar.lark.indents import resolved
from maskwright.grammar.lark.regex_module import need_regex
from maskwright.grammar.lark.source import Places
from maskwright.grammar.lark.tables import Rule, Symbol

if TYPE_CHECKING:
    from lark import Lark

_PLACE = re.compile(r",?\s*(?:at )?\(?\bline (\d+),? col(?:umn)? (\d+)\)?")


@dataclass(slots=True)
class Loaded:
    """A grammar as lark has it.

    Args:
        lark: the instance; for cyk one of earley with the basic lexer, which has the same rules and tokens.
        rules: its productions.
        starts: the names of its start rules.
        conflicts: look-aheads where a conflict of the LALR table was resolved.
        harmful: those behind which, in some place of the automaton, nothing else could follow the rule that lost.
        live: what can be finished, of lalr's automaton; None for other parsers.
    """

    lark: Lark
    rules: list[Rule]
    starts: list[str]
    conflicts: list[str]
    harmful: list[str]
    live: LiveItems | None = None


def load(text: str, options: dict[str, Any], places: Places) -> Loaded:
    """Loads a grammar.

    Raises:
        LarkError: lark's own complaint, with its place.
    """
    from lark import Lark

    seen = _Seen()
    if options.get("regex"):
        need_regex()
    given = {**options, "postlex": resolved(options["postlex"])}
    given.pop("special", None)
    parser, cyk = given["parser"], given["parser"] == "cyk"
    if cyk:
        given["parser"] = "earley"
    given["_plugins"] = quick_lexers()
    if parser == "lalr":
        given["_plugins"]["LALR_Parser"] = _recording_parser(seen)
    try:
        made = Lark(text, **given)
    except ConstraintError:
        raise
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # lark raises exceptions of all kinds, assertions included
        raise _translated(error, places) from None
    rules = [
        Rule(str(r.origin.name), tuple(Symbol(str(s.name), bool(s.is_term)) for s in r.expansion)) for r in made.rules
    ]
    if cyk:
        _check_cyk(rules, places)
    return Loaded(made, rules, list(made.options.start), seen.conflicts, seen.harmful, seen.items)


@dataclass(slots=True)
class _Seen:
    conflicts: list[str] = field(default_factory=list)
    harmful: list[str] = field(default_factory=list)
    items: LiveItems | None = None


def quick_lexers() -> dict[str, Any]:
    """Lark's lexers as plug-ins, without the search for colliding terminals, which can take minutes and only warns.

    With strict=True it decides what is refused, and stays.
    """
    from lark.lexer import BasicLexer, ContextualLexer

    class Silent:
        def count_marked_pairs(self) -> int:
            return 1_000  # so many that lark looks no further

    class Basic(BasicLexer):
        def __init__(self, conf: Any, comparator: Any = None) -> None:
            super().__init__(conf, comparator if conf.strict else Silent())

    class Contextual(ContextualLexer):
        def __init__(self, conf: Any, states: Any, always_accept: Any = ()) -> None:
            if not conf.strict:
                Basic(copy(conf))  # notices what is wrong with terminals
                conf.skip_validation = True
            super().__init__(conf, states, always_accept)

    return {"BasicLexer": Basic, "ContextualLexer": Contextual}


def _translated(error: Exception, places: Places) -> LarkError:
    message = str(error).strip().split("\n\n")[0][:500] or type(error).__name__
    found = _PLACE.search(message)
    line = getattr(error, "line", None)
    if found is not None:
        location = places.at(int(found[1]), int(found[2]))
        message = (message[: found.start()] + message[found.end() :]).strip()
    elif isinstance(line, int) and line > 0:
        location = places.at(line, int(getattr(error, "column", 1)))
    else:
        location = _named_place(message, places)
    message = message.replace("\n", " ").rstrip(". ")
    return LarkError(f"lark refuses the grammar: {message}", location=location, hint="Correct it there")


def _named_place(message: str, places: Places) -> str:
    """The place of the first name in a message that the grammar defines."""
    for name in re.findall(r"\b_?[A-Z][A-Z0-9_]*\b", message):
        if (place := places.terminal(name)) != name:
            return place
    for name in re.findall(r"\b_?[a-z][a-z0-9_]*\b", message):
        if (place := places.rule(name)) != name:
            return place
    return "grammar"


def _recording_parser(seen: _Seen) -> type:
    """Lark's LALR parser, which also tells where it settled conflicts, and what can never be finished."""
    from lark.parsers import lalr_analysis
    from lark.parsers.lalr_analysis import LALR_Analyzer
    from lark.parsers.lalr_parser import LALR_Parser, _Parser

    class Analyzer(LALR_Analyzer):
        def compute_lalr1_states(self) -> None:
            for itemset in self.lr0_itemsets:
                taken = set(itemset.transitions)
                ahead = itemset.lookaheads.items()
                seen.conflicts.extend(str(la.name) for la, rules in ahead if len(rules) > 1 or la in taken)
                seen.harmful.extend(str(la.name) for la, rules in ahead if len(rules) > 1)
            seen.items = LiveItems(self)
            if seen.conflicts:
                self._find_harmful()
            super().compute_lalr1_states()

        def _find_harmful(self) -> None:
            digraph: Any = lalr_analysis.digraph
            read = digraph(self.nonterminal_transitions, self.reads, self.directly_reads)
            follow = digraph(self.nonterminal_transitions, self.includes, read)
            for place, lost in self.lookback.items():
                for itemset, _ in lost:
                    if follow[place] and not follow[place] - set(itemset.transitions):
                        seen.harmful.extend(str(la.name) for la in follow[place])

    class Parser(LALR_Parser):
        def __init__(self, parser_conf: Any, debug: bool = False, strict: bool = False) -> None:
            analysis = Analyzer(parser_conf, debug=debug, strict=strict)
            analysis.compute_lalr()  # type: ignore[no-untyped-call]
            self._parse_table = analysis.parse_table
            self.parser_conf = parser_conf
            self.parser = _Parser(analysis.parse_table, parser_conf.callbacks, debug)

    return Parser


def _check_cyk(rules: list[Rule], places: Places) -> None:
    for rule in rules:
        if not rule.body:
            hint = "CYK has no empty rules: use parser='earley', lexer='basic'"
            raise LarkError(f"rule {rule.lhs} may be empty", location=places.rule(rule.lhs), hint=hint)
    units: dict[str, set[str]] = {}
    for rule in rules:
        if len(rule.body) == 1 and not rule.body[0].terminal:
            units.setdefault(rule.lhs, set()).add(rule.body[0].name)
    for name in units:
        seen: set[str] = set()
        stack = [name]
        while stack:
            for to in units.get(stack.pop(), ()):
                if to == name:
                    hint = "CYK cannot cope with it (lark hangs): take the alternative out"
                    raise LarkError(f"rule {name} derives itself alone", location=places.rule(name), hint=hint)
                if to not in seen:
                    seen.add(to)
                    stack.append(to)
