"""One output in the making: its matcher, its tokens, its mask and why it ended.

A row knows nothing of models. It is told which token was drawn, appends the tokens that the constraint then
determines, and says which tokens the model has not seen yet.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.engine.result import FinishReason, Result, Stats
from maskwright.engine.text import Detokenizer
from maskwright.errors import GenerationError, MaskwrightError

if TYPE_CHECKING:
    from maskwright.compiler import CompiledGrammar
    from maskwright.engine.rng import Stream
    from maskwright.engine.sampling import Draw
    from maskwright.matcher import Matcher
    from maskwright.vocabulary import Vocabulary

__all__ = ["Request", "Row", "only_bit"]

# Tokens that one forward verifies at most: with the logits of each, a vocabulary of 128k costs 16 MB.
_LONGEST_RUN = 32


@dataclass(frozen=True)
class Request:
    """What is asked of one row.

    Attributes:
        prompt: token ids, at least one.
        constraint: compiled for the model's vocabulary; None for free text.
        stream: its random numbers.
        max_tokens: the most tokens to generate, EOS included.
        stops: strings that end the text; where there is a constraint, only where the text is complete.
        include_stop: whether the text keeps the stop string.
        forced_runs: whether tokens that the constraint determines skip their decode step (never changes the output).
    """

    prompt: tuple[int, ...]
    constraint: CompiledGrammar | None
    stream: Stream
    max_tokens: int
    stops: tuple[str, ...] = ()
    include_stop: bool = False
    forced_runs: bool = True


class Row:
    """The state of one request.

    Attributes:
        tokens: generated so far.
        mask: allowed tokens of the next step, uint32 words; None without a constraint.
        unseen: tokens that the model must read before the next draw. All but the first were forced; their
            probabilities are owed until the forward that reads them.
        finish_reason: None while the row is running.
        error: why it failed, if it did.
    """

    def __init__(self, request: Request, vocabulary: Vocabulary, started: float) -> None:
        self.request = request
        self.tokens: list[int] = []
        self.unseen: list[int] = list(request.prompt)
        self.finish_reason: FinishReason | None = None
        self.error: GenerationError | None = None
        self.text = Detokenizer(vocabulary, request.stops)
        self.logprob = self.log_weight = 0.0
        self.model_calls = 0
        self.matcher: Matcher | None = None
        self.mask: npt.NDArray[np.uint32] | None = None
        self._eos = _bits(vocabulary.eos_ids, vocabulary.size)
        self._eos_ids = frozenset(vocabulary.eos_ids)
        self._cut: int | None = None
        self._last_for_budget = False
        self._forced = 0
        self._mask_seconds = 0.0
        self._started, self._first, self._ended = started, started, started
        if request.constraint is not None:
            self.matcher = request.constraint.matcher()
            self.mask = np.zeros_like(self._eos)
        self._prepare()

    @property
    def running(self) -> bool:
        """Whether a token must still be drawn."""
        return self.finish_reason is None and self.error is None

    @property
    def owes(self) -> bool:
        """Whether the probabilities of forced tokens are not known yet."""
        return len(self.unseen) > 1 and bool(self.tokens) and self.error is None

    def take(self, draw: Draw | GenerationError, bias: Mapping[int, float]) -> None:
        """Appends a drawn token and the tokens that the constraint then determines.

        Args:
            draw: the token, or why there is none.
            bias: of the sampling rules; a token with bias ``-inf`` is never forced.
        """
        if isinstance(draw, GenerationError):
            self.fail(draw)
            return
        self.unseen = []
        self.logprob += draw.logprob
        self.log_weight += draw.kept
        self._append(draw.token)
        while self.running and self.request.forced_runs and len(self.unseen) < _LONGEST_RUN:
            token = None if self.mask is None else only_bit(self.mask)
            if token is None or token in self._eos_ids or bias.get(token, 0.0) == -np.inf:
                return
            self._forced += 1
            self._append(token)

    def settle(self, logprobs: list[float]) -> None:
        """Takes the log-probabilities of the forced tokens in `unseen` (all but the first), and forgets these."""
        # The mask kept one token: what it kept is that token's probability.
        self.logprob += sum(logprobs)
        self.log_weight += sum(logprobs)
        self.unseen = self.unseen[:1]

    def fail(self, error: GenerationError) -> None:
        """Ends the row with an error; the others of its batch go on."""
        self.error = error
        self._ended = time.perf_counter()

    def end(self, reason: FinishReason) -> None:
        """Ends the row."""
        self.finish_reason = reason
        self._ended = time.perf_counter()
        self.text.finish()

    def _append(self, token: int) -> None:
        if not self.tokens:
            self._first = time.perf_counter()
        if self.matcher is not None and not self.matcher.accept(token):
            self.fail(GenerationError(f"the matcher refuses token {token}, which its own mask allows"))
            return
        self.tokens.append(token)
        self.unseen.append(token)
        stops = self.text.push(token)
        if token in self._eos_ids:
            self.end("length" if self._last_for_budget else "eos")
        elif not self._stopped(stops):
            self._prepare()

    def _stopped(self, found: list[tuple[int, int]]) -> bool:
        """Whether one of the stop strings ends the text: the first after which it is a complete output."""
        for end, start in found:
            cut = end if self.request.include_stop else start
            if self._complete(self.text.text[:cut]):
                self._cut = cut
                self.end("stop")
                return True
        return False

    def _complete(self, text: str) -> bool:
        if self.request.constraint is None:
            return True
        matcher = self.request.constraint.matcher()
        return matcher.accept_text(text) and matcher.is_accepting

    def _prepare(self) -> None:
        """Fills the mask of the next step; ends the row where there is none."""
        left = self.request.max_tokens - len(self.tokens)
        if self.matcher is None:
            if left == 0:
                self.end("length")
            return
        assert self.mask is not None
        begin = time.perf_counter()
        try:
            self.matcher.fill_mask(self.mask, left)
            ends = bool(self.mask.any()) and not (self.mask & ~self._eos).any()
            if ends:
                free = np.zeros_like(self.mask)
                self.matcher.fill_mask(free)
                self._last_for_budget = bool((free & ~self._eos).any())
        except MaskwrightError as error:
            self.fail(GenerationError(f"the mask of token {len(self.tokens)} failed: {error}"))
            return
        finally:
            self._mask_seconds += time.perf_counter() - begin
        if ends and not self._last_for_budget:
            self.end("constraint")

    def final_text(self) -> str:
        """The text so far, or, once the row has ended, of its result."""
        return self.text.text if self._cut is None else self.text.text[: self._cut]

    @property
    def valid(self) -> bool:
        """Whether the text is a complete output of the constraint."""
        if self.error is not None:
            return False
        if self.matcher is None or self.finish_reason == "stop":
            return True
        return self.matcher.is_accepting or self.matcher.is_finished

    def result(self, manifest: Mapping[str, Any]) -> Result:
        """What has been generated, with the value still the text."""
        text, count = self.final_text(), len(self.tokens)
        return Result(
            text=text,
            value=text if self.valid else None,
            tokens=list(self.tokens),
            finish_reason=self.finish_reason or "cancelled",
            valid=self.valid,
            logprob=self.logprob,
            log_weight=self.log_weight,
            stats=Stats(
                prompt_tokens=len(self.request.prompt),
                model_calls=self.model_calls,
                drafted=self._forced,
                accepted=self._forced,
                mask_seconds=self._mask_seconds,
                first_token_seconds=self._first - self._started if count else None,
                seconds=self._ended - self._started,
                token_seconds=(self._ended - self._first) / (count - 1) if count > 1 else None,
            ),
            manifest={
                **manifest,
                "seed": self.request.stream.seed,
                "request": self.request.stream.request,
                "max_tokens": self.request.max_tokens,
                "stop": list(self.request.stops),
                "constraint": self.request.constraint and self.request.constraint.constraint.fingerprint(),
            },
        )


def _bits(ids: tuple[int, ...], size: int) -> npt.NDArray[np.uint32]:
    """A bitset row of ``ceil(size / 32)`` words with these ids set."""
    row = np.zeros((size + 31) // 32, dtype=np.uint32)
    for i in ids:
        row[i >> 5] |= np.uint32(1 << (i & 31))
    return row


def only_bit(row: npt.NDArray[np.uint32]) -> int | None:
    """The one id that a bitset row holds; None if it holds none or several."""
    words = np.flatnonzero(row)
    if len(words) != 1:
        return None
    word = int(row[words[0]])
    return None if word & (word - 1) else int(words[0]) * 32 + word.bit_length() - 1
