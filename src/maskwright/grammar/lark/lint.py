"""What is odd about a grammar that compiles: terminals that collide, rules and terminals that nothing comes of.

Bounded in time, and never part of a compile. Collisions are found by interegular, which compares languages of regular
expressions; it reads a part of Python's syntax, and what it cannot read is passed over.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maskwright.errors import LarkError
from maskwright.grammar.lark.general import productive
from maskwright.grammar.lark.load import Loaded, load
from maskwright.grammar.lark.options import checked
from maskwright.grammar.lark.source import Places

_SECONDS = 5.0
_DEFINED = re.compile(r"^[ \t]*[?!]{0,2}([A-Za-z_]\w*)(?:\{[^}]*\})?(?:\.-?\d+)?[ \t]*:", re.M)


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark: where, and what."""

    location: str
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"


def lint(text: str, options: dict[str, Any], places: Places) -> list[Finding]:
    """The remarks on a grammar, in the order of what they are about. Raises LarkError where it cannot be loaded."""
    settled = checked(options)
    empty: list[str] = []
    try:
        loaded = load(text, {**settled, "edit_terminals": _recording(settled["edit_terminals"], empty)}, places)
    except LarkError:
        if not empty:
            raise
        # That is what it was refused for: lark has no terminals without text.
        told = "may match the empty string: make it one character long at least, and optional in the rules"
        return [Finding(places.terminal(name), f"terminal {name} {told}") for name in dict.fromkeys(empty)]
    found = [*_rules(loaded, places), *_unused(text, loaded, places), *_conflicts(loaded)]
    if settled["lexer"] in ("basic", "contextual"):
        found += _collisions(loaded, places)
    elif settled["lexer"] == "dynamic":
        found += _keywords(loaded, places)
    return found


def _recording(given: Callable[[Any], Any] | None, empty: list[str]) -> Callable[[Any], Any]:
    """`edit_terminals` that takes down which may be empty."""

    def edit(terminal: Any) -> Any:
        made = terminal if given is None else given(terminal) or terminal
        if made.pattern.min_width == 0:
            empty.append(str(made.name))
        return made

    return edit


def _unused(text: str, loaded: Loaded, places: Places) -> list[Finding]:
    """Rules and terminals of the text that lark leaves out, since nothing that is reached asks for them."""
    had = {re.split(r"[{]", r.lhs)[0] for r in loaded.rules} | {str(t.name) for t in loaded.lark.terminals}
    plain = re.sub(r"//[^\n]*", "", text)
    out = []
    for name in dict.fromkeys(_DEFINED.findall(plain)):
        if name in had:
            continue
        if name.lstrip("_")[:1].islower():
            out.append(Finding(places.rule(name), f"rule {name} is not reached from {loaded.starts[0]}"))
        elif len(re.findall(rf"\b{name}\b", plain)) == 1:
            out.append(Finding(places.terminal(name), f"terminal {name} is used nowhere"))
    return out


def _rules(loaded: Loaded, places: Places) -> list[Finding]:
    out = []
    good = productive(loaded.rules)
    names = list(dict.fromkeys(r.lhs for r in loaded.rules))
    for name in names:
        if name not in good:
            out.append(Finding(places.rule(name), f"rule {name} derives no text, it always leads back to itself"))
    seen, stack = set(loaded.starts), list(loaded.starts)
    while stack:
        at = stack.pop()
        for rule in loaded.rules:
            if rule.lhs == at:
                fresh = {s.name for s in rule.body if not s.terminal} - seen
                seen |= fresh
                stack += sorted(fresh)
    out += [Finding(places.rule(n), f"rule {n} is not reached from {loaded.starts[0]}") for n in names if n not in seen]
    return out


def _conflicts(loaded: Loaded) -> list[Finding]:
    ahead = sorted(set(loaded.conflicts))
    if not ahead:
        return []
    told = f"conflicts of the LALR table were settled, which changes the language, before {', '.join(ahead)}"
    return [Finding("grammar", told)]


def _keywords(loaded: Loaded, places: Places) -> list[Finding]:
    """Under the dynamic lexer a word is a keyword and a name at once."""
    out = []
    for word in loaded.lark.terminals:
        if word.pattern.type != "str" or not word.pattern.value.isalpha():
            continue
        for regex in loaded.lark.terminals:
            if regex.pattern.type == "re" and re.fullmatch(regex.pattern.to_regexp(), word.pattern.value):
                told = f"{word.pattern.value!r} may also be read as {regex.name}: the dynamic lexer tries both"
                out.append(Finding(places.terminal(str(regex.name)), told))
    return out


def _collisions(loaded: Loaded, places: Places) -> list[Finding]:
    import interegular

    stop = time.monotonic() + _SECONDS
    known = {}
    for terminal in loaded.lark.terminals:
        if terminal.pattern.type != "re":
            continue
        try:
            known[str(terminal.name)] = (terminal, interegular.parse_pattern(terminal.pattern.to_regexp()).to_fsm())
        except Exception:
            continue
        if time.monotonic() > stop:
            return []
    out: list[Finding] = []
    names = list(known)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            (first, a), (second, b) = known[one], known[other]
            if first.priority != second.priority:
                continue
            if time.monotonic() > stop:
                return [*out, Finding("grammar", "comparing the terminals took too long: some pairs were not compared")]
            example = next((a & b).strings(), None) if not a.isdisjoint(b) else None
            if example is not None:
                told = f"terminals {one} and {other} both match {''.join(map(str, example))!r}: give one a priority"
                out.append(Finding(places.terminal(one), told))
    return out
