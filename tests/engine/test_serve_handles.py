"""Requests of an engine for many: what fails, streams, asyncio, threads (R24, R45 of the engine)."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import torch

import maskwright as mw
from engine.cases import REGEXES
from engine.gguf_files import tiny_llama_bytes
from engine.models import JoiningToy, ToyModel, told
from maskwright.engine.blocks import BlockStore
from maskwright.engine.load import load_model
from maskwright.engine.sampling import BiasError


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKWRIGHT_CACHE", str(path.parent / "cache"))
        path.write_bytes(tiny_llama_bytes())
        return load_model(path)


# --- failing


def test_R45_what_a_processor_raises_stays_in_its_request() -> None:
    def broken(tokens: Any, logits: Any) -> Any:
        if len(tokens) == 3:
            raise KeyError("mine")
        return logits

    model = JoiningToy()
    engine = mw.Engine(model)
    options: dict[str, Any] = {"seed": 1, "max_tokens": 12}
    bad = engine.submit("p", mw.Regex("[a-z]{8}"), processor=broken, **options)
    good = engine.submit("q", mw.Regex("[a-z]{8}"), **options)
    engine.run()
    with pytest.raises(mw.GenerationError, match="processor of this request raised KeyError: 'mine'") as caught:
        bad.result()
    assert isinstance(caught.value.__cause__, KeyError)
    frames = []
    trace = caught.value.__cause__.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert frames[-1] == "broken"
    assert len(caught.value.result.tokens) == 3
    assert told(good.result()) == told(mw.generate(model, "q", mw.Regex("[a-z]{8}"), **options))


def test_R24_a_dead_row_and_a_refused_value_leave_the_others_alone() -> None:
    class Mine:
        """A constraint's own parser that breaks."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def parse(self, text: str) -> Any:
            raise ZeroDivisionError

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    class Parsed:
        def __init__(self, grammar: Any) -> None:
            self.constraint, self.matcher = Mine(grammar.constraint), grammar.matcher

    model = JoiningToy()
    engine = mw.Engine(model)
    dead = engine.submit("p", mw.Regex("ab[cd]"), sampling=mw.Sampling(logit_bias={99: -torch.inf, 100: -torch.inf}))
    good = engine.submit("q", mw.Regex("[a-z]{8}"), seed=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maskwright.engine.serve.compile_for", lambda model, each, thinking: each)
        odd = engine.submit("r", Parsed(mw.compile(mw.Regex("[a-z]{8}"), model.vocabulary)), seed=1)  # type: ignore[arg-type]
    engine.run()
    with pytest.raises(BiasError):
        dead.result()
    with pytest.raises(mw.GenerationError, match="value of the output could not be made: ZeroDivisionError") as caught:
        odd.result()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert told(good.result()) == told(mw.generate(model, "q", mw.Regex("[a-z]{8}"), seed=1))


@pytest.mark.parametrize("when", ["prompt", "row"])
def test_a_model_that_raises_fails_who_took_part_and_the_engine_goes_on(when: str) -> None:
    model = JoiningToy()
    with mw.Engine(model) as engine:
        patch = pytest.MonkeyPatch()

        def broken(tokens: Any, cache: Any) -> Any:
            if when == "prompt" or cache.lengths[0] > 4:
                raise RuntimeError("out of memory")
            return JoiningToy.forward(model, tokens, cache)

        patch.setattr(model, "forward", broken)
        bad = engine.submit("p", seed=1, max_tokens=40)
        with pytest.raises(mw.GenerationError, match="the model raised RuntimeError: out of memory") as caught:
            bad.result(60)
        assert isinstance(caught.value.__cause__, RuntimeError)
        with pytest.raises(mw.GenerationError, match="out of memory"):
            list(bad)
        patch.undo()
        assert engine.submit("p", seed=1, max_tokens=9).result(60).tokens


# --- handles


def test_streams_add_up_and_carry_values() -> None:
    model = JoiningToy()
    schema = mw.JsonSchema({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 5})
    engine = mw.Engine(model)
    handles = [engine.submit(f"p{at}", schema, seed=at, max_tokens=60) for at in range(4)]
    for at, handle in enumerate(handles):
        wanted = list(mw.stream(model, f"p{at}", schema, seed=at, max_tokens=60))
        chunks = list(handle)
        result = handle.result()
        assert "".join(chunk.text for chunk in chunks) == result.text
        assert [token for chunk in chunks for token in chunk.tokens] == result.tokens
        assert chunks[-1].result is result
        assert (chunks[-1].value, chunks[-1].closed) == (wanted[-1].value, wanted[-1].closed)
        if at == 0:  # opened before the first step: piece by piece
            assert [(each.text, each.value) for each in chunks] == [(each.text, each.value) for each in wanted]
        assert list(handle) == chunks  # again, from the start


def test_async_generation_and_streams_beside_each_other() -> None:
    model = JoiningToy()
    constraint = mw.Regex(REGEXES["words"])

    async def text_of(engine: mw.Engine, at: int) -> tuple[str, mw.Result]:
        text = ""
        async for chunk in engine.stream(f"p{at}", constraint, seed=at, max_tokens=70):
            text += chunk.text
            if chunk.result is not None:
                return text, chunk.result
        raise AssertionError("a stream ends with its result")

    async def main() -> None:
        async with mw.Engine(model, max_rows=3) as engine:
            streams = asyncio.gather(*(text_of(engine, at) for at in range(4)))
            several, one = await asyncio.gather(
                engine.generate("q", constraint, seed=5, n=3, max_tokens=70), engine.generate("r", seed=1, max_tokens=5)
            )
            solo = mw.generate(ToyModel(), "q", constraint, seed=5, n=3, max_tokens=70)
            assert [told(each) for each in several] == [told(each) for each in solo]
            assert len(one.tokens) == 5
            handle = engine.submit("s", constraint, seed=2, max_tokens=70)
            assert (await handle) is handle.result()
            for at, (text, result) in enumerate(await streams):
                assert text == result.text
                assert told(result) == told(mw.generate(ToyModel(), f"p{at}", constraint, seed=at, max_tokens=70))
        with pytest.raises(RuntimeError, match="closed"):
            engine.submit("p")
        with pytest.raises(RuntimeError, match="closed"):
            await engine.generate("p")

    asyncio.run(asyncio.wait_for(main(), 120))


def test_a_step_that_is_cut_off_ends_its_outputs_and_tells() -> None:
    model = JoiningToy()
    engine = mw.Engine(model)
    handle = engine.submit("p", seed=1, max_tokens=40)
    engine.step()
    with pytest.MonkeyPatch.context() as patch:

        def interrupted(*_: Any) -> Any:
            raise KeyboardInterrupt

        patch.setattr(model, "forward", interrupted)
        with pytest.raises(KeyboardInterrupt):
            handle.result()
    with pytest.raises(mw.GenerationError, match="KeyboardInterrupt"):
        handle.result()
    assert engine.rows == engine.cached_tokens == 0
    assert engine.submit("p", seed=1, max_tokens=4).result().tokens


def test_requests_from_many_threads() -> None:
    model = JoiningToy()
    solos = [mw.generate(model, f"p{at}", mw.Regex("[a-z]{5,20}"), seed=at) for at in range(12)]
    found: dict[int, mw.Result] = {}
    with mw.Engine(model, max_rows=5) as engine:

        def ask(at: int) -> None:
            found[at] = engine.submit(f"p{at}", mw.Regex("[a-z]{5,20}"), seed=at).result(60)

        threads = [threading.Thread(target=ask, args=(at,)) for at in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [told(found[at]) for at in range(12)] == [told(solo) for solo in solos]


def test_closing_ends_what_is_in_the_making() -> None:
    engine = mw.Engine(JoiningToy())
    handle = engine.submit("p", seed=1, max_tokens=4000)
    engine.step()
    late = engine.submit("q", seed=1, max_tokens=4000)
    engine.close()
    assert handle.result().finish_reason == late.result().finish_reason == "cancelled"
    assert engine.rows == engine.waiting == 0


def test_samples_and_equal_prompts_are_read_once(native: Any) -> None:
    model = JoiningToy()
    engine = mw.Engine(model)
    handles = [engine.submit("the same", seed=at, max_tokens=3) for at in range(4)]
    engine.run()
    assert [sum(call) for call in model.calls if max(call) > 1] == [8]
    assert len({tuple(handle.result().tokens) for handle in handles}) > 1
    native.blocks = BlockStore(block_size=2)
    engine = mw.Engine(native, token_budget=6, max_rows=2)  # a prompt read in chunks is remembered as a whole
    first = engine.submit("the beginning of it", seed=1, max_tokens=3).result()
    second = engine.submit("the beginning of it all", seed=1, max_tokens=3).result()
    assert (first.stats.cached_tokens, first.stats.prompt_tokens > 12) == (0, True)
    assert second.stats.cached_tokens >= first.stats.prompt_tokens - 2
    solo = mw.generate(native, "the beginning of it all", seed=1, max_tokens=3)
    assert told(second) == told(solo)
    native.blocks = None


def test_outputs_that_have_ended_before_they_began() -> None:
    model = JoiningToy()
    engine = mw.Engine(model)
    assert engine.submit("p", max_tokens=0).result().tokens == []
    assert engine.submit("p", mw.Regex("")).result().finish_reason == "constraint"
    assert model.calls == []
    assert not engine.step()


def test_what_is_refused_is_refused_at_once() -> None:
    model = JoiningToy(context_length=20)
    engine = mw.Engine(model)
    for error, match, prompt, options in (
        (mw.GenerationError, "holds 20", "x" * 15, {"max_tokens": 6}),
        (mw.GenerationError, "too few", "p", {"constraint": mw.Regex("a{9}"), "max_tokens": 5}),
        (mw.RegexError, "parenthesis|group", "p", {"constraint": mw.Regex("(")}),
        (ValueError, "n is 2", "p", {"n": 2, "seed": 1, "max_tokens": 3}),
        (TypeError, "one prompt at a time", ["p", "q"], {}),
        (TypeError, "unexpected keyword", "p", {"temprature": 1}),
        (TypeError, "samples or is greedy", "p", {"strategy": object()}),
        (TypeError, "no lookahead", "p", {"lookahead": "exact"}),
    ):
        with pytest.raises(error, match=match):
            engine.submit(prompt, options.pop("constraint", None), **options)  # type: ignore[arg-type,call-overload]
    while engine.step():
        pass
    assert all(len(call) <= 2 for call in model.calls)
    for named, match in (({"max_rows": 0}, "max_rows is 0"), ({"token_budget": 3}, "at least max_rows, which is 32")):
        with pytest.raises(ValueError, match=match):
            mw.Engine(model, **named)


def test_R26_a_request_is_compiled_and_has_its_first_mask_while_a_forward_runs() -> None:
    running, go = threading.Event(), threading.Event()

    class Slow(JoiningToy):
        def forward(self, tokens: Any, cache: Any) -> torch.Tensor:
            running.set()
            assert go.wait(60)
            return super().forward(tokens, cache)

    with mw.Engine(Slow()) as engine:
        first = engine.submit("p", seed=1, max_tokens=3)
        assert running.wait(60)
        second = engine.submit("q", mw.Regex("[a-c]{4}"), seed=1)
        assert second._row.mask is not None
        assert not go.is_set()
        go.set()
        assert len(first.result(60).tokens) == 3
        assert second.result(60).valid
