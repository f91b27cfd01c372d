"""A Llama of our own with the tokenizer of its GGUF file, as a LanguageModel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from maskwright.engine.blocks import BlockStore, with_prefixes
from maskwright.engine.chat import check_messages, render_chat
from maskwright.engine.llama_cache import LlamaCache
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from maskwright.engine.gguf_tokenizer import GgufTokenizer
    from maskwright.engine.llama import Llama
    from maskwright.engine.model import Cache
    from maskwright.vocabulary import Vocabulary

__all__ = ["NativeModel"]


class NativeModel:
    """See :class:`maskwright.engine.model.LanguageModel`, which this implements.

    Args:
        network: the network.
        tokenizer: its tokenizer.
        name: for the manifest of a run.
        prefix_cache: how many tokens of prompts to remember the keys and values of; 0 for none.
    """

    def __init__(self, network: Llama, tokenizer: GgufTokenizer, name: str, prefix_cache: int = 0) -> None:
        self.network = network
        self.tokenizer = tokenizer.tokenizer
        self._source = tokenizer
        self._name = name
        self.blocks = BlockStore(capacity=prefix_cache // BlockStore.block_size) if prefix_cache else None

    @property
    def name(self) -> str:
        """The name given to the constructor, with the type of the weights."""
        kind = "int8" if self.network.int8 else str(self.network.dtype).removeprefix("torch.")
        return f"{self._name} ({kind})"

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokenizer."""
        return self._source.vocabulary

    @property
    def context_length(self) -> int:
        """What the file declares."""
        return self.network.config.context_length

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """What the file declares."""
        return self._source.vocabulary.eos_ids

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.network.device

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        """See :meth:`maskwright.engine.model.LanguageModel.encode`."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        bos = self._source.bos_id
        return [bos, *ids] if add_special and bos is not None else ids

    def apply_chat_template(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """See :meth:`maskwright.engine.model.LanguageModel.apply_chat_template`."""
        messages = check_messages(messages)
        template = self._source.chat_template
        if template is None:
            raise GenerationError(
                f"{self.name} has no chat template",
                location="messages",
                hint="Pass the prompt as a string",
            )
        ends = {"eos_token": self._source.eos_id, "bos_token": self._source.bos_id}
        names = {name: "" if token is None else str(self.tokenizer.id_to_token(token)) for name, token in ends.items()}
        return self.encode(render_chat(template, messages, names), add_special=False)

    def new_cache(self, batch: int) -> LlamaCache:
        """See :meth:`maskwright.engine.model.LanguageModel.new_cache`."""
        return self.network.new_cache(batch)

    def forward(self, tokens: Sequence[Sequence[int]], cache: Cache) -> Tensor:
        """See :meth:`maskwright.engine.model.LanguageModel.forward`."""
        own = _own(cache)
        return with_prefixes(self.blocks, tokens, own, lambda rest: self.network.forward(rest, own)[0])

    def forward_all(self, tokens: Sequence[Sequence[int]], cache: Cache) -> list[Tensor]:
        """See :meth:`maskwright.engine.model.LanguageModel.forward_all`."""
        return self.network.forward(tokens, _own(cache), every=True)

    @property
    def splits_head(self) -> bool:
        """Whether states and head can be had apart (:mod:`maskwright.engine.heads`): float32 on a CPU."""
        head = self.network.head
        return isinstance(head, torch.Tensor) and head.dtype == torch.float32 and head.device.type == "cpu"

    def forward_states(self, tokens: Sequence[Sequence[int]], cache: Cache) -> list[Tensor]:
        """As `forward_all`, with states of ``(len(tokens[r]), E)`` instead of logits."""
        states = self.network.read(tokens, _own(cache), True)
        return list(torch.split(states, [len(row) for row in tokens]))

    def forward_with_states(
        self, tokens: Sequence[Sequence[int]], cache: Cache
    ) -> tuple[list[Tensor], list[Tensor]]:
        """`forward_all` and `forward_states` in one (for :mod:`maskwright.engine.contrastive`)."""
        states = self.forward_states(tokens, cache)
        logits = self.network.logits(torch.cat(states))
        return list(torch.split(logits, [len(row) for row in tokens])), states

    def logits_of(self, states: Tensor, ids: Tensor | None = None) -> Tensor:
        """Logits ``(n, V)`` of all tokens, or ``(n, len(ids))`` of some, from states ``(n, E)``."""
        if ids is None:
            return self.network.logits(states)
        head = self.network.head
        assert isinstance(head, torch.Tensor)
        return states @ head[ids].T

    def forward_tree(
        self, tokens: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: Cache
    ) -> list[Tensor]:
        """See :func:`maskwright.engine.trees.extend_tree`."""
        return self.network.forward_tree(tokens, parents, _own(cache))

    def forward_tree_states(
        self, tokens: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: Cache
    ) -> list[Tensor]:
        """As `forward_tree`, with states of ``(len(tokens[r]), E)`` in place of logits."""
        return self.network.read_tree(tokens, parents, _own(cache))


def _own(cache: Cache) -> LlamaCache:
    if not isinstance(cache, LlamaCache):
        raise TypeError(f"this cache is a {type(cache).__name__}; make it with new_cache of the same model")
    return cache
