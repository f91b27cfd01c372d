"""What lark itself says of a text: the specification of Lark grammars is the lark package."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

QUIRK = "should not generate multiple start symbol"


class LarkOracle:
    """Verdicts of `lark.Lark(text, **options).parse`.

    Args:
        text: the grammar.
        options: those of lark.Lark.

    Raises whatever lark raises where it refuses the grammar; some faults it notices at the first parse alone, so one is
    tried.
    """

    def __init__(self, text: str, options: dict[str, Any]) -> None:
        import lark

        self._lark = lark
        # Its search for colliding terminals only warns, takes long and fails over some; it needs interegular.
        lexer: Any = lark.lexer
        searches, lexer.has_interegular = lexer.has_interegular, bool(options.get("strict"))
        try:
            self.parser = lark.Lark(text, **options)
        finally:
            lexer.has_interegular = searches
        self.starts: list[str] = list(self.parser.options.start)
        self.accepts("a")

    def accepts(self, text: str) -> bool | None:
        """Whether a text parses from some start; None where lark's Earley crashes over it."""
        crashed = False
        for start in self.starts:
            try:
                self.parser.parse(text, start=start)
                return True
            except (self._lark.exceptions.UnexpectedInput, self._lark.exceptions.ParseError):
                continue
            except RuntimeError as error:
                if QUIRK not in str(error):
                    raise
                crashed = True
        return None if crashed else False

    def texts(self, alphabet: str, most: int) -> Iterator[str]:
        """All accepted texts of at most so many characters."""
        for length in range(most + 1):
            for letters in product(alphabet, repeat=length):
                if self.accepts("".join(letters)):
                    yield "".join(letters)
