"""A logits processor for ``generate`` of transformers.

It is a function of token prefixes, not of the order of calls: ``generate`` reorders beams under a processor, calls it
with prefixes that are never kept (candidates of assisted decoding and of prompt lookup, which also passes made-up
logits), and goes on calling it for rows that have ended. A matcher is kept for each prefix seen of late; the state of a
row is that of its prefix, or follows from that of the prefix one token shorter.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.errors import GenerationError
from maskwright.masks import apply_bitmask_

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch

    from maskwright.compiler import CompiledGrammar
    from maskwright.matcher import Matcher

__all__ = ["LogitsProcessor", "check_budget"]

# A prefix is needed for as long as a beam or a candidate may still extend it: some dozens of steps at the very most.
_STEPS_KEPT = 64
_LEAST_KEPT = 1024


def check_budget(compiled: CompiledGrammar, max_tokens: int) -> None:
    """Refuses a budget in which an output cannot be finished.

    Args:
        compiled: the constraint.
        max_tokens: the most tokens of an output, EOS included.

    Raises:
        GenerationError: naming a number of tokens that would do.
    """
    enough = compiled.matcher().min_tokens_to_accept() + 1
    if max_tokens < enough:
        raise GenerationError(
            f"max_tokens is {max_tokens}, too few to finish an output of this constraint: "
            f"it takes {enough}, EOS included",
            hint=f"Allow max_tokens={enough} or more",
        )


class _State:
    """What is known of one prefix.

    Attributes:
        matcher: after the tokens of the output so far; None where they are refused.
        generated: how many those are.
    """

    __slots__ = ("generated", "matcher")

    def __init__(self, matcher: Matcher | None, generated: int) -> None:
        self.matcher = matcher
        self.generated = generated

    def follow(self, token: int) -> _State:
        """The state one token later; a row that has ended stays as it is, whatever it is padded with."""
        if self.matcher is None or self.matcher.is_finished:
            return self
        matcher = self.matcher.fork()
        return _State(matcher if matcher.accept(token) else None, self.generated + 1)


class LogitsProcessor:
    """Masks what a constraint does not allow, inside ``generate(..., logits_processor=[...])`` of transformers.

    Works with greedy decoding, sampling, beams, padded batches, assisted decoding and prompt lookup. Put it last: what
    a later processor adds or forces is not masked.

    A prefix that the constraint refuses (a candidate that will be dropped, a beam of probability zero, a token that
    another processor forced) can only end.

    Args:
        compiled: the constraint of all rows, or a list with one entry per prompt (None for a free row). Row ``r`` uses
            entry ``r // (rows / entries)``, which is the order of beams and of ``num_return_sequences``.
        prompt_lengths: columns of ``input_ids`` before the output, padding included: one number, or one per prompt.
            Without it a row that extends no prefix seen before, by one token, is taken for a prompt: right for every
            call of ``generate`` that has a processor of its own.
        pad_id: what rows that have ended get; by default their EOS ids stay allowed.
        max_tokens: if given, masks also see to it that the output is complete within so many tokens, EOS included;
            pass the ``max_new_tokens`` of the call.

    Raises:
        GenerationError: an output cannot be finished in ``max_tokens``.
        TypeError: an entry is no compiled constraint.
        ValueError: the entries have different vocabularies, or there are none.
    """

    def __init__(
        self,
        compiled: CompiledGrammar | Sequence[CompiledGrammar | None],
        prompt_lengths: int | Sequence[int] | None = None,
        pad_id: int | None = None,
        *,
        max_tokens: int | None = None,
    ) -> None:
        self._entries = _entries(compiled)
        self._vocabulary = next(entry.vocabulary for entry in self._entries if entry is not None)
        self._prompt_lengths = prompt_lengths
        self._pad_id = pad_id
        self._max_tokens = max_tokens
        self._states: OrderedDict[bytes, _State] = OrderedDict()
        for entry in self._entries:
            if entry is not None and max_tokens is not None:
                check_budget(entry, max_tokens)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores with ``-inf`` for every token that a row's constraint does not allow.

        Args:
            input_ids: int64, shape ``(rows, length)``: prompt and output so far.
            scores: shape ``(rows, V)``; ``V`` may exceed the vocabulary, whose tail is masked.

        Returns:
            New tensor of the same shape.

        Raises:
            ValueError: the number of rows is no multiple of the number of entries.
            GenerationError: other processors or the model forbid everything that a constraint allows.
        """
        import torch

        rows = input_ids.shape[0]
        if rows % len(self._entries):
            raise ValueError(f"{rows} rows are no multiple of the {len(self._entries)} constraints")
        size = self._vocabulary.size
        bitmask = np.full((rows, (size + 31) // 32), 0xFFFFFFFF, dtype=np.uint32)
        ended: list[tuple[int, list[int]]] = []
        for row, ids in enumerate(input_ids.cpu().numpy()):
            entry = row * len(self._entries) // rows
            compiled = self._entries[entry]
            if compiled is not None:
                last = self._fill(bitmask[row], self._state(compiled, entry, ids))
                ended += [(row, last)] if last else []
        out = scores.clone()
        apply_bitmask_(out, torch.from_numpy(bitmask.view(np.int32)))
        out[:, size:] = -math.inf
        for row, last in ended:
            out[row] = -math.inf
            out[row, last] = 0.0
        if bool((out.amax(dim=-1) == -math.inf).any()):
            raise GenerationError(
                "every token that the constraint allows has a score of -inf already",
                hint="Another processor, or the model, forbids it; remove it from this call",
            )
        while len(self._states) > max(_LEAST_KEPT, _STEPS_KEPT * rows):
            self._states.popitem(last=False)
        return out

    def _fill(self, row: npt.NDArray[np.uint32], state: _State) -> list[int]:
        """Fills the mask of a row; for one that has ended, gives instead the ids that it may be filled up with."""
        left = None if self._max_tokens is None else self._max_tokens - state.generated
        if state.matcher is None or (left is not None and left < 1 and not state.matcher.is_finished):
            return list(self._vocabulary.eos_ids)
        if state.matcher.is_finished:
            return list(self._vocabulary.eos_ids) if self._pad_id is None else [self._pad_id]
        state.matcher.fill_mask(row, left)
        return []

    def _state(self, compiled: CompiledGrammar, entry: int, ids: npt.NDArray[np.int64]) -> _State:
        """The state of a row, from that of its longest prefix that was seen."""
        digest = hashlib.blake2b(entry.to_bytes(8, "little"), digest_size=16)
        digest.update(ids[:-1].tobytes())
        shorter = digest.digest()
        digest.update(ids[-1:].tobytes())
        key = digest.digest()
        state = self._states.get(key)
        if state is None:
            before = None if len(ids) == self._prompt_length(entry) else self._states.get(shorter)
            state = self._root(compiled, entry, ids) if before is None else before.follow(int(ids[-1]))
            self._states[key] = state
        self._states.move_to_end(key)
        return state

    def _prompt_length(self, entry: int) -> int | None:
        lengths = self._prompt_lengths
        return lengths if lengths is None or isinstance(lengths, int) else lengths[entry]

    def _root(self, compiled: CompiledGrammar, entry: int, ids: npt.NDArray[np.int64]) -> _State:
        """The state of a row none of whose prefixes was seen."""
        start = self._prompt_length(entry)
        if start is not None and start > len(ids):
            raise ValueError(f"prompt_lengths says {start}, but the row has {len(ids)} tokens")
        state = _State(compiled.matcher(), 0)
        for token in [] if start is None else ids[start:].tolist():
            state = state.follow(token)
        return state


def _entries(compiled: Any) -> list[CompiledGrammar | None]:
    """The constraints as a list, checked."""
    from maskwright.compiler import CompiledGrammar

    entries = list(compiled) if isinstance(compiled, list | tuple) else [compiled]
    for entry in entries:
        if entry is not None and not isinstance(entry, CompiledGrammar):
            raise TypeError(f"a constraint is {type(entry).__name__}; pass what mw.compile() returns")
    vocabularies = {entry.vocabulary for entry in entries if entry is not None}
    if len(vocabularies) != 1:
        raise ValueError("the list holds no constraint" if not vocabularies else "the vocabularies differ")
    return entries
