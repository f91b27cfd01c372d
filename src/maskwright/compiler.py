"""From a constraint and a vocabulary to a compiled grammar, cached by content.

The support scan (`Constraint.plan`) sees the whole constraint and raises all its errors; nodes are lowered to machines of
the core when a matcher first reaches them.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence

from maskwright import _core
from maskwright.errors import UnsatisfiableError, VocabularyError
from maskwright.grammar.plan import Cancel, CompileLimits, Constraint, Plan, Report
from maskwright.vocabulary import Vocabulary

__all__ = ["CompiledGrammar", "compile"]

_CACHE_SIZE = 512


class CompiledGrammar:
    """A constraint compiled for one vocabulary. Thread-safe; made by `compile`."""

    __slots__ = ("_plan", "_program", "constraint", "vocabulary")

    def __init__(self, constraint: Constraint, vocabulary: Vocabulary, plan: Plan) -> None:
        self.constraint = constraint
        self.vocabulary = vocabulary
        self._plan = plan
        # The core calls plan.lower with the program; a reference back from there would be a cycle it cannot see.
        self._program = _core.Program(vocabulary.core, plan.whitespace, plan.lower)
        plan.start(self._program)

    def matcher(self) -> _core.Matcher:
        """A matcher at the start, for one generation."""
        return self._program.matcher()

    @property
    def report(self) -> Report:
        """What became of every keyword: enforced, annotation, over-constrained (how), not in the mask."""
        return self._plan.report

    @property
    def stats(self) -> dict[str, int]:
        """Counters: `nodes` handed out so far (lowered or about to be)."""
        return {"nodes": self._program.node_count}

    def __reduce__(self) -> tuple[object, ...]:
        return compile, (self.constraint, self.vocabulary)

    def __repr__(self) -> str:
        return f"CompiledGrammar({self.constraint!r}, {self.vocabulary!r})"


class _Cache:
    """The compiled grammars used last, by content."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[object, ...], CompiledGrammar] = OrderedDict()

    def get(self, key: tuple[object, ...]) -> CompiledGrammar | None:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: tuple[object, ...], compiled: CompiledGrammar) -> CompiledGrammar:
        with self._lock:
            kept = self._entries.setdefault(key, compiled)
            self._entries.move_to_end(key)
            while len(self._entries) > _CACHE_SIZE:
                self._entries.popitem(last=False)
            return kept

    def renew_lock(self) -> None:
        """For a forked child, where the thread that held it does not exist."""
        self._lock = threading.Lock()


_cache = _Cache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_cache.renew_lock)


def compile(
    constraint: Constraint,
    vocabulary: Vocabulary,
    limits: CompileLimits | None = None,
    cancel: Cancel | None = None,
    banned_ids: Sequence[int] = (),
) -> CompiledGrammar:
    """Compiles a constraint for a vocabulary; a second call with equal arguments returns the same object.

    Args:
        constraint: a `Regex`, `Choice`, `JsonSchema`, ...
        vocabulary: the tokens of the model.
        limits: bounds of the scan; the default fits any schema written by people.
        cancel: anything with `is_set()`, asked from time to time.
        banned_ids: token ids that must never be produced.

    Raises:
        ConstraintError: what cannot be enforced exactly, or is wrong, with its location and what to write instead.
        UnsatisfiableError: no text, or no sequence of the vocabulary's tokens, is valid.
        LimitError: the scan exceeded `limits`, or was cancelled.
    """
    if not isinstance(constraint, Constraint):
        raise TypeError(f"a constraint is a Regex, Choice, JsonSchema, ..., not {type(constraint).__name__}")
    if not isinstance(vocabulary, Vocabulary):
        raise TypeError(f"a vocabulary is a maskwright.Vocabulary, not {type(vocabulary).__name__}")
    limits = limits or CompileLimits()
    banned = tuple(sorted(set(banned_ids)))
    key = (type(constraint), constraint.fingerprint(), vocabulary.fingerprint, limits, banned)
    found = _cache.get(key)
    if found is not None:
        return found
    plan = constraint.plan(limits, cancel)
    compiled = CompiledGrammar(constraint, _without(vocabulary, banned), plan)
    _require_tokens(compiled)
    return _cache.put(key, compiled)


def _without(vocabulary: Vocabulary, banned: tuple[int, ...]) -> Vocabulary:
    if not banned:
        return vocabulary
    for token in banned:
        if not 0 <= token < vocabulary.size:
            raise VocabularyError(f"banned id {token} is not in the vocabulary", location=f"token {token}")
    ends = [t for t in vocabulary.eos_ids if t not in banned]
    if not ends:
        raise VocabularyError("every EOS id is banned", location="banned_ids", hint="Leave one EOS id allowed")
    return Vocabulary(vocabulary.tokens, eos_ids=ends, special_ids={*vocabulary.special_ids, *banned})


def _require_tokens(compiled: CompiledGrammar) -> None:
    """A valid text exists; where the vocabulary lacks single bytes, so must a way to spell one."""
    if compiled.vocabulary.is_byte_complete:
        return
    matcher = compiled.matcher()
    if not matcher.is_accepting and not matcher.allowed_tokens():
        raise UnsatisfiableError(
            "no sequence of this vocabulary's tokens spells a valid text",
            location="vocabulary",
            hint="The vocabulary lacks characters that the constraint needs: allow others, or add tokens",
        )
