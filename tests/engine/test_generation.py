"""The functions that a program calls: shapes, defaults, values, seeds, errors, streams, async."""

import asyncio
import datetime
import enum
import json
import math
import re
import subprocess
import sys
import threading
from typing import Any, Literal

import pydantic
import pytest

import maskwright as mw
from engine.models import EOS, ToyModel


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=5)
    age: int = pydantic.Field(ge=0, le=130)
    tags: list[Literal["x", "y"]] = pydantic.Field(max_length=2)


class Even(pydantic.BaseModel):
    n: int = pydantic.Field(ge=0, le=9)

    @pydantic.field_validator("n")
    @classmethod
    def _even(cls, n: int) -> int:
        if n % 2:
            raise ValueError(f"{n} is odd")
        return n


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@pytest.fixture(scope="module")
def model() -> ToyModel:
    return ToyModel()


CHAT = [{"role": "user", "content": "hello"}]


def test_one_prompt_gives_one_a_list_a_list_and_n_a_level(model: ToyModel) -> None:
    regex = mw.Regex("[a-f]{3,5}")
    one = mw.generate(model, "p", regex)
    assert isinstance(one, mw.Result)
    assert isinstance(mw.generate(model, CHAT, regex), mw.Result)
    several = mw.generate(model, ["p", CHAT, "q"], regex)
    assert [type(r) for r in several] == [mw.Result] * 3
    assert several[0].text == one.text
    samples = mw.generate(model, "p", regex, n=2, seed=1)
    assert [type(r) for r in samples] == [mw.Result] * 2
    grid = mw.generate(model, ["p", "q"], regex, n=3, seed=1)
    assert [[type(r) for r in row] for row in grid] == [[mw.Result] * 3] * 2
    assert mw.generate(model, []) == []


def test_greedy_unless_something_asks_for_draws(model: ToyModel) -> None:
    def texts(**options: Any) -> set[str]:
        return {mw.generate(model, "p", max_tokens=12, **options).text for _ in range(4)}

    greedy = texts()
    assert len(greedy) == 1
    assert texts(strategy="greedy", seed=3) == greedy
    assert texts(sampling=mw.Sampling(temperature=0)) == greedy
    assert len(texts(seed=3) | greedy) == 2
    assert len(texts(sampling=mw.Sampling(1.5))) > 1
    assert len(texts(strategy="sample")) > 1


def test_R12_samples_are_those_of_derived_seeds(model: ToyModel) -> None:
    from maskwright.engine.rng import derive

    samples = mw.generate(model, "p", n=4, seed=11, max_tokens=10)
    alone = [mw.generate(model, "p", seed=derive(11, i), max_tokens=10) for i in range(4)]
    assert [r.tokens for r in samples] == [r.tokens for r in alone]
    assert len({tuple(r.tokens) for r in samples}) > 2


def test_R11_R14_seeds_per_prompt_do_not_mix(model: ToyModel) -> None:
    prompts, seeds = ["a", "b", "a", "b"], [1, 2, 3, 1]
    together = mw.generate(model, prompts, seed=seeds, max_tokens=10)
    for prompt, seed, result in zip(prompts, seeds, together, strict=True):
        assert mw.generate(model, prompt, seed=seed, max_tokens=10).tokens == result.tokens
    shared = mw.generate(model, ["a", "a"], seed=1, max_tokens=10)
    assert shared[0].tokens == together[0].tokens
    assert shared[1].tokens != shared[0].tokens  # the second of a list draws from a stream of its own
    small = mw.generate(model, prompts, seed=1, max_tokens=10, batch_size=1)
    assert [r.tokens for r in small] == [r.tokens for r in mw.generate(model, prompts, seed=1, max_tokens=10)]


def test_R13_a_seed_gives_the_same_text_in_another_process(model: ToyModel) -> None:
    code = (
        "import maskwright as mw; from engine.models import ToyModel\n"
        "print(mw.generate(ToyModel(), 'p', mw.Regex('[a-z]{8}'), seed=5).tokens)"
    )
    path = str(__import__("pathlib").Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": path}, check=True
    )
    assert json.loads(done.stdout) == mw.generate(model, "p", mw.Regex("[a-z]{8}"), seed=5).tokens


def test_an_unseeded_run_can_be_repeated_from_its_manifest(model: ToyModel) -> None:
    first = mw.generate(model, "p", sampling=mw.Sampling(1.3, top_k=50), max_tokens=10)
    manifest = first.manifest
    again = mw.generate(
        model,
        "p",
        sampling=mw.Sampling(**manifest["sampling"]),
        max_tokens=manifest["max_tokens"],
        seed=manifest["seed"],
    )
    assert again.tokens == first.tokens
    assert {"model", "device", "threads", "versions", "request", "constraint", "stop"} <= set(manifest)
    json.dumps(dict(manifest))


def test_generate_json_gives_the_type_that_was_asked_for(model: ToyModel) -> None:
    for seed in range(10):
        person = mw.generate_json(model, "p", Person, seed=seed)
        assert isinstance(person, Person)
        assert 0 <= person.age <= 130
        assert isinstance(mw.generate_json(model, "p", datetime.date, seed=seed), datetime.date)
        plain = mw.generate_json(model, "p", {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}, seed=seed)
        assert isinstance(plain, list)
        assert set(plain) <= {True, False}
    many = mw.generate_json(model, ["p", "q"], mw.JsonSchema(Person), n=2, seed=0)
    assert [[type(p) for p in row] for row in many] == [[Person] * 2] * 2


def test_generate_regex_and_choice(model: ToyModel) -> None:
    assert re.fullmatch(r"\d{4}-\d{2}", mw.generate_regex(model, "p", r"\d{4}-\d{2}"))
    assert re.fullmatch(r"[ab]{3}", mw.generate_regex(model, "p", re.compile("[ab]{3}")))
    assert mw.generate_choice(model, "p", ["spam", "ham"]) in ("spam", "ham")
    assert mw.generate_choice(model, ["p", "q"], Color)[0] in Color
    assert mw.generate_choice(model, "p", {"one": 1, "two": 2}) in (1, 2)
    assert mw.generate_choice(model, "p", Literal["u", "v"]) in ("u", "v")


def test_a_constraint_for_each_prompt(model: ToyModel) -> None:
    a, b, free = mw.generate(model, ["p", "q", "r"], [mw.Regex("a+"), mw.Choice(["x"]), None], max_tokens=9)
    assert set(a.text) == {"a"}
    assert b.value == "x"
    assert len(free.tokens) <= 9
    compiled = mw.compile(mw.Regex("a+"), model.vocabulary, banned_ids=[EOS])
    assert set(mw.generate(model, "p", compiled, max_tokens=9).text) == {"a"}


def test_a_value_that_a_validator_refuses(model: ToyModel) -> None:
    odd = next(s for s in range(50) if mw.generate(model, "p", mw.JsonSchema(Even), seed=s).value == {"n": 5})
    result = mw.generate(model, "p", mw.JsonSchema(Even), seed=odd)
    assert not result.valid
    with pytest.raises(mw.GenerationError, match="5 is odd") as caught:
        mw.generate_json(model, "p", Even, seed=odd)
    assert caught.value.result.value == {"n": 5}
    assert isinstance(caught.value.__cause__, pydantic.ValidationError)
    # Drawn again, also where the call itself is greedy.
    assert mw.generate_json(model, "p", Even, seed=odd, retries=20).n % 2 == 0
    assert mw.generate_json(model, ["p", "q", "r"], Even, retries=20)[2].n % 2 == 0


def test_what_is_not_finished_raises_with_what_there_is(model: ToyModel) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(mw.GenerationError, match=r"not finished.*cancelled") as caught:
        mw.generate_regex(model, "p", "[a-f]{9}", cancel=stopped)
    assert caught.value.result is not None
    assert not caught.value.result.valid
    assert mw.generate(model, "p", mw.Regex("[a-f]{9}"), cancel=stopped).finish_reason == "cancelled"


def test_R24_one_failed_row_of_a_batch_gives_the_results_of_all(model: ToyModel) -> None:
    class Poisoned(ToyModel):
        def _read(self, row: list[int], new: Any) -> Any:
            return super()._read(row, new) * (math.nan if new[0] == ord("!") else 1)

    with pytest.raises(mw.GenerationError, match="NaN") as caught:
        mw.generate(Poisoned(), ["p", "!", "q"], mw.Regex("[a-f]{4}"))
    results = caught.value.results
    assert [r.valid for r in results] == [True, False, True]
    assert caught.value.result is results[1]
    assert results[2].text == mw.generate(model, "q", mw.Regex("[a-f]{4}")).text


def test_budgets_are_checked_for_all_before_any_runs() -> None:
    model = ToyModel(context_length=40)
    with pytest.raises(mw.GenerationError, match="context"):
        mw.generate(model, ["p"] * 5 + ["x" * 39], max_tokens=10, batch_size=1)
    with pytest.raises(mw.GenerationError, match="it takes 10"):
        mw.generate_regex(model, "p", "x{9}", max_tokens=9)
    assert model.calls == []
    assert len(mw.generate(model, "p" * 30).tokens) <= 10  # by default what the context leaves
    with pytest.raises(mw.GenerationError, match="context"):
        mw.generate(model, "p" * 40)
    with pytest.raises(mw.GenerationError, match="no tokens"):
        mw.generate(model, "")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"n": 0}, ValueError, "n is 0"),
        ({"n": 2}, ValueError, "all the same"),
        ({"max_tokens": -1}, ValueError, "max_tokens is -1"),
        ({"batch_size": 0}, ValueError, "batch_size is 0"),
        ({"stop": ""}, ValueError, "stop string is empty"),
        ({"stop": ["a", 3.5]}, TypeError, "a stop is 3.5"),
        ({"stop": 10**6}, ValueError, "stop token 1000000"),
        ({"sampling": mw.Sampling(logit_bias={10**6: 1.0})}, ValueError, "logit_bias names token 1000000"),
        ({"min_tokens": -1}, ValueError, "min_tokens is -1"),
        ({"logprobs": -1}, ValueError, "logprobs is -1"),
        ({"processor": 3}, TypeError, "processor is 3"),
        ({"prefix": ["a", "b"]}, ValueError, "2 prefixes for 1 prompts"),
        ({"prefix": [3]}, TypeError, "a prefix is"),
        ({"seed": [1, 2]}, ValueError, "2 seeds for 1 prompts"),
        ({"seed": "x"}, TypeError, "seed is 'x'"),
        ({"strategy": "beam"}, ValueError, "strategy is 'beam'"),
        ({"sampling": {"temperature": 1}}, TypeError, "must be a Sampling"),
        ({"temperature": 1}, TypeError, "temperature"),
        ({"constraint": "abc"}, TypeError, "constraint is str"),
        ({"constraint": [mw.Regex("a")]}, TypeError, "list of prompts"),
        ({"prompt": 3}, TypeError, "a prompt is"),
        ({"prompt": ["a", {"role": "user"}]}, TypeError, "a chat is"),
        ({"prompt": [["a", "b"]]}, TypeError, "further lists"),
        ({"prompt": ["a"], "constraint": [None, None]}, ValueError, "2 constraints for 1 prompts"),
    ],
)
def test_wrong_arguments(model: ToyModel, options: dict[str, Any], error: type[Exception], said: str) -> None:
    arguments = {"prompt": "p", **options}
    with pytest.raises(error, match=said):
        mw.generate(model, **arguments)


def test_a_grammar_of_another_vocabulary_is_refused(model: ToyModel) -> None:
    other = mw.compile(mw.Regex("a"), mw.Vocabulary([b"a", b"<eos>"], eos_ids=[1]))
    with pytest.raises(mw.GenerationError, match="another vocabulary"):
        mw.generate(model, "p", other)


@pytest.mark.parametrize("seed", range(30))
def test_R41_a_stream_adds_up_to_the_result(model: ToyModel, seed: int) -> None:
    constraint = [None, mw.JsonSchema(Person), mw.Regex("([é€ab] ?){4,20}")][seed % 3]
    options: dict[str, Any] = {"seed": seed, "max_tokens": 60, "stop": ["a ", "é"] if seed % 2 else []}
    whole = mw.generate(model, "p", constraint, **options)
    chunks = list(mw.stream(model, "p", constraint, **options))
    assert "".join(chunk.text for chunk in chunks) == whole.text
    assert [token for chunk in chunks for token in chunk.tokens] == whole.tokens
    for chunk in chunks[:-1]:
        assert chunk.result is None
        assert model.vocabulary.decode(chunk.tokens).decode("utf-8", "replace") == chunk.text
    last = chunks[-1]
    assert last.result is not None
    assert (last.result.text, last.result.tokens, last.value) == (whole.text, whole.tokens, whole.value)
    assert last.closed[-1] == ""


def test_R42_closing_a_stream_cancels(model: ToyModel) -> None:
    chunks = mw.stream(model, "p", seed=1, max_tokens=50)
    next(chunks)
    model.calls.clear()
    chunks.close()
    assert list(chunks) == []
    assert model.calls == []


def test_a_stream_checks_its_arguments_when_called(model: ToyModel) -> None:
    with pytest.raises(mw.GenerationError, match="too few"):
        mw.stream(model, "p", mw.Regex("x{9}"), max_tokens=5)
    with pytest.raises(TypeError, match="one prompt"):
        mw.stream(model, ["p", "q"])
    with pytest.raises(ValueError, match="n is 2"):
        mw.stream(model, "p", n=2, seed=1)


def test_async_generation(model: ToyModel) -> None:
    regex = mw.Regex("[a-f]{4,9}")

    async def main() -> tuple[Any, list[mw.Chunk]]:
        several = await asyncio.gather(*(mw.agenerate(ToyModel(), "p", regex, seed=s) for s in range(3)))
        return several, [chunk async for chunk in mw.astream(model, "p", regex, seed=1)]

    several, chunks = asyncio.run(main())
    assert [r.tokens for r in several] == [mw.generate(model, "p", regex, seed=s).tokens for s in range(3)]
    assert chunks[-1].result.tokens == several[1].tokens


def test_R42_cancelling_a_task_ends_its_generation() -> None:
    model = ToyModel()

    async def main() -> None:
        task = asyncio.create_task(mw.agenerate(model, "p", mw.Regex("[a-f]{2000}"), max_tokens=2500))
        while len(model.calls) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.1)
        calls = len(model.calls)
        await asyncio.sleep(0.1)
        assert len(model.calls) == calls < 1500

        model.calls.clear()
        chunks = mw.astream(model, "p", mw.Regex("[a-f]{2000}"), max_tokens=2500)
        async for _ in chunks:
            break
        await chunks.aclose()
        await asyncio.sleep(0.1)
        assert len(model.calls) < 10

    asyncio.run(main())


def test_stop_strings_with_and_without(model: ToyModel) -> None:
    free = mw.generate(model, "p", seed=2, max_tokens=40)
    stop = free.text[5]
    for include in (False, True):
        result = mw.generate(model, "p", seed=2, max_tokens=40, stop=stop, include_stop=include)
        cut = free.text.index(stop) + (1 if include else 0)
        assert (result.text, result.finish_reason) == (free.text[:cut], "stop")
