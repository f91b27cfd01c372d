"""From the syntax tree of a pattern to its language."""

from __future__ import annotations

from maskwright.errors import LimitError
from maskwright.grammar.ir import ALL, Ir
from maskwright.grammar.regex.anchors import tables
from maskwright.grammar.regex.assertions import Assertions, needs_context
from maskwright.grammar.regex.ast import Node, seq


def lower(tree: Node, search: bool, max_nodes: int) -> Ir:
    """The language of the texts that the pattern matches as a whole, or (search) in some part.

    Raises:
        RegexError: for assertions where they are not supported.
        LimitError: where the term would have more than `max_nodes` nodes.
    """
    if isinstance(tree, Ir):
        term = seq((ALL, tree, ALL)) if search else tree
        assert isinstance(term, Ir)
    elif needs_context(tree):
        term = Assertions(tree, search, max_nodes).lower()
    else:
        # At the start of the text (1) and at its end (2).
        term = tables(seq((ALL, tree, ALL)) if search else tree)[3 * 1 + 2]
    if term.size > max_nodes:
        hint = "Write a smaller pattern, or raise CompileLimits.nodes"
        raise LimitError(f"the regex needs more nodes than the limit of {max_nodes}", location="offset 0", hint=hint)
    return term
