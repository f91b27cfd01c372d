r"""Back-references and conditionals, by expansion: exact, or refused with their offset.

Without atomic parts both engines search all paths, so a text matches if some path does. Where a path meets a group at
most once, what its references mean is decided by whether the path goes through the group and by the text it takes
there. So the part of the pattern that holds a group and its references becomes an alternation: for every text t of the
group (they must be finite and few) the paths through the group with t in its place and in that of its references, and
the paths around it, where a reference fails (Python) or matches nothing (ECMA-262, 22.2.2.9).

The body of a repeat is such a part of its own, and so is that of a lookaround: groups in them are expanded there, and
refused where a reference stands outside. Python keeps a group's text from one iteration to the next (ECMA-262 does
not), so there a reference inside a repeat must have its group on all ways to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from maskwright.errors import LimitError, RegexError
from maskwright.grammar.ir import EMPTY, EPSILON, Ir, chars, concat
from maskwright.grammar.regex.ast import (
    Branch,
    Capture,
    Conditional,
    Look,
    Loop,
    Node,
    Reference,
    Seq,
    branch,
    children,
    fold,
    seq,
    walk,
    with_children,
)
from maskwright.grammar.regex.texts import MOST_TEXTS, texts_of
from maskwright.grammar.regex.unicode import same_lower_case

_MOST_DEPTH = 100  # of groups, alternations and repeats around a group or a reference
_MOST_WORK = 300_000  # nodes visited by the expansion
_OUTSIDE = "Write the texts out that the group matches, case by case"

Path = tuple[tuple[Node, int], ...]  # the ancestors of a node, and which of their parts leads to it


def with_needed_groups(tree: Node) -> Node:
    """Drops groups that nothing refers to, and writes repeats of one iteration at most without a repeat."""
    wanted = {n.number for n in walk(tree) if isinstance(n, Reference | Conditional)}
    return fold(tree, lambda node, parts: _simple(node, parts, wanted)) if wanted else _without_groups(tree)


def _without_groups(tree: Node) -> Node:
    return fold(tree, _bare) if any(isinstance(n, Capture) for n in walk(tree)) else tree


def _bare(node: Node, parts: list[Node]) -> Node:
    if isinstance(node, Capture):
        return parts[0]
    return with_children(node, parts) if parts else node


def without_references(tree: Node, ecma: bool) -> Node:
    """The same language, of a tree with needed groups, without captures, back-references and conditionals.

    Raises:
        RegexError: a reference cannot be expanded exactly, or the texts of its group are too many.
        LimitError: the expansion is too large.
    """
    if not any(isinstance(n, Reference | Conditional) for n in walk(tree)):
        return _without_groups(tree)
    return _Expansion(tree, ecma).run()


def _simple(node: Node, parts: list[Node], wanted: set[int]) -> Node:
    if isinstance(node, Capture) and node.number not in wanted:
        return parts[0]
    if isinstance(node, Loop) and not isinstance(parts[0], Ir):
        if node.most == 0:
            return EPSILON
        if node.most == 1:
            return parts[0] if node.least else branch((parts[0], EPSILON))
    return with_children(node, parts) if parts else node


def _is_scope(node: Node) -> bool:
    return isinstance(node, Loop | Look)


def _mentions(tree: Node, numbers: set[int]) -> set[int]:
    found = {n.number for n in walk(tree) if isinstance(n, Capture | Reference | Conditional)}
    return found & numbers


def _path(tree: Node, number: int) -> Path | None:
    """The way to a group; None where the tree has lost it."""
    stack: list[tuple[Node, Path]] = [(tree, ())]
    while stack:
        node, path = stack.pop()
        if isinstance(node, Capture) and node.number == number:
            return path
        stack.extend((child, (*path, (node, i))) for i, child in enumerate(children(node)))
    return None


@dataclass(slots=True)
class _Expansion:
    """The expansion of one pattern."""

    tree: Node
    ecma: bool
    work: int = 0
    paths: dict[int, Path] = field(default_factory=dict)
    settled: dict[int, Node] = field(default_factory=dict)  # by id of the reference: what stands for it

    def run(self) -> Node:
        """The expanded tree."""
        references: list[tuple[Reference | Conditional, Path]] = []
        stack: list[tuple[Node, Path]] = [(self.tree, ())]
        while stack:
            node, path = stack.pop()
            if len(path) > _MOST_DEPTH:
                message = f"a group is nested deeper than the limit of {_MOST_DEPTH} in a regex with references"
                raise LimitError(message, location="offset 0", hint="Write it with fewer groups")
            if isinstance(node, Capture):
                self.paths[node.number] = path
            elif isinstance(node, Reference | Conditional):
                references.append((node, path))
            stack.extend((child, (*path, (node, i))) for i, child in enumerate(children(node)))
        for reference, path in references:
            self.check(reference, path)
        tree = self.local(fold(self.tree, self.scopes))
        # What is left asks for groups that no path goes through: those before something that never matches.
        for number in {n.number for n in walk(tree) if isinstance(n, Reference | Conditional)}:
            tree = self.substitute(tree, number, None)
        return tree

    # Which references have a meaning that the expansion gives them.

    def check(self, reference: Reference | Conditional, path: Path) -> None:
        """Settles a reference before its group is closed; refuses what cannot be expanded."""
        group = self.paths.get(reference.number)
        if group is None:
            return
        shared = 0
        while shared < min(len(path), len(group)) and path[shared] == group[shared]:
            shared += 1
        around = [node for node, _ in path[:shared]]
        looped = any(isinstance(n, Loop) for n in around)
        if self.ecma and any(isinstance(n, Look) and not n.ahead for n in around):
            raise self.refusal(reference, "with its group in the same lookbehind")
        if isinstance(reference, Conditional) and shared == len(group):
            # `re` may find what a path that it has given up left in the group.
            raise self.refusal(reference, "inside the group that it asks for")
        if self.comes_first(reference, path, group, shared):
            if looped and not self.ecma:
                raise self.refusal(reference, "before its group inside a repeat")
            self.settled[id(reference)] = self.unset(reference)
            return
        between = [node for node, _ in group[shared:]]
        for node in between:
            if _is_scope(node):
                where = "a repeat" if isinstance(node, Loop) else "a lookaround"
                raise self.refusal(reference, f"to a group inside {where} that it is not in")
        always = isinstance(between[0], Seq) and not any(isinstance(n, Branch | Conditional) for n in between)
        if looped and not (self.ecma or always):
            raise self.refusal(reference, "to a group that may be left out, inside a repeat,")

    def comes_first(self, reference: Reference | Conditional, path: Path, group: Path, shared: int) -> bool:
        """Whether the group is not closed yet where the reference stands."""
        if shared == len(path):  # the group is inside the conditional that asks for it
            return True
        if shared == len(group):  # the reference is inside the group
            return True
        return isinstance(path[shared][0], Seq) and path[shared][1] < group[shared][1]

    def unset(self, reference: Reference | Conditional) -> Node:
        """What a reference to a group that took no part stands for."""
        if isinstance(reference, Conditional):
            return reference.other
        return EPSILON if self.ecma else EMPTY

    @staticmethod
    def refusal(node: Reference | Conditional, where: str) -> RegexError:
        """The refusal of a reference."""
        what = "back-reference" if isinstance(node, Reference) else "conditional"
        message = f"the {what} {node.text} {where} is not supported in the regex"
        return RegexError(message, location=f"offset {node.offset}", hint=_OUTSIDE)

    # From the innermost repeats and lookarounds outwards.

    def scopes(self, node: Node, parts: list[Node]) -> Node:
        """Expands the bodies of repeats and lookarounds."""
        if id(node) in self.settled:
            return parts[1] if isinstance(node, Conditional) else self.settled[id(node)]
        if _is_scope(node):
            parts = [self.local(parts[0])]
        return with_children(node, parts) if parts else node

    def local(self, tree: Node) -> Node:
        """Expands the groups of a tree, each in a part as small as may be."""
        own = {n.number for n in walk(tree) if isinstance(n, Capture)}
        missing = {n.number for n in walk(tree) if isinstance(n, Reference | Conditional)} - set(self.paths)
        for number in missing:
            tree = self.substitute(tree, number, None)
        if not own:
            return tree
        if isinstance(tree, Seq):
            return seq([self.local(p) if single else self.joint(p) for p, single in _segments(tree.items, own)])
        if isinstance(tree, Branch):
            mentions = [_mentions(o, own) for o in tree.options]
            if sum(map(len, mentions)) == len(set().union(*mentions)):
                return branch([self.local(o) for o in tree.options])
        if isinstance(tree, Capture) and not any(
            isinstance(n, Reference | Conditional) and n.number == tree.number for n in walk(tree)
        ):
            return self.local(tree.body)
        return self.joint(tree)

    def joint(self, tree: Node) -> Node:
        """Expands all groups of a tree at its top, those first that are closed first."""
        order = fold(tree, _closing_order)
        variants = [tree]
        for number in order:
            variants = [w for v in variants for w in self.split(v, number)]
        return branch(variants) if variants else EMPTY

    def split(self, tree: Node, number: int) -> list[Node]:
        """The tree without a group and its references, as alternatives."""
        path = _path(tree, number)
        if path is None:
            return [self.substitute(tree, number, None)]
        group: Node = path[-1][0] if path else tree
        group = children(group)[path[-1][1]] if path else tree
        assert isinstance(group, Capture)
        reference = next((n for n in walk(tree) if isinstance(n, Reference) and n.number == number), None)
        out: list[Node] = []
        if reference is None:
            out.append(self.substitute(_through(path, group.body), number, ""))
        else:
            texts = texts_of(group.body)
            if texts is None:
                raise self.refusal(reference, f"to a group of more than {MOST_TEXTS} texts, or long ones,")
            out += [self.substitute(_through(path, branch(nodes)), number, t) for t, nodes in texts.items()]
        if any(isinstance(n, Branch | Conditional) for n, _ in path):
            out.append(self.substitute(tree, number, None))
        return [v for v in out if v != EMPTY]

    def substitute(self, tree: Node, number: int, text: str | None) -> Node:
        """The tree where a group matched a text, or (None) took no part."""

        def change(node: Node, parts: list[Node]) -> Node:
            self.work += 1
            if isinstance(node, Reference) and node.number == number:
                return self.unset(node) if text is None else _spelled(node, text)
            if isinstance(node, Conditional) and node.number == number:
                return parts[0] if text is not None else parts[1]
            if isinstance(node, Capture) and node.number == number:
                return EMPTY
            return with_children(node, parts) if parts else node

        if self.work > _MOST_WORK:
            hint = "Write fewer groups with references, or groups of fewer texts"
            message = f"the back-references of the regex need more than the limit of {_MOST_WORK} steps"
            raise LimitError(message, location="offset 0", hint=hint)
        return fold(tree, change)


def _segments(items: Sequence[Node], own: set[int]) -> list[tuple[Node, bool]]:
    """Runs of items that share groups; whether it is a single item."""
    out: list[tuple[Node, bool]] = []
    mentions = [_mentions(item, own) for item in items]
    last = {number: at for at, found in enumerate(mentions) for number in found}
    start = 0
    while start < len(items):
        end, at = start, start
        while at <= end:
            end = max([end, *(last[n] for n in mentions[at])])
            at += 1
        out.append((items[start], True) if end == start else (Seq(tuple(items[start : end + 1])), False))
        start = end + 1
    return out


def _closing_order(node: Node, parts: list[list[int]]) -> list[int]:
    found = [number for part in parts for number in part]
    return [*found, node.number] if isinstance(node, Capture) else found


def _through(path: Path, body: Node) -> Node:
    """The paths of a tree that go through the group at the end of `path`, with `body` in its place."""
    for node, at in reversed(path):
        if isinstance(node, Branch):
            continue
        parts = list(children(node))
        if isinstance(node, Conditional):
            parts[1 - at] = EMPTY
        parts[at] = body
        body = with_children(node, parts)
    return body


def _spelled(reference: Reference, text: str) -> Ir:
    """What a back-reference to a text matches."""
    if not reference.ignore_case:
        return concat(*(chars([(ord(c), ord(c))]) for c in text))
    return concat(*(chars(same_lower_case(c, reference.ascii_only)) for c in text))
