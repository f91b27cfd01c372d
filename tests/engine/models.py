"""Small language models for the tests of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from maskwright import Vocabulary
from maskwright.engine.model import check_extension

MERGES = [b'{"', b'":', b'": ', b'", "', b'"}', b"]}", b"  ", b"true", b"12", b"ab", b"the ", b"\n\n"]
MERGES += ["é".encode(), "€".encode()[:2]]
TOKENS = [bytes([i]) for i in range(256)] + MERGES
EOS, STOP = len(TOKENS), len(TOKENS) + 1
PADDING = 6  # logits are wider than the vocabulary


def byte_vocabulary() -> Vocabulary:
    """All bytes, some merges and two EOS tokens."""
    return Vocabulary([*TOKENS, b"<eos>", b"<end>"], eos_ids=[EOS, STOP])


class ToyCache:
    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = rows

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(map(len, self.rows))

    def fork(self, rows: Sequence[int]) -> ToyCache:
        return ToyCache([list(self.rows[r]) for r in rows])

    def select(self, rows: Sequence[int]) -> None:
        self.rows = self.fork(rows).rows

    def truncate(self, lengths: Sequence[int]) -> None:
        self.rows = [row[:length] for row, length in zip(self.rows, lengths, strict=True)]


class ToyModel:
    """A random language model over bytes: a small recurrent net, recomputed from the cached tokens at every forward.

    The same tokens give the same logits bit by bit, however they are batched. Counts its calls.
    """

    name = "toy"

    def __init__(self, seed: int = 0, scale: float = 3.0, context_length: int = 4096) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.vocabulary = byte_vocabulary()
        self.context_length = context_length
        self.device = torch.device("cpu")
        width = 16
        self._embed = torch.randn(len(TOKENS) + 2, width, generator=generator)
        self._mix = torch.randn(width, width, generator=generator) / width**0.5
        self._head = scale * torch.randn(width, len(TOKENS) + 2 + PADDING, generator=generator) / width**0.5
        self.calls: list[tuple[int, ...]] = []  # tokens per row of each forward
        self.bias = torch.zeros(len(TOKENS) + 2 + PADDING)

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return self.vocabulary.eos_ids

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        return list(text.encode())

    def apply_chat_template(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return self.encode("".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>")

    def new_cache(self, batch: int) -> ToyCache:
        return ToyCache([[] for _ in range(batch)])

    def forward(self, tokens: Sequence[Sequence[int]], cache: ToyCache) -> torch.Tensor:
        return torch.stack([block[-1] for block in self.forward_all(tokens, cache)])

    def forward_all(self, tokens: Sequence[Sequence[int]], cache: ToyCache) -> list[torch.Tensor]:
        check_extension(tokens, cache.lengths, self.context_length, len(TOKENS) + 2)
        self.calls.append(tuple(map(len, tokens)))
        return [self._read(row, new) for row, new in zip(cache.rows, tokens, strict=True)]

    def _read(self, row: list[int], new: Sequence[int]) -> torch.Tensor:
        out = []
        for token in new:
            row.append(token)
            state = torch.zeros(self._mix.shape[0])
            for seen in row[-8:]:
                state = torch.tanh(state @ self._mix + self._embed[seen])
            out.append(state @ self._head + self.bias)
        return torch.stack(out)


class JoiningCache(ToyCache):
    """A cache that grows."""

    def join(self, other: ToyCache) -> None:
        self.rows += other.rows

    def fork(self, rows: Any) -> JoiningCache:
        return JoiningCache([list(self.rows[r]) for r in rows])


class JoiningToy(ToyModel):
    """The toy with a cache that grows."""

    def new_cache(self, batch: int) -> JoiningCache:
        return JoiningCache([[] for _ in range(batch)])


def told(result: Any) -> Any:
    """What must be the same of an output, however it was made."""
    return (result.tokens, result.text, result.finish_reason, result.valid)


def tiny_llama(seed: int = 0, layers: int = 2) -> tuple[Any, Any]:
    """A Llama of transformers with random weights, and a tokenizer: all bytes, some merges, a pad and an EOS token."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("a", "b"), ("1", "2"), ("{", '"'), ('"', ":"), ('"', "}"), ("Ġ", '"'), ("e", "s"), ("y", "es")]
    pieces = [*letters, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<eos>", "<pad>"])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<pad>", padding_side="left", model_max_length=1024
    )
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=len(pieces) + 2 + PADDING,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    return transformers.LlamaForCausalLM(config).eval(), fast


class TableModel(ToyModel):
    """A random language model whose logits depend on the last token alone: quick, for many samples."""

    name = "table"

    def __init__(self, seed: int = 0, scale: float = 1.0, context_length: int = 4096) -> None:
        super().__init__(seed, scale, context_length)
        width = len(TOKENS) + 2
        generator = torch.Generator().manual_seed(seed)
        self.table = scale * torch.randn(width, width + PADDING, generator=generator)

    def _read(self, row: list[int], new: Sequence[int]) -> torch.Tensor:
        row.extend(new)
        return self.table[list(new)] + self.bias
