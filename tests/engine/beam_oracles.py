"""What beams must find, worked out the slow way: all outputs of a finite language, and a beam search over strings.

Nothing here uses a matcher. An output is a text of the language cut into tokens in any way. Where a longer text of the
language begins with it, it is ended by an EOS token, which counts; else it ends by itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import torch

from engine.models import EOS, STOP, ToyModel

ENDS = (EOS, STOP)


@dataclass(frozen=True)
class Output:
    tokens: tuple[int, ...]
    text: str
    logprob: float


@dataclass(frozen=True)
class Language:
    """Some texts, and the prompt after which they come."""

    model: ToyModel
    prompt: str
    texts: tuple[str, ...]

    def next_logprobs(self, tokens: Sequence[int]) -> torch.Tensor:
        """Log-probabilities under the model of what follows these tokens, float64; no mask."""
        read = [*self.model.encode(self.prompt), *tokens]
        (logits,) = self.model.forward_all([read], self.model.new_cache(1))
        return torch.log_softmax(logits[-1, : self.model.vocabulary.size].double(), -1)

    def ways(self, tokens: tuple[int, ...]) -> dict[int, bool]:
        """Tokens that may follow, and whether the output then ends; of the EOS tokens the most probable."""
        done = self.bytes_of(tokens)
        found = {}
        for token, piece in enumerate(self.model.vocabulary.tokens[: min(ENDS)]):
            longer = done + piece
            if any(text.startswith(longer) for text in self.encoded):
                found[token] = not any(text.startswith(longer) and text != longer for text in self.encoded)
        if done in self.encoded:
            logprobs = self.next_logprobs(tokens)
            found[max(ENDS, key=lambda token: float(logprobs[token]))] = True
        return found

    @property
    def encoded(self) -> set[bytes]:
        return {text.encode() for text in self.texts}

    def bytes_of(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self.model.vocabulary.tokens[token] for token in tokens if token not in ENDS)

    def outputs(self) -> list[Output]:
        """All of them, the most probable first."""
        return sorted(self._outputs((), 0.0), key=lambda output: -output.logprob)

    def _outputs(self, tokens: tuple[int, ...], logprob: float) -> Iterator[Output]:
        logprobs = self.next_logprobs(tokens)
        for token, ends in self.ways(tokens).items():
            longer, total = (*tokens, token), logprob + float(logprobs[token])
            if ends:
                yield Output(longer, self.bytes_of(longer).decode(), total)
            else:
                yield from self._outputs(longer, total)


@dataclass(frozen=True)
class Branch:
    tokens: tuple[int, ...]
    logprob: float


def beam_search(language: Language, width: int, groups: int = 1, diversity: float = 0.0) -> list[Output]:
    """A beam search that runs until nothing goes on: the best that every group ended, best first, each once."""
    running = [[Branch((), 0.0)] for _ in range(groups)]
    ended: list[dict[tuple[int, ...], float]] = [{} for _ in range(groups)]
    lookup = cache(language.next_logprobs)
    while any(running):
        chosen: Counter[int] = Counter()
        for group, branches in enumerate(running):
            ways = []
            for at, branch in enumerate(branches):
                logprobs = lookup(branch.tokens)
                for token, ends in language.ways(branch.tokens).items():
                    total = branch.logprob + float(logprobs[token])
                    ways.append((-(total - diversity * chosen[token]), at, token, ends, total))
            ways.sort()
            running[group] = []
            picked = []
            for rank, (_, at, token, ends, total) in enumerate(ways):
                longer = (*branches[at].tokens, token)
                if ends and rank < width // groups:
                    ended[group][longer] = total
                    picked.append(token)
                elif not ends and len(running[group]) < width // groups:
                    running[group].append(Branch(longer, total))
                    picked.append(token)
            chosen.update(picked)
    kept = [pair for each in ended for pair in sorted(each.items(), key=lambda pair: -pair[1])[: width // groups]]
    outputs = [Output(tokens, language.bytes_of(tokens).decode(), total) for tokens, total in dict(kept).items()]
    return sorted(outputs, key=lambda output: -output.logprob)


def by_text(outputs: Collection[Output], combine: str) -> list[tuple[str, float]]:
    """Texts with the log-probability of their best cut, or of all of them together."""
    found: dict[str, list[float]] = {}
    for output in outputs:
        found.setdefault(output.text, []).append(output.logprob)
    total = {text: max(each) if combine == "max" else _log_sum(each) for text, each in found.items()}
    return sorted(total.items(), key=lambda pair: -pair[1])


def _log_sum(values: Sequence[float]) -> float:
    return max(values) + math.log(sum(math.exp(each - max(values)) for each in values))
