"""The law that lookahead conditions: the model's, over sequences of tokens that end with EOS.

``p(token | prefix)`` is the model's distribution after the caller's processor, logit bias, penalties and temperature,
all of which are functions of the prefix alone. Truncating rules are part of it where the settings say so, and act
before the mask. ``P(x)`` is the product of ``p`` over the tokens of ``x``, the EOS included.

The language ``L`` holds the sequences of at most ``max_tokens`` tokens that end with an EOS token and whose text obeys
the constraint. The mask is length-aware: a token is allowed only where the text can still be finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.engine.draw import before_mask
from maskwright.engine.sampling import NonFiniteLogitsError
from maskwright.engine.truncation import truncate
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    import torch

    from maskwright.engine.lookahead.settings import Lookahead
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.request import Guide, Request
    from maskwright.engine.sampling import Sampling

__all__ = ["Base", "check_request"]

Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Base:
    """``p`` and ``L`` of one request.

    Attributes:
        model: the language model.
        request: with a constraint; its prefix is part of every output.
        sampling: the rules; the temperature is not 0.
        settings: of the lookahead.
    """

    model: LanguageModel
    request: Request
    sampling: Sampling
    settings: Lookahead

    @property
    def width(self) -> int:
        """Number of tokens of the vocabulary."""
        return self.model.vocabulary.size

    def start(self) -> Guide:
        """A guide after the request's prefix.

        Raises:
            GenerationError: the constraint refuses the prefix.
        """
        assert self.request.constraint is not None
        guide: Guide = self.request.constraint.matcher()
        for at, token in enumerate(self.request.prefix):
            if not guide.accept(token):
                raise GenerationError("the constraint does not allow the prefix", location=f"token {at} of the prefix")
        return guide

    def allowed(self, guide: Guide, output: Sequence[int]) -> Ids:
        """``M``: the tokens that may follow, ascending.

        Args:
            guide: after the output; none that is finished.
            output: the tokens so far, without the prefix.
        """
        left = self.request.max_tokens - len(output)
        words = np.zeros((self.width + 31) // 32, dtype=np.uint32)
        if left > 0:
            guide.fill_mask(words, left)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)
        found = np.flatnonzero(bits[: self.width])
        if self.settings.tokenization == "canonical" and not self.is_canonical(output):
            found = found[~np.isin(found, self.model.eos_ids)]
        return found.astype(np.int32)

    def advance(self, guide: Guide, token: int) -> Guide:
        """A guide one allowed token further; the one given stays."""
        after = guide.fork()
        if not after.accept(token):
            raise GenerationError(f"the matcher refuses token {token}, which its own mask allows")
        return after

    def log_p(self, logits: torch.Tensor, outputs: Sequence[Sequence[int]]) -> torch.Tensor:
        """``log p`` of every token after some outputs.

        Args:
            logits: of the model, shape ``(rows, width)`` or wider.
            outputs: the tokens before each row's place, without the prefix.

        Returns:
            float64, shape ``(rows, width)``; rows sum to 1.

        Raises:
            NonFiniteLogitsError: logits that are no numbers, or are ``-inf`` throughout.
        """
        logits = self._adjusted(logits, outputs)
        return logits - _log_total(logits)

    def log_p_at(self, logits: torch.Tensor, outputs: Sequence[Sequence[int]], ids: Sequence[Ids]) -> list[Floats]:
        """As :meth:`log_p`, of some tokens of each row only: float64 of the shape of its ids."""
        logits = self._adjusted(logits, outputs)
        totals = _log_total(logits).flatten().tolist()
        return [row[at] - total for row, total, at in zip(logits.cpu().numpy(), totals, ids, strict=True)]

    def _adjusted(self, logits: torch.Tensor, outputs: Sequence[Sequence[int]]) -> torch.Tensor:
        """The logits of the law, in float64."""
        import torch

        logits = logits[:, : self.width].double()
        if self.request.processor is not None:
            rows = zip(logits, outputs, strict=True)
            logits = torch.stack(
                [self.request.processor([*self.request.prefix, *out], row.float()).double() for row, out in rows]
            )
        seen = [self._seen(out) for out in outputs] if self.sampling.penalizes else None
        logits, temperature = before_mask(logits, self.sampling, seen)
        if self.settings.truncation:
            after = self.sampling.order[self.sampling.order.index("mask") + 1 :]
            return truncate(logits, self.sampling, tuple(after))
        return logits if temperature == 1 else logits / temperature

    def _seen(self, output: Sequence[int]) -> Counter[int]:
        counts = Counter([*self.request.prefix, *output])
        if self.sampling.penalty_scope == "all":
            counts.update(self.request.prompt)
        return counts

    def text_of(self, output: Sequence[int]) -> bytes:
        """The bytes that the prefix and the output spell; special tokens have none."""
        tokens, kinds = self.model.vocabulary.tokens, self.model.vocabulary.kinds
        return b"".join(tokens[i] for i in (*self.request.prefix, *output) if not kinds[i])

    def is_canonical(self, output: Sequence[int]) -> bool:
        """Whether the tokenizer cuts the text of a complete output as it is cut here."""
        try:
            text = self.text_of(output).decode()
        except UnicodeDecodeError:
            return False
        spelt = self.model.encode(text, add_special=False) if text else []
        return list(spelt) == [*self.request.prefix, *output]


def _log_total(logits: torch.Tensor) -> torch.Tensor:
    total = logits.logsumexp(-1, keepdim=True)
    if not bool(total.isfinite().all()):
        raise NonFiniteLogitsError("the model's logits are no numbers, or all of them are -inf")
    return total


def check_request(request: Request, sampling: Sampling, settings: Lookahead) -> None:
    """Refuses what the law of a constrained output is not defined for.

    Raises:
        GenerationError: saying which argument does not go with lookahead.
    """
    refusals = (
        (request.constraint is None, "lookahead needs a constraint", "Pass one, or leave lookahead= out"),
        (sampling.greedy, "lookahead draws, but the temperature is 0", "Use topk(...) for the most probable output"),
        (request.stops + request.stop_ids != (), "stop= does not go with lookahead", "Put the end into the constraint"),
        (request.min_tokens > 0, "min_tokens= does not go with lookahead", "Write the length into the constraint"),
        (sampling.lazy_mask, "lazy_mask does not go with lookahead", "Leave it out"),
        (
            sampling.truncates and not settings.truncation,
            "truncating rules change the distribution that lookahead conditions",
            "Leave them out, or pass Lookahead(truncation=True) to have them applied before the mask",
        ),
    )  # fmt: skip
    for wrong, message, hint in refusals:
        if wrong:
            raise GenerationError(message, location="lookahead", hint=hint)
