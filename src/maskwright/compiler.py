"""From a constraint and a vocabulary to a compiled grammar, cached by content.

The support scan (`Constraint.plan`) sees the whole constraint and raises all its errors; nodes are lowered to machines
of the core when a matcher first reaches them.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maskwright import _core
from maskwright.errors import UnsatisfiableError, VocabularyError
from maskwright.grammar.plan import Cancel, CompileLimits, Constraint, Plan, Report
from maskwright.vocabulary import Vocabulary

__all__ = ["CompiledGrammar", "cached", "compile"]

_CACHE_SIZE = 512
_CACHE_TEXT = 16_000_000  # characters of the constraints' descriptions
_LIMITS = CompileLimits()


class CompiledGrammar:
    """A constraint compiled for one vocabulary; made by `compile`.

    Immutable. Any number of threads may use it at once, each with matchers of its own. It may be used in a forked
    child, and pickles by content: the other process compiles it again, or finds it in its cache.

    Attributes:
        constraint: what was compiled.
        vocabulary: the tokens; those of `banned_ids` are special there.
        limits: the bounds that it was compiled under.
        banned_ids: the ids that are never produced, ascending.
    """

    __slots__ = ("_plan", "_program", "_whole_vocabulary", "banned_ids", "constraint", "limits", "vocabulary")

    def __init__(
        self,
        constraint: Constraint,
        vocabulary: Vocabulary,
        plan: Plan,
        limits: CompileLimits | None = None,
        banned_ids: tuple[int, ...] = (),
    ) -> None:
        self.constraint = constraint
        self.vocabulary = _without(vocabulary, banned_ids)
        self.limits = limits or CompileLimits()
        self.banned_ids = banned_ids
        self._whole_vocabulary = vocabulary
        self._plan = plan
        # The core calls plan.lower with the program; a reference back from there would be a cycle it cannot see.
        core = constraint.reading(self.vocabulary, banned_ids).core
        self._program = _core.Program(core, plan.whitespace, plan.lower)
        plan.start(self._program)
        if not core.is_byte_complete and plan.spares(tuple(core.lacking)):
            self._program.settle_as_free()

    def matcher(self) -> _core.Matcher:
        """A matcher at the start, for one generation."""
        return self._program.matcher()

    @property
    def report(self) -> Report:
        """What became of every keyword: enforced, annotation, over-constrained (how), not in the mask."""
        return self._plan.report

    @property
    def terminals(self) -> tuple[str, ...]:
        """Of a Lark grammar: its terminals as they are shown to people, by number; else nothing."""
        return getattr(self._plan, "terminals", ())

    @property
    def rules(self) -> tuple[str, ...]:
        """Of a Lark grammar: the rules in progress, by state of its parser; else nothing."""
        return getattr(self._plan, "rules", ())

    @property
    def stats(self) -> dict[str, int]:
        """Counters that predict how long masks take, over all matchers of this object since it was compiled.

        `nodes`: parts of the constraint handed out so far (lowered or about to be); `masks`: walked, not found in a
        request's memo; `memo_hits`: found there; `live_nodes`: nodes of the vocabulary's trie that walks reached one
        by one; `dead_probes`: bytes that they tried in vain; `configurations`: new ones that they came upon;
        `memo_evictions`: times that a request's memo grew over 4 MB and was emptied.

        Of the vocabulary, shared by all that is compiled for it: `bases_built`, tables of what character classes and
        patterns allow; `base_bytes`, what those kept take, about; `base_evictions`, times that they came to more than
        `Vocabulary.limit_cache` allows and those not in use were dropped.
        """
        return {**self._program.stats, **self.vocabulary.core.stats}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file that `load` makes the same object from, whole or not at all.

        The file is JSON. It holds the constraint's own description, the limits, the banned ids and the fingerprint of
        the vocabulary, not its tokens; a Python type or Enum is held by its name.

        Raises:
            MaskwrightError: the constraint holds objects that no file can (items of a `Choice`, say).
            OSError: the file cannot be written; the old one, if any, is as it was.
        """
        from maskwright.grammar import saved
        from maskwright.grammar.descriptions import describe  # imports what all kinds of constraints need

        saved.write(
            Path(path),
            saved.Saved(
                describe(self.constraint),
                self._whole_vocabulary.fingerprint,
                self._whole_vocabulary.size,
                self.limits,
                self.banned_ids,
            ),
        )

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], vocabulary: Vocabulary, *, target: Any = None, cancel: Cancel | None = None
    ) -> CompiledGrammar:
        """What was saved in a file, compiled for a vocabulary that must be the same as then.

        Args:
            path: of the file.
            vocabulary: the tokens of the model.
            target: the Python type or Enum of the constraint, where it has one; by default it is looked up by its name
                among the modules that are imported already. Nothing is imported or run for the file's sake.
            cancel: anything with `is_set()`, asked from time to time.

        Raises:
            VocabularyError: it was saved for another vocabulary.
            MaskwrightError: the file is damaged, of another kind or version, or its type is not at hand or has changed.
            ConstraintError: as `compile`.
            OSError: the file cannot be read.
        """
        from maskwright.grammar import saved
        from maskwright.grammar.descriptions import restore

        found = saved.read(Path(path))
        if (found.fingerprint, found.size) != (vocabulary.fingerprint, vocabulary.size):
            raise VocabularyError(
                f"the file was saved for another vocabulary, of {found.size} tokens with the fingerprint "
                f"{found.fingerprint[:16]}...; this one has {vocabulary.size} and {vocabulary.fingerprint[:16]}...",
                location=str(path),
                hint="Load it with the tokenizer that it was saved with, or compile the constraint again",
            )
        constraint = restore(found.constraint, str(path), target)
        return compile(constraint, vocabulary, found.limits, cancel, found.banned_ids)

    def __reduce__(self) -> tuple[object, ...]:
        return compile, (self.constraint, self._whole_vocabulary, self.limits, None, self.banned_ids)

    def __repr__(self) -> str:
        return f"CompiledGrammar({self.constraint!r}, {self.vocabulary!r})"


class _Cache:
    """The compiled grammars used last, by content."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[object, ...], CompiledGrammar] = OrderedDict()
        self._text = 0

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
            if kept is compiled:
                self._text += _length(key)
            while len(self._entries) > 1 and (len(self._entries) > _CACHE_SIZE or self._text > _CACHE_TEXT):
                self._text -= _length(self._entries.popitem(last=False)[0])
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
    limits = limits or _LIMITS
    key = _checked_key(constraint, vocabulary, limits, banned_ids)
    found = _cache.get(key)
    if found is not None:
        return found
    plan = constraint.plan(limits, cancel)
    compiled = CompiledGrammar(constraint, vocabulary, plan, limits, _banned(banned_ids))
    _require_tokens(compiled)
    return _cache.put(key, compiled)


def cached(
    constraint: Constraint, vocabulary: Vocabulary, limits: CompileLimits, banned_ids: Sequence[int] = ()
) -> CompiledGrammar | None:
    """What `compile` would find in its cache."""
    return _cache.get(_checked_key(constraint, vocabulary, limits, banned_ids))


def _checked_key(
    constraint: Constraint, vocabulary: Vocabulary, limits: CompileLimits, banned_ids: Sequence[int]
) -> tuple[object, ...]:
    if not isinstance(constraint, Constraint):
        raise TypeError(f"a constraint is a Regex, Choice, JsonSchema, ..., not {type(constraint).__name__}")
    if not isinstance(vocabulary, Vocabulary):
        raise TypeError(f"a vocabulary is a maskwright.Vocabulary, not {type(vocabulary).__name__}")
    return type(constraint), constraint.fingerprint(), vocabulary.fingerprint, limits, _banned(banned_ids)


def _length(key: tuple[object, ...]) -> int:
    """Characters of the description in a key."""
    return len(str(key[1]))


def _banned(ids: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(set(ids))) if ids else ()


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
    if not compiled._program.spells_unique:
        raise VocabularyError(
            "uniqueItems is not supported over this vocabulary: it lacks bytes that the texts of the schema need",
            location="vocabulary",
            hint="Leave uniqueItems out and check the value afterwards",
        )
