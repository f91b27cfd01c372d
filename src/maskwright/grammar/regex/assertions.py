r"""Lookarounds, word boundaries and line anchors as Boolean operations, wherever they stand outside unbounded repeats.

The pattern is lowered from its end, every part in front of the language K of all that may still follow up to the end of
the text (Miyazaki, Minamide, "Derivatives of regular expressions with lookahead", JIP 27, 2019, use the same reading):
a lookahead ``(?=q)`` turns K into K & q ALL, ``(?!q)`` into K - q ALL, ``$`` into K & "". What can be asked of the text
*before* a place is its last character's class, so K is a table by context: the start of the text, after a word
character, after a newline, after another character. A lookbehind needs the whole text before it; where only plain parts
and other lookbehinds (and, at the very start, lookaheads) precede it, that is a language too, and is cut with ALL b.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from maskwright.errors import LimitError, RegexError
from maskwright.grammar.ir import (
    ALL,
    ANY,
    EMPTY,
    EPSILON,
    Alt,
    Cat,
    Chars,
    Ir,
    Ranges,
    Repeat,
    chars,
    complement,
    concat,
    intersect,
    intersect_ranges,
    literal,
    merge_ranges,
    negate_ranges,
    optional,
    repeat,
    union,
)
from maskwright.grammar.regex.anchors import tables
from maskwright.grammar.regex.ast import BOUNDARIES, Anchor, At, Branch, Look, Loop, Node, Seq, seq, walk

Table = tuple[Ir, ...]  # the rest of the text, by context; the first context is the start of the text
_NEWLINE: Ranges = ((10, 10),)
_MOST_COPIES = 32  # of the body of a bounded repeat that holds an assertion
_MOST_DEPTH = 60  # of groups around an assertion
_START = 0


def needs_context(tree: Node) -> bool:
    """Whether a tree has assertions other than those about the ends of the text."""
    return any(isinstance(n, Look) or (isinstance(n, Anchor) and n.at.is_local) for n in walk(tree))


def _items(nodes: Iterable[Node]) -> list[Node]:
    """The parts of a sequence, those of sequences in it too."""
    out: list[Node] = []
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, Seq):
            stack.extend(reversed(node.items))
        else:
            out.append(node)
    return out


def _each(make: Callable[..., Ir], *tables: Table) -> Table:
    """A table made context by context; the same operands make the same object, so that comparing languages is cheap."""
    memo: dict[tuple[int, ...], Ir] = {}
    out = []
    for operands in zip(*tables, strict=True):
        key = tuple(map(id, operands))
        if key not in memo:
            memo[key] = make(*operands)
        out.append(memo[key])
    return tuple(out)


def ending(part: Ir, last: Ranges, depth: int = 0) -> Ir:
    """The texts of a part that end in a character of `last`."""
    if isinstance(part, Chars):
        return chars(intersect_ranges(part.ranges, last))
    if depth < 6:
        if isinstance(part, Alt):
            return union(*(ending(p, last, depth + 1) for p in part.parts))
        if isinstance(part, Cat):
            if not part.parts:
                return EMPTY
            head = concat(*part.parts[:-1])
            tail = concat(head, ending(part.parts[-1], last, depth + 1))
            return union(tail, ending(head, last, depth + 1)) if part.parts[-1].nullable else tail
        if isinstance(part, Repeat) and isinstance(part.body, Chars):
            most = None if part.max is None else part.max - 1
            return concat(repeat(part.body, max(part.min - 1, 0), most), ending(part.body, last))
    return intersect(part, concat(ALL, chars(last)))


class Assertions:
    """The lowering of one pattern; `search` for matches of some part of the text.

    Raises:
        RegexError: for an assertion where it cannot be lowered.
        LimitError: where the term would have more than `max_nodes` nodes.
    """

    def __init__(self, tree: Node, search: bool, max_nodes: int) -> None:
        self.max_nodes = max_nodes
        self.tree = tree
        self.search = search
        word = next((n.word for n in walk(tree) if isinstance(n, Anchor) and n.at in BOUNDARIES), ())
        lines = any(isinstance(n, Anchor) and n.at in (At.LINE_START, At.LINE_END) for n in walk(tree))
        if any(isinstance(n, Anchor) and n.at in BOUNDARIES and n.word != word for n in walk(tree)):
            hint = "Use one of the flags a and u for the whole pattern"
            raise RegexError("word boundaries of two kinds are not supported", location="offset 0", hint=hint)
        self.word = word
        self.anchors: dict[At, Table] = {}
        newline = _NEWLINE if lines else ()
        other = negate_ranges(merge_ranges([*word, *newline]))
        # What the last character before a place may be, per context; before the start there is none.
        self.contexts: list[Ranges] = [(), *(c for c in (word, newline, other) if c)]

    def lower(self) -> Ir:
        """The language of the texts that match."""
        options = self.tree.options if isinstance(self.tree, Branch) else (self.tree,)
        around: tuple[Node, ...] = (ALL,) if self.search else ()
        return union(*(self.option(_items((*around, option, *around))) for option in options))

    # From the start of the text up to the last lookbehind.

    def option(self, items: list[Node]) -> Ir:
        """One alternative of the whole pattern."""
        cut = max((at + 1 for at, n in enumerate(items) if isinstance(n, Look) and not n.ahead), default=0)
        before, whole = EPSILON, ALL
        for item in items[:cut]:
            if isinstance(item, Ir):
                before = concat(before, item)
            elif isinstance(item, Anchor) and item.at is At.START:
                before = EPSILON if before.nullable else EMPTY
            elif isinstance(item, Look) and not item.ahead:
                before = intersect(before, self.behind(item))
            elif isinstance(item, Look) and before == EPSILON:
                whole = intersect(whole, self.ahead(item, 0)[_START])
            else:
                raise self.refusal(item, "before a lookbehind")
        rest = tuple(EPSILON for _ in self.contexts)
        for item in reversed(items[cut:]):
            rest = self.before(item, rest, 0)
        return intersect(whole, self.plain(before, rest)[_START])

    def behind(self, look: Look) -> Ir:
        """The texts that end in what a lookbehind asks for, or in nothing of it."""
        table = tables(seq((ALL, self.without_local(look.body))))
        if not table[3] is table[4] is table[5]:
            raise self.refusal(look, "with an anchor of the end in it")
        return complement(table[3]) if look.negative else table[3]

    def without_local(self, body: Node) -> Node:
        """The body of a lookbehind, which may hold no further assertion but of the start of the text."""
        for node in walk(body):
            if isinstance(node, Look) or (isinstance(node, Anchor) and node.at.is_local):
                raise self.refusal(node, "inside a lookbehind")
        return body

    # From the end of the text.

    def before(self, node: Node, rest: Table, depth: int) -> Table:
        """The table of a part and what follows it."""
        if depth > _MOST_DEPTH:
            hint = "Write it with fewer groups"
            message = f"an assertion is nested deeper than the limit of {_MOST_DEPTH} groups"
            raise LimitError(message, location="offset 0", hint=hint)
        if isinstance(node, Ir):
            table = self.plain(node, rest)
        elif isinstance(node, Anchor):
            table = _each(intersect, rest, self.holds(node.at))
        elif isinstance(node, Look):
            table = _each(intersect, rest, self.ahead(node, depth))
        elif isinstance(node, Seq):
            table = rest
            for item in reversed(node.items):
                table = self.before(item, table, depth + 1)
        elif isinstance(node, Branch):
            table = _each(union, *(self.before(o, rest, depth + 1) for o in node.options))
        else:
            assert isinstance(node, Loop)  # the others are gone by now
            table = self.repeated(node, rest, depth)
        if any(k.size > self.max_nodes for k in table):
            message = f"the regex needs more nodes than the limit of {self.max_nodes}"
            raise LimitError(message, location="offset 0", hint="Write fewer alternatives around its assertions")
        return table

    def plain(self, part: Ir, rest: Table) -> Table:
        """A part without assertions: its last character decides the context of the rest."""
        if all(k is rest[0] for k in rest):
            return (concat(part, rest[0]),) * len(rest)
        after = union(*(concat(ending(part, c), k) for c, k in zip(self.contexts[1:], rest[1:], strict=True)))
        return _each(lambda k: union(after, k), rest) if part.nullable else (after,) * len(rest)

    def ahead(self, look: Look, depth: int) -> Table:
        """The texts that begin with what a lookahead asks for, or with nothing of it."""
        if not look.ahead:
            raise self.refusal(look, "inside a group with alternatives, a repeat or a lookahead")
        table = self.before(look.body, (ALL,) * len(self.contexts), depth + 1)
        return _each(complement, table) if look.negative else table

    def holds(self, at: At) -> Table:
        """The rests of the text before which an anchor holds."""
        found = self.anchors.get(at)
        if found is None:
            memo: dict[Ir, Ir] = {}
            terms = (self.rest_at(at, c) for c in range(len(self.contexts)))
            found = self.anchors[at] = tuple(memo.setdefault(t, t) for t in terms)
        return found

    def rest_at(self, at: At, context: int) -> Ir:
        """The same in one context."""
        if at in (At.START, At.LINE_START):
            after_line = at is At.LINE_START and self.contexts[context] == _NEWLINE
            return ALL if context == _START or after_line else EMPTY
        if at is At.END:
            return EPSILON
        if at is At.END_OR_NEWLINE:
            return optional(literal("\n"))
        if at is At.LINE_END:
            return optional(concat(literal("\n"), ALL))
        word = concat(chars(self.word), ALL)
        after_word = context != _START and self.contexts[context] == self.word
        if (at is At.BOUNDARY) != after_word:
            return word
        empty_text = context == _START and at is At.INSIDE
        return intersect(complement(word), repeat(ANY, 1)) if empty_text else complement(word)

    def repeated(self, node: Loop, rest: Table, depth: int) -> Table:
        """A repeat of something with an assertion in it: copies, where they are few."""
        *looks, last = _items([node.body])
        if isinstance(last, Chars) and looks and all(isinstance(n, Look) for n in looks) and set(rest) == {EPSILON}:
            return self.tempered(looks, repeat(last, node.least, node.most), depth)
        if node.most is None or node.most > _MOST_COPIES:
            raise self.refusal(node, f"inside a repeat over {_MOST_COPIES} times")
        table = rest
        for _ in range(node.most - node.least):
            table = _each(union, rest, self.before(node.body, table, depth + 1))
        for _ in range(node.least):
            table = self.before(node.body, table, depth + 1)
        return table

    def tempered(self, looks: list[Node], letters: Ir, depth: int) -> Table:
        """``((?!q).)*`` up to the end of the text: no rest of it but the empty one is bad, from whatever place."""
        good: Table = (ALL,) * len(self.contexts)
        for look in looks:
            assert isinstance(look, Look)
            good = _each(intersect, good, self.ahead(look, depth))
        some = repeat(ANY, 1)
        bad = _each(lambda k: intersect(some, complement(k)), good)
        later = union(*(concat(ALL, chars(c), k) for c, k in zip(self.contexts[1:], bad[1:], strict=True)))
        return _each(lambda k: intersect(letters, complement(k), complement(later)), bad)

    @staticmethod
    def refusal(node: Node, where: str) -> RegexError:
        """The refusal of the first assertion of a part, where it stands."""
        node = min((n for n in walk(node) if isinstance(n, Anchor | Look)), key=lambda n: n.offset)
        if isinstance(node, Look):
            what = f"the {'lookahead' if node.ahead else 'lookbehind'} {node.text!r}"
        else:
            what = f"the assertion {node.text!r}"
        hint = "Move it out, or write the allowed texts as alternatives"
        return RegexError(f"{what} {where} is not supported in the regex", location=f"offset {node.offset}", hint=hint)
