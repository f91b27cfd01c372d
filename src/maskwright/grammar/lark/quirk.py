"""A start after whose end ignored text may be either ignored or part of it: there lark's dynamic parsers crash.

If the start rule is complete at two places with nothing but ignored text between them, lark may raise `RuntimeError:
Earley should not generate multiple start symbol items`, depending on the order in which it found them. With one
alternative at the start it never does.
"""

from __future__ import annotations

from maskwright.errors import LarkError
from maskwright.grammar.ir import Ranges, intersect_ranges, merge_ranges
from maskwright.grammar.lark.assembly import CHAR, JUMP, LOOP_END, MATCH, SPLIT, Assembly
from maskwright.grammar.lark.lexers import Terminals
from maskwright.grammar.lark.load import Loaded
from maskwright.grammar.lark.source import Places


def check_start(loaded: Loaded, terminals: Terminals, programs: list[int], ignored: list[bool], places: Places) -> None:
    """Raises LarkError where it could happen; the test is conservative."""
    crowded = [s for s in loaded.starts if sum(r.lhs == s for r in loaded.rules) > 1]
    if not crowded or not any(ignored):
        return
    letters = _Letters(terminals.assembly)
    passed = [p for p, i in zip(programs, ignored, strict=True) if i]
    begins = merge_ranges(r for p in passed for r in letters.first(p))
    ends = merge_ranges(r for p in passed for r in letters.last(p))
    names = list(terminals.numbers)
    used = {s.name for r in loaded.rules for s in r.body if s.terminal}
    inside = any(intersect_ranges(letters.all(programs[names.index(n)]), begins) for n in used)
    if not inside:
        return
    for start in crowded:
        for name in _last_terminals(loaded, start):
            if intersect_ranges(letters.last(programs[terminals.numbers[name]]), ends):
                message = f"rule {start} has several alternatives, and may end before or after text that is ignored"
                hint = f"Lark crashes there: write one alternative, `main`, and what {start} has now in it"
                raise LarkError(message, location=places.rule(start), hint=hint)


def _last_terminals(loaded: Loaded, start: str) -> set[str]:
    """The terminals that may come last."""
    empty: set[str] = set()
    while True:
        more = {r.lhs for r in loaded.rules if all(not s.terminal and s.name in empty for s in r.body)} - empty
        if not more:
            break
        empty |= more
    found: set[str] = set()
    seen, stack = {start}, [start]
    while stack:
        at = stack.pop()
        for rule in loaded.rules:
            if rule.lhs != at:
                continue
            for symbol in reversed(rule.body):
                if symbol.terminal:
                    found.add(symbol.name)
                    break
                if symbol.name not in seen:
                    seen.add(symbol.name)
                    stack.append(symbol.name)
                if symbol.name not in empty:
                    break
    return found


class _Letters:
    """The characters of programs, by reading their instructions."""

    def __init__(self, assembly: Assembly) -> None:
        self.code = assembly.code
        self.ranges = list(assembly.classes)

    def _next(self, pc: int) -> list[int]:
        op, a, b = self.code[pc]
        if op == SPLIT:
            return [a, b]
        if op == LOOP_END:
            return [pc + 1, b]
        return [a] if op == JUMP else [] if op == MATCH else [pc + 1]

    def _reach(self, start: list[int], through_characters: bool) -> set[int]:
        seen, stack = set(start), list(start)
        while stack:
            pc = stack.pop()
            if self.code[pc][0] == CHAR and not through_characters:
                continue
            for to in self._next(pc):
                if to not in seen:
                    seen.add(to)
                    stack.append(to)
        return seen

    def _classes(self, pcs: set[int]) -> Ranges:
        return merge_ranges(r for pc in pcs if self.code[pc][0] == CHAR for r in self.ranges[self.code[pc][1]])

    def all(self, program: int) -> Ranges:
        """All of them."""
        return self._classes(self._reach([program], True))

    def first(self, program: int) -> Ranges:
        """Those at the beginning."""
        return self._classes(self._reach([program], False))

    def last(self, program: int) -> Ranges:
        """Those at the end."""
        inside = self._reach([program], True)
        ends = {
            pc
            for pc in inside
            if self.code[pc][0] == CHAR and any(self.code[t][0] == MATCH for t in self._reach([pc + 1], False))
        }
        return self._classes(ends)
