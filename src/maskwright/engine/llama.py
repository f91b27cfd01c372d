"""The Llama architecture in plain torch, for small models on a CPU.

RMSNorm, rotary positions, grouped-query attention, SwiGLU (arXiv:2302.13971 and
arXiv:2305.13245). Compared with a general implementation it makes few and large calls:
one product for queries, keys and values, one for gate and up, a static cache that is
written in place, rows of different lengths without padding in the matrix products.

Shapes are written as ``T`` new tokens in all rows, ``B`` rows, ``H`` query heads, ``K`` key
heads, ``D`` the size of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch
from torch.nn import functional

from maskwright.engine.llama_attention import Attention, Piece, rows_that_end, waves
from maskwright.engine.llama_cache import LlamaCache
from maskwright.engine.matrices import Int8Matrix, Matrix, multiply
from maskwright.engine.model import check_extension
from maskwright.engine.trees import check_parents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor

__all__ = ["Llama", "LlamaCache", "LlamaConfig", "interleave_rotary", "join_weights", "separate_rotary"]

# Tokens per pass of a prefill: enough to keep the matrix products busy, few enough that
# the masks and activations of a long prompt stay small.
_WAVE: Final = 512


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes of a model; names as in GGUF's ``llama.*`` keys."""

    vocab_size: int
    context_length: int
    embedding_length: int
    block_count: int
    feed_forward_length: int
    head_count: int
    head_count_kv: int
    head_size: int
    rope_freq_base: float
    rms_epsilon: float
    tied: bool  # the embedding is the head too


@dataclass(frozen=True)
class _Layer:
    attention_norm: Tensor  # (E,)
    qkv: Matrix  # ((H + 2K) D, E)
    output: Matrix  # (E, H D)
    ffn_norm: Tensor  # (E,)
    gate_up: Matrix  # (2F, E)
    down: Matrix  # (E, F)


class Llama:
    """The network: token ids in, logits out.

    Args:
        config: the sizes.
        weights: the tensors of :func:`join_weights`.
        int8: round the matrices to 8 bits per weight (from float32 weights, on a CPU).
    """

    def __init__(self, config: LlamaConfig, weights: Mapping[str, Tensor], int8: bool = False) -> None:
        self.config = config
        self.int8 = int8
        self.embedding = weights["token_embd.weight"]
        head = self.embedding if config.tied else weights["output.weight"]
        self.head: Matrix = Int8Matrix(head) if int8 else head
        self.final_norm = weights["output_norm.weight"]
        self.layers = [_layer(weights, index, int8) for index in range(config.block_count)]
        self.dtype = self.embedding.dtype
        self.device = self.embedding.device
        pairs = torch.arange(0, config.head_size, 2, dtype=torch.float64) / config.head_size
        self._frequencies = (config.rope_freq_base**-pairs).to(self.device)

    @property
    def width(self) -> int:
        """Number of logits."""
        return self.head.shape[0]

    def new_cache(self, batch: int) -> LlamaCache:
        """A cache of ``batch`` empty rows."""
        return LlamaCache(self.config, batch, self.dtype, self.device)

    @torch.no_grad()
    def forward(self, tokens: Sequence[Sequence[int]], cache: LlamaCache, every: bool = False) -> list[Tensor]:
        """Appends tokens to the rows of a cache.

        Args:
            tokens: as for :meth:`maskwright.engine.model.LanguageModel.forward`.
            cache: extended in place.
            every: logits after every new token, else after the last one of each row.

        Returns:
            float32 tensors: one of shape ``(B, width)``, or per row ``(len(tokens[r]), width)``.
        """
        states = self.read(tokens, cache, every)
        if not every:
            return [self.logits(states)]
        return [self.logits(part) for part in torch.split(states, [len(row) for row in tokens])]

    @torch.no_grad()
    def logits(self, states: Tensor) -> Tensor:
        """The head: float32 ``(n, width)`` from the states ``(n, E)`` of :meth:`read`."""
        return multiply(states, self.head).float()

    @torch.no_grad()
    def read(self, tokens: Sequence[Sequence[int]], cache: LlamaCache, every: bool) -> Tensor:
        """:meth:`forward` without the head: the states after every new token, or the last of each row, ``(n, E)``."""
        check_extension(tokens, cache.held, self.config.context_length, self.embedding.shape[0])
        counts = [len(row) for row in tokens]
        wanted: list[Tensor] = []
        before = cache.lengths
        try:
            for wave in waves(counts, _WAVE):
                hidden = self._run_wave(wave, tokens, cache)
                wanted.append(hidden if every else rows_that_end(hidden, wave, counts))
        except BaseException:  # an interrupt too must not leave a row half extended
            cache.truncate(before)
            raise
        return self._norm(torch.cat(wanted), self.final_norm)

    @torch.no_grad()
    def forward_tree(
        self, tokens: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: LlamaCache
    ) -> list[Tensor]:
        """Reads trees of tokens behind the rows; :meth:`LlamaCache.keep` then appends a path of each.

        Args:
            tokens: the nodes of each row's tree, parents before children.
            parents: index of each node's parent among them, -1 for one that follows the row itself.
            cache: its rows stay as they are.

        Returns:
            Per row the logits after each node, float32 ``(len(tokens[r]), width)``.
        """
        return [self.logits(part) for part in self.read_tree(tokens, parents, cache)]

    @torch.no_grad()
    def read_tree(
        self, tokens: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: LlamaCache
    ) -> list[Tensor]:
        """:meth:`forward_tree` without the head: per row the states after each node, ``(len(tokens[r]), E)``."""
        check_extension(tokens, cache.held, self.config.context_length, self.embedding.shape[0])
        check_parents(tokens, parents)
        counts, before = [len(row) for row in tokens], cache.lengths
        wave = [Piece(row, 0, count) for row, count in enumerate(counts)]
        states = self._norm(self._run_wave(wave, tokens, cache, parents), self.final_norm)
        cache.held = list(before)
        return list(torch.split(states, counts))

    def _run_wave(
        self,
        wave: list[Piece],
        tokens: Sequence[Sequence[int]],
        cache: LlamaCache,
        parents: Sequence[Sequence[int]] | None = None,
    ) -> Tensor:
        """Runs the tokens of a wave through all layers; returns hidden states ``(T, E)``."""
        ids = [token for piece in wave for token in tokens[piece.row][piece.first : piece.first + piece.count]]
        attention = Attention(self.config, wave, cache, parents)
        rotation = self._rotations(attention.positions)
        hidden = self.embedding[torch.tensor(ids, device=self.device)]
        for index, layer in enumerate(self.layers):
            states = self._norm(hidden, layer.attention_norm)
            queries, keys, values = self._project(multiply(states, layer.qkv), rotation)
            mixed = attention.attend(index, queries, keys, values)
            hidden = hidden + multiply(mixed, layer.output)
            states = multiply(self._norm(hidden, layer.ffn_norm), layer.gate_up)
            gate, up = states.chunk(2, dim=-1)
            hidden = hidden + multiply(functional.silu(gate) * up, layer.down)
        attention.commit()
        return hidden

    def _rotations(self, positions: Tensor) -> Tensor:
        """``exp(i p theta_j)`` for the positions p and all pairs j: complex64 ``(T, 1, D/2)``."""
        angles = torch.outer(positions.double(), self._frequencies)
        return torch.polar(torch.ones_like(angles), angles).to(torch.complex64).unsqueeze(1)

    def _project(self, states: Tensor, rotation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Splits ``(T, (H + 2K) D)`` and turns queries and keys by their positions."""
        heads, kv_heads, size = self.config.head_count, self.config.head_count_kv, self.config.head_size
        states = states.view(len(states), -1, size)
        turned, values = torch.split(states, [heads + kv_heads, kv_heads], dim=1)
        # Interleaved order: neighbours are the real and imaginary part, a rotation one product.
        pairs = torch.view_as_complex(turned.float().reshape(*turned.shape[:2], size // 2, 2))
        turned = torch.view_as_real(pairs * rotation).flatten(-2).to(states.dtype)
        queries, keys = torch.split(turned, [heads, kv_heads], dim=1)
        return queries, keys, values

    def _norm(self, states: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(states, weight.shape, weight, self.config.rms_epsilon)


def interleave_rotary(weight: Tensor, heads: int) -> Tensor:
    """From Hugging Face's rotary order (first halves, second halves) to the interleaved one.

    Args:
        weight: query or key projection, ``(heads D, E)``.
        heads: number of heads in it.
    """
    return weight.view(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def separate_rotary(weight: Tensor, heads: int) -> Tensor:
    """The inverse of :func:`interleave_rotary`."""
    return weight.view(heads, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def join_weights(config: LlamaConfig, load: Callable[[str], Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The tensors that :class:`Llama` wants, from those of a GGUF file.

    Projections of the same input are joined into one matrix.

    Args:
        config: the sizes.
        load: gives a tensor by its name in the file, queries and keys in the interleaved
            rotary order that such files use (see :func:`interleave_rotary`).
    """
    yield "token_embd.weight", load("token_embd.weight")
    yield "output_norm.weight", load("output_norm.weight")
    if not config.tied:
        yield "output.weight", load("output.weight")
    for block in range(config.block_count):
        for joined, parts in _JOINED.items():
            matrices = [load(f"blk.{block}.{part}.weight") for part in parts]
            yield f"blk.{block}.{joined}.weight", torch.cat(matrices) if len(matrices) > 1 else matrices[0]


_JOINED: Final = {
    "attn_norm": ("attn_norm",),
    "attn_qkv": ("attn_q", "attn_k", "attn_v"),
    "attn_output": ("attn_output",),
    "ffn_norm": ("ffn_norm",),
    "ffn_gate_up": ("ffn_gate", "ffn_up"),
    "ffn_down": ("ffn_down",),
}


def _layer(weights: Mapping[str, Tensor], block: int, int8: bool) -> _Layer:
    tensors = (weights[f"blk.{block}.{name}.weight"] for name in _JOINED)
    return _Layer(*(Int8Matrix(each) if int8 and each.dim() == 2 else each for each in tensors))  # type: ignore[arg-type]
