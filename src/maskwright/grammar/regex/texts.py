"""The texts of a part of a pattern, where they are few."""

from __future__ import annotations

from collections.abc import Iterable

from maskwright.grammar.ir import Alt, Cat, Chars, Ir, Repeat, literal
from maskwright.grammar.regex.ast import Anchor, Branch, Look, Loop, Node, Seq, seq

MOST_TEXTS = 1000
_MOST_LENGTH = 200  # of a text
_MOST_DEPTH = 50
_MOST_COPIES = 8  # of a repeat with an assertion in it

Texts = dict[str, list[Node]]  # each with the parts that match it and nothing else


def texts_of(tree: Node) -> Texts | None:
    """What a tree matches, text by text; None where there are more than MOST_TEXTS, or very long ones."""
    if isinstance(tree, Ir):
        found = _words(tree, 0)
        return None if found is None else {text: [literal(text)] for text in found}
    return _texts(tree, 0)


def _texts(tree: Node, depth: int) -> Texts | None:
    if depth > _MOST_DEPTH:
        return None
    if isinstance(tree, Ir):
        return texts_of(tree)
    if isinstance(tree, Anchor | Look):
        return {"": [tree]}
    if isinstance(tree, Seq):
        return _sequence([_texts(item, depth + 1) for item in tree.items])
    if isinstance(tree, Branch):
        return _either([_texts(option, depth + 1) for option in tree.options])
    if isinstance(tree, Loop) and tree.most is not None and tree.most <= _MOST_COPIES:
        body = _texts(tree.body, depth + 1)
        return _either([_sequence([body] * count) for count in range(tree.least, tree.most + 1)])
    return None


def _either(parts: Iterable[Texts | None]) -> Texts | None:
    out: Texts = {}
    for part in parts:
        if part is None or len(out) + len(part) > MOST_TEXTS:
            return None
        for text, nodes in part.items():
            out.setdefault(text, []).extend(nodes)
    return out


def _sequence(parts: Iterable[Texts | None]) -> Texts | None:
    out: Texts = {"": [seq(())]}
    for part in parts:
        if part is None or sum(map(len, out.values())) * sum(map(len, part.values())) > MOST_TEXTS:
            return None
        longer: Texts = {}
        for text, nodes in out.items():
            for end, ends in part.items():
                longer.setdefault(text + end, []).extend(seq((n, e)) for n in nodes for e in ends)
        if any(len(text) > _MOST_LENGTH for text in longer):
            return None
        out = longer
    return out


def _words(term: Ir, depth: int) -> set[str] | None:
    if depth > _MOST_DEPTH:
        return None
    if isinstance(term, Chars):
        count = sum(hi - lo + 1 for lo, hi in term.ranges)
        return None if count > MOST_TEXTS else {chr(c) for lo, hi in term.ranges for c in range(lo, hi + 1)}
    if isinstance(term, Cat):
        return _product([_words(p, depth + 1) for p in term.parts])
    if isinstance(term, Alt):
        out: set[str] = set()
        for p in term.parts:
            found = _words(p, depth + 1)
            if found is None:
                return None
            out |= found
        return out if len(out) <= MOST_TEXTS else None
    if not isinstance(term, Repeat) or term.max is None or term.max > _MOST_LENGTH:
        return None
    body = _words(term.body, depth + 1)
    least = _product([body] * term.min)
    more = _product([None if body is None else body | {""}] * (term.max - term.min))
    return _product([least, more])


def _product(parts: Iterable[set[str] | None]) -> set[str] | None:
    out = {""}
    for part in parts:
        if part is None or len(part) * len(out) > 20 * MOST_TEXTS:
            return None
        out = {text + end for text in out for end in part}
        if len(out) > MOST_TEXTS or any(len(text) > _MOST_LENGTH for text in out):
            return None
    return out
