"""The step loop: rows that share forwards, each with a constraint, a budget and random numbers of its own.

A step reads logits, draws a token for every row, advances the matchers and gives the model what it has not seen.
Rows leave when they end. Text that a constraint determines takes no decode step of its own:

- Where a mask holds a single token that is not EOS, its probability under the masked distribution is 1: it is appended
  at once and read together with the token before it; the logits of that forward give its probability.
- Where it does not, but a text is likely to follow (a key, say, which several sequences of tokens spell), its tokens
  are read as a draft. The logits after each are drawn from under their own masks and with their own random numbers, as
  without a draft, and the draft is kept as far as the draws agree with it. The output is the same in every case.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from maskwright.engine.model import check_context
from maskwright.engine.row import Row
from maskwright.engine.sampling import Sampling
from maskwright.engine.step import Stepper, bitmask
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.request import Request
    from maskwright.engine.row import Drafter

__all__ = ["Decoder", "bitmask", "check_room", "checked_row"]


class Decoder(Stepper):
    """Generates for some requests at a time.

    Args:
        model: the language model.
        requests: one per row.
        sampling: the rules, shared by the rows.
        cancelled: asked before every step; once it says True, rows end as they are.
        drafter: says which tokens are likely to follow in a row; None for no drafts.
        details: see :func:`maskwright.engine.draw.draw`.

    Attributes:
        rows: the state of each request, in order.

    Raises:
        GenerationError: before any forward, if a request does not fit into the context, has an empty prompt, or
            has a budget that its constraint cannot be finished in.
    """

    def __init__(
        self,
        model: LanguageModel,
        requests: Sequence[Request],
        sampling: Sampling,
        cancelled: Callable[[], bool] = lambda: False,
        drafter: Drafter | None = None,
        details: int | None = None,
    ) -> None:
        super().__init__(model, drafter)
        started = time.perf_counter()
        self.rows = [checked_row(model, request, sampling, started, details) for request in requests]
        self._cancelled = cancelled

    def run(self) -> None:
        """Runs all rows to their ends."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Runs step by step: yields when rows have new tokens. Closing the iterator ends the rows as cancelled."""
        live = [row for row in self.rows if row.running]
        try:
            yield from self._steps(live)
        finally:
            for row in self.rows:
                if row.running:
                    row.end("cancelled")
                self.settle(row)

    def _steps(self, live: list[Row]) -> Iterator[None]:
        if not live or self._cancelled():
            return
        cache, read = self.prefill(live)
        while True:
            self.advance(live, read, cache)
            yield
            staying = [at for at, row in enumerate(live) if row.running or row.owes]
            if not staying or self._cancelled():
                return
            if len(staying) < len(live):
                cache.select(staying)
                live = [live[at] for at in staying]
            read = self.forward(live, cache)


def checked_row(
    model: LanguageModel, request: Request, sampling: Sampling, started: float, details: int | None = None
) -> Row:
    """The row of a request that can be generated.

    Raises:
        GenerationError: empty prompt; more tokens than the context holds; a prefix that the constraint refuses; a
            budget that no output fits into, naming the least that would do.
    """
    if not request.prompt:
        raise GenerationError("the prompt has no tokens", hint="Pass a prompt that is not empty")
    check_context(model, len(request.read_first), request.max_tokens)
    row = Row(request, model.vocabulary, started, sampling, details)
    if row.matcher is not None and not row.matcher.can_finish_within(request.max_tokens - 1):
        check_room(row.matcher.min_tokens_to_accept() + 1, request.max_tokens)
    return row


def check_room(enough: int, max_tokens: int) -> None:
    """Refuses a budget in which an output cannot be finished.

    Raises:
        GenerationError: naming a number of tokens that would do.
    """
    if max_tokens < enough:
        raise GenerationError(
            f"max_tokens is {max_tokens}, too few to finish an output of this constraint: "
            f"it takes {enough}, EOS included",
            hint=f"Allow max_tokens={enough} or more",
        )
