"""TransformersModel against transformers itself, without a cache and row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from engine.cache_laws import check_random_operations
from engine.hf_models import byte_tokenizer, tiny
from maskwright import GenerationError
from maskwright.engine.model import LanguageModel, check_context
from maskwright.engine.transformers_model import TransformersModel

KINDS = ["llama", "gpt2", "mistral", "qwen3", "gemma3", "mamba"]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return byte_tokenizer()


@pytest.fixture(scope="module")
def llama(tokenizer: Any) -> TransformersModel:
    return TransformersModel(tiny("llama"), tokenizer)


def reading(model: Any) -> Callable[[list[int]], torch.Tensor]:
    """Logits after every token, computed from the start."""

    def read(ids: list[int]) -> torch.Tensor:
        with torch.no_grad():
            return model(torch.tensor([ids]), use_cache=False).logits[0].float()

    return read


@pytest.mark.parametrize("kind", KINDS)
def test_random_cache_operations_equal_reading_from_the_start(kind: str, tokenizer: Any) -> None:
    hugging_face = tiny(kind)
    model = TransformersModel(hugging_face, tokenizer)
    assert model.is_cached == (kind != "mamba")
    for seed in range(4):
        check_random_operations(model, reading(hugging_face), seed, steps=12, highest=260)


def test_it_is_a_language_model(llama: TransformersModel) -> None:
    assert isinstance(llama, LanguageModel)
    assert llama.context_length == 96
    assert llama.eos_ids == llama.vocabulary.eos_ids == (261, 264)
    assert llama.device == torch.device("cpu")
    assert llama.name == "LlamaForCausalLM (float32)"


def test_greedy_equals_generate(llama: TransformersModel) -> None:
    prompt = llama.encode('{"the name": ')
    output = llama.model.generate(
        torch.tensor([prompt]), do_sample=False, max_new_tokens=30, attention_mask=torch.ones(1, len(prompt))
    )
    cache, new, tokens = llama.new_cache(1), prompt, []
    while len(tokens) < 30 and not (tokens and tokens[-1] in llama.eos_ids):
        new = [int(llama.forward([new], cache).argmax())]
        tokens += new
    assert tokens == output[0, len(prompt) :].tolist()


def test_a_row_does_not_depend_on_its_neighbours(llama: TransformersModel) -> None:
    rows = [[5], list(range(40)), [7, 8, 9]]
    together = llama.forward(rows, llama.new_cache(3))
    for row, logits in zip(rows, together, strict=True):
        assert torch.allclose(logits, llama.forward([row], llama.new_cache(1))[0], atol=1e-5)


def test_a_batch_is_one_call(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = TransformersModel(tiny("llama"), tokenizer)
    calls = []
    inner = model.model.forward

    def counted(**arguments: Any) -> Any:
        calls.append(tuple(arguments["input_ids"].shape))
        return inner(**arguments)

    monkeypatch.setattr(model.model, "forward", counted)
    cache = model.new_cache(2)
    model.forward([[1, 2, 3], [4]], cache)
    model.forward([[5], [6]], cache)
    assert calls == [(2, 3), (2, 1)]


def test_logits_may_be_written_into(llama: TransformersModel) -> None:
    cache = llama.new_cache(1)
    llama.forward([[1, 2]], cache).fill_(-torch.inf)
    llama.forward_all([[3, 4]], cache)[0].zero_()
    assert torch.isfinite(llama.forward([[5]], cache)).all()


def test_logits_are_at_least_as_wide_as_the_vocabulary(tokenizer: Any) -> None:
    wide = TransformersModel(tiny("llama"), tokenizer)
    assert wide.forward([[1]], wide.new_cache(1)).shape == (1, 288)
    narrow = TransformersModel(tiny("llama", vocab_size=262, eos_token_id=261), tokenizer)
    logits = narrow.forward([[1]], narrow.new_cache(1))
    assert logits.shape == (1, narrow.vocabulary.size)
    assert (logits[0, 262:] == -torch.inf).all()
    with pytest.raises(ValueError, match=r"outside of 0\.\.261"):
        narrow.forward([[263]], narrow.new_cache(1))


def test_the_context_is_checked_before_anything_is_computed(llama: TransformersModel) -> None:
    check_context(llama, 90, 6)
    with pytest.raises(GenerationError, match="97 in all"):
        check_context(llama, 90, 7)
    cache = llama.new_cache(2)
    llama.forward([[1] * 90, [2]], cache)
    with pytest.raises(GenerationError, match="row 0 holds 90 tokens and 7 more"):
        llama.forward([[1] * 7, [2]], cache)
    assert cache.lengths == (90, 1)
    llama.forward([[1] * 6, [2]], cache)


def test_misuse_is_refused(llama: TransformersModel) -> None:
    cache = llama.new_cache(2)
    with pytest.raises(ValueError, match="1 rows, the cache has 2"):
        llama.forward([[1]], cache)
    with pytest.raises(ValueError, match="row 1 has no tokens"):
        llama.forward([[1], []], cache)
    with pytest.raises(ValueError, match="cannot be truncated to 3"):
        cache.truncate([3, 0])
    with pytest.raises(TypeError, match="new_cache"):
        llama.forward([[1]], object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="causal language model"):
        TransformersModel("not a model", llama.tokenizer)


def test_an_interrupted_forward_leaves_the_cache_usable(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = TransformersModel(tiny("llama"), tokenizer)
    cache = model.new_cache(1)
    model.forward([[1, 2, 3]], cache)
    expected = model.forward([[4]], cache.fork([0]))
    with monkeypatch.context() as patch:
        patch.setattr(model.model.model.layers[1].mlp, "forward", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.forward([[4]], cache)
    assert cache.lengths == (3,)
    assert torch.allclose(model.forward([[4]], cache), expected, atol=1e-6)


def test_the_chat_template_is_the_tokenizers(llama: TransformersModel, tokenizer: Any) -> None:
    messages = [{"role": "user", "content": "the {% name %}"}]
    ids = llama.apply_chat_template(messages)
    assert tokenizer.decode(ids) == "<|user|>the {% name %}<|end|><|assistant|>"
    with pytest.raises(TypeError, match="message 0 has no string 'content'"):
        llama.apply_chat_template([{"role": "user"}])


def test_a_missing_chat_template_is_named() -> None:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = None
    model = TransformersModel(tiny("llama"), tokenizer)
    with pytest.raises(GenerationError, match="is missing"):
        model.apply_chat_template([{"role": "user", "content": "hi"}])


def test_eos_ids_are_the_union_unless_given(tokenizer: Any) -> None:
    model = tiny("llama", eos_token_id=264)
    assert TransformersModel(model, tokenizer).eos_ids == (261, 264)
    assert TransformersModel(model, tokenizer, eos_ids=[262]).eos_ids == (262,)


def test_context_length_falls_back_on_the_tokenizer() -> None:
    assert TransformersModel(tiny("mamba"), byte_tokenizer(model_max_length=50)).context_length == 50
    assert TransformersModel(tiny("mamba"), byte_tokenizer()).context_length == 1 << 30
    assert TransformersModel(tiny("llama"), byte_tokenizer(), context_length=10).context_length == 10
