"""Lark grammars as constraints: exactly the texts that `lark.Lark(...).parse` accepts."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from maskwright._interrupt import interruptible
from maskwright.errors import LarkError, LimitError, MaskwrightError, UnsatisfiableError
from maskwright.grammar.lark.lowered import Lowered
from maskwright.grammar.lark.options import checked
from maskwright.grammar.lark.shipped import SHIPPED, shipped_path
from maskwright.grammar.lark.source import Places
from maskwright.grammar.lark.special import read_special, with_special
from maskwright.grammar.lark.stored import cache_file, lark_version, read_lowered, shipped_key, write_lowered
from maskwright.grammar.plan import Budget, Cancel, CompileLimits, Constraint, Plan, Report, ReportEntry

if TYPE_CHECKING:
    from maskwright import _core
    from maskwright.grammar.ir import Ranges
    from maskwright.grammar.lark.lint import Finding
    from maskwright.vocabulary import Vocabulary

__all__ = ["Lark", "LarkPlan"]

T = TypeVar("T")
_WORTH_KEEPING = 0.1  # seconds that loading takes, from which on the result goes to the cache folder


@dataclass(frozen=True, slots=True)
class LarkPlan:
    """A lowered grammar with its names.

    Args:
        grammar: for the core.
        terminals: how each is shown to people, by number.
        rules: those in progress, by state of the parser.
        report: one entry for the whole.
        limit: makes the error of the core's complaint and a hint.
        budget: of the compile.
        whitespace: means nothing here.
    """

    grammar: _core.LarkGrammar
    terminals: tuple[str, ...]
    rules: tuple[str, ...]
    report: Report
    limit: Callable[[str, str], LimitError] = lambda message, hint: LimitError(message, location="grammar", hint=hint)
    budget: Budget = field(default_factory=lambda: Budget(CompileLimits()))
    whitespace: int = 0

    def spares(self, lacking: Ranges) -> bool:
        """Never known beforehand: the core explores."""
        return False

    def start(self, program: _core.Program) -> None:
        """Allocates and defines the root. Raises LarkError; LimitError while it is found out what can be spelled."""
        node = program.new_node()
        try:
            searched(self.grammar, lambda: program.define_lark(node, self.grammar), self.budget)
        except ValueError as error:
            hint = "Use a vocabulary with a token for every byte"
            if "takes too long" in str(error):
                raise self.limit(str(error), hint) from None
            raise LarkError(str(error), location="vocabulary", hint=hint) from None
        self.budget.close()

    def lower(self, program: _core.Program, node: int) -> None:
        """Never called: no node is left undefined."""
        raise AssertionError(f"node {node} was defined at the start")


def searched(grammar: _core.LarkGrammar, work: Callable[[], T], budget: Budget) -> T:
    """Runs a search of the core that ends early when the compile is cancelled or interrupted."""
    try:
        return interruptible(work, lambda: budget.check_cancel("grammar"))
    except BaseException:
        grammar.stop()
        raise


class Lark(Constraint):
    """Texts that a Lark grammar parses, with the meaning that lark gives it under the same options.

    Args:
        text: the grammar.
        start: name of the start rule, or a list of them: any of them will do.
        parser: "earley", "lalr" or "cyk".
        lexer: "auto", "dynamic", "dynamic_complete" (earley), "contextual" (lalr) or "basic".
        postlex: an Indenter of lark that sets class attributes alone, `PythonIndenter()`.
        import_paths: folders in which `%import` looks for files.
        source_path: the file that the text comes from, for relative imports.
        priority: as lark's.
        g_regex_flags: flags of `re` for all terminals.
        strict: lark then refuses more.
        edit_terminals: a function of lark's terminal definitions; compared by identity.
        special: which tokens of the vocabulary terminals stand for that are only `%declare`d, by their names: those of
            tokens, or `Special`s. The tokens are none of the text; lark makes no tree of it.
        options: other options of lark.Lark. Those that do not change the language are taken and ignored; those that may
            change tokens while parsing are refused.

    The grammar is loaded when it is compiled, not here: errors in it are LarkErrors with line and column, from
    `maskwright.compile`; UnsatisfiableError where no text parses. Unknown options raise TypeError.
    """

    text: str
    options: dict[str, Any]

    def __init__(
        self,
        text: str,
        start: str | Sequence[str] = "start",
        parser: str = "earley",
        lexer: str = "auto",
        postlex: Any = None,
        import_paths: Sequence[str | os.PathLike[str]] = (),
        *,
        source_path: str | os.PathLike[str] | None = None,
        priority: str | None = "auto",
        g_regex_flags: int = 0,
        strict: bool = False,
        edit_terminals: Callable[[Any], Any] | None = None,
        special: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a grammar is a str, not {type(text).__name__}: Lark.open reads files")
        unknown = sorted(set(options) - _KNOWN)
        if unknown:
            raise TypeError(f"lark.Lark has no option {unknown[0]!r}")
        self._set(
            text=text,
            options={
                "start": [start] if isinstance(start, str) else list(start),
                "parser": parser,
                "lexer": lexer,
                "postlex": postlex,
                "import_paths": [os.fspath(p) for p in import_paths],
                "source_path": None if source_path is None else os.fspath(source_path),
                "priority": priority,
                "g_regex_flags": int(g_regex_flags),
                "strict": bool(strict),
                "edit_terminals": edit_terminals,
                **({"special": read_special(special)} if special else {}),
                **options,
            },
        )

    @classmethod
    def open(cls, path: str | os.PathLike[str], **options: Any) -> Lark:
        """The grammar in a file, whose folder is where its relative imports are looked for. Raises OSError."""
        found = Path(path)
        return cls(found.read_text(encoding="utf-8"), source_path=str(found), **options)

    @classmethod
    def shipped(cls, name: str) -> Lark:
        """A grammar of the package: "arithmetic", "csv", "iso8601", "json", "python" or "sql".

        Raises:
            ValueError: for other names.
        """
        path = shipped_path(name)
        made = cls(path.read_text(encoding="utf-8"), **SHIPPED[name])
        made._set(_shipped=path.with_suffix(".lowered"))
        return made

    def tree(self, text: str) -> Any:
        """The tree that lark makes of a text. Raises what lark raises, where the text does not parse."""
        import lark

        parser = self.__dict__.get("_parser")
        if parser is None:
            parser = self.parser()
            self._set(_parser=parser)
        last: lark.exceptions.LarkError | None = None
        for start in self.options["start"]:
            try:
                return parser.parse(text, start=start)
            except lark.exceptions.LarkError as error:
                last = error
        assert last is not None
        raise last

    def lint(self) -> list[Finding]:
        """What is odd about it: colliding terminals, useless rules. Raises LarkError where it does not load."""
        from maskwright.grammar.lark.lint import lint

        return lint(self.text, self.options, self.places())

    def describe(self) -> dict[str, Any]:
        """This grammar as JSON data, for files. Raises MaskwrightError where it holds objects."""
        for name in ("edit_terminals", "postlex"):
            if not isinstance(self.options[name], str | None):
                message = f"a Lark grammar with {name} has no form in a file"
                raise MaskwrightError(message, location=name, hint="Pickle the compiled grammar instead")
        return {"kind": "lark", "text": self.text, "options": self.options}

    @classmethod
    def from_description(cls, data: dict[str, Any]) -> Lark:
        """The inverse of `describe`."""
        return cls(data["text"], **data["options"])

    def fingerprint(self) -> str:
        """The content key of the compile cache; files that are imported count by their path."""
        told = {k: v for k, v in sorted(self.options.items()) if k not in ("edit_terminals", "postlex")}
        objects = (self.options["edit_terminals"], self.options["postlex"])
        told["objects"] = [o if isinstance(o, str) else id(o) for o in objects]
        version = "shipped" if "_shipped" in self.__dict__ else lark_version()
        data = json.dumps([self.text, told, version], sort_keys=True, default=repr)
        return "lark:" + hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()

    def parser(self) -> Any:
        """Lark's own parser for this grammar and these options, for trees. Raises what lark raises."""
        import lark

        from maskwright.grammar.lark.indents import resolved
        from maskwright.grammar.lark.load import quick_lexers

        options = {**self.options, "postlex": resolved(self.options["postlex"])}
        if options.pop("special", None):
            message = "a grammar with special tokens has no parser: they are none of the text"
            raise LarkError(message, location="option special", hint="Use the text and the tokens of the result")
        return lark.Lark(self.text, **options, _plugins=quick_lexers())

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        """Loads and lowers the grammar. Raises LarkError, LimitError, UnsatisfiableError."""
        from maskwright import _core

        budget = Budget(limits, cancel)
        budget.check("grammar")
        begun = time.monotonic()
        lowered = self.lowered()
        grammar = _core.LarkGrammar(lowered.form)
        grammar.set_seconds(budget.seconds_left)
        places = self.places()
        limit = partial(self._limit, lowered)
        try:
            verdict = searched(grammar, grammar.survey, budget)
        except ValueError as error:
            hint = "Ignore some text between tokens, or write terminals that do not end in the middle of longer ones"
            raise limit(str(error), hint) from None
        budget.check("grammar")
        if verdict == -2:
            hint = "Ignore blanks, and write terminals that a blank ends"
            message = "whether every text with this indentation can be finished is not decided for such a grammar"
            raise LarkError(message, location="option postlex", hint=hint)
        if verdict < 0:
            start = self.options["start"][0]
            hint = "Some terminal takes more text than the rules leave to it, or never gets a token: restrict it"
            message = f"no text parses as {start} under the lexer {self._lexer()!r}"
            raise UnsatisfiableError(message, location=places.rule(start), hint=hint)
        if not lowered.surveyed:
            self._keep(lowered.with_survey(grammar.survey_words()), time.monotonic() - begun)
        detail = f"{self.options['parser']}, {self._lexer()} lexer, {len(lowered.terminals)} terminals"
        report = Report((ReportEntry("", "grammar", "enforced", detail),))
        return LarkPlan(grammar, lowered.terminals, lowered.rules, report, limit, budget)

    def _limit(self, lowered: Lowered, message: str, hint: str) -> LimitError:
        """The core's complaint, with the names of its terminals or rules, at the place of the first."""
        places = self.places()
        place = "grammar"
        if found := re.search(r"#(\d+)", message):
            shown = lowered.terminals[int(found[1])]
            place = places.text(shown) if shown.startswith('"') else places.terminal(shown)
        elif found := re.search(r"@(\d+)", message):
            place = places.rule(lowered.rules[int(found[1])].split(", ")[0])
        told = re.sub(r"#(\d+)", lambda m: lowered.terminals[int(m[1])], message)
        told = re.sub(r"@(\d+)", lambda m: f"rule {lowered.rules[int(m[1])]}", told)
        return LimitError(told, location=place, hint=f"{hint}; or raise CompileLimits.seconds")

    def reading(self, vocabulary: Vocabulary, banned: Collection[int]) -> Vocabulary:
        """With bytes for the tokens that terminals are bound to. Raises LarkError."""
        special = self.options.get("special")
        return with_special(vocabulary, special, banned) if special else vocabulary

    def places(self) -> Places:
        """Where names are defined."""
        return Places(self.text, self.options["source_path"] or "")

    def _lexer(self) -> str:
        return str(checked(self.options)["lexer"])

    def lowered(self) -> Lowered:
        """The form that the core reads, from a file if there is one. Raises LarkError and UnsatisfiableError."""
        options = checked(self.options)
        places = self.places()
        shipped = self.__dict__.get("_shipped")
        if shipped is not None:
            found = read_lowered(shipped, shipped_key(self.text))
            if found is not None:
                return found
        if options["postlex"] is not None:
            from maskwright.grammar.lark.indents import read_indenter

            read_indenter(options["postlex"], options["lexer"])
        place = cache_file(self.text, options, lark_version())
        found = read_lowered(*place) if place else None
        if found is not None:
            return found
        # These import a good deal, and a form that was found needs nothing of it.
        from maskwright.grammar.lark.load import load
        from maskwright.grammar.lark.lower import lower

        return lower(load(self.text, options, places), options, places)

    def surveyed(self) -> Lowered:
        """The same, with what the core finds out about it, for files."""
        from maskwright import _core

        lowered = self.lowered()
        return lowered if lowered.surveyed else lowered.with_survey(_core.LarkGrammar(lowered.form).survey_words())

    def _keep(self, lowered: Lowered, seconds: float) -> None:
        place = cache_file(self.text, checked(self.options), lark_version())
        if place is not None and seconds > _WORTH_KEEPING:
            with suppress(OSError):
                write_lowered(*place, lowered)

    def __getstate__(self) -> dict[str, Any]:
        shipped = self.__dict__.get("_shipped")
        return {"text": self.text, "options": self.options} | ({} if shipped is None else {"_shipped": shipped})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(**state)

    def __repr__(self) -> str:
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        return f"Lark({shown!r}, parser={self.options['parser']!r}, lexer={self.options['lexer']!r})"


_KNOWN = frozenset(
    [
        *("debug", "keep_all_tokens", "tree_class", "cache", "cache_grammar", "transformer", "ambiguity", "regex"),
        *("propagate_positions", "lexer_callbacks", "maybe_placeholders", "use_bytes", "ordered_sets", "_plugins"),
    ]
)
