"""Finite languages as a whole: all prefixes listed without the model, then read in few forwards.

With every distribution known the bounds of the trie meet, in the probability that a prefix is completed to a valid
output, and samples, the most probable output, the probability of every text and the entropy cost no further forward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maskwright.engine.lookahead.reader import Branches, chunk_size, learn
from maskwright.engine.lookahead.search import Leaf
from maskwright.engine.lookahead.trie import log_sum
from maskwright.engine.trees import extend_tree
from maskwright.grammar.choice import Choice

if TYPE_CHECKING:
    from maskwright.engine.lookahead.base import Base
    from maskwright.engine.lookahead.trie import Node, Trie
    from maskwright.engine.rng import Stream

__all__ = ["Texts", "draw_down", "enumerated", "read_languages", "texts_of"]


def enumerated(base: Base, trie: Trie, limit: int) -> bool:
    """Whether the language has at most ``limit`` prefixes; the trie then has nodes for all that lead to an output.

    Stops as soon as there are more.
    """
    if trie.finite is None:
        spellings = _spellings(base)
        trie.finite = _list(base, trie, limit) if spellings is None else _spell(base, trie, spellings, limit)
    return trie.finite


def _spellings(base: Base) -> list[list[int]] | None:
    """The tokenizer's spelling of each choice, where only these count and the constraint is a list of choices."""
    assert base.request.constraint is not None
    choice = base.request.constraint.constraint
    if base.settings.tokenization != "canonical" or not isinstance(choice, Choice) or base.request.prefix:
        return None
    found = [list(base.model.encode(text, add_special=False)) if text else [] for text in choice.texts]
    return found if all(map(base.is_canonical, found)) else None


def _spell(base: Base, trie: Trie, spellings: Sequence[Sequence[int]], limit: int) -> bool:
    """Makes the nodes of these spellings, and has their masks hold nothing else."""
    after: dict[tuple[int, ...], set[int]] = {}
    for tokens in spellings:
        if len(tokens) < base.request.max_tokens:
            for at, token in enumerate(tokens):
                after.setdefault(tuple(tokens[:at]), set()).add(token)
            after.setdefault(tuple(tokens), set()).update(trie.eos)
    if len(after) > limit or trie.root.known:
        return False
    stack = [trie.root]
    while stack:
        node = stack.pop()
        wanted = after.get(tuple(node.output()), set())
        node.restrict(node.ids[np.isin(node.ids, list(wanted))], trie.eos)
        stack += [trie.child(base, node, int(token)) for token in node.ids if token not in trie.eos]
    return True


def _list(base: Base, trie: Trie, limit: int) -> bool:
    found, waiting = [], [trie.root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        onwards = np.delete(node.ids, node.ends)
        if len(found) + len(waiting) + len(onwards) > limit:
            for each in found:
                each.children = {token: child for token, child in each.children.items() if child.known}
            return False
        waiting += [trie.child(base, node, int(token)) for token in onwards]
    for node in reversed(found):
        _prune(node)
    return True


def _prune(node: Node) -> None:
    """Marks a node as dead where it has neither an EOS nor a child that is not dead."""
    if not node.known and not len(node.ends) and all(child.dead for child in node.children.values()):
        node.bury()


def _nodes(trie: Trie) -> list[Node]:
    """All nodes that are not dead, parents first, the children of a node in one go."""
    found, stack = [], [trie.root]
    while stack:
        node = stack.pop()
        if not node.dead:
            found.append(node)
            stack += reversed([node.children[t] for t in sorted(node.children)])
    return found


def read_languages(bases: Sequence[Base], tries: Sequence[Trie]) -> list[tuple[int, int]]:
    """Reads all prefixes of some enumerated tries of the same language, behind different prompts.

    Returns:
        Forwards and distributions for each of them; 0 where all was known.
    """
    wanted = [[node for node in _nodes(trie) if not node.known] for trie in tries]
    rows = [at for at, nodes in enumerate(wanted) if nodes]
    costs = [(0, 0)] * len(tries)
    if not rows:
        return costs
    model = bases[0].model
    prompts = [bases[at].request.read_first for at in rows]
    cache = model.new_cache(len(rows))
    first = model.forward(prompts, cache)
    for place, at in enumerate(rows):
        if not tries[at].root.known:
            learn(bases[at], tries[at], [tries[at].root], first[place : place + 1])
    todo = [[node for node in wanted[at] if not node.known] for at in rows]
    calls = 1
    room = model.context_length - max(map(len, prompts)) - max((n.depth for nodes in todo for n in nodes), default=0)
    size = max(1, min(chunk_size(bases[0].width, len(rows)), room))
    while any(todo):
        chunks = [nodes[:size] for nodes in todo]
        todo = [nodes[size:] for nodes in todo]
        live = [place for place, chunk in enumerate(chunks) if chunk]
        calls += 1
        part = cache if len(live) == len(rows) else cache.fork(live)
        trees = [Branches(chunks[place], 0) for place in live]
        tree = extend_tree(model, [each.tokens for each in trees], [each.parents for each in trees], part)
        for place, branches, logits in zip(live, trees, tree.logits, strict=True):
            learn(bases[rows[place]], tries[rows[place]], chunks[place], logits[branches.places])
        tree.commit([[] for _ in live])
    for at in rows:
        costs[at] = (calls, len(wanted[at]))
    return costs


def draw_down(trie: Trie, stream: Stream) -> Leaf:
    """A sample from the known outputs, by probability: exact where all are known.

    Args:
        trie: with a known output.
        stream: random numbers; those of a step are at the address of its prefix.
    """
    node = trie.root
    while True:
        assert node.logp is not None
        ends = [(float(node.logp[i]), int(node.ids[i])) for i in node.ends]
        inner = [(child.log_edge + child.log_lower, token) for token, child in node.children.items() if child.known]
        options = sorted((token, weight) for weight, token in [*ends, *inner] if weight > -math.inf)
        weights = np.array([weight for _, weight in options])
        sums = np.cumsum(np.exp(weights - weights.max()))
        uniform = float(stream.uniforms(node.key, 1)[0])
        at = min(int(np.searchsorted(sums, uniform * sums[-1], side="right")), len(options) - 1)
        token = options[at][0]
        if token in trie.eos:
            return Leaf(node, token)
        node = node.children[token]


@dataclass(frozen=True)
class Texts:
    """The outputs of a language as texts, the tokenisations of each summed; the most probable first.

    Attributes:
        texts: the bytes of each.
        logprobs: log of the probability of each under the model, unmasked.
        leaves: the most probable tokenisation of each.
        entropy: of the law over sequences of tokens, given that the output is valid, in nats.
    """

    texts: list[bytes]
    logprobs: list[float]
    leaves: list[Leaf]
    entropy: float


def texts_of(base: Base, trie: Trie) -> Texts:
    """The texts of all known outputs of a trie."""
    found: dict[bytes, list[Leaf]] = {}
    logs: list[float] = []
    for node in trie.known():
        for at in node.ends:
            leaf = Leaf(node, int(node.ids[at]))
            if leaf.logprob > -math.inf:
                logs.append(leaf.logprob)
                found.setdefault(base.text_of(node.output()), []).append(leaf)
    total = log_sum(np.array(logs))
    summed = {text: log_sum(np.array([leaf.logprob for leaf in leaves])) for text, leaves in found.items()}
    order = sorted(found, key=lambda text: (-summed[text], text))
    posterior = np.array(logs) - total
    return Texts(
        texts=order,
        logprobs=[summed[text] for text in order],
        leaves=[max(found[text], key=lambda leaf: leaf.logprob) for text in order],
        entropy=float(-(np.exp(posterior) * posterior).sum()) if logs else 0.0,
    )
