"""The cache verbs with trees, blocks of prompts read before, and what they change: nothing but the work (R15-R19)."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

import maskwright as mw
from engine.gguf_files import tiny_llama_bytes
from engine.hf_models import byte_tokenizer, tiny
from engine.models import ToyModel, tiny_llama
from maskwright.engine.blocks import BlockStore
from maskwright.engine.load import load_model
from maskwright.engine.trees import ancestors, depths, extend_tree, visible


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKWRIGHT_CACHE", str(path.parent / "cache"))
        path.write_bytes(tiny_llama_bytes())
        return load_model(path)


@pytest.fixture(scope="module", params=["native", "llama", "gpt2", "gemma3", "mamba", "toy"])
def model(request: pytest.FixtureRequest, native: Any) -> Any:
    if request.param == "native":
        return native
    if request.param == "toy":
        return ToyModel(context_length=96)
    return mw.TransformersModel(tiny(request.param), byte_tokenizer(), prefix_cache=64)


def random_tree(random_: random.Random, count: int) -> list[int]:
    return [random_.randrange(-1, node) for node in range(count)]


def from_scratch(model: Any, tokens: list[int]) -> torch.Tensor:
    logits: torch.Tensor = model.forward_all([tokens], model.new_cache(1))[0][-1]
    return logits


def test_trees_by_hand() -> None:
    tree = [-1, 0, 0, 2, -1]
    assert depths(tree) == [0, 1, 1, 2, 0]
    assert ancestors(tree, 3) == [0, 2, 3]
    assert visible(tree).int().tolist() == [
        [1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 0, 1],
    ]  # fmt: skip


def test_which_models_read_trees_at_once(native: Any) -> None:
    kinds = ("llama", "gemma3", "mamba")
    found = {kind: mw.TransformersModel(tiny(kind), byte_tokenizer()).reads_trees for kind in kinds}
    assert found == {"llama": True, "gemma3": False, "mamba": False}
    assert hasattr(native, "forward_tree")


@pytest.mark.parametrize("seed", range(6))
def test_R48_a_tree_equals_its_paths_one_by_one(model: Any, seed: int) -> None:
    random_ = random.Random(seed)
    rows = [[random_.randrange(200) for _ in range(random_.randint(1, 9))] for _ in range(random_.randint(1, 3))]
    cache = model.new_cache(len(rows))
    model.forward(rows, cache)
    for _ in range(3):
        trees = [random_tree(random_, random_.randint(1, 8)) for _ in rows]
        tokens = [[random_.randrange(200) for _ in tree] for tree in trees]
        tree = extend_tree(model, tokens, trees, cache)
        for row, held in enumerate(rows):
            assert tree.logits[row].shape[0] == len(trees[row])
            for node in range(len(trees[row])):
                path = [tokens[row][i] for i in ancestors(trees[row], node)]
                assert torch.allclose(tree.logits[row][node], from_scratch(model, held + path), atol=1e-3)
        paths = [ancestors(t, random_.randrange(len(t))) if random_.random() < 0.7 else [] for t in trees]
        tree.commit(paths)
        rows = [held + [tokens[row][i] for i in paths[row]] for row, held in enumerate(rows)]
        assert cache.lengths == tuple(map(len, rows))
        new = [[random_.randrange(200)] for _ in rows]
        logits = model.forward(new, cache)
        rows = [held + token for held, token in zip(rows, new, strict=True)]
        for held, got in zip(rows, logits, strict=True):
            assert torch.allclose(got, from_scratch(model, held), atol=1e-3)


def test_trees_that_are_refused(model: Any) -> None:
    cache = model.new_cache(1)
    model.forward([[1, 2]], cache)
    with pytest.raises(ValueError, match="parents come before children"):
        extend_tree(model, [[1, 2]], [[-1, 1]], cache)
    with pytest.raises(ValueError, match="1 nodes and 2 parents"):
        extend_tree(model, [[1]], [[-1, 0]], cache)
    with pytest.raises(mw.GenerationError, match="context holds"):
        extend_tree(ToyModel(context_length=4), [[1] * 3], [[-1, 0, 1]], filled(ToyModel(context_length=4)))
    tree = extend_tree(model, [[1, 2, 3]], [[-1, 0, 0]], cache)
    with pytest.raises(ValueError, match="no path"):
        tree.commit([[1]])


def filled(model: Any) -> Any:
    cache = model.new_cache(1)
    model.forward([[1, 2]], cache)
    return cache


def random_operations(model: Any, seed: int, steps: int) -> None:
    """Forwards, trees, forks, selections and truncations; checked against a reading from the start now and then."""
    random_ = random.Random(seed)
    caches = [(model.new_cache(2), [[], []])]
    for _ in range(steps):
        at = random_.randrange(len(caches))
        cache, rows = caches[at]
        room = min(model.context_length - len(row) for row in rows)
        kind = random_.choice(["forward", "forward", "tree", "fork", "select", "truncate", "drop"])
        if kind == "forward" and room > 6:
            new = [random_.choices(range(4), k=random_.randint(1, 6)) for _ in rows]
            logits = model.forward(new, cache)
            rows = [row + more for row, more in zip(rows, new, strict=True)]
            if random_.random() < 0.2:
                which = random_.randrange(len(rows))
                assert torch.allclose(logits[which], from_scratch(model, rows[which]), atol=1e-3)
        elif kind == "tree" and room > 6 and all(rows):
            trees = [random_tree(random_, random_.randint(1, 5)) for _ in rows]
            nodes = [random_.choices(range(4), k=len(tree)) for tree in trees]
            tree = extend_tree(model, nodes, trees, cache)
            paths = [ancestors(each, random_.randrange(len(each))) for each in trees]
            tree.commit(paths)
            rows = [row + [nodes[r][i] for i in paths[r]] for r, row in enumerate(rows)]
        elif kind in ("fork", "select"):
            picked = [random_.randrange(len(rows)) for _ in range(random_.randint(1, 3))]
            if kind == "select":
                cache.select(picked)
                rows = [list(rows[i]) for i in picked]
            elif len(caches) < 4:
                caches.append((cache.fork(picked), [list(rows[i]) for i in picked]))
        elif kind == "truncate":
            lengths = [random_.randint(0, len(row)) for row in rows]
            cache.truncate(lengths)
            rows = [row[:n] for row, n in zip(rows, lengths, strict=True)]
        elif kind == "drop":
            del caches[at], cache
            caches = caches or [(model.new_cache(2), [[], []])]
            continue
        caches[at] = (cache, rows)
        assert cache.lengths == tuple(map(len, rows))


@pytest.mark.parametrize("kind", ["native", "llama"])
def test_R17_random_operations_equal_reading_from_the_start_and_leave_no_reference(kind: str, native: Any) -> None:
    model = native if kind == "native" else mw.TransformersModel(tiny("llama"), byte_tokenizer(), prefix_cache=64)
    model.blocks = BlockStore(block_size=2, capacity=12)
    for seed in range(10):
        random_operations(model, seed, 100)
    assert model.blocks.references == 0
    assert 0 < len(model.blocks) <= 12


def test_R17_the_leak_test_would_see_a_leak(native: Any) -> None:
    native.blocks = BlockStore(block_size=2, capacity=12)
    cache = native.new_cache(1)
    native.forward([[1, 2, 3, 4, 5]], cache)
    assert native.blocks.references == 2
    twin = cache.fork([0, 0])
    assert native.blocks.references == 6
    twin.truncate([3, 5])
    assert native.blocks.references == 5
    del twin
    assert native.blocks.references == 2
    del cache
    assert native.blocks.references == 0


def test_blocks_are_found_by_their_tokens_and_all_before_them() -> None:
    store = BlockStore(block_size=2, capacity=3)
    chain = store.insert([1, 2, 3, 4, 5], [], lambda begin, end: (begin, end))
    assert [block.data for block in chain] == [(0, 2), (2, 4)]
    assert store.match([3, 4]) == []  # the same tokens elsewhere
    other = store.match([1, 2, 9, 9])
    assert other == chain[:1]
    for held in (chain, other):
        store.release(held)
    # Room for three: of the blocks that nothing needs, the one used longest ago goes.
    store.release(store.insert([7, 7, 8, 8], [], lambda begin, end: None))
    assert len(store) == 3
    assert store.references == 0
    assert store.match([1, 2, 3, 4])[:1] == chain[:1]
    assert len(store.match([1, 2, 3, 4])) == 1


def count_reads(patch: pytest.MonkeyPatch, owner: Any, name: str) -> list[list[int]]:
    """Notes how many tokens each row of each forward has."""
    read: list[list[int]] = []
    run = getattr(owner, name)

    def counted(tokens: Any, *more: Any, **named: Any) -> Any:
        read.append([len(row) for row in tokens])
        return run(tokens, *more, **named)

    patch.setattr(owner, name, counted)
    return read


def test_R16_a_prompt_that_begins_like_another_reads_the_rest_alone(
    native: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model in (native, mw.TransformersModel(tiny("llama"), byte_tokenizer())):
        model.blocks = BlockStore(block_size=16, capacity=64)
        random_ = random.Random(0)
        shared, *rest = [[random_.randrange(200) for _ in range(n)] for n in (40, 20, 20)]
        for at, tail in enumerate(rest):
            cache = model.new_cache(1)
            with monkeypatch.context() as patch:
                read = count_reads(patch, *((model.network, "forward") if model is native else (model, "_extend")))
                logits = model.forward([shared + tail], cache)
            assert torch.allclose(logits[0], from_scratch(model, shared + tail), atol=1e-4)
            assert cache.cached_tokens == ((0,), (32,))[at]
            assert read == [[60 - cache.cached_tokens[0]]]
            assert read[0][0] <= 20 + 16 or at == 0


def test_R16_hits_and_misses_give_the_same_outputs(native: Any) -> None:
    constraint = mw.Regex(r"[a-f ]{6,12}")
    prompts = ["the beginning that all of them share, " + name for name in ("ab", "cd", "ef", "abcd")]
    native.blocks = None
    missed = [mw.generate(native, prompt, constraint, seed=3, max_tokens=14) for prompt in prompts]
    native.blocks = BlockStore()
    hit = [mw.generate(native, prompt, constraint, seed=3, max_tokens=14) for prompt in prompts]
    assert [r.tokens for r in hit] == [r.tokens for r in missed]
    assert [r.stats.cached_tokens for r in missed] == [0] * 4
    assert hit[0].stats.cached_tokens == 0
    assert all(r.stats.cached_tokens > 0 for r in hit[1:])


class Uncached:
    """A model that reads everything anew at every step."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "forward_tree":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def new_cache(self, batch: int) -> Any:
        from engine.models import ToyCache

        return ToyCache([[] for _ in range(batch)])

    def forward(self, tokens: Any, cache: Any) -> torch.Tensor:
        return torch.stack([block[-1] for block in self.forward_all(tokens, cache)])

    def forward_all(self, tokens: Any, cache: Any) -> list[torch.Tensor]:
        for row, new in zip(cache.rows, tokens, strict=True):
            row.extend(new)
        return [
            self.inner.forward_all([row], self.inner.new_cache(1))[0][-len(new) :]
            for row, new in zip(cache.rows, tokens, strict=True)
        ]


@pytest.mark.parametrize("sampling", [mw.Sampling(0), mw.Sampling(1.2, top_p=0.95)])
def test_R15_with_and_without_a_cache_the_tokens_are_the_same(sampling: mw.Sampling) -> None:
    model = mw.TransformersModel(*tiny_llama(), name="tiny")
    prompts = [f"prompt {n} {'x' * (n % 7)}" for n in range(100)]
    constraint = mw.JsonSchema({"type": "array", "items": {"enum": ["ab", 12, True]}, "minItems": 1, "maxItems": 2})
    options: dict[str, Any] = {"sampling": sampling, "seed": 5, "max_tokens": 14}
    cached = mw.generate(model, prompts, constraint, **options)
    anew = mw.generate(Uncached(model), prompts, constraint, **options)
    assert [r.tokens for r in anew] == [r.tokens for r in cached]
    assert [r.logprob for r in anew] == pytest.approx([r.logprob for r in cached], abs=1e-3)


def test_R42_a_cancelled_generation_gives_its_blocks_back(native: Any) -> None:
    native.blocks = BlockStore(block_size=2)
    chunks = mw.stream(native, "the the the the", seed=1, max_tokens=30)
    next(chunks)
    assert native.blocks.references > 0
    chunks.close()
    assert native.blocks.references == 0


def test_samples_share_the_prompt(native: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    native.blocks = None
    read = count_reads(monkeypatch, native.network, "forward")
    mw.generate(native, "the prompt", mw.Regex("[ab]{3}"), n=4, seed=1)
    assert read[0] == [len(native.encode("the prompt"))]
    assert sorted(map(len, read[1:]), reverse=True) == [len(row) for row in read[1:]]
