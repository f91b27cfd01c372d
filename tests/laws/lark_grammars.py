"""Random small Lark grammars with what is hard: overlapping and lazy terminals, priorities, recursion, empty rules."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any

PAIRS = (
    ("earley", "dynamic"),
    ("earley", "dynamic_complete"),
    ("earley", "basic"),
    ("lalr", "contextual"),
    ("lalr", "basic"),
    ("cyk", "basic"),
)
STRINGS = ('"a"', '"b"', '"c"', '"ab"', '"ba"', '"aa"', '"abc"', '"bb"', '"A"i', '"aB"i', '"a b"', '"a".."b"')
REGEXES = (
    "/a+/", "/a|ab/", "/ab|a/", "/a+?/", "/[ab]+/", "/[a-c]/", "/b*a/", "/(a|b)*?c/", "/a{1,3}/", "/a??b/", "/ab??/",
    "/(ab)+/", "/c.?/", "/[^c]/", "/(a*)*b/", "/a(b|)c?/", "/(?:a|ab)(?:c|bc)/", "/[a-b]/i", "/a.*?b/", "/(a|b)c*?/",
    "/[^ab]/", "/(a|ab)(c|bcb)?/", "/a[ab]*?b/", "/ +b/", "/(?:ab?)+?c/", "/b a*/x", "/(?i:a)b/", "/a{2}|b/",
    "/(a??)+b/",
)  # fmt: skip
LOOKING = (
    "/a(?=b)/", "/a(?!b)/", "/[ab]+(?<!a)/", "/b(?=a|$)/", "/b$/", "/aa?(?!a)/", "/c+(?=a)/", "/a(?<=a)b/",
    "/[abc](?! )/", "/a+(?= *b)/", "/b(?!.*c)/", "/(?:a(?!b)|ab)c?/", "/.(?<!c)/", "/ab?(?=c|$)/",
)  # fmt: skip
ANCHORED = (
    "/^a/", "/^b|a/", r"/\Aab/", "/a?^b/", "/(^a|b)+/", "/^[ab]+/", "/(?:^|c)a/", "/(^ab|^b)c?/", r"/a|\A[ab]+?/",
)  # fmt: skip
LINES = (
    "/a.b?/s", "/.a?/s", "/.*?b/s", "/a$/m", "/b$/m", r"/\n/", r"/a\n^b/m", r"/[^a]/", "/.+/", r"/b\n?/",
    r"/a(?=\n)/", r"/\s/",
)  # fmt: skip
IGNORES = ('" "', "/ +/", "/ +?/", '"c"', "/c+/", "/ |c/", "/ b?/", '"a"', "/[ c]+/")
LOOKING_IGNORES = ("/ (?!c)/", "/ +(?=a)/", "/^ +/", "/^c| /")
IMPORT = "%import common.WS_INLINE\n%ignore WS_INLINE\n"
IMPORTS = (IMPORT, IMPORT + '%extend WS_INLINE: "c"\n')
CONSTRUCTS = (
    "left recursion", "right recursion", "hidden recursion", "cycle", "nullable", "ignore", "several ignores",
    "lines", "ignored in rules", "priority", "rule priority", "inverted priority", "regex", "string", "lookaround",
    "anchor", "lazy", "anonymous", "template", "repeat", "counted", "optional", "flag i", "flag m", "flag s",
    "flag x", "flags for all", "import", "nested terminals", "overlap", "alternation order", "keep all", "inlined",
    "alias", "several starts",
)  # fmt: skip

MARKS = {
    "lookaround": r"\(\?[=!<]|\$", "anchor": r"\^(?![\]abc])|\\A", "lazy": r"[+*?}]\?", "flag i": r'["/]i|\?i:',
    "flag m": "/m", "flag s": "/s", "flag x": "/x", "alternation order": r"a\|ab|ab\|a|\|\)|a\|\\A",
    "overlap": r"\[ab|\[a-c|a\+|\.|\[\^",
}  # fmt: skip


@dataclass
class GrammarCase:
    """A grammar, the options for it, what is in it, and the letters that its texts are of."""

    text: str
    options: dict[str, Any]
    constructs: set[str] = field(default_factory=set)

    @property
    def alphabet(self) -> str:
        """Few letters, so that all short texts can be tried."""
        return "ab\n " if "lines" in self.constructs else "abc "


class _Writer:
    def __init__(self, rng: random.Random, lexer: str) -> None:
        self.rng = rng
        self.looking = lexer != "dynamic_complete"
        self.has: set[str] = set()
        self.terminals = [f"{'_' if rng.random() < 0.1 else ''}T{i}" for i in range(rng.randint(1, 4))]
        self.rules = ["start", *(f"{'_' if rng.random() < 0.1 else ''}r{i}" for i in range(rng.randint(0, 4)))]
        self.template = rng.random() < 0.15
        self.counts = 0
        self.lines = rng.random() < 0.12
        self.anchors = rng.random() < 0.12
        self.looks = self.looking and rng.random() < 0.5
        if self.lines:
            self.has.add("lines")

    def chance(self, p: float, construct: str) -> bool:
        """True with probability p; then the construct is in the grammar."""
        if self.rng.random() >= p:
            return False
        self.has.add(construct)
        return True

    def regex(self) -> str:
        rng = self.rng
        kind = rng.random()
        if self.lines and kind < 0.4:
            return rng.choice([r for r in LINES if self.looking or not re.search(MARKS["lookaround"], r)])
        if self.anchors and kind < 0.6:
            return rng.choice(ANCHORED)
        return rng.choice(LOOKING if self.looks and kind > 0.7 else REGEXES)

    def pattern(self) -> str:
        made = self.rng.choice(STRINGS) if self.chance(0.45, "string") else self.regex()
        if made[0] == "/":
            self.has.add("regex")
        self.has |= {name for name, mark in MARKS.items() if re.search(mark, made)}
        return made

    def terminal(self, earlier: list[str]) -> str:
        rng = self.rng
        made = self.pattern()
        if earlier and self.chance(0.1, "nested terminals"):
            made = rng.choice((f"{rng.choice(earlier)} {made}", f"{made} {rng.choice(earlier)}"))
        if rng.random() < 0.2:
            made += " | " + self.pattern()
        if rng.random() < 0.08:
            made = f"({made})" + rng.choice(("+", " ~ 1..2", " ~ 2"))
        return made

    def atom(self, depth: int) -> str:
        rng = self.rng
        kind = rng.random()
        if kind < 0.42:
            return rng.choice(self.terminals)
        if kind < 0.52:
            self.has.add("anonymous")
            return self.pattern()
        if kind < 0.82 or depth > 1:
            return rng.choice(self.rules)
        if self.template and self.chance(0.5, "template"):
            kind_of = rng.choice(("two", "opt", "sep"))
            arguments = [rng.choice(self.terminals + self.rules) for _ in range(2 if kind_of == "sep" else 1)]
            return f"{kind_of}{{{', '.join(arguments)}}}"
        inner = self.alternatives(depth + 1)
        if self.chance(0.2, "optional"):
            return f"[{inner}]"
        if depth == 0 and self.counts < 2 and self.chance(0.4, "counted"):  # lark writes all of them out
            self.counts += 1
            return f"({inner}) ~ {rng.choice(('2', '1..2', '0..2', '2..3'))}"
        suffix = rng.choice(("", "?", "*", "+"))
        if suffix:
            self.has.add("repeat")
        return f"({inner}){suffix}"

    def sequence(self, depth: int) -> str:
        return " ".join(self.atom(depth) for _ in range(self.rng.choice((1, 1, 2, 2, 3))))

    def alternatives(self, depth: int) -> str:
        return " | ".join(self.sequence(depth) for _ in range(self.rng.choice((1, 1, 2, 2, 3))))

    def rule(self, name: str) -> str:
        rng = self.rng
        options = [self.sequence(0) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        if self.chance(0.2, "left recursion"):
            options.append(f"{name} {rng.choice(self.terminals)}")
        if self.chance(0.12, "right recursion"):
            options.append(f"{rng.choice(self.terminals)} {name}")
        if self.chance(0.04, "hidden recursion"):
            options.append(f"[{rng.choice(self.terminals)}] {name} {rng.choice(self.terminals)}")
        if len(self.rules) > 1 and self.chance(0.03, "cycle"):
            options.append(name if rng.random() < 0.3 else rng.choice(self.rules))
        if self.chance(0.18, "nullable"):
            options.append("")
        if rng.random() < 0.6:
            options.append(rng.choice(self.terminals))
        if self.chance(0.05, "alias"):
            options[0] += f" -> name{rng.randint(0, 9)}"
        priority = f".{rng.randint(-1, 3)}" if self.chance(0.1, "rule priority") else ""
        rng.shuffle(options)
        mark = "!" if self.chance(0.04, "keep all") else "?" if name[0] != "_" and self.chance(0.06, "inlined") else ""
        return f"{mark}{name}{priority}: " + " | ".join(options)

    def ignores(self) -> list[str]:
        rng = self.rng
        if not self.chance(0.55, "ignore"):
            return []
        if self.chance(0.06, "import"):
            return [rng.choice(IMPORTS)]
        lines = [self.ignore()]
        if self.chance(0.12, "several ignores"):
            lines.append(self.ignore())
        return lines

    def ignore(self) -> str:
        if self.chance(0.12, "ignored in rules"):
            return f"%ignore {self.rng.choice(self.terminals)}"
        looking = self.looking and (self.looks or self.anchors)
        made = self.rng.choice(IGNORES + LOOKING_IGNORES if looking else IGNORES)
        self.has |= {name for name, mark in MARKS.items() if re.search(mark, made)}
        return f"%ignore {made}"


TEMPLATES = "two{x}: x x | x\nopt{x}: x |\nsep{x, y}: x (y x)*\n"


def random_grammar(rng: random.Random, parser: str, lexer: str) -> GrammarCase:
    """A grammar for one of `PAIRS`."""
    writer = _Writer(rng, lexer)
    lines = [writer.rule(name) for name in writer.rules]
    options: dict[str, Any] = {"parser": parser, "lexer": lexer, "start": "start"}
    if len(writer.rules) > 1 and writer.chance(0.06, "several starts"):
        options["start"] = ["start", writer.rules[1]]
    if parser == "earley" and writer.chance(0.08, "inverted priority"):
        options["priority"] = rng.choice(("invert", None))
    if writer.chance(0.04, "flags for all"):
        options["g_regex_flags"] = int(rng.choice((re.I, re.S)))
    for at, name in enumerate(writer.terminals):
        priority = f".{rng.randint(-1, 2)}" if writer.chance(0.2, "priority") else ""
        lines.append(f"{name}{priority}: {writer.terminal(writer.terminals[:at])}")
    lines += writer.ignores()
    text = "\n".join(lines) + "\n" + (TEMPLATES if "template" in writer.has else "")
    return GrammarCase(text, options, writer.has)
