"""Lark's lexers: which terminals each has, in which order, and which strings take a regex's tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from maskwright.errors import LarkError
from maskwright.grammar.lark.assembly import MATCH, Assembly
from maskwright.grammar.lark.patterns import PatternCompiler
from maskwright.grammar.lark.regex_module import need_regex
from maskwright.grammar.lark.source import Places
from maskwright.grammar.lark.special import characters

FIRST, EACH, EVERY = range(3)  # Lexer::Kind of the core
KINDS = {"basic": FIRST, "contextual": FIRST, "dynamic": EACH, "dynamic_complete": EVERY}


@dataclass(slots=True)
class LexerStart:
    """What the core calls so: programs in order of preference, words, and (regex, word, terminal)."""

    programs: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    unless: list[tuple[int, int, int]] = field(default_factory=list)


class Terminals:
    """The programs of the terminals of a loaded grammar.

    Args:
        definitions: lark's own, by name.
        numbers: of all terminals, those without a definition included.
        flags: `g_regex_flags`.
        lexer: the name of the lexer.
        places: where in the grammar's text names are defined.
        regex: lark matches with the `regex` package.
        special: terminals that stand for tokens of the vocabulary.
    """

    def __init__(
        self,
        definitions: dict[str, Any],
        numbers: dict[str, int],
        flags: int,
        lexer: str,
        places: Places,
        regex: bool = False,
        special: Iterable[str] = (),
    ) -> None:
        self.regex = regex
        self.special = list(special)
        self.module = need_regex() if regex else re
        self.assembly = Assembly()
        self.definitions = definitions
        self.numbers = numbers
        self.flags = flags
        self.lexer = lexer
        self.places = places
        self._programs: dict[str, int] = {}
        self._words: dict[str, tuple[int, int]] = {}
        self._taken: dict[tuple[str, str], bool] = {}

    def program(self, name: str) -> int:
        """Where the program of a terminal starts."""
        if name not in self._programs:
            self._programs[name] = self._compile(name, self.numbers[name])
        return self._programs[name]

    def _compile(self, name: str, match: int) -> int:
        if name in self.special:
            start = self.assembly.here
            self.assembly.char(characters(self.special.index(name)))
            self.assembly.emit(MATCH, match)
            return start
        definition = self.definitions[name]
        compiler = PatternCompiler(
            self.assembly, name, self.places.terminal(name), self.lexer != "dynamic_complete", self.regex
        )
        pattern = definition.pattern.to_regexp()
        if self.lexer in ("basic", "contextual"):
            self._check_combined(name, pattern, compiler)
        return compiler.program(pattern, self.flags, match)

    def _check_combined(self, name: str, pattern: str, compiler: PatternCompiler) -> None:
        """What lark notices when it joins all terminals into one expression, at the first parse."""
        try:
            found = self.module.compile(pattern, self.flags)
        except (self.module.error, OverflowError) as error:
            compiler.refuse(f"is not a regular expression: {error}", "Correct it")
        clash = sorted(set(found.groupindex) & set(self.numbers))
        if clash:
            compiler.refuse(f"has a group named {clash[0]} like a terminal", "Write (?:...), groups have no use here")
        if not self.regex and found.flags & ~re.U != self.flags & ~re.U:
            hint = "Write the flag behind the expression: /.../i"
            compiler.refuse("sets flags inside it for all of it, which lark refuses at its first parse", hint)

    def word(self, name: str) -> tuple[int, int]:
        """Number and program of a string that a regex also matches."""
        if name not in self._words:
            number = len(self._words)
            self._words[name] = number, self._compile(name, number)
        return self._words[name]

    def takes(self, regex: Any, text: Any) -> bool:
        """Whether the match of the regex on the string's text is all of it."""
        key = regex.name, text.name
        if key not in self._taken:
            value = text.pattern.value
            found = self.module.match(regex.pattern.to_regexp(), value, self.flags)
            self._taken[key] = found is not None and found.group(0) == value
        return self._taken[key]

    def start(self, definitions: list[Any]) -> LexerStart:
        """The lexer of some terminals, which are in lark's order.

        A string of the priority of a regex that matches it takes that regex's tokens of its text, and needs no place of
        its own in the order where its flags are among the regex's.
        """
        out = LexerStart()
        gone = set()
        for regex in (d for d in definitions if d.pattern.type == "re"):
            for text in (d for d in definitions if d.pattern.type == "str"):
                if text.priority != regex.priority or not self.takes(regex, text):
                    continue
                if text.pattern.flags <= regex.pattern.flags:
                    gone.add(text.name)
                number, program = self.word(text.name)
                if program not in out.words:
                    out.words.append(program)
                out.unless.append((self.numbers[regex.name], number, self.numbers[text.name]))
        out.programs = [self.program(d.name) for d in definitions if d.name not in gone]
        out.programs += map(self.program, self.special)  # nothing else reads their bytes: the order does not matter
        return out

    def each(self) -> LexerStart:
        """All terminals, each by itself."""
        missing = [n for n in self.numbers if n not in self.definitions and n not in self.special]
        if missing:
            raise LarkError(f"terminal {missing[0]} has no definition", location=self.places.terminal(missing[0]))
        return LexerStart([self.program(name) for name in self.numbers])


def dead_program(assembly: Assembly) -> int:
    """A program that matches nothing."""
    start = assembly.here
    assembly.char(())
    assembly.emit(MATCH)
    return start
