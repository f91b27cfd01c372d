"""Any Hugging Face causal language model, as a LanguageModel."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.nn import functional

from maskwright.engine.blocks import BlockStore, with_prefixes
from maskwright.engine.chat import check_messages
from maskwright.engine.model import check_extension
from maskwright.engine.transformers_cache import TransformersCache
from maskwright.engine.transformers_call import Batch, inspect_forward, tree_batch, trees_agree
from maskwright.errors import GenerationError
from maskwright.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from maskwright.engine.model import Cache

__all__ = ["TransformersModel"]

_CONTEXT_NAMES: Final = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")
# Tokenizers without a limit say 1e30.
_UNLIMITED: Final = 1 << 30


class TransformersModel:
    """See :class:`maskwright.engine.model.LanguageModel`, which this implements.

    Rows of a batch may differ in length; what a row gets does not depend on the others
    (up to rounding). Models whose cache cannot be forked and truncated (recurrent ones,
    say) work too, computing each row anew at every step, see :attr:`is_cached`.

    Args:
        model: a causal language model; it is put into evaluation mode.
        tokenizer: its tokenizer.
        name: for the manifest of a run; what the model's config says by default.
        context_length: the most tokens that a row may hold; by default what the model's
            config or else the tokenizer says.
        eos_ids: by default the union of what the generation config and the tokenizer say.
        special_ids: see :meth:`maskwright.Vocabulary.from_tokenizer`.
        prefix_cache: of how many tokens of earlier prompts keys and values are kept, for
            prompts that begin like one of them; none by default.

    Raises:
        TypeError: the model is no causal language model.
        VocabularyError: the tokenizer cannot be read.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        context_length: int | None = None,
        eos_ids: Sequence[int] | None = None,
        special_ids: Sequence[int] | None = None,
        prefix_cache: int = 0,
    ) -> None:
        if not _is_causal_model(model):
            raise TypeError(f"expected a causal language model of transformers, got {type(model).__name__}")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self._name = name or getattr(model.config, "_name_or_path", "") or type(model).__name__
        self._context_length = context_length or _context_length(model.config, tokenizer)
        found = _eos_ids(model, tokenizer) if eos_ids is None else list(eos_ids)
        self._vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_ids=found or None, special_ids=special_ids)
        self._width = int(self.model.get_input_embeddings().weight.shape[0])
        self._call = inspect_forward(model)
        blocks = prefix_cache // BlockStore.block_size if self.is_cached else 0
        self.blocks = BlockStore(capacity=blocks) if blocks else None

    @property
    def name(self) -> str:
        """The name given to the constructor, with the type of the weights."""
        return f"{self._name} ({str(self.model.dtype).removeprefix('torch.')})"

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokenizer."""
        return self._vocabulary

    @property
    def context_length(self) -> int:
        """What the constructor was given or found."""
        return self._context_length

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """What the constructor was given or found."""
        return self._vocabulary.eos_ids

    @property
    def device(self) -> torch.device:
        """Where the token ids go and the logits come back."""
        device: torch.device = self.model.get_input_embeddings().weight.device
        return device

    @property
    def is_cached(self) -> bool:
        """Whether keys and values are kept; else every forward reads its rows from the start."""
        return self._call.cache is not None

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        """See :meth:`maskwright.engine.model.LanguageModel.encode`."""
        ids = self.tokenizer(text, add_special_tokens=add_special, verbose=False)["input_ids"]
        return list(ids)

    def apply_chat_template(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """See :meth:`maskwright.engine.model.LanguageModel.apply_chat_template`."""
        from jinja2 import TemplateError

        conversation = check_messages(messages)
        try:
            text = self.tokenizer.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
        except (TemplateError, ValueError) as error:
            missing = getattr(self.tokenizer, "chat_template", None) is None
            raise GenerationError(
                f"the chat template of {self.name} {'is missing' if missing else f'refuses the messages: {error}'}",
                location="messages",
                hint="Pass the prompt as a string" if missing else None,
            ) from error
        return self.encode(text, add_special=False)

    def new_cache(self, batch: int) -> TransformersCache:
        """See :meth:`maskwright.engine.model.LanguageModel.new_cache`."""
        return TransformersCache([[] for _ in range(batch)], [0] * batch)

    def forward(self, tokens: Sequence[Sequence[int]], cache: Cache) -> Tensor:
        """See :meth:`maskwright.engine.model.LanguageModel.forward`."""
        own = _own(cache)
        return with_prefixes(
            self.blocks,
            tokens,
            own,
            lambda rest: torch.cat([logits[-1:] for logits in self._extend(rest, own, every=False)]),
        )

    def forward_all(self, tokens: Sequence[Sequence[int]], cache: Cache) -> list[Tensor]:
        """See :meth:`maskwright.engine.model.LanguageModel.forward_all`."""
        return self._extend(tokens, _own(cache), every=True)

    def forward_with_states(
        self, tokens: Sequence[Sequence[int]], cache: Cache
    ) -> tuple[list[Tensor], list[Tensor]]:
        """:meth:`forward_all` with the last hidden states ``(len(tokens[r]), E)`` beside the logits.

        Raises:
            GenerationError: the model does not show them.
        """
        own = _own(cache)
        shown: list[Tensor] = []
        left = any(own.lengths)  # behind stored columns, new tokens stand at the left of a rectangle; see Batch
        logits = self._extend(tokens, own, every=True, states=shown)
        rows = list(torch.cat(shown)) if self.is_cached else [each[0] for each in shown]
        counts = [len(new) for new in tokens]
        left = left and self.is_cached
        return logits, [row[:n] if left else row[-n:] for row, n in zip(rows, counts, strict=True)]

    @cached_property
    def reads_trees(self) -> bool:
        """Whether trees of tokens can be read at once (:func:`maskwright.engine.trees.extend_tree`); tried once."""
        return self.is_cached and trees_agree(self)

    @torch.no_grad()
    def forward_tree(
        self, tokens: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: Cache
    ) -> list[Tensor]:
        """See :func:`maskwright.engine.trees.extend_tree`."""
        own = _own(cache)
        check_extension(tokens, own.lengths, self.context_length, self._width)
        own.align()
        columns, width = own.columns, max(map(len, tokens))
        if own.store is None:
            own.store = self._call.new_store()
        ids, positions, mask = tree_batch(tokens, parents, own.lengths, columns, self.model.dtype)
        try:
            logits, _ = self._run(
                ids, list(range(width)), attention_mask=mask, position_ids=positions, cache=own.store
            )
        except BaseException:
            own.crop(columns)
            raise
        own.hold_tree(tokens, columns)
        return [self._finish(logits[row, : len(nodes)]) for row, nodes in enumerate(tokens)]

    @torch.no_grad()
    def _extend(
        self,
        tokens: Sequence[Sequence[int]],
        cache: TransformersCache,
        every: bool,
        states: list[Tensor] | None = None,
    ) -> list[Tensor]:
        """Logits per row; hidden states ``(B, n, E)`` of each call of the model are put into ``states``."""
        check_extension(tokens, cache.lengths, self.context_length, self._width)
        if self.is_cached:
            logits = self._append(tokens, cache, every, states)
        else:
            logits = self._read_anew(tokens, cache, states)
        for row, new in zip(cache.tokens, tokens, strict=True):
            row.extend(new)
        return logits

    def _append(
        self, tokens: Sequence[Sequence[int]], cache: TransformersCache, every: bool, states: list[Tensor] | None
    ) -> list[Tensor]:
        """One forward over the new tokens of all rows."""
        cache.align()
        columns = cache.columns
        batch = Batch(tokens, cache.lengths, columns)
        if cache.store is None:
            cache.store = self._call.new_store()
        wanted = batch.every_column() if every else batch.last_columns()
        try:
            logits, shown = self._run(
                batch.ids, wanted, states, attention_mask=batch.mask, position_ids=batch.positions, cache=cache.store
            )
        except BaseException:  # an interrupt too must not leave some layers longer than others
            cache.crop(columns)
            raise
        cache.starts = batch.starts
        place = {column: index for index, column in enumerate(shown)}
        return [
            self._finish(logits[row, place[batch.ends[row] - (count if every else 1)] : place[batch.ends[row] - 1] + 1])
            for row, count in enumerate(map(len, tokens))
        ]

    def _read_anew(
        self, tokens: Sequence[Sequence[int]], cache: TransformersCache, states: list[Tensor] | None
    ) -> list[Tensor]:
        """Each row by itself and from its start: no padding that a recurrent state would take in."""
        results = []
        for held, new in zip(cache.tokens, tokens, strict=True):
            ids = torch.tensor([[*held, *new]])
            wanted = list(range(len(held), len(held) + len(new)))
            logits, shown = self._run(ids, wanted, states)
            results.append(self._finish(logits[0, shown.index(wanted[0]) :]))
        return results

    def _run(
        self, ids: Tensor, wanted: list[int], states: list[Tensor] | None = None, **arguments: Any
    ) -> tuple[Tensor, list[int]]:
        """Calls the model; returns logits and the columns they are for (all, where it cannot choose)."""
        named: dict[str, Any] = {"input_ids": ids.to(self.device), "use_cache": "cache" in arguments}
        if "cache" in arguments:
            named[str(self._call.cache)] = arguments["cache"]
            named["attention_mask"] = arguments["attention_mask"].to(self.device)
            if self._call.takes_positions:
                named["position_ids"] = arguments["position_ids"].to(self.device)
        columns = list(range(ids.shape[1]))
        if self._call.takes_logits_to_keep:
            named["logits_to_keep"], columns = torch.tensor(wanted, device=self.device), wanted
        if states is None:
            return self.model(**named).logits, columns
        out = self.model(**named, output_hidden_states=True)
        if not getattr(out, "hidden_states", None):
            raise GenerationError(f"{self.name} does not show its hidden states", hint="Use another strategy")
        states.append(out.hidden_states[-1].to(self.device))
        return out.logits, columns

    def _finish(self, logits: Tensor) -> Tensor:
        """float32, on our device, no narrower than the vocabulary (tokens without a logit are impossible)."""
        logits = logits.to(self.device, torch.float32, copy=True)
        missing = self._vocabulary.size - logits.shape[-1]
        return functional.pad(logits, (0, missing), value=-torch.inf) if missing > 0 else logits


def _is_causal_model(model: Any) -> bool:
    return isinstance(model, torch.nn.Module) and not getattr(model.config, "is_encoder_decoder", True)


def _context_length(config: Any, tokenizer: Any) -> int:
    text = config.get_text_config()
    for name in _CONTEXT_NAMES:
        value = getattr(text, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return int(min(getattr(tokenizer, "model_max_length", None) or _UNLIMITED, _UNLIMITED))


def _eos_ids(model: Any, tokenizer: Any) -> list[int]:
    """All that end a text; instruction-tuned models often have one for a turn and one for a document."""
    found: set[int] = set()
    for source in (getattr(model, "generation_config", None), tokenizer):
        value = getattr(source, "eos_token_id", None)
        if value is not None:
            found.update([value] if isinstance(value, int) else value)
    return sorted(found)


def _own(cache: Cache) -> TransformersCache:
    if not isinstance(cache, TransformersCache):
        raise TypeError(f"this cache is a {type(cache).__name__}; make it with new_cache of the same model")
    return cache
