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

from maskwright.engine.model import check_extension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor

__all__ = ["Llama", "LlamaCache", "LlamaConfig", "interleave_rotary", "join_weights", "separate_rotary"]

# Tokens per pass of a prefill: enough to keep the matrix products busy, few enough that
# the masks and activations of a long prompt stay small.
_WAVE: Final = 512
_FIRST_CAPACITY: Final = 128


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
    qkv: Tensor  # ((H + 2K) D, E)
    output: Tensor  # (E, H D)
    ffn_norm: Tensor  # (E,)
    gate_up: Tensor  # (2F, E)
    down: Tensor  # (E, F)


@dataclass(frozen=True)
class _Piece:
    """``count`` of a row's new tokens, from its ``first`` new one on."""

    row: int
    first: int
    count: int


class LlamaCache:
    """Keys and values of ``B`` rows in one tensor, each row from position 0 on.

    What lies behind a row's length is old or zero, never read, and always finite.
    """

    def __init__(self, config: LlamaConfig, batch: int, dtype: torch.dtype, device: torch.device) -> None:
        shape = (2, config.block_count, batch, config.head_count_kv, 0, config.head_size)
        self.held = [0] * batch
        self.data = torch.zeros(shape, dtype=dtype, device=device)
        self._limit = config.context_length

    @property
    def lengths(self) -> tuple[int, ...]:
        """See :attr:`maskwright.engine.model.Cache.lengths`."""
        return tuple(self.held)

    def fork(self, rows: Sequence[int]) -> LlamaCache:
        """See :meth:`maskwright.engine.model.Cache.fork`."""
        twin = LlamaCache.__new__(LlamaCache)
        twin.held = [self.held[row] for row in rows]
        twin._limit = self._limit
        used = max(twin.held, default=0)
        index = torch.tensor(list(rows), dtype=torch.long, device=self.data.device)
        twin.data = self.data[:, :, :, :, :used].index_select(2, index)
        return twin

    def select(self, rows: Sequence[int]) -> None:
        """See :meth:`maskwright.engine.model.Cache.select`."""
        if list(rows) == list(range(len(self.held))):
            return
        twin = self.fork(rows)
        self.held, self.data = twin.held, twin.data

    def truncate(self, lengths: Sequence[int]) -> None:
        """See :meth:`maskwright.engine.model.Cache.truncate`."""
        if len(lengths) != len(self.held):
            raise ValueError(f"got {len(lengths)} lengths for {len(self.held)} rows")
        for row, (new, old) in enumerate(zip(lengths, self.held, strict=True)):
            if not 0 <= new <= old:
                raise ValueError(f"row {row} holds {old} tokens and cannot be truncated to {new}")
        self.held = list(lengths)

    def reserve(self, length: int) -> None:
        """Makes room for rows of ``length`` tokens, doubling so that decoding rarely copies."""
        capacity = self.data.shape[4]
        if length <= capacity:
            return
        grown = min(max(length, 2 * capacity, _FIRST_CAPACITY), max(self._limit, length))
        shape = list(self.data.shape)
        shape[4] = grown
        # Zeros, not uninitialised memory: a masked position has weight 0, and 0 times NaN is NaN.
        fresh = torch.zeros(shape, dtype=self.data.dtype, device=self.data.device)
        fresh[:, :, :, :, :capacity] = self.data
        self.data = fresh


class Llama:
    """The network: token ids in, logits out.

    Args:
        config: the sizes.
        weights: the tensors of :func:`join_weights`.
    """

    def __init__(self, config: LlamaConfig, weights: Mapping[str, Tensor]) -> None:
        self.config = config
        self.embedding = weights["token_embd.weight"]
        self.head = self.embedding if config.tied else weights["output.weight"]
        self.final_norm = weights["output_norm.weight"]
        self.layers = [_layer(weights, index) for index in range(config.block_count)]
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
        check_extension(tokens, cache.held, self.config.context_length, self.embedding.shape[0])
        counts = [len(row) for row in tokens]
        wanted: list[Tensor] = []
        before = cache.lengths
        try:
            for wave in _waves(counts, _WAVE):
                hidden = self._run_wave(wave, tokens, cache)
                wanted.append(hidden if every else _rows_that_end(hidden, wave, counts))
        except BaseException:  # an interrupt too must not leave a row half extended
            cache.truncate(before)
            raise
        hidden = self._norm(torch.cat(wanted), self.final_norm)
        if not every:
            return [functional.linear(hidden, self.head).float()]
        return [functional.linear(part, self.head).float() for part in torch.split(hidden, counts)]

    def _run_wave(self, wave: list[_Piece], tokens: Sequence[Sequence[int]], cache: LlamaCache) -> Tensor:
        """Runs the tokens of a wave through all layers; returns hidden states ``(T, E)``."""
        ids = [token for piece in wave for token in tokens[piece.row][piece.first : piece.first + piece.count]]
        attention = _Attention(self.config, wave, cache)
        rotation = self._rotations(attention.positions)
        hidden = self.embedding[torch.tensor(ids, device=self.device)]
        for index, layer in enumerate(self.layers):
            states = self._norm(hidden, layer.attention_norm)
            queries, keys, values = self._project(functional.linear(states, layer.qkv), rotation)
            mixed = attention.attend(index, queries, keys, values)
            hidden = hidden + functional.linear(mixed, layer.output)
            states = functional.linear(self._norm(hidden, layer.ffn_norm), layer.gate_up)
            gate, up = states.chunk(2, dim=-1)
            hidden = hidden + functional.linear(functional.silu(gate) * up, layer.down)
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


class _Attention:
    """Attention of one wave against the cache, the same for every layer."""

    def __init__(self, config: LlamaConfig, wave: list[_Piece], cache: LlamaCache) -> None:
        self.cache = cache
        self.wave = wave
        self.kv_heads = config.head_count_kv
        self.group = config.head_count // config.head_count_kv
        starts = [cache.held[piece.row] for piece in wave]
        self.ends = [start + piece.count for start, piece in zip(starts, wave, strict=True)]
        cache.reserve(max(self.ends))
        device = cache.data.device
        spans = [torch.arange(start, end) for start, end in zip(starts, self.ends, strict=True)]
        self.positions = torch.cat(spans).to(device)
        rows = [piece.row for piece in wave]
        counts = [piece.count for piece in wave]
        # All rows with equally many tokens go through one call, others row by row.
        self.together = rows == list(range(len(cache.held))) and len(set(counts)) == 1
        self.same_start = starts[0] if len(set(starts)) == 1 else None
        self.owners = torch.repeat_interleave(torch.tensor(rows), torch.tensor(counts)).to(device)
        if self.together:
            views = [(self.positions.view(len(rows), counts[0]), max(self.ends))]
        else:
            views = [(span.to(device).unsqueeze(0), int(span[-1]) + 1) for span in spans]
        self.masks = [_causal_mask(view, length, self.group, cache.data.dtype) for view, length in views]

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Writes keys and values ``(T, K, D)``, attends with queries ``(T, H, D)``: ``(T, H D)``."""
        stored_keys, stored_values = self.cache.data[0, layer], self.cache.data[1, layer]
        self._store(stored_keys, keys)
        self._store(stored_values, values)
        if self.together:
            batch, end = len(self.wave), max(self.ends)
            return self._mix(queries, stored_keys[:, :, :end], stored_values[:, :, :end], self.masks[0], batch)
        mixed = []
        parts = torch.split(queries, [piece.count for piece in self.wave])
        for piece, end, part, mask in zip(self.wave, self.ends, parts, self.masks, strict=True):
            here = slice(piece.row, piece.row + 1)
            mixed.append(self._mix(part, stored_keys[here, :, :end], stored_values[here, :, :end], mask, 1))
        return torch.cat(mixed)

    def _store(self, stored: Tensor, new: Tensor) -> None:
        """Writes ``(T, K, D)`` into ``(B, K, capacity, D)``."""
        if self.together and self.same_start is not None:
            batch = len(self.wave)
            stored[:, :, self.same_start : self.ends[0]] = new.view(batch, -1, *new.shape[1:]).transpose(1, 2)
        else:
            stored[self.owners, :, self.positions] = new

    def _mix(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, batch: int) -> Tensor:
        # The query heads that share a key head are laid out as further query positions:
        # keys and values need not be repeated.
        size = queries.shape[-1]
        split = queries.view(batch, -1, self.kv_heads, self.group, size).permute(0, 2, 3, 1, 4)
        count = split.shape[3]
        stacked = split.reshape(batch, self.kv_heads, self.group * count, size)
        mixed = functional.scaled_dot_product_attention(stacked, keys, values, attn_mask=mask)
        mixed = mixed.view(batch, self.kv_heads, self.group, count, size).permute(0, 3, 1, 2, 4)
        return mixed.reshape(batch * count, -1)

    def commit(self) -> None:
        """Records the new lengths; until then the cache reads as before."""
        for piece, end in zip(self.wave, self.ends, strict=True):
            self.cache.held[piece.row] = end


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


def _layer(weights: Mapping[str, Tensor], block: int) -> _Layer:
    return _Layer(*(weights[f"blk.{block}.{name}.weight"] for name in _JOINED))


def _waves(counts: Sequence[int], budget: int) -> Iterator[list[_Piece]]:
    """Cuts the new tokens of all rows, in order, into passes of at most ``budget`` tokens.

    A batch with more rows than that still advances in one pass.
    """
    budget = max(budget, len(counts))
    wave: list[_Piece] = []
    room = budget
    for row, count in enumerate(counts):
        done = 0
        while done < count:
            take = min(count - done, room)
            wave.append(_Piece(row, done, take))
            done += take
            room -= take
            if room == 0:
                yield wave
                wave, room = [], budget
    if wave:
        yield wave


def _rows_that_end(hidden: Tensor, wave: list[_Piece], counts: Sequence[int]) -> Tensor:
    """The states at the last new token of each row that ends in this wave."""
    last = []
    offset = 0
    for piece in wave:
        offset += piece.count
        if piece.first + piece.count == counts[piece.row]:
            last.append(offset - 1)
    if len(last) == len(hidden):
        return hidden
    return hidden[torch.tensor(last, dtype=torch.long, device=hidden.device)]


def _causal_mask(positions: Tensor, length: int, group: int, dtype: torch.dtype) -> Tensor | None:
    """What queries at ``positions`` ``(B, n)`` may not see: ``(B, 1, group n, length)`` of 0 and -inf.

    None where every query sees all ``length`` keys.
    """
    if positions.shape[1] == 1 and int(positions.min()) == length - 1:
        return None
    hidden = torch.arange(length, device=positions.device) > positions.unsqueeze(-1)
    mask = torch.zeros(hidden.shape, dtype=dtype, device=positions.device).masked_fill_(hidden, -torch.inf)
    return mask.repeat(1, group, 1).unsqueeze(1)
