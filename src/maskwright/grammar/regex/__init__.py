"""The regex front end: two dialects, one intermediate representation, one constraint."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Any, Literal, get_args

from maskwright.errors import RegexError
from maskwright.grammar.automata import automaton, require_some_text
from maskwright.grammar.ir import Ir
from maskwright.grammar.plan import Budget, Cancel, CompileLimits, Constraint, Plan, Report, ReportEntry, RootPlan
from maskwright.grammar.regex.ast import Node
from maskwright.grammar.regex.atomics import without_atomics
from maskwright.grammar.regex.ecma import EcmaParser
from maskwright.grammar.regex.lower import lower
from maskwright.grammar.regex.python import PythonParser
from maskwright.grammar.regex.references import with_needed_groups, without_references

__all__ = ["Dialect", "Match", "Regex", "parse", "pattern_ir"]

Dialect = Literal["python", "ecma"]
Reading = Literal["python", "ecma", "ecma-loose"]
Match = Literal["full", "search"]
_PYTHON_FLAGS = int(re.A | re.I | re.M | re.S | re.U | re.X)
_CACHED_LENGTH = 10_000  # longer patterns are parsed anew: the cache is bounded in entries, not in bytes


def parse(pattern: str, dialect: Reading = "python", flags: int = 0) -> Node:
    """The syntax tree of a pattern. Raises RegexError with an offset."""
    if dialect == "python":
        tree = with_needed_groups(PythonParser(pattern, checked_flags(flags)).parse())
        return without_references(without_atomics(tree), ecma=False)
    if flags:
        hint = "The ECMA-262 dialect always has the flag u and no other"
        raise RegexError(f"flags {flags} are not supported in the ECMA-262 regex", location="offset 0", hint=hint)
    parser = EcmaParser(pattern, loose=dialect == "ecma-loose")
    return without_references(with_needed_groups(parser.parse()), ecma=True)


def checked_flags(flags: int) -> int:
    """Flags of `re` that have a meaning for str patterns. Raises RegexError for others."""
    flags &= ~int(re.DEBUG)
    if flags & ~_PYTHON_FLAGS or (flags & re.A and flags & re.U):
        hint = "Use re.A or re.U, re.I, re.M, re.S, re.X"
        raise RegexError(f"flags {re.RegexFlag(flags)!r} are not supported", location="offset 0", hint=hint)
    return flags


def pattern_ir(
    pattern: str, dialect: Reading = "python", match: Match = "full", flags: int = 0, max_nodes: int = 1_000_000
) -> Ir:
    """The language of the texts that a pattern matches.

    Args:
        pattern: its source.
        dialect: "python" (`re`) or "ecma" (ECMA-262 with flag u); "ecma-loose" also takes needless escapes of
            punctuation, and closing brackets that close nothing.
        match: "full": the whole text (`re.fullmatch`); "search": some part of it (`re.search`).
        flags: those of `re`, for the Python dialect.
        max_nodes: bound of the term's size.

    Raises:
        RegexError: the pattern is malformed, or uses what is not supported; the location is an offset.
        LimitError: it is too large.
    """
    make = _cached_ir if len(pattern) <= _CACHED_LENGTH else _cached_ir.__wrapped__
    return make(pattern, dialect, match, flags, max_nodes)


@lru_cache(maxsize=2048)
def _cached_ir(pattern: str, dialect: Reading, match: Match, flags: int, max_nodes: int) -> Ir:
    return lower(parse(pattern, dialect, flags), match == "search", max_nodes)


class Regex(Constraint):
    r"""Texts that a regular expression matches.

    Args:
        pattern: a str, or a compiled `re.Pattern` of one (its flags are taken over).
        dialect: "python": the language of `re`, and ``\p{..}``; "ecma": ECMA-262 with the flag u.
        match: "full": the whole text must match (`re.fullmatch`); "search": some part of it (`re.search`).
        flags: flags of `re` (`re.I | re.S`), for the Python dialect.

    The pattern is parsed when it is compiled, not here: errors in it are RegexErrors with an offset, from
    `maskwright.compile`. Arguments of a wrong type raise TypeError, a wrong `dialect` or `match` ValueError.
    """

    pattern: str
    dialect: Dialect
    match: Match
    flags: int

    def __init__(
        self, pattern: str | re.Pattern[str], dialect: Dialect = "python", match: Match = "full", flags: int = 0
    ) -> None:
        if isinstance(pattern, re.Pattern):
            if flags:
                raise TypeError("flags cannot be given beside a compiled re.Pattern: compile it with them")
            if dialect != "python":
                raise TypeError(f"a re.Pattern is of the Python dialect, not {dialect!r}: pass its source")
            flags = pattern.flags & ~int(re.U)
            pattern = pattern.pattern
        if not isinstance(pattern, str):
            hint = ": decode it, a regex constrains text" if isinstance(pattern, bytes) else ""
            raise TypeError(f"a pattern is a str or a re.Pattern of one, not {type(pattern).__name__}{hint}")
        if not isinstance(flags, int):
            raise TypeError(f"flags are those of re, not {type(flags).__name__}")
        for name, value, known in (("dialect", dialect, get_args(Dialect)), ("match", match, get_args(Match))):
            if value not in known:
                raise ValueError(f"{name} is one of {', '.join(map(repr, known))}, not {value!r}")
        self._set(pattern=pattern, dialect=dialect, match=match, flags=int(flags))

    def fingerprint(self) -> str:
        """The content key of the compile cache."""
        pattern = self.pattern
        if len(pattern) > 200:  # a digest, so that caches and manifests hold no megabytes
            pattern = "sha256-" + hashlib.sha256(pattern.encode("utf-8", "surrogatepass")).hexdigest()
        return f"regex:{self.dialect}:{self.match}:{self.flags}:{pattern}"

    def language(self, limits: CompileLimits | None = None) -> Ir:
        """The set of texts, as a regular term. Raises RegexError and LimitError."""
        nodes = (limits or CompileLimits()).nodes
        return pattern_ir(self.pattern, self.dialect, self.match, self.flags, nodes)

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        """Parses the pattern. Raises RegexError, LimitError, or UnsatisfiableError where no text matches."""
        budget = Budget(limits, cancel)
        budget.check("offset 0")
        term = self.language(limits)
        require_some_text(term, budget, "the regex", "offset 0")
        detail = f"{self.dialect} dialect, {self.match} match"
        report = Report((ReportEntry("", "regex", "enforced", detail),))
        return RootPlan(lambda program, node: program.define_regex(node, automaton(term)), report)

    def __repr__(self) -> str:
        shown: dict[str, Any] = {"dialect": self.dialect, "match": self.match, "flags": self.flags}
        defaults = {"dialect": "python", "match": "full", "flags": 0}
        rest = "".join(f", {k}={v!r}" for k, v in shown.items() if v != defaults[k])
        return f"Regex({self.pattern!r}{rest})"
