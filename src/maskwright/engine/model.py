"""What generation asks of a language model: three cache verbs and a forward.

Everything that draws tokens (sampling, beams, drafts, lookahead) is written
against the two protocols of this file and against nothing else, so that a
Hugging Face model, the packaged model and a toy in a test are interchangeable.

The three verbs are **fork** (copy rows of a cache), **truncate** (forget the end
of rows) and **extend** (:meth:`LanguageModel.forward`, which appends tokens to the
rows and answers with logits). Rows are ragged: each row of a cache has a length of
its own, and one forward may append one token to one row and seven to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from maskwright.errors import GenerationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from maskwright.vocabulary import Vocabulary

__all__ = ["Cache", "GrowingCache", "LanguageModel", "check_context", "check_extension", "check_model"]


class Cache(Protocol):
    """The keys and values of some token sequences, one row each.

    A cache belongs to the model that made it. It is mutable and used by one thread
    at a time; two caches never share state that one of them could change.
    """

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many tokens each row holds."""
        ...

    def fork(self, rows: Sequence[int]) -> Cache:
        """A new cache whose row ``i`` is a copy of row ``rows[i]`` of this one.

        Rows may repeat (n samples of one prompt, beams) and may be left out; this
        cache stays as it is.
        """
        ...

    def select(self, rows: Sequence[int]) -> None:
        """Turns this cache into ``fork(rows)`` in place (drops finished rows, reorders beams)."""
        ...

    def truncate(self, lengths: Sequence[int]) -> None:
        """Forgets the end of each row, so that row ``r`` holds ``lengths[r]`` tokens.

        Raises:
            ValueError: if the number of lengths is wrong or one of them is negative or
                greater than what the row holds.
        """
        ...


@runtime_checkable
class GrowingCache(Cache, Protocol):
    """A cache that takes further rows.

    Only continuous batching asks for it, and does without: rows that cannot join a cache keep their own, and are read
    by a forward of their own in each step.
    """

    def join(self, other: Any) -> None:
        """Appends the rows of another cache of the same model, which must not be used any more."""
        ...


@runtime_checkable
class LanguageModel(Protocol):
    """A causal language model together with its tokenizer."""

    @property
    def name(self) -> str:
        """What the run's manifest calls this model."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of its tokenizer (token bytes, EOS and special ids)."""
        ...

    @property
    def context_length(self) -> int:
        """The greatest number of tokens that a row may hold."""
        ...

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Every token id that ends a text; equal to ``vocabulary.eos_ids``."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the logits live."""
        ...

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        """Token ids of a text.

        Args:
            text: the text; names of special tokens inside it are read as those tokens.
            add_special: also put what the tokenizer puts around a text (a BOS, usually).
        """
        ...

    def apply_chat_template(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Token ids of a conversation, ending where the assistant's answer begins.

        Raises:
            GenerationError: if there is no template, or the template refuses the messages.
        """
        ...

    def new_cache(self, batch: int) -> Cache:
        """A cache of ``batch`` empty rows."""
        ...

    def forward(self, tokens: Sequence[Sequence[int]], cache: Cache) -> torch.Tensor:
        """Appends ``tokens[r]`` to row ``r`` and returns the logits after its last token.

        Args:
            tokens: one sequence per row of the cache, at least one token each; they may
                differ in length.
            cache: from :meth:`new_cache` of this model or a fork of one; extended in place.

        Returns:
            float32 tensor of shape ``(batch, width)`` on :attr:`device`; ``width`` is at
            least ``vocabulary.size`` (models pad their last layer; the tail means nothing).
            The tensor is the caller's, who may write into it.

        Raises:
            GenerationError: if a row would outgrow :attr:`context_length`; nothing has
                been computed or appended then.
        """
        ...

    def forward_all(self, tokens: Sequence[Sequence[int]], cache: Cache) -> list[torch.Tensor]:
        """As :meth:`forward`, with the logits after *every* new token.

        Returns:
            One float32 tensor of shape ``(len(tokens[r]), width)`` per row; its entry
            ``i`` is what follows ``tokens[r][i]`` (verification of drafts, scoring).
        """
        ...


def check_model(model: object) -> None:
    """Raises a TypeError, with what to do, where something else was passed as a model."""
    if isinstance(model, LanguageModel):
        return
    kind = type(model)
    if kind.__module__.startswith("transformers"):
        raise TypeError(f"model is a {kind.__name__} of transformers; wrap it: TransformersModel(model, tokenizer)")
    if isinstance(model, str):
        raise TypeError(f"model is the str {model!r}; pass maskwright.load_model({model!r})")
    raise TypeError(f"model is a {kind.__name__}; pass a language model: maskwright.load_model('smollm2-135m'), say")


def check_context(model: LanguageModel, prompt_tokens: int, max_tokens: int) -> None:
    """Refuses a request that cannot fit, before any forward: prompts are never cropped.

    Args:
        model: the model that would run the request.
        prompt_tokens: number of tokens of the encoded prompt.
        max_tokens: the most tokens that may be generated, EOS included.

    Raises:
        GenerationError: if the two do not fit into ``model.context_length``.
    """
    total = prompt_tokens + max_tokens
    if total > model.context_length:
        raise GenerationError(
            f"the prompt has {prompt_tokens} tokens and max_tokens is {max_tokens}: {total} in all, "
            f"but the context of {model.name} holds {model.context_length}",
            hint="Shorten the prompt or lower max_tokens; prompts are never cropped",
        )


def check_extension(tokens: Sequence[Sequence[int]], lengths: Sequence[int], context_length: int, width: int) -> None:
    """Validates the arguments of a forward (shared by the implementations).

    Args:
        tokens: the tokens to append, one sequence per row.
        lengths: how many tokens the rows hold now.
        context_length: the most that a row may hold.
        width: ids must be in ``range(width)``.

    Raises:
        ValueError: wrong number of rows or none at all, a row without tokens, an id out of range.
        GenerationError: a row would outgrow the context.
    """
    if len(tokens) != len(lengths) or not tokens:
        raise ValueError(f"got tokens for {len(tokens)} rows, the cache has {len(lengths)}")
    for row, (new, held) in enumerate(zip(tokens, lengths, strict=True)):
        if len(new) == 0:
            raise ValueError(f"row {row} has no tokens to append; drop the row with Cache.select instead")
        if min(new) < 0 or max(new) >= width:
            raise ValueError(f"row {row} has a token id outside of 0..{width - 1}")
        if held + len(new) > context_length:
            raise GenerationError(
                f"row {row} holds {held} tokens and {len(new)} more were to be appended, "
                f"but the context holds {context_length}",
                hint="Shorten the prompt or lower max_tokens",
            )
