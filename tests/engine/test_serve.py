"""Continuous batching: tokens, budgets, joins and leaves (R11, R42-R44 of the engine)."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from typing import Any

import pytest
import torch

import maskwright as mw
from engine.gguf_files import tiny_llama_bytes
from engine.hf_models import byte_tokenizer, tiny
from engine.models import JoiningToy, ToyModel, told
from maskwright.engine.blocks import BlockStore
from maskwright.engine.load import load_model


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKWRIGHT_CACHE", str(path.parent / "cache"))
        path.write_bytes(tiny_llama_bytes())
        return load_model(path)


@pytest.fixture(scope="module")
def llama() -> Any:
    return mw.TransformersModel(tiny("llama"), byte_tokenizer(), prefix_cache=64)


@pytest.fixture(params=["toy", "joining", "native", "llama"])
def model(request: pytest.FixtureRequest) -> Any:
    if request.param in ("toy", "joining"):
        return ToyModel() if request.param == "toy" else JoiningToy()
    return request.getfixturevalue(request.param)


RULES = [
    mw.Sampling(0),
    mw.Sampling(),
    mw.Sampling(1.4, top_k=30, top_p=0.95),
    mw.Sampling(0.8, presence_penalty=0.4, penalty_scope="all"),
    mw.Sampling(1.1, logit_bias={97: 2.0}),
    mw.Sampling(lazy_mask=True),
]
PATTERNS = [r"[a-f]{3,9}", r"(\d{1,3}, ){2}\d{1,3}", "(yes|yes sir|no)", r"\{\"n\": \d{1,9}\}", "x*", "[é€]{2,5}", None]


def asked(at: int) -> tuple[str, Any, dict[str, Any]]:
    """Request number `at`: its prompt, constraint and options, like no other's."""
    pattern = PATTERNS[at % len(PATTERNS)]
    options = {"sampling": RULES[at % len(RULES)], "seed": at, "max_tokens": 14 + at % 7}
    options["logprobs"] = (None, None, 2)[at % 3]
    return "prompt " + "x" * (3 * at % 17), None if pattern is None else mw.Regex(pattern), options


@pytest.mark.parametrize("seed", range(2))
def test_R11_tokens_are_those_of_a_solo_run_whoever_joins_and_leaves(model: Any, seed: int) -> None:
    random_ = random.Random(seed)
    order = random_.sample(range(18), 18)
    engine = mw.Engine(model, token_budget=random_.choice([5, 12, 64]), max_rows=random_.choice([3, 5]))
    handles: dict[int, Any] = {}
    while order:
        for _ in range(random_.randint(0, 3)):
            if order:
                at = order.pop()
                prompt, constraint, options = asked(at)
                handles[at] = engine.submit(prompt, constraint, **options)
        engine.step()
    engine.run()
    assert engine.rows == engine.waiting == engine.cached_tokens == 0
    for at, handle in handles.items():
        prompt, constraint, options = asked(at)
        solo, result = mw.generate(model, prompt, constraint, **options), handle.result()
        assert told(result) == told(solo)
        assert result.logprob == pytest.approx(solo.logprob, abs=1e-3)
        assert result.log_weight == pytest.approx(solo.log_weight, abs=1e-3, nan_ok=True)
        assert len(result.logprobs or ()) == len(solo.logprobs or ())
        assert result.manifest["sampling"] == solo.manifest["sampling"]


def test_R43_a_late_joiner_shares_forwards_and_changes_nobody() -> None:
    """Throughput in forwards, of which a machine does so many a second; seconds are measured in tests/bench."""
    model = JoiningToy()
    prompt, constraint, options = asked(1)
    solos = [mw.generate(model, asked(at)[0], asked(at)[1], **asked(at)[2]) for at in range(32)]
    apart = len(model.calls)
    model.calls.clear()
    engine = mw.Engine(model)
    handles = []
    for at in range(32):  # one joins in each step
        prompt, constraint, options = asked(at)
        handles.append(engine.submit(prompt, constraint, **options))
        engine.step()
    engine.run()
    assert [told(handle.result()) for handle in handles] == [told(solo) for solo in solos]
    assert 2 * len(model.calls) < apart
    assert max(map(len, model.calls)) > 4


def test_rows_with_different_rules_share_a_forward() -> None:
    model = JoiningToy()
    engine = mw.Engine(model)
    for sampling in RULES:
        engine.submit("p", mw.Regex("[w-z]{20}"), sampling=sampling, seed=1, max_tokens=22, drafts=False)
    engine.run()
    # The prompt is read once for all.
    assert model.calls[0] == (1,)
    assert all(len(call) == len(RULES) for call in model.calls[1:])


def test_R44_a_long_prompt_delays_the_others_by_a_chunk_at_most() -> None:
    model = JoiningToy(context_length=8192)
    engine = mw.Engine(model, token_budget=256, max_rows=4)
    streams = [engine.submit(f"p{at}", seed=at, max_tokens=200) for at in range(2)]
    engine.step()
    long = engine.submit("x" * 4000, seed=9, max_tokens=4)
    counts = []
    model.calls.clear()
    while not long.done:
        before = [len(each._row.tokens) for each in streams]
        calls = len(model.calls)
        engine.step()
        counts.append(sum(sum(call) for call in model.calls[calls:]))
        # Every stream has a token more, and no forward but the chunk's came between.
        assert [len(each._row.tokens) - n for each, n in zip(streams, before, strict=True)] == [1, 1]
        assert len(model.calls) - calls <= 2
    assert max(counts) <= 256
    assert len(counts) >= 4000 // 256
    engine.run()
    assert told(long.result()) == told(mw.generate(model, "x" * 4000, seed=9, max_tokens=4))


@pytest.mark.parametrize(("budget", "rows"), [(4, 4), (16, 4), (40, 8)])
def test_no_step_reads_more_than_its_budget(budget: int, rows: int) -> None:
    model, random_ = JoiningToy(), random.Random(0)
    constraint = mw.JsonSchema(
        {
            "type": "object",
            "properties": {"a long key that is forced": {"type": "boolean"}, "another long key": {"enum": ["a", "b"]}},
            "required": ["a long key that is forced", "another long key"],
            "additionalProperties": False,
        }
    )
    engine = mw.Engine(model, token_budget=budget, max_rows=rows)
    handles = [engine.submit("p" * random_.randint(1, 60), constraint, seed=at, max_tokens=90) for at in range(15)]
    busy = True
    while busy:
        model.calls.clear()
        busy = engine.step()
        assert sum(sum(call) for call in model.calls) <= budget
        assert max(map(len, model.calls)) <= rows
        assert engine.rows <= rows
    assert all(handle.result().valid for handle in handles)


@pytest.mark.parametrize("seed", range(4))
def test_joined_caches_read_as_their_rows_alone(seed: int, native: Any, llama: Any) -> None:
    """Joins, and selections in place among them, on every kind of cache that grows."""
    models = [native, llama, *(mw.TransformersModel(tiny(kind), byte_tokenizer()) for kind in ("gemma3", "mamba"))]
    for model in models:
        random_ = random.Random(seed)
        model.blocks = BlockStore(block_size=2, capacity=12) if model in (native, llama) else None
        cache, rows = model.new_cache(0), []
        for _ in range(12):
            if len(rows) < 6 and random_.random() < 0.6:
                new = [random_.choices(range(9), k=random_.randint(1, 7)) for _ in range(random_.randint(1, 3))]
                other = model.new_cache(len(new))
                model.forward(new, other)
                cache.join(other)
                rows += new
            elif rows and random_.random() < 0.5:
                picked = random_.sample(range(len(rows)), random_.randint(1, len(rows)))
                cache.select(picked)
                rows = [list(rows[at]) for at in picked]
            assert cache.lengths == tuple(map(len, rows))
            if rows:
                more = [random_.choices(range(9), k=random_.randint(1, 3)) for _ in rows]
                logits = model.forward(more, cache)
                rows = [row + tail for row, tail in zip(rows, more, strict=True)]
                for row, got in zip(rows, logits, strict=True):
                    alone = model.forward_all([row], model.new_cache(1))[0][-1]
                    assert torch.allclose(got, alone, atol=1e-3)
        if model.blocks is not None:
            assert model.blocks.references > 0
            del cache, other
            assert model.blocks.references == 0


def test_a_selection_that_needs_what_it_writes_over_is_no_selection_in_place(native: Any) -> None:
    cache = native.new_cache(3)
    native.forward([[1, 2], [3], [4, 5, 6]], cache)
    for rows in ([2, 1, 0], [1, 0, 2], [0, 0, 1], [1, 2], [2, 2, 2]):
        twin = cache.fork(range(3))
        data = twin.data.clone()
        twin.select(rows)
        for to, at in enumerate(rows):
            assert torch.equal(twin.data[:, :, to, :, : twin.held[to]], data[:, :, at, :, : twin.held[to]])


# --- leaving


def test_R42_a_task_that_is_cancelled_while_its_constraint_compiles_leaves_nothing() -> None:
    compiling, go = threading.Event(), threading.Event()

    async def main(patch: pytest.MonkeyPatch) -> None:
        from maskwright.engine import serve

        whole = serve.compile_for

        def slow(*arguments: Any) -> Any:
            compiling.set()
            assert go.wait(60)
            return whole(*arguments)

        patch.setattr(serve, "compile_for", slow)
        made: list[Any] = []
        inner = mw.Engine._submit
        patch.setattr(mw.Engine, "_submit", lambda *arguments: made.append(inner(*arguments)) or made[-1])
        async with mw.Engine(JoiningToy()) as engine:
            task = asyncio.create_task(engine.generate("p", seed=1, max_tokens=4000))
            await asyncio.to_thread(compiling.wait, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert engine.rows == engine.waiting == 0
            go.set()
            while not made:
                await asyncio.sleep(0.001)
            engine.start()
            assert (await made[0][0]).finish_reason == "cancelled"

    with pytest.MonkeyPatch.context() as patch:
        asyncio.run(asyncio.wait_for(main(patch), 60))


def test_R42_cancelling_frees_keys_and_values_within_a_step(native: Any) -> None:
    native.blocks = BlockStore(block_size=2)
    gc.collect()
    engine = mw.Engine(native, token_budget=8, max_rows=2)
    running, other = (engine.submit("the the " + name, seed=1, max_tokens=30) for name in "ab")
    waiting = engine.submit("w", seed=1, max_tokens=20)
    for _ in range(4):
        engine.step()
    held = engine.cached_tokens
    assert engine.rows == 2
    running.cancel()
    assert not running.done
    waiting.cancel()
    engine.step()
    assert running.done
    assert running.result().finish_reason == waiting.result().finish_reason == "cancelled"
    assert running.result().tokens
    assert waiting.result().tokens == []
    assert engine.rows == 1
    assert engine.waiting == 0
    assert engine.cached_tokens <= held / 2 + 1
    other.cancel()
    engine.step()
    assert engine.cached_tokens == engine.rows == native.blocks.references == 0
    # Somebody else's signal does the same.
    signal = threading.Event()
    third = engine.submit("the the", seed=1, max_tokens=30, cancel=signal)
    engine.step()
    signal.set()
    assert not engine.step()
    assert third.result().finish_reason == "cancelled"
    native.blocks = None


def test_R42_a_prompt_that_is_half_read_is_dropped() -> None:
    model = JoiningToy()
    engine = mw.Engine(model, token_budget=4, max_rows=2)
    handle = engine.submit("x" * 50, max_tokens=3)
    engine.step()
    assert (engine.rows, engine.cached_tokens) == (1, 4)
    handle.cancel()
    engine.step()
    assert engine.cached_tokens == 0
    assert handle.result().finish_reason == "cancelled"


def test_R42_closing_a_stream_and_cancelling_a_task_end_the_output() -> None:
    async def main() -> None:
        async with mw.Engine(JoiningToy()) as engine:
            stream = engine.stream("p", seed=1, max_tokens=4000)
            async for _ in stream:
                break
            await stream.aclose()
            task = asyncio.create_task(engine.generate("q", seed=1, max_tokens=4000))
            while not engine.rows:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while engine.rows:
                await asyncio.sleep(0.001)
            assert engine.cached_tokens == 0

    asyncio.run(asyncio.wait_for(main(), 60))
