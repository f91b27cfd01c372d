"""The step loop: rows that share forwards, each with a constraint, a budget and random numbers of its own.

A step reads logits, draws a token for every row, advances the matchers and gives the model what it has not seen.
Rows leave when they end. Tokens that a constraint determines take no decode step: where a mask holds a single token
that is not EOS, its probability under the masked distribution is 1, so that it is appended at once and read together
with the token before it; the logits of that forward give its probability for ``log_weight``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from maskwright.engine.model import check_context
from maskwright.engine.row import Request, Row
from maskwright.engine.sampling import Sampling, add_bias, draw, log_mass, scale
from maskwright.errors import GenerationError
from maskwright.logits import check_budget

if TYPE_CHECKING:
    import torch

    from maskwright.engine.model import Cache, LanguageModel

__all__ = ["Decoder"]


class Decoder:
    """Generates for some requests at a time.

    Args:
        model: the language model.
        requests: one per row.
        sampling: the rules, shared by the rows.
        cancelled: asked before every step; once it says True, rows end as they are.

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
    ) -> None:
        for request in requests:
            check_request(model, request)
        started = time.perf_counter()
        self.rows = [Row(request, model.vocabulary, started) for request in requests]
        self._model = model
        self._sampling = sampling
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

    def _steps(self, live: list[Row]) -> Iterator[None]:
        if not live or self._cancelled():
            return
        cache, logits = self._prefill(live)
        while True:
            self._draw(live, logits)
            yield
            staying = [at for at, row in enumerate(live) if row.running or row.owes]
            if not staying or self._cancelled():
                return
            if len(staying) < len(live):
                cache.select(staying)
                live = [live[at] for at in staying]
            logits = self._forward(live, cache)
            staying = [at for at, row in enumerate(live) if row.running]
            if not staying:
                return
            if len(staying) < len(live):
                cache.select(staying)
                live, logits = [live[at] for at in staying], logits[staying]

    def _prefill(self, rows: list[Row]) -> tuple[Cache, torch.Tensor]:
        """Reads the prompts, each once however many rows share it."""
        prompts = list(dict.fromkeys(row.request.prompt for row in rows))
        cache = self._model.new_cache(len(prompts))
        logits = self._model.forward(prompts, cache)
        for row in rows:
            row.model_calls += 1
        if len(prompts) < len(rows):
            place = {prompt: at for at, prompt in enumerate(prompts)}
            spread = [place[row.request.prompt] for row in rows]
            cache, logits = cache.fork(spread), logits[spread]
        return cache, logits[:, : self._model.vocabulary.size]

    def _draw(self, rows: list[Row], logits: torch.Tensor) -> None:
        draws = draw(
            logits,
            self._sampling,
            bitmask(rows, logits.shape[-1]),
            [row.request.stream for row in rows],
            [len(row.tokens) for row in rows],
        )
        for row, drawn in zip(rows, draws, strict=True):
            row.take(drawn, self._sampling.logit_bias)

    def _forward(self, rows: list[Row], cache: Cache) -> torch.Tensor:
        """Lets the model read what it has not seen; the logits after it, shape ``(rows, V)``."""
        import torch

        size = self._model.vocabulary.size
        unseen = [row.unseen for row in rows]
        for row in rows:
            row.model_calls += 1
        if all(len(tokens) == 1 for tokens in unseen):
            return self._model.forward(unseen, cache)[:, :size]
        blocks = [block[:, :size] for block in self._model.forward_all(unseen, cache)]
        for row, block in zip(rows, blocks, strict=True):
            row.settle(self._probabilities(block[:-1], row.unseen[1:]))
        return torch.stack([block[-1] for block in blocks])

    def _probabilities(self, logits: torch.Tensor, tokens: list[int]) -> list[float]:
        """Log-probabilities of tokens under logits of shape ``(len(tokens), V)``, before any mask."""
        import torch

        if not tokens:
            return []
        temperature = self._sampling.temperature or 1.0
        scaled = scale(add_bias(logits.float(), self._sampling.logit_bias), temperature)
        chosen = scaled.gather(-1, torch.tensor(tokens, device=scaled.device).unsqueeze(-1)).squeeze(-1)
        logprobs: list[float] = (chosen.double() - log_mass(scaled)).tolist()
        return logprobs


def check_request(model: LanguageModel, request: Request) -> None:
    """Refuses what cannot be generated, before any forward.

    Raises:
        GenerationError: empty prompt; more tokens than the context holds; a budget that no output fits into, naming
            the least that would do.
    """
    if not request.prompt:
        raise GenerationError("the prompt has no tokens", hint="Pass a prompt that is not empty")
    check_context(model, len(request.prompt), request.max_tokens)
    if request.constraint is not None:
        check_budget(request.constraint, request.max_tokens)


def bitmask(rows: Sequence[Row], width: int) -> torch.Tensor | None:
    """The masks of some rows, int32 of shape ``(rows, ceil(width / 32))``; None where no row has one."""
    import torch

    if all(row.mask is None for row in rows):
        return None
    everything = np.full((width + 31) // 32, 0xFFFFFFFF, dtype=np.uint32)
    table = np.stack([everything if row.mask is None else row.mask for row in rows])
    return torch.from_numpy(table.view(np.int32))
