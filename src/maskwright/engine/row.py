"""One output in the making: its matcher, its tokens, its mask and why it ended.

A row knows nothing of models. It is told which tokens were drawn, appends the tokens that the constraint then
determines, and says which tokens the model has not seen yet, and under which masks it is to say what follows them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from maskwright.engine.bitsets import Words, bits, only_bit
from maskwright.engine.expected import Expected
from maskwright.engine.request import Guide, Request
from maskwright.engine.result import FinishReason
from maskwright.engine.sampling import Sampling
from maskwright.engine.speculation.window import Window
from maskwright.engine.text import Detokenizer
from maskwright.errors import GenerationError, MaskwrightError

if TYPE_CHECKING:
    from maskwright.engine.draw import Draw
    from maskwright.engine.speculation.tally import Tally
    from maskwright.vocabulary import Vocabulary

__all__ = ["LONGEST_RUN", "Drafter", "Row"]

# Tokens that one forward verifies at most: with the logits of each, a vocabulary of 128k costs 16 MB.
LONGEST_RUN = 32


class Row:
    """The state of one request.

    Attributes:
        sampling: how its tokens are drawn.
        details: what draws tell besides; see :func:`maskwright.engine.draw.draw`.
        tokens: generated so far.
        draws: what is known of each of them; shorter than `tokens` while the model has not read forced ones.
        mask: allowed tokens of the next step, uint32 words; None without a constraint.
        unseen: tokens that the model must read before the next draw. All but the first were forced; what is known of
            them is owed until the forward that reads them.
        window: tokens that may follow; read with the unseen ones, and kept as far as the draws agree. None for none.
        finish_reason: None while the row is running.
        error: why it failed, if it did.
        drafted: tokens appended, or read, without a decode step of their own; `accepted` of them stayed.
        missed: whether the last draft was wrong from its first token on.
        longest_run: the most tokens that it gives a forward after the prompt: unseen ones, and its draft.
        tally: of speculative decoding; None without.
        warnings: what could not be done as asked.
    """

    def __init__(
        self,
        request: Request,
        vocabulary: Vocabulary,
        started: float,
        sampling: Sampling | None = None,
        details: int | None = None,
    ) -> None:
        self.request = request
        self.sampling = sampling or Sampling()
        self.details = details
        self.tokens: list[int] = []
        self.draws: list[Draw] = []
        self.unseen: list[int] = list(request.read_first)
        self.window: Window | None = None
        self.finish_reason: FinishReason | None = None
        self.error: GenerationError | None = None
        self.text = Detokenizer(vocabulary, request.stops)
        self.matcher: Guide | None = None
        self.mask: Words | None = None
        self.model_calls = self.drafted = self.accepted = self.cached_tokens = 0
        self.missed = False
        self.longest_run = LONGEST_RUN
        self.tally: Tally | None = None
        self.warnings: list[str] = []
        self.mask_seconds = 0.0
        self.started, self.first, self.ended = started, started, started
        self._size = vocabulary.size
        self._eos = bits(vocabulary.eos_ids, vocabulary.size)
        self._eos_ids = frozenset(vocabulary.eos_ids)
        self._stop_bits = bits(request.stop_ids, vocabulary.size)
        self._may_end = True
        self._lazy = self.sampling.lazy_mask
        self._cut: int | None = None
        self._last_for_budget = False
        if request.constraint is not None:
            self.matcher = request.constraint.matcher()
        self._start()

    def _start(self) -> None:
        self.text.start(self.request.prefix)
        for at, token in enumerate(self.request.prefix):
            if self.matcher is not None and not self.matcher.accept(token):
                raise GenerationError(
                    "the constraint does not allow the prefix",
                    location=f"token {at} of the prefix",
                    hint="Pass the beginning of a text that the constraint allows",
                )
        self._prepare()

    @property
    def running(self) -> bool:
        """Whether a token must still be drawn."""
        return self.finish_reason is None and self.error is None

    @property
    def plain(self) -> bool:
        """Whether nothing looks at the logits of tokens that a mask forbids, before the row has ended."""
        rules = self.sampling
        return not (self.details is not None or rules.penalizes or rules.lazy_mask or self.request.processor)

    def has_rules_of(self, other: Row) -> bool:
        """Whether tokens of both are drawn in one call."""
        same = self.sampling is other.sampling or self.sampling == other.sampling
        return same and self.details == other.details

    @property
    def owes(self) -> bool:
        """Whether what is known of forced tokens must still be learned."""
        return len(self.unseen) > 1 and bool(self.tokens) and self.error is None

    @property
    def position(self) -> int:
        """How many tokens the output has, the prefix included."""
        return len(self.request.prefix) + len(self.tokens)

    @property
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

    # --- before a forward

    @property
    def draft(self) -> list[int]:
        """The tokens of the window, as the model is to read them."""
        return [] if self.window is None else self.window.tokens

    def propose(self, tokens: Sequence[int]) -> None:
        """Takes a draft, as far as the constraint allows it, with the mask after each of its tokens."""
        window, node = Window(self), -1
        for token in tokens[: self.longest_run - len(self.unseen)]:
            child = window.add(node, token)
            if child is None:
                break
            node = child
        self.watch(window)

    def watch(self, window: Window) -> None:
        """Takes a draft."""
        self.window = window if window.tokens or window.trials else None
        self.drafted += len(self.draft)

    @property
    def expected(self) -> list[Expected]:
        """What the logits after the unseen tokens and the draft are about, in their order.

        First the places of the forced tokens, each with the mask that held nothing else; then, while the row is
        running, the next place and those after each token of the draft.
        """
        forced = self.unseen[1:] if self.tokens else []
        begin = self.position - len(forced)
        places = [Expected(bits((token,), self._size), begin + at) for at, token in enumerate(forced)]
        if self.running:
            places += [self._place(node) for node in range(-1, len(self.draft))]
        return places

    def _place(self, node: int) -> Expected:
        if self.window is None:
            return Expected(self.mask, self.position)
        path = tuple(self.window.path(node))
        return Expected(self.window.mask(node), self.position + len(path), path, self.window.trials.get(node))

    def before(self, place: Expected) -> list[int]:
        """The tokens of the output before an expected place, the prefix and drafted ones included."""
        known = [*self.request.prefix, *self.tokens]
        return [*known[: place.position - len(place.draft)], *place.draft]

    def is_end(self, token: int) -> bool:
        """Whether a token ends the output, if it comes where it can."""
        return token in self._eos_ids or token in self.request.stop_ids

    @property
    def ends(self) -> Words:
        """The bits of the EOS tokens."""
        return self._eos

    def mask_ahead(self, guide: Guide | None, left: int) -> Words | None:
        """The mask of a later place: where the matcher is there (None without one), and so many tokens are left."""
        if guide is not None:
            return self._mask_of(guide, left)[0]
        return self._free(left)[0]

    def settle(self, draws: Sequence[Draw | GenerationError]) -> list[Draw | GenerationError]:
        """Takes what is known of the forced tokens, and forgets that they are unseen; the draws that are left."""
        owed = len(self.unseen) - 1 if self.tokens else 0
        for draw in draws[:owed]:
            if isinstance(draw, GenerationError):
                self.fail(draw)
                break
            self.draws.append(draw)
        self.unseen = self.unseen[-1:]
        return list(draws[owed:])

    def take(self, draws: Sequence[Draw | GenerationError], bias: Mapping[int, float]) -> list[int]:
        """Appends drawn tokens for as long as they agree with the draft, and what the constraint then determines.

        Args:
            draws: one for the next place and one after each token of the draft: the token, or why there is none.
            bias: of the sampling rules; a token with bias ``-inf`` is never forced.

        Returns:
            The nodes of the draft that stay.
        """
        window, agreed, node = self.window, list[int](), -1
        while True:
            draw = draws[node + 1]
            if isinstance(draw, GenerationError):
                self.fail(draw)
                break
            self.unseen = []
            self.draws.append(draw)
            self._append(draw.token)
            child = None if window is None or not self.running else window.child(node, draw.token)
            if child is None:
                break
            agreed.append(child)
            node = child
        self.accepted += len(agreed)
        self.missed = bool(self.draft) and not agreed
        self.window = None
        self._force(bias)
        return agreed

    def _force(self, bias: Mapping[int, float]) -> None:
        while self.running and self.request.forced_runs and 0 < len(self.unseen) < self.longest_run:
            token = None if self.mask is None else only_bit(self.mask)
            if token is None or token in self._eos_ids or bias.get(token, 0.0) == -np.inf:
                return
            self.drafted += 1
            self.accepted += 1
            self._append(token)

    def admits(self, token: int) -> bool:
        """Whether a token that was drawn without a mask is one that the mask would hold."""
        assert self.matcher is not None
        left = self.request.max_tokens - len(self.tokens)
        trial = self.matcher.fork()
        if token >= self._size or not trial.accept(token):
            return False
        return token in self._eos_ids or trial.can_finish_within(left - 2)

    def fill(self) -> None:
        """Computes the mask that was put off."""
        assert self.matcher is not None
        self.mask = np.zeros_like(self._eos)
        self.matcher.fill_mask(self.mask, self.request.max_tokens - len(self.tokens))

    @property
    def lazy(self) -> bool:
        """Whether the mask of the next step was put off."""
        return self.matcher is not None and self.mask is None and self.running

    # --- the end

    def fail(self, error: GenerationError) -> None:
        """Ends the row with an error; the others of its batch go on."""
        self.error = error
        self.ended = time.perf_counter()

    def end(self, reason: FinishReason) -> None:
        """Ends the row."""
        self.finish_reason = reason
        self.ended = time.perf_counter()
        self.text.finish()

    def _append(self, token: int) -> None:
        if not self.tokens:
            self.first = time.perf_counter()
        stops_here = token in self.request.stop_ids and self._may_end
        if not stops_here and self.matcher is not None and not self.matcher.accept(token):
            self.fail(GenerationError(f"the matcher refuses token {token}, which its own mask allows"))
            return
        self.tokens.append(token)
        self.unseen.append(token)
        before = len(self.text.text)
        stops = self.text.push(token)
        if stops_here:
            self._cut = None if self.request.include_stop else before
            self.end("stop")
        elif token in self._eos_ids:
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
        matcher: Guide = self.request.constraint.matcher()
        return matcher.accept_text(text) and matcher.is_accepting

    def _prepare(self) -> None:
        """Fills the mask of the next step; ends the row where there is none."""
        left = self.request.max_tokens - len(self.tokens)
        if self.matcher is None:
            self._prepare_free(left)
            return
        if self._lazy and not self.matcher.is_accepting and not self.request.stop_ids:
            self.mask, self._may_end = None, False
            return
        begin = time.perf_counter()
        try:
            ends = self._fill_mask(self.matcher, left)
        except MaskwrightError as error:
            self.fail(GenerationError(f"the mask of token {len(self.tokens)} failed: {error}"))
            return
        finally:
            self.mask_seconds += time.perf_counter() - begin
        if ends and not self._last_for_budget:
            if len(self.tokens) < self.request.min_tokens:
                self._warn_of_min_tokens()
            self.end("constraint")

    def _fill_mask(self, guide: Guide, left: int) -> bool:
        """Computes the mask; whether it holds nothing but EOS."""
        self.mask, self._may_end, ends = self._mask_of(guide, left)
        if ends:
            free = np.zeros_like(self.mask)
            guide.fill_mask(free)
            self._last_for_budget = bool((free & ~self._eos).any())
            if self._last_for_budget and len(self.tokens) < self.request.min_tokens:
                self._warn_of_min_tokens()
        return ends

    def _mask_of(self, guide: Guide, left: int) -> tuple[Words, bool, bool]:
        """The mask of a place with so many tokens left, whether the output may end there, and whether it must."""
        mask = np.zeros_like(self._eos)
        guide.fill_mask(mask, left)
        others = mask & ~self._eos
        if not (mask & self._eos).any():
            return mask, False, False
        if others.any() and self.request.max_tokens - left < self.request.min_tokens:
            return others, False, False
        return mask | self._stop_bits, True, not others.any()

    def place(self, guide: Guide | None, left: int) -> tuple[Words | None, bool, bool]:
        """For searches, which hold many guides: a place with so many tokens left.

        Returns:
            The mask, None for anything; whether the output may end there; whether it has ended before it, as nothing
            can follow.
        """
        if guide is None:
            return *self._free(left), left == 0
        mask, may_end, ends = self._mask_of(guide, left)
        free = np.zeros_like(mask)
        if ends:
            guide.fill_mask(free)
        return mask, may_end, ends and not bool((free & ~self._eos).any())

    def _prepare_free(self, left: int) -> None:
        if left == 0:
            self.end("length")
            return
        self.mask, self._may_end = self._free(left)

    def _free(self, left: int) -> tuple[Words | None, bool]:
        """Without a constraint: the mask of a place with so many tokens left, and whether the output may end there."""
        may_end = self.request.max_tokens - left >= self.request.min_tokens
        return None if may_end else ~(self._eos | self._stop_bits), may_end

    def _warn_of_min_tokens(self) -> None:
        self.warnings.append("min_tokens: the constraint or max_tokens ended the output before")


Drafter = Callable[[Row], Sequence[int]]
