"""A small Llama over characters: its training, and the trained network as a LanguageModel of maskwright."""

import time

import corpus
import torch
from torch import nn
from torch.nn import functional

import maskwright as mw
from maskwright.engine.llama import Llama, LlamaConfig

CONTEXT = 256  # of training: beyond it the network is lost
EOS = len(corpus.CHARACTERS)
CONFIG = LlamaConfig(
    vocab_size=EOS + 1, context_length=256, embedding_length=128, block_count=4, feed_forward_length=320,
    head_count=4, head_count_kv=4, head_size=32, rope_freq_base=10000.0, rms_epsilon=1e-5, tied=True,
)  # fmt: skip


class Network(nn.Module):
    """The same network with gradients; its parameters have the names that `Llama` reads."""

    def __init__(self) -> None:
        super().__init__()
        width, hidden = CONFIG.embedding_length, CONFIG.feed_forward_length
        shapes = {"token_embd": (CONFIG.vocab_size, width), "output_norm": (width,)}
        for block in range(CONFIG.block_count):
            inner = {"attn_norm": (width,), "attn_qkv": (3 * width, width), "attn_output": (width, width)}
            inner |= {"ffn_norm": (width,), "ffn_gate_up": (2 * hidden, width), "ffn_down": (width, hidden)}
            shapes |= {f"blk.{block}.{name}": shape for name, shape in inner.items()}
        self.names = [f"{name}.weight" for name in shapes]
        self.weights = nn.ParameterList(
            torch.ones(shape) if len(shape) == 1 else torch.randn(shape) * 0.7 / shape[-1] ** 0.5
            for shape in shapes.values()
        )
        pairs = torch.arange(0, CONFIG.head_size, 2) / CONFIG.head_size
        angles = torch.outer(torch.arange(CONTEXT).float(), CONFIG.rope_freq_base**-pairs)
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        weight = dict(zip(self.names, self.weights, strict=True))
        states = weight["token_embd.weight"][ids]
        for block in range(CONFIG.block_count):
            own = {name.split(".")[2]: value for name, value in weight.items() if name.startswith(f"blk.{block}.")}
            states = states + self.attend(norm(states, own["attn_norm"]) @ own["attn_qkv"].T) @ own["attn_output"].T
            gate, up = (norm(states, own["ffn_norm"]) @ own["ffn_gate_up"].T).chunk(2, -1)
            states = states + (functional.silu(gate) * up) @ own["ffn_down"].T
        return norm(states, weight["output_norm.weight"]) @ weight["token_embd.weight"].T

    def attend(self, joined: torch.Tensor) -> torch.Tensor:
        batch, length, _ = joined.shape
        heads = joined.view(batch, length, 3, CONFIG.head_count, CONFIG.head_size)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)
        queries, keys = (self.turn(each, length) for each in (queries, keys))
        mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, length, -1)

    def turn(self, states: torch.Tensor, length: int) -> torch.Tensor:
        pairs = torch.view_as_complex(states.reshape(*states.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * self.turns[:length]).flatten(-2)


def norm(states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(states, weight.shape, weight, CONFIG.rms_epsilon)


def encode(text: str) -> list[int]:
    return [corpus.CHARACTERS.index(c) for c in text]


def train(text: str, held_out: str, minutes: float, batch: int = 10) -> dict[str, torch.Tensor]:
    """Trains for so many minutes of wall time; prints the loss in nats per character."""
    torch.manual_seed(0)
    network = Network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.05)
    data, other = (torch.tensor(encode(each)) for each in (text, held_out))
    begin, shown = time.perf_counter(), 0.0
    while (part := (time.perf_counter() - begin) / (60 * minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1.0, part / 0.02 + 0.01) * (1 - 0.95 * part)
        loss = loss_on(network, data, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if part >= shown:
            with torch.no_grad():
                print(f"{part:4.0%}  {loss_on(network, other, 64):.3f} nats per character held out", flush=True)
            shown += 0.1
    return {name: value.detach().clone() for name, value in zip(network.names, network.weights, strict=True)}


def loss_on(network: Network, data: torch.Tensor, batch: int) -> torch.Tensor:
    starts = torch.randint(len(data) - CONTEXT - 1, (batch,))
    rows = torch.stack([data[start : start + CONTEXT + 1] for start in starts])
    logits = network(rows[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


class Characters:
    """The trained network: all that maskwright asks of a model."""

    name = "shakespeare"
    context_length = CONFIG.context_length
    device = torch.device("cpu")

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        self.network = Llama(CONFIG, weights)
        tokens = [c.encode() for c in corpus.CHARACTERS]
        self.vocabulary = mw.Vocabulary([*tokens, b"<eos>"], eos_ids=[EOS])
        self.eos_ids = self.vocabulary.eos_ids

    def encode(self, text, *, add_special=True):
        return encode(text)

    def apply_chat_template(self, messages):
        raise mw.GenerationError("this model continues texts", hint="Pass the prompt as a string")

    def new_cache(self, batch):
        return self.network.new_cache(batch)

    def forward(self, tokens, cache):
        return self._without_eos(self.network.forward(tokens, cache)[0])

    def forward_all(self, tokens, cache):
        return [self._without_eos(each) for each in self.network.forward(tokens, cache, every=True)]

    def forward_with_states(self, tokens, cache):
        states = self.network.read(tokens, cache, every=True)
        counts = [len(row) for row in tokens]
        logits = self._without_eos(self.network.logits(states))
        return list(torch.split(logits, counts)), list(torch.split(states, counts))

    def _without_eos(self, logits):
        # Its texts had no end: what the network says of one means nothing. EOS is left where a constraint asks for it.
        logits[:, EOS] = -30.0
        return logits
