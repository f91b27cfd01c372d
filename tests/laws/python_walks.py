"""Texts of the shipped Python grammar: walks over its masks, and derivations that meet every rule."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import maskwright as mw

WORDS = (
    "def f(", "class A", "match x:\n    case ", "lambda x: ", "for x in y", "async ", "await ", "with (", " as ", "if ",
    "else ", "not ", " in ", "None", "f'", 'f"""', 'rf"', "b'", '"""', "{x", "!r}", "}", "\n    ", "\n        ", "\n",
    ":=", "**", "->", "...", "0x1f", "1.5", "2j", "yield ", "import a", "from . import ", "try:\n    x\n", "except* ",
)  # fmt: skip
# A text or several for every terminal that is no plain string.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "_NEWLINE": ("\n",), "NAME": ("a", "_b2", "été"), "CAPTURE": ("c",), "CONSTANT": ("None", "True"),
    "AUGMENTED": ("+=", "//="), "COMPARE": ("==", "<"), "OPERATOR": ("//", "&"), "REAL": ("1", "0x1F", "1_0.5e-3"),
    "IMAGINARY": ("2j",), "STRING": ('"a"', "r'\\d'", "'''x\n'''", "u''"), "BYTES": ("b'\\x00'", 'rb"a"'),
    "F_A": ('f"',), "F_B": ("f'",), "FR_A": ('rf"',), "FR_B": ("Rf'",), "FL_A": ('f"""',), "FL_B": ("f'''",),
    "FRL_A": ('fr"""',), "FRL_B": ("rf'''",), "TEXT_A": ("a b'", "{{\\n"), "TEXT_B": ('a"', "}}"), "TEXT_C": ("a#",),
    "LONG_A": ("a\n",), "LONG_B": ("\\x41\n",), "RAW_A": ("\\d ",), "RAW_B": ("\\'",), "RAW_LONG_A": ("\\ \n",),
    "RAW_LONG_B": ("a",), "SPEC_A": ("<3",), "SPEC_B": (".2f",), "SPEC_C": (">",), "INNER_A": ("'a'",),
    "INNER_B": ('""',), "CONVERTED": ("!r}",), "CONVERSION": ("!s:",), "_MATCH": ("match ",), "_BAD": ("",),
    "_BLANK": ("",),
}  # fmt: skip


def mask_walk(compiled: mw.CompiledGrammar, rng: random.Random, most: int) -> str:
    """Tokens by chance, kinds of characters equally likely; after so many the budget closes the text."""
    matcher, out = compiled.matcher(), b""
    tokens, eos = compiled.vocabulary.tokens, compiled.vocabulary.eos_ids
    for step in range(100 * most):
        closing = step >= most
        budget = max(matcher.min_tokens_to_accept() + 1, 2) if closing else None
        allowed = [t for t in matcher.allowed_tokens(max_tokens=budget) if t not in eos and tokens[t].isascii()]
        if matcher.is_accepting and (closing or not allowed or rng.random() < 0.01):
            return out.decode()
        kinds: dict[bytes, list[int]] = {}
        for token in allowed:
            kind = tokens[token] if not tokens[token].isalnum() or len(tokens[token]) > 1 else b"a"
            kinds.setdefault(kind, []).append(token)
        token = rng.choice(kinds[rng.choice(sorted(kinds))])
        assert matcher.accept(token)
        out += tokens[token]
    raise AssertionError(f"no end: {out!r}")


class Derivations:
    """Texts by derivation from lark's rules, those preferred that were used least.

    Args:
        grammar: the shipped Python grammar.
    """

    def __init__(self, grammar: mw.Lark) -> None:
        parser = grammar.parser()
        self.rules: dict[str, list[list[Any]]] = {}
        for rule in parser.rules:
            self.rules.setdefault(rule.origin.name, []).append(list(rule.expansion))
        self.spellings = {t.name: SPELLINGS.get(t.name) or (_plain(t.pattern),) for t in parser.terminals}
        self.heights = self._heights()
        self.used: Counter[tuple[str, int]] = Counter()
        self.count = 0  # terminals of the module in progress
        self.ways = self._ways()
        # The rules that some text uses.
        self.productive = [
            (n, i) for n in self.heights for i, o in enumerate(self.rules[n]) if _height(o, self.heights) is not None
        ]

    def _ways(self) -> dict[str, list[tuple[str, int, int]]]:
        """For every nonterminal a way from the start: rules, and the places in them where it goes on."""
        ways: dict[str, list[tuple[str, int, int]]] = {"start": []}
        for name in (queue := ["start"]):
            for at, option in enumerate(self.rules[name]):
                if _height(option, self.heights) is None:
                    continue
                for place, symbol in enumerate(option):
                    if not symbol.is_term and str(symbol.name) not in ways:
                        ways[str(symbol.name)] = [*ways[name], (name, at, place)]
                        queue.append(str(symbol.name))
        return ways

    def _heights(self) -> dict[str, int]:
        """The least height of a tree, by nonterminal; those that derive nothing are left out."""
        heights: dict[str, int] = {}
        while True:
            fresh = {}
            for name, options in self.rules.items():
                known = [h for o in options if (h := _height(o, heights)) is not None]
                if name not in heights and known:
                    fresh[name] = min(known)
            if not fresh:
                return heights
            heights |= fresh

    def module(self, rng: random.Random, most: int) -> str:
        """Texts one behind the other, of about so many terminals."""
        out, self.count = "", 0
        while self.count < most - 40:
            out += self.text(rng, 40)
        return out

    def text(self, rng: random.Random, most: int) -> str:
        """One text of about so many terminals, with a rule in it that was used least so far."""
        least = min(self.used[rule] for rule in self.productive)
        goal, at = rng.choice([rule for rule in self.productive if self.used[rule] == least])
        out, column, line, count = "", 0, True, 0
        stack: list[Any] = [("start", [*self.ways[goal], (goal, at, 0)])]
        while stack:
            symbol, way = stack.pop()
            name = symbol if isinstance(symbol, str) else str(symbol.name)
            if way:
                _, chosen, place = way[0]
                self.used[name, chosen] += 1
                body = [(s, way[1:] if i == place else []) for i, s in enumerate(self.rules[name][chosen])]
                stack += reversed(body)
                continue
            if name in self.rules:
                stack += [(s, []) for s in reversed(self._choose(name, rng, count + len(stack) > most))]
                continue
            count += 1
            self.count += 1
            if name in ("_INDENT", "_DEDENT"):
                column += 1 if name == "_INDENT" else -1
            elif name == "_NEWLINE":
                out, line = out + "\n", True
            else:
                out += (" " * column if line else " ") + rng.choice(self.spellings[name])
                line = False
        return out

    def _choose(self, name: str, rng: random.Random, short: bool) -> list[Any]:
        known = [(i, h) for i, o in enumerate(self.rules[name]) if (h := _height(o, self.heights)) is not None]
        if short:
            least = min(h for _, h in known)
            at = rng.choice([i for i, h in known if h == least])
        else:
            at = min(known, key=lambda k: self.used[name, k[0]] + rng.random() * 8)[0]
        self.used[name, at] += 1
        return self.rules[name][at]


def _height(option: list[Any], heights: dict[str, int]) -> int | None:
    below = [0 if s.is_term else heights.get(str(s.name)) for s in option]
    return None if any(h is None for h in below) else 1 + max((h for h in below if h is not None), default=0)


def _plain(pattern: Any) -> str:
    return str(pattern.value.removesuffix(r"(?!\w)"))
