"""Drafts, stop tokens, prefixes, least lengths and processors in the step loop (R13, R20, R21, R34, R41, R45)."""

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch

import maskwright as mw
from engine.models import EOS, STOP, ToyModel
from engine.statistics import p_value
from engine.test_decode import enumerate_outputs

KEYED = {
    "type": "object",
    "properties": {
        "customer": {"type": "string", "maxLength": 4},
        "amount": {"type": "integer", "minimum": 0, "maximum": 99},
        "delivered": {"type": "boolean"},
    },
    "required": ["customer", "amount", "delivered"],
    "additionalProperties": False,
}


class Wordy(ToyModel):
    """Encodes with the longest tokens, as models are used to be trained."""

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        data, ids = text.encode(), []
        while data:
            longest = max((t for t in self.vocabulary.tokens if t and data.startswith(t)), key=len)
            ids.append(self.vocabulary.tokens.index(longest))
            data = data[len(longest) :]
        return ids


@pytest.mark.parametrize("whitespace", ["compact", "bounded"])
@pytest.mark.parametrize("sampling", [mw.Sampling(0), mw.Sampling(), mw.Sampling(1.3, top_p=0.9, presence_penalty=0.5)])
def test_R34_drafts_change_nothing_but_the_number_of_calls(whitespace: Any, sampling: mw.Sampling) -> None:
    constraint = mw.JsonSchema(KEYED, whitespace=whitespace)
    saved = tokens = 0
    for seed in range(5):
        model = Wordy(seed=seed)
        one, other = (
            mw.generate(model, "p", constraint, sampling=sampling, seed=seed, drafts=drafts, max_tokens=120, logprobs=2)
            for drafts in (True, False)
        )
        assert (one.tokens, one.text, one.finish_reason) == (other.tokens, other.text, other.finish_reason)
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert one.log_weight == pytest.approx(other.log_weight, abs=1e-4)
        for a, b in zip(one.logprobs, other.logprobs, strict=True):
            assert a.token == b.token
            assert (a.masked, a.processed) == pytest.approx((b.masked, b.processed), abs=1e-4)
        assert other.stats.drafted == other.stats.accepted == 0
        assert one.stats.accepted <= one.stats.drafted
        # Each call but the prompt's draws one token at least; what was accepted came without one. A run at the end
        # takes a call of its own, for its probabilities.
        assert one.stats.model_calls <= len(one.tokens) - one.stats.accepted + 1
        assert other.stats.model_calls == len(other.tokens)
        saved += other.stats.model_calls - one.stats.model_calls
        tokens += len(other.tokens)
    assert saved > (0.3 if whitespace == "compact" else 0.03) * tokens


def test_R34_a_schema_with_thirty_forced_tokens() -> None:
    name = "a name of thirty-odd characters"
    schema = {"type": "object", "properties": {name: {"type": "boolean"}}, "required": [name]}
    constraint = mw.JsonSchema({**schema, "additionalProperties": False}, whitespace="compact")
    model = ToyModel()
    quick, slow = (mw.generate(model, "p", constraint, drafts=drafts) for drafts in (True, False))
    assert quick.tokens == slow.tokens
    forced = quick.stats.accepted
    assert forced > 30
    runs = 2
    assert quick.stats.model_calls <= len(quick.tokens) - forced + runs + 1


def test_R34_drafted_samples_follow_the_masked_law() -> None:
    """Two keys of several tokenisations, drafted; the outputs' law is that of the masks, token by token."""
    model = Wordy(scale=0.6)
    grammar = mw.compile(mw.Regex(r'\{"(ab|the )": (12|true)\}'), model.vocabulary)
    truth = enumerate_outputs(model, grammar, model.encode("p"))
    assert len(truth) > 50
    n = 1200
    results = mw.generate(model, ["p"] * n, grammar, seed=list(range(n)), batch_size=4)
    assert sum(r.stats.drafted for r in results) > n
    ids = {tokens: at for at, tokens in enumerate(truth)}
    counts = np.bincount([ids[tuple(r.tokens)] for r in results], minlength=len(ids))
    local = np.array([p for p, _ in truth.values()])
    assert p_value(counts, local) > 1e-3
    # Text that was forced by bytes rather than by tokens would follow another law: one spelling per text.
    texts: dict[bytes, int] = {}
    for tokens in truth:
        text = model.vocabulary.decode(tokens)
        if text not in texts or len(tokens) < len(list(truth)[texts[text]]):
            texts[text] = ids[tokens]
    forced = np.zeros(len(ids))
    for tokens, (p, _) in truth.items():
        forced[texts[model.vocabulary.decode(tokens)]] += p
    assert p_value(counts, forced) < 1e-6


def test_R34_drafts_know_of_least_lengths_and_stop_tokens() -> None:
    model = Wordy(scale=0.5)
    model.bias[[EOS, STOP, ord("#")]] = 2.0
    pattern = mw.Regex(r'(\{"the ab": [a-c]\})+')
    ends = set()
    for seed in range(15):
        one, other = (
            mw.generate(model, "p", pattern, seed=seed, min_tokens=9, stop=[ord("#")], max_tokens=60, drafts=drafts)
            for drafts in (True, False)
        )
        assert (one.tokens, one.finish_reason, one.warnings) == (other.tokens, other.finish_reason, other.warnings)
        assert len(one.tokens) > 9
        assert one.stats.drafted > 0
        ends.add(one.finish_reason)
    assert {"eos", "stop"} <= ends


def test_R34_wrong_drafts_change_nothing() -> None:
    from maskwright.engine import drafts as module

    model, constraint = Wordy(), mw.JsonSchema(KEYED)
    right = mw.generate(model, "p", constraint, seed=3, max_tokens=120)
    random_ = random.Random(0)

    def wrong(row: Any) -> list[int]:
        return [random_.choice([*row.matcher.allowed_tokens(), 5, EOS]) for _ in range(4)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Spans, "__call__", lambda self, row: wrong(row))
        other = mw.generate(model, "p", constraint, seed=3, max_tokens=120)
    assert other.tokens == right.tokens
    assert other.log_weight == pytest.approx(right.log_weight, abs=1e-4)
    assert other.stats.drafted > other.stats.accepted


@pytest.mark.parametrize("drafts", [True, False])
def test_R26_a_step_computes_one_mask_for_each_place(drafts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Milliseconds are measured in tests/bench; here is counted what they are spent on."""
    from maskwright.engine.row import Row

    model, constraint = Wordy(), mw.JsonSchema(KEYED)
    grammar = mw.compile(constraint, model.vocabulary)
    calls: list[int | None] = []

    class Counted:
        constraint = grammar.constraint

        def __init__(self, inner: Any = None) -> None:
            self.inner = inner or grammar.matcher()

        def matcher(self) -> Any:
            return Counted()

        def fork(self) -> Any:
            return Counted(self.inner.fork())

        def fill_mask(self, row: Any, max_tokens: int | None = None) -> None:
            calls.append(max_tokens)
            self.inner.fill_mask(row, max_tokens)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    start = Row._start
    monkeypatch.setattr(Row, "_start", lambda row: setattr(row, "matcher", Counted()) or start(row))
    result = mw.generate(model, "p", constraint, seed=1, max_tokens=90, drafts=drafts)
    assert result.valid
    assert len(result.tokens) > 20
    # One for each token and the first, one for each token of a draft, one more where only EOS is left.
    assert len(result.tokens) <= len(calls) <= len(result.tokens) + result.stats.drafted + 2
    assert result.stats.mask_seconds > 0


GOLDEN = Path(__file__).with_name("golden_texts.json")


def golden() -> dict[str, str]:
    model, found = ToyModel(), {}
    for name, pattern in {"free": None, "word": "[a-z]{8}", "list": r"\[(\d{1,3}(, \d{1,3})*)?\]"}.items():
        for seed in (0, 1, 2**70):
            constraint = None if pattern is None else mw.Regex(pattern)
            sampling = mw.Sampling(1.1, top_k=40, top_p=0.95, presence_penalty=0.1)
            result = mw.generate(model, "p", constraint, sampling=sampling, seed=seed, max_tokens=16)
            found[f"{name} {seed}"] = result.text
    return found


def test_R13_seeds_give_the_texts_that_were_recorded() -> None:
    assert golden() == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_a_torch_generator_is_a_seed_that_moves_on() -> None:
    model = ToyModel()
    texts = [
        [mw.generate(model, "p", seed=generator, max_tokens=9).text for _ in range(3)]
        for generator in (torch.Generator().manual_seed(4), torch.Generator().manual_seed(4))
    ]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 3
    result = mw.generate(model, "p", seed=torch.Generator().manual_seed(4), max_tokens=9)
    assert mw.generate(model, "p", seed=result.manifest["seed"], max_tokens=9).text == texts[0][0]


@pytest.mark.parametrize("include", [False, True])
def test_stop_tokens_end_where_eos_could(include: bool) -> None:
    model = ToyModel()
    model.bias[ord("#")] = 4.0
    free = mw.generate(model, "p", seed=1, max_tokens=200, stop=[ord("#")], include_stop=include)
    assert (free.finish_reason, free.tokens[-1]) == ("stop", ord("#"))
    assert free.text.endswith("#") == include
    assert "#" not in free.text[:-1]
    pattern = r"[a-c]{3,6}"
    ends = set()
    for seed in range(10):
        result = mw.generate(model, "p", mw.Regex(pattern), seed=seed, stop=[ord("#")], include_stop=include)
        assert result.valid
        assert re.fullmatch(pattern, result.text.rstrip("#"))
        ends.add(result.finish_reason)
    assert "stop" in ends
    # In the middle of a text the token is text like any other.
    inside = mw.generate(model, "p", mw.Regex(r"[a-c#]{2,5}!"), seed=1, stop=[ord("#")])
    assert inside.text.endswith("!")


def test_R21_min_tokens_keeps_the_output_going_where_it_can() -> None:
    model = ToyModel()
    model.bias[[EOS, STOP]] = 1e6
    for constraint in (None, mw.Regex("[ab]{2,40}")):
        result = mw.generate(model, "p", constraint, min_tokens=6, max_tokens=30)
        assert (len(result.tokens), result.finish_reason, result.warnings) == (7, "eos", ())
    for pattern, length in (("[abc]{3}", 3), ("", 0)):
        short = mw.generate(model, "p", mw.Regex(pattern), min_tokens=6, max_tokens=30)
        assert (len(short.text), short.valid) == (length, True)
        assert any("min_tokens" in warning for warning in short.warnings)
    budget = mw.generate(model, "p", mw.Regex("[ab]*"), min_tokens=6, max_tokens=4)
    assert (budget.valid, len(budget.tokens), len(budget.warnings)) == (True, 4, 1)


def test_prefixes_begin_the_output() -> None:
    model = ToyModel()
    constraint = mw.JsonSchema(KEYED)
    for seed in range(5):
        result = mw.generate(model, "p", constraint, prefix='{"customer": "a', seed=seed, max_tokens=90)
        assert result.text.startswith('{"customer": "a')
        assert result.valid
        jsonschema.validate(result.value, KEYED)
        chunks = list(mw.stream(model, "p", constraint, prefix='{"customer": "a', seed=seed, max_tokens=90))
        assert "".join(chunk.text for chunk in chunks) == result.text
        assert [token for chunk in chunks for token in chunk.tokens] == result.tokens
    several = mw.generate(model, ["p", "q"], mw.Regex("[a-f]{6}"), prefix=["abc", "f"])
    assert [several[0].text[:3], several[1].text[0]] == ["abc", "f"]
    with pytest.raises(mw.GenerationError, match=r"does not allow the prefix.*token 1 of the prefix"):
        mw.generate(model, "p", mw.Regex("[a-f]{6}"), prefix="ax")


@pytest.mark.parametrize("pattern", [None, "[a-zé€]{30}"])
def test_a_result_that_was_cut_goes_on_as_if_it_had_not_been(pattern: str | None) -> None:
    model = ToyModel()
    constraint = None if pattern is None else mw.Regex(pattern)
    for seed in range(5):
        whole = mw.generate(model, "p", constraint, seed=seed, max_tokens=70)
        if pattern is None:
            first = mw.generate(model, "p", seed=seed, max_tokens=7)
        else:
            stream = mw.stream(model, "p", constraint, seed=seed, max_tokens=70)
            for _ in range(5):
                next(stream)
            stop = iter([False] * 5 + [True] * 99)
            first = mw.generate(model, "p", constraint, seed=seed, max_tokens=70, cancel=Signal(stop))
        second = mw.generate(model, "p", constraint, prefix=first, seed=seed, max_tokens=70 - len(first.tokens))
        assert first.tokens + second.tokens == whole.tokens
        assert second.text == whole.text
        third = mw.generate(model, "p", constraint, prefix=first, seed=seed, max_tokens=70 - len(first.tokens))
        assert third.manifest["prefix"] == first.tokens
        if whole.finish_reason in ("eos", "constraint"):
            with pytest.raises(mw.GenerationError, match="has ended"):
                mw.generate(model, "p", constraint, prefix=whole)


class Signal:
    def __init__(self, answers: Any) -> None:
        self.answers = answers

    def is_set(self) -> bool:
        return next(self.answers)


def test_R45_what_a_processor_raises_ends_its_request_alone() -> None:
    model = ToyModel(scale=0.3)

    def fragile(tokens: Any, logits: torch.Tensor) -> torch.Tensor:
        if len(tokens) == 3 and tokens[0] == ord("a"):
            raise KeyError("a table has no such word")
        return logits

    constraint = mw.Regex("[ab][c-f]{6}")
    seeds = list(range(12))
    expected = mw.generate(model, ["p"] * 12, constraint, seed=seeds)
    assert {r.text[0] for r in expected} == {"a", "b"}
    with pytest.raises(mw.GenerationError, match="processor of this request raised KeyError") as caught:
        mw.generate(model, ["p"] * 12, constraint, seed=seeds, processor=fragile)
    assert isinstance(caught.value.__cause__, KeyError)
    frames = []
    trace = caught.value.__cause__.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "fragile" in frames
    for one, other in zip(expected, caught.value.results, strict=True):
        if one.text[0] == "b":
            assert (other.tokens, other.valid) == (one.tokens, True)
        else:
            assert (other.tokens, other.valid) == (one.tokens[:3], False)


def test_processors_come_before_everything_else() -> None:
    model = ToyModel()

    def only_b(tokens: Any, logits: torch.Tensor) -> torch.Tensor:
        logits[:] = -math.inf
        logits[ord("b")] = 0.0
        return logits

    result = mw.generate(model, "p", mw.Regex("[ab]{5}"), processor=only_b)
    assert result.text == "bbbbb"
    assert result.logprob == pytest.approx(0)
    with pytest.raises(mw.GenerationError, match="probability zero"):
        mw.generate(model, "p", mw.Regex("[ac]{5}"), processor=only_b)


@pytest.mark.parametrize("seed", range(0, 500, 25))
def test_R41_streams_of_random_cases_add_up(seed: int) -> None:
    model = ToyModel(seed=seed)
    for case in range(seed, seed + 25):
        random_ = random.Random(case)
        pattern = random_.choice([None, "([é€ab] ?){4,20}", r"[^\x00]{3,12}", r"(é|€|😀|\n){1,9}"])
        words = ["a ", "é", "€", " ", "ab", "\n\n", "\ufffd", "the", "p"]
        stops: list[Any] = [*random_.sample(words, random_.randint(0, 3)), *random_.sample([EOS, STOP, 32], 1)]
        options: dict[str, Any] = {"seed": case, "max_tokens": 30, "stop": stops, "include_stop": case % 2 == 0}
        constraint = None if pattern is None else mw.Regex(pattern)
        whole = mw.generate(model, "p", constraint, **options)
        chunks = list(mw.stream(model, "p", constraint, **options))
        assert "".join(chunk.text for chunk in chunks) == whole.text
        assert [token for chunk in chunks for token in chunk.tokens] == whole.tokens
        for chunk in chunks[:-1]:
            assert model.vocabulary.decode(chunk.tokens).decode("utf-8", "replace") == chunk.text
            assert chunk.text.count("\ufffd") <= whole.text.count("\ufffd")
        if not options["include_stop"]:
            assert not any(isinstance(s, str) and pattern is None and s in whole.text for s in stops)
