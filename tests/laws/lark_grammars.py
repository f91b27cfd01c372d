"""Random small Lark grammars with what is hard: overlapping and lazy terminals, priorities, recursion, empty rules."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

ALPHABET = "abc "
PAIRS = (
    ("earley", "dynamic"),
    ("earley", "dynamic_complete"),
    ("earley", "basic"),
    ("lalr", "contextual"),
    ("lalr", "basic"),
    ("cyk", "basic"),
)
STRINGS = ('"a"', '"b"', '"c"', '"ab"', '"ba"', '"aa"', '"abc"', '"bb"', '"A"i', '"aB"i', '"a b"')
REGEXES = (
    "/a+/", "/a|ab/", "/ab|a/", "/a+?/", "/[ab]+/", "/[a-c]/", "/b*a/", "/(a|b)*?c/", "/a{1,3}/", "/a??b/", "/ab??/",
    "/(ab)+/",
    "/a(?=b)/", "/a(?!b)/", "/[ab]+(?<!a)/", "/b(?=a|$)/", "/c.?/", "/[^c]/", "/(a*)*b/", "/a(b|)c?/",
    "/(?:a|ab)(?:c|bc)/",
    "/[a-b]/i", "/a.*?b/", "/b$/", "/aa?(?!a)/", "/(a|b)c*?/", "/c+(?=a)/", "/(?<!b)c/", "/a(?<=a)b/",
)  # fmt: skip
IGNORES = ('" "', "/ +/", "/ +?/", '"c"', "/c+/", "/ |c/", "/ (?!c)/")
CONSTRUCTS = (
    "left recursion", "right recursion", "nullable", "ignore", "priority", "rule priority", "regex", "string",
    "lookaround", "lazy", "anonymous", "template", "repeat", "flag i", "several starts",
)  # fmt: skip


LOOKAROUNDS = ("(?=", "(?!", "(?<", "$")
MARKS = {"lookaround": LOOKAROUNDS, "lazy": ("?/", "?c", "?b"), "flag i": ('"i', "/i")}


@dataclass
class GrammarCase:
    """A grammar, the options for it, and what is in it."""

    text: str
    options: dict[str, Any]
    constructs: set[str] = field(default_factory=set)


class _Writer:
    def __init__(self, rng: random.Random, lookaround: bool) -> None:
        self.rng = rng
        self.lookaround = lookaround
        self.has: set[str] = set()
        self.terminals = [f"T{i}" for i in range(rng.randint(1, 4))]
        self.rules = ["start", *(f"r{i}" for i in range(rng.randint(0, 4)))]
        self.template = rng.random() < 0.1

    def pattern(self) -> str:
        rng = self.rng
        if rng.random() < 0.5:
            self.has.add("string")
            made = rng.choice(STRINGS)
        else:
            self.has.add("regex")
            made = rng.choice([r for r in REGEXES if self.lookaround or not any(mark in r for mark in LOOKAROUNDS)])
        self.has |= {name for name, marks in MARKS.items() if any(mark in made for mark in marks)}
        return made

    def terminal(self) -> str:
        made = self.pattern()
        if self.rng.random() < 0.2:
            made += " | " + self.pattern()
        return made

    def atom(self, depth: int) -> str:
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(self.terminals)
        if kind < 0.5:
            self.has.add("anonymous")
            return self.pattern()
        if kind < 0.85 or depth > 1:
            return rng.choice(self.rules)
        inner = self.alternatives(depth + 1)
        self.has.add("repeat")
        if self.template and rng.random() < 0.5:
            self.has.add("template")
            return f"two{{{rng.choice(self.terminals + self.rules)}}}"
        suffix = rng.choice(("", "?", "*", "+", " ~ 1..2"))
        return f"[{inner}]" if rng.random() < 0.15 else f"({inner}){suffix}"

    def sequence(self, depth: int) -> str:
        return " ".join(self.atom(depth) for _ in range(self.rng.choice((1, 1, 2, 2, 3))))

    def alternatives(self, depth: int) -> str:
        options = [self.sequence(depth) for _ in range(self.rng.choice((1, 1, 2, 2, 3)))]
        return " | ".join(options)

    def rule(self, name: str) -> str:
        rng = self.rng
        options = [self.sequence(0) for _ in range(rng.choice((1, 2, 2, 3)))]
        if rng.random() < 0.25:
            options.append(f"{name} {rng.choice(self.terminals)}")
            self.has.add("left recursion")
        if rng.random() < 0.15:
            options.append(f"{rng.choice(self.terminals)} {name}")
            self.has.add("right recursion")
        if rng.random() < 0.15:
            options.append("")
            self.has.add("nullable")
        if rng.random() < 0.6:
            options.append(rng.choice(self.terminals))
        priority = ""
        if rng.random() < 0.1:
            self.has.add("rule priority")
            priority = f".{rng.randint(1, 3)}"
        rng.shuffle(options)
        return f"{name}{priority}: " + " | ".join(options)


def random_grammar(rng: random.Random, parser: str, lexer: str) -> GrammarCase:
    """A grammar for one of `PAIRS`."""
    writer = _Writer(rng, lexer != "dynamic_complete")
    lines = [writer.rule(name) for name in writer.rules]
    starts: Any = "start"
    if rng.random() < 0.05 and len(writer.rules) > 1:
        starts = ["start", writer.rules[1]]
        writer.has.add("several starts")
    if writer.template:
        lines.append("two{x}: x x | x")
    for name in writer.terminals:
        priority = ""
        if rng.random() < 0.25:
            writer.has.add("priority")
            priority = f".{rng.randint(-1, 2)}"
        lines.append(f"{name}{priority}: {writer.terminal()}")
    if rng.random() < 0.5:
        writer.has.add("ignore")
        lines.append(f"%ignore {rng.choice([i for i in IGNORES if writer.lookaround or '(?' not in i])}")
    return GrammarCase("\n".join(lines) + "\n", {"parser": parser, "lexer": lexer, "start": starts}, writer.has)
