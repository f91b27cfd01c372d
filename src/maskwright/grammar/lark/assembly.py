"""Programs of terminals for the core: instructions of an ordered backtracking machine (src/core/lark/code.h)."""

from __future__ import annotations

from collections.abc import Callable

from maskwright.errors import LimitError
from maskwright.grammar.ir import Ranges

CHAR, SPLIT, JUMP, MATCH, AHEAD, BEHIND, END, LOOP_IN, LOOP_END, BEGIN = range(10)
MAX_CODE = 400_000  # instructions of a grammar
MAX_LOOPS, MAX_BEHINDS = 64, 64  # what fits into the core's words


class Assembly:
    """The instructions of all terminals of a grammar, its character classes and lookbehinds."""

    def __init__(self) -> None:
        self.code: list[list[int]] = []
        self.classes: dict[Ranges, int] = {}
        self.behinds: dict[str, int] = {}
        self.behind_programs: list[int] = []
        self.loops = 0  # of the program that is being written

    def emit(self, op: int, a: int = 0, b: int = 0) -> int:
        """Appends an instruction and tells where it is."""
        if len(self.code) >= MAX_CODE:
            hint = "Write smaller counts in braces"
            raise LimitError(f"the terminals need more than {MAX_CODE} instructions", location="", hint=hint)
        self.code.append([op, a, b])
        return len(self.code) - 1

    @property
    def here(self) -> int:
        """Where the next instruction will be."""
        return len(self.code)

    def char(self, ranges: Ranges) -> None:
        """One character of a class; of an empty one, nothing ever matches."""
        self.emit(CHAR, self.classes.setdefault(ranges, len(self.classes)))

    def text(self, text: str) -> None:
        """The characters of a string."""
        for c in text:
            self.char(((ord(c), ord(c)),))

    def options(self, writers: list[Callable[[], None]]) -> None:
        """Alternatives, the first preferred."""
        ends = []
        for at, write in enumerate(writers):
            last = at == len(writers) - 1
            split = -1 if last else self.emit(SPLIT)
            if not last:
                self.code[split][1] = self.here
            write()
            if not last:
                ends.append(self.emit(JUMP))
                self.code[split][2] = self.here
        for end in ends:
            self.code[end][1] = self.here

    def star(self, body: Callable[[], None], lazy: bool, nullable: bool) -> None:
        """Any number of iterations; one that reads nothing is the last."""
        head = self.emit(SPLIT)
        start = self.here
        loop_end = self._iteration(body, nullable)
        self.emit(JUMP, head)
        self.code[head][1:] = [self.here, start] if lazy else [start, self.here]
        if loop_end is not None:
            self.code[loop_end][2] = self.here

    def up_to(self, count: int, body: Callable[[], None], lazy: bool, nullable: bool) -> None:
        """At most so many iterations; one that reads nothing is the last."""
        splits, loop_ends = [], []
        for _ in range(count):
            splits.append((self.emit(SPLIT), self.here))
            loop_ends.append(self._iteration(body, nullable))
        for split, start in splits:
            self.code[split][1:] = [self.here, start] if lazy else [start, self.here]
        for loop_end in loop_ends:
            if loop_end is not None:
                self.code[loop_end][2] = self.here

    def _iteration(self, body: Callable[[], None], nullable: bool) -> int | None:
        if not nullable:
            body()
            return None
        if self.loops == MAX_LOOPS:
            raise LimitError(f"a terminal has over {MAX_LOOPS} loops whose body may be empty", location="")
        loop = self.loops
        self.loops += 1
        self.emit(LOOP_IN, loop)
        body()
        return self.emit(LOOP_END, loop)

    def ahead(self, body: Callable[[], None], negative: bool) -> None:
        """A lookahead."""
        jump = self.emit(JUMP)
        start = self.here
        body()
        self.emit(MATCH)
        self.code[jump][1] = self.here
        self.emit(AHEAD, start, int(negative))

    def behind(self, key: str, body: Callable[[], None], negative: bool) -> None:
        """A lookbehind; those of one key share an automaton."""
        if key not in self.behinds:
            if len(self.behinds) == MAX_BEHINDS:
                raise LimitError(f"the terminals have over {MAX_BEHINDS} lookbehinds", location="")
            jump = self.emit(JUMP)
            self.behind_programs.append(self.here)
            body()
            self.emit(MATCH)
            self.code[jump][1] = self.here
            self.behinds[key] = len(self.behinds)
        self.emit(BEHIND, self.behinds[key], int(negative))
