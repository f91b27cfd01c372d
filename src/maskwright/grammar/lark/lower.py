"""From a loaded grammar to its lowered form."""

from __future__ import annotations

import json
import re
from typing import Any

from maskwright.errors import LarkError, UnsatisfiableError
from maskwright.grammar.lark.general import general_tables, productive
from maskwright.grammar.lark.indents import Indents, check_balance, check_columns, check_lines, read_indenter
from maskwright.grammar.lark.lexers import EACH, EVERY, FIRST, KINDS, LexerStart, Terminals
from maskwright.grammar.lark.load import Loaded
from maskwright.grammar.lark.lowered import Lowered, flatten
from maskwright.grammar.lark.quirk import check_start
from maskwright.grammar.lark.source import Places
from maskwright.grammar.lark.special import check_special
from maskwright.grammar.lark.tables import Rule, Symbol, Tables

END = "$END"


def lower(loaded: Loaded, options: dict[str, Any], places: Places) -> Lowered:
    """Lowers a grammar.

    Raises:
        LarkError: for what is not supported, with its place.
        UnsatisfiableError: its start derives no sequence of terminals.
    """
    _check_productive(loaded, places)
    lexer = options["lexer"]
    indents = read_indenter(options["postlex"], lexer)
    numbers = _terminal_numbers(loaded)
    definitions = {str(t.name): t for t in loaded.lark.terminals}
    special = options.get("special", {})
    check_special(special, set(numbers) - set(definitions), places)
    _check_declared(loaded, {*definitions, *special}, indents, places)
    flags = int(options.get("g_regex_flags", 0))
    terminals = Terminals(definitions, numbers, flags, lexer, places, bool(options.get("regex")), special)
    ignored = [name in loaded.lark.ignore_tokens for name in numbers]
    kind = KINDS[lexer]
    if kind in (EACH, EVERY):
        _check_widths(loaded, places)
        tables = general_tables(loaded.rules, loaded.starts, _with_end(numbers), END)
        starts = [terminals.each()]
        check_start(loaded, terminals, starts[0].programs, ignored, places)
    elif options["parser"] == "lalr":
        tables = _lalr_tables(loaded, _with_end(numbers), indents)
        starts = _lalr_lexers(loaded, terminals, tables)
    else:
        tables = general_tables(loaded.rules, loaded.starts, _with_end(numbers), END)
        if options["parser"] == "cyk":
            tables.starts = [(state, end, -1) for state, end, _ in tables.starts]
        starts = [terminals.start(list(_lexer_of(loaded).terminals))]
    assert kind in (FIRST, EACH, EVERY)
    layout = [0]
    if indents is not None:
        for name in (indents.newline, indents.indent, indents.dedent):
            if name not in numbers:
                hint = f"Use it in a rule, and write `%declare {name}`"
                raise LarkError(f"terminal {name} of the Indenter is not used", location="option postlex", hint=hint)
        check_balance(indents, loaded.rules, places)
        check_lines(indents, tables, numbers, places)
        check_columns(indents, definitions, terminals.flags, places)
        layout = indents.words(numbers)

    def shown(name: str) -> str:
        if name not in definitions:
            return name
        pattern = definitions[name].pattern
        return json.dumps(pattern.value, ensure_ascii=False) if pattern.type == "str" else name

    words = flatten(terminals.assembly, kind, starts, ignored, tables, numbers, layout)
    return Lowered(words, tuple(map(shown, numbers)), _rules_shown(tables.in_progress))


def _rules_shown(states: list[set[str]]) -> tuple[str, ...]:
    """Names of rules as they stand in the grammar: those made for repeats are told by what they are part of."""
    shown = {name: _rule_shown(name) for name in set().union(*states)}
    return tuple(", ".join(sorted({shown[name] for name in names})) for names in states)


def _rule_shown(name: str) -> str:
    plain = re.sub(r"^\$(root_|all_)", "", name)
    plain = re.sub(r"^__(.+?)_(plus|star)_\d+$", r"\1", plain)
    return re.split(r"[{$]", plain)[0]


def _check_productive(loaded: Loaded, places: Places) -> None:
    good = productive(loaded.rules)
    if not any(s in good for s in loaded.starts):
        name = loaded.starts[0]
        hint = "Every alternative leads back to itself: add one that ends"
        raise UnsatisfiableError(f"rule {name} derives nothing", location=places.rule(name), hint=hint)


def _terminal_numbers(loaded: Loaded) -> dict[str, int]:
    names = [str(t.name) for t in loaded.lark.terminals]
    names += [s.name for r in loaded.rules for s in r.body if s.terminal]
    return {name: at for at, name in enumerate(dict.fromkeys(names))}


def _with_end(numbers: dict[str, int]) -> dict[str, int]:
    return {**numbers, END: len(numbers)}


def _check_declared(loaded: Loaded, known: set[str], indents: Indents | None, places: Places) -> None:
    made = () if indents is None else (indents.indent, indents.dedent)
    for rule in loaded.rules:
        for symbol in rule.body:
            if symbol.terminal and symbol.name not in known and symbol.name not in made:
                hint = f"Define it, or bind it to a token of the vocabulary: special={{{symbol.name!r}: '<...>'}}"
                message = f"terminal {symbol.name} is declared and has no text"
                raise LarkError(message, location=places.terminal(symbol.name), hint=hint)


def _check_widths(loaded: Loaded, places: Places) -> None:
    """The dynamic lexers of lark say so themselves; this is for whatever they let through."""
    for terminal in loaded.lark.terminals:
        if terminal.pattern.min_width == 0:
            name = str(terminal.name)
            hint = "Make the terminal one character long at least, and optional in the rules"
            raise LarkError(f"terminal {name} may be empty", location=places.terminal(name), hint=hint)


def _lexer_of(loaded: Loaded) -> Any:
    frontend: Any = loaded.lark.parser
    lexer = frontend.lexer
    return getattr(lexer, "lexer", lexer)  # behind a postlex connector


def _lalr_tables(loaded: Loaded, terminals: dict[str, int], indents: Indents | None) -> Tables:
    frontend: Any = loaded.lark.parser
    table = frontend.parser._parse_table
    live = loaded.live
    assert live is not None
    # With indentation there is no search to fall back to (indents.py).
    settled = loaded.conflicts if indents is None else loaded.harmful
    tables = Tables(general=False, reduced=not settled and live.consistent)
    rules: dict[int, int] = {}
    for state in sorted(table.states):
        assert tables.add_state() == state
    rows = {
        state: {name: action for name, action in row.items() if (state, name) not in live.dead}
        for state, row in table.states.items()
        if state in live.live
    }
    wanted = {name for row in rows.values() for name, (action, _) in row.items() if action.name == "Shift"} | {END}
    for state, row in rows.items():
        for name, (action, arg) in row.items():
            if action.name == "Reduce":
                if name not in wanted:
                    continue
                if id(arg) not in rules:
                    rules[id(arg)] = len(tables.rules)
                    body = tuple(Symbol(str(s.name), bool(s.is_term)) for s in arg.expansion)
                    tables.rules.append(Rule(str(arg.origin.name), body))
                    tables.number(str(arg.origin.name))
                tables.actions[state][terminals[name]] = -(rules[id(arg)] + 1)
            elif name in terminals:
                tables.actions[state][terminals[name]] = arg + 1
            else:
                tables.gotos[state][tables.number(name)] = arg
    tables.set_rules(tables.rules)
    tables.in_progress = live.in_progress
    tables.starts = [(table.start_states[s], table.end_states[s], -1) for s in loaded.starts]
    return tables


def _lalr_lexers(loaded: Loaded, terminals: Terminals, tables: Tables) -> list[LexerStart]:
    lexer = _lexer_of(loaded)
    by_state = getattr(lexer, "lexers", None)
    if by_state is None:
        tables.lexer_of = [0] * len(tables.actions)
        return [terminals.start(list(lexer.terminals))]
    numbers: dict[int, int] = {}
    starts: list[LexerStart] = []
    for state in range(len(tables.actions)):
        if not tables.actions[state]:  # it is never reached, see dead_ends.py
            tables.lexer_of.append(0)
            continue
        one = by_state[state]
        if id(one) not in numbers:
            numbers[id(one)] = len(starts)
            starts.append(terminals.start(list(one.terminals)))
        tables.lexer_of.append(numbers[id(one)])
    return starts
