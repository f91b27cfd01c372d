"""Tries of earlier calls: the same model, prompt, constraint and rules are asked again and again.

What is kept for a model goes with it, and is bounded: whole tries that were unused for longest go first, then, of the
one in use, the leaves that were unused for longest. A trie is in the hands of one call at a time; another call of the
same kind that runs meanwhile begins with nothing.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from maskwright.compiler import CompiledGrammar
from maskwright.engine.lookahead.trie import Trie

if TYPE_CHECKING:
    from maskwright.engine.lookahead.base import Base
    from maskwright.engine.model import LanguageModel

__all__ = ["ENTRIES", "forget", "put", "take"]

# Probabilities kept for a model, over all of its tries: 4 million take 48 MB with their ids.
ENTRIES: Final = 4_000_000
_TRIES: Final = 256

_kept: weakref.WeakKeyDictionary[LanguageModel, OrderedDict[Hashable, Trie]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def take(base: Base) -> Trie:
    """The trie of a law: that of an earlier call, which nobody else has until it is put back, or a new one."""
    key = _key(base)
    with _lock:
        found = _kept.get(base.model, OrderedDict[Hashable, Trie]()).pop(key, None) if key is not None else None
    return Trie(base) if found is None else found


def put(base: Base, trie: Trie) -> None:
    """Keeps a trie for later calls, and within the bound."""
    key = _key(base)
    if key is None:
        return
    trie.shrink(ENTRIES)
    with _lock:
        tries = _kept.setdefault(base.model, OrderedDict())
        tries[key] = trie
        tries.move_to_end(key)
        while len(tries) > _TRIES or (len(tries) > 1 and sum(each.entries for each in tries.values()) > ENTRIES):
            tries.popitem(last=False)


def forget(model: LanguageModel) -> None:
    """Forgets all tries of a model (after its weights were changed, say)."""
    with _lock:
        _kept.pop(model, None)


def _key(base: Base) -> Hashable | None:
    """What the trie of a law depends on; None where it is not to be kept."""
    request, settings = base.request, base.settings
    grammar = request.constraint
    # Grammars with regions of tokens hold the model, which would then never be freed.
    if not settings.reuse or not isinstance(grammar, CompiledGrammar):
        return None
    try:
        weakref.ref(base.model)
        hash(base.model)
    except TypeError:
        return None
    return (
        request.prompt, request.prefix, grammar.constraint.fingerprint(), grammar.banned_ids, base.sampling,
        request.processor, request.max_tokens, settings.tokenization, settings.truncation, settings.enumerate_nodes,
    )  # fmt: skip
