"""The step loop with real constraints and a toy model: batches, budgets, ends, weights (R10-R24, R34 of the engine)."""

import math
import re
import threading

import numpy as np
import pytest
import torch

import maskwright as mw
from engine.models import EOS, STOP, TOKENS, ToyModel
from maskwright.engine.bitsets import only_bit
from maskwright.engine.decode import Decoder
from maskwright.engine.outcome import result_of
from maskwright.engine.request import Request
from maskwright.engine.rng import Stream
from maskwright.engine.sampling import NonFiniteLogitsError, Sampling

PATTERNS = [r"[a-f]{3,9}", r"(\d{1,3}, ){2}\d{1,3}", r"(yes|yes sir|no)", r"\{\"n\": \d+\}", r"x*", r"[é€]{2,5}!"]


@pytest.fixture(scope="module")
def model() -> ToyModel:
    return ToyModel()


def compiled(model: ToyModel, pattern: str | None) -> "mw.CompiledGrammar | None":
    return None if pattern is None else mw.compile(mw.Regex(pattern), model.vocabulary)


def request(
    model: ToyModel, prompt: str, pattern: str | None, seed: int = 0, budget: int = 40, **more: object
) -> Request:
    return Request(tuple(model.encode(prompt)), compiled(model, pattern), Stream(seed), budget, **more)  # type: ignore[arg-type]


def run(model: ToyModel, requests: list[Request], sampling: Sampling = Sampling()) -> list[mw.Result]:  # noqa: B008
    decoder = Decoder(model, requests, sampling)
    decoder.run()
    for row in decoder.rows:
        if row.error is not None:
            raise row.error
    return [result_of(row, {}) for row in decoder.rows]


def some_requests(model: ToyModel, count: int) -> list[Request]:
    patterns = [*PATTERNS, None]
    return [
        request(model, f"prompt {i % 5}", patterns[i % len(patterns)], seed=i, budget=20 + i % 7) for i in range(count)
    ]


@pytest.mark.parametrize("size", [1, 3, 17])
def test_R11_tokens_do_not_depend_on_the_batch(model: ToyModel, size: int) -> None:
    requests = some_requests(model, 17)
    together = [r.tokens for r in run(model, requests)]
    apart = [r.tokens for at in range(0, 17, size) for r in run(model, requests[at : at + size])]
    assert apart == together
    assert [r.tokens for r in run(model, requests[::-1])] == together[::-1]
    assert len({tuple(t) for t in together}) > 10


@pytest.mark.parametrize("sampling", [Sampling(0), Sampling(), Sampling(1.5, top_k=20, top_p=0.9, min_p=0.01)])
def test_R34_forced_tokens_change_nothing_but_the_number_of_calls(sampling: Sampling) -> None:
    model = ToyModel(seed=1)
    pattern = r"\{\"a long name that is forced\": (true|\d\d), \"another one\": [a-c]{2}\}"
    for seed in range(10):
        quick, slow = (
            request(model, "p", pattern, seed=seed, budget=120, forced_runs=forced) for forced in (True, False)
        )
        model.calls.clear()
        (with_runs,) = run(model, [quick], sampling)
        calls = len(model.calls)
        (without,) = run(model, [slow], sampling)
        assert with_runs.tokens == without.tokens
        assert with_runs.logprob == pytest.approx(without.logprob, abs=1e-4)
        assert with_runs.log_weight == pytest.approx(without.log_weight, abs=1e-4)
        assert with_runs.stats.model_calls == calls
        # One call for the prompt and one for each token, less the forced ones, more the last run's for its weight.
        assert calls <= len(with_runs.tokens) - with_runs.stats.drafted + 1
        assert with_runs.stats.drafted > 20
        assert without.stats.drafted == 0


def test_R18_R19_calls_of_short_requests(model: ToyModel) -> None:
    model.calls.clear()
    (none,) = run(model, [request(model, "p", None, budget=0)])
    assert (none.tokens, none.text, none.finish_reason, model.calls) == ([], "", "length", [])
    (one,) = run(model, [request(model, "p", None, budget=1)])
    assert len(one.tokens) == 1
    assert len(model.calls) == 1


def test_R18_more_than_the_context_raises_before_any_forward() -> None:
    model = ToyModel(context_length=30)
    run(model, [request(model, "x" * 10, None, budget=20)])
    model.calls.clear()
    with pytest.raises(mw.GenerationError, match="holds 30"):
        Decoder(model, [request(model, "p", None, budget=5), request(model, "x" * 10, None, budget=21)], Sampling())
    with pytest.raises(mw.GenerationError, match="no tokens"):
        Decoder(model, [request(model, "", None)], Sampling())
    assert model.calls == []


@pytest.mark.parametrize("seed", range(40))
def test_R20_R22_every_output_is_complete_within_its_budget(seed: int) -> None:
    model = ToyModel(seed=seed, scale=1.0 + seed % 4)
    requests, patterns = [], [PATTERNS[(seed + i) % len(PATTERNS)] for i in range(6)]
    for i, pattern in enumerate(patterns):
        grammar = compiled(model, pattern)
        assert grammar is not None
        least = grammar.matcher().min_tokens_to_accept() + 1
        requests.append(request(model, "prompt", pattern, seed=10 * seed + i, budget=least + i % 3))
    for result, pattern, asked in zip(run(model, requests, Sampling(1.5)), patterns, requests, strict=True):
        assert result.valid
        assert re.fullmatch(pattern, result.text)
        assert len(result.tokens) <= asked.max_tokens
        assert result.finish_reason in ("eos", "constraint", "length")
        assert all(t < len(TOKENS) for t in result.tokens[:-1])


def test_R22_an_impossible_budget_names_the_least_that_would_do(model: ToyModel) -> None:
    model.calls.clear()
    with pytest.raises(mw.GenerationError, match=r"it takes 8, .*max_tokens=8") as caught:
        Decoder(model, [request(model, "p", r"xy{6}", budget=7)], Sampling())
    assert caught.value.result is None
    assert model.calls == []
    (result,) = run(model, [request(model, "p", r"xy{6}", budget=8)])
    assert result.text == "xyyyyyy"


@pytest.mark.parametrize("eos", [EOS, STOP])
def test_R21_any_eos_ends_where_the_text_is_complete_and_nowhere_else(eos: int) -> None:
    model = ToyModel()
    model.bias[eos] = 1e6  # the model wants to end at once
    (free,) = run(model, [request(model, "p", None)])
    assert (free.tokens, free.text, free.finish_reason) == ([eos], "", "eos")
    (result,) = run(model, [request(model, "p", r"[a-f]{3,9}")])
    assert (len(result.text), result.tokens[-1], result.finish_reason) == (3, eos, "eos")


def test_R21_where_nothing_can_follow_it_ends_without_a_call(model: ToyModel) -> None:
    model.calls.clear()
    (empty,) = run(model, [request(model, "p", r"")])
    assert (empty.tokens, empty.text, empty.finish_reason, empty.valid, model.calls) == ([], "", "constraint", True, [])
    (three,) = run(model, [request(model, "p", r"[xyz]{3}")])
    assert (len(three.tokens), three.finish_reason) == (3, "constraint")
    assert len(model.calls) == 3


def test_an_end_that_the_budget_brings_is_of_length_and_valid() -> None:
    model = ToyModel()
    model.bias[[EOS, STOP]] = -1e6  # the model never wants to end
    (result,) = run(model, [request(model, "p", r"x*", budget=6)])
    assert (result.text, result.finish_reason, result.valid) == ("xxxxx", "length", True)
    assert len(result.tokens) == 6


def test_R23_neither_the_tail_of_the_logits_nor_special_tokens_come_out() -> None:
    model = ToyModel()
    model.bias[STOP + 1 :] = 1e6
    for pattern in (None, r"[a-f]{3,9}"):
        (result,) = run(model, [request(model, "p", pattern)])
        assert max(result.tokens) <= STOP


class Poisoned(ToyModel):
    """Gives NaN to rows whose second token is ``!``."""

    def _read(self, row: list[int], new: object) -> torch.Tensor:
        logits = super()._read(row, new)  # type: ignore[arg-type]
        return logits * math.nan if len(row) > 5 and row[1] == ord("!") else logits


def test_R24_a_row_that_fails_leaves_the_others_alone() -> None:
    requests = [request(ToyModel(), p, r"[a-f]{5,9}", seed=i) for i, p in enumerate(["pq", "p!", "pr"])]
    expected = [r.tokens for r in run(ToyModel(), requests)]
    decoder = Decoder(Poisoned(), requests, Sampling())
    decoder.run()
    assert isinstance(decoder.rows[1].error, NonFiniteLogitsError)
    assert [result_of(decoder.rows[i], {}).tokens for i in (0, 2)] == [expected[0], expected[2]]
    assert not result_of(decoder.rows[1], {}).valid


@pytest.mark.parametrize("temperature", [0.0, 0.6, 1.0])
def test_R10_logprob_equals_rescoring_in_one_forward(model: ToyModel, temperature: float) -> None:
    bias = {ord("b"): 1.5}
    for asked in some_requests(model, 14):
        (result,) = run(model, [asked], Sampling(temperature, logit_bias=bias))
        if not result.tokens:
            continue
        cache = model.new_cache(1)
        (logits,) = model.forward_all([[*asked.prompt, *result.tokens[:-1]]], cache)
        logits = logits[len(asked.prompt) - 1 :, : model.vocabulary.size].double()
        logits[:, ord("b")] += 1.5
        p = torch.log_softmax(logits / (temperature or 1.0), -1)
        total = p[range(len(result.tokens)), result.tokens].sum().item()
        assert result.logprob == pytest.approx(total, abs=1e-5)
        assert result.log_weight == 0 if asked.constraint is None else result.log_weight <= 0


Outputs = dict[tuple[int, ...], tuple[float, float]]


def enumerate_outputs(model: ToyModel, grammar: "mw.CompiledGrammar", prompt: list[int]) -> Outputs:
    """All outputs of a finite language with their probability under the masks and their weight, by brute force."""
    found: Outputs = {}

    def visit(matcher: mw.Matcher, tokens: tuple[int, ...], local: float, weight: float) -> None:
        allowed = matcher.allowed_tokens()
        if matcher.is_finished or set(allowed) <= {EOS, STOP}:
            found[tokens] = (local, weight)
            return
        logits = model.forward([[*prompt, *tokens]], model.new_cache(1))[0, : model.vocabulary.size]
        p = torch.softmax(logits.double(), -1)
        kept = float(p[allowed].sum())
        for token in allowed:
            child = matcher.fork()
            assert child.accept(token)
            visit(child, (*tokens, token), local * float(p[token]) / kept, weight * kept)

    visit(grammar.matcher(), (), 1.0, 1.0)
    return found


def test_R08_R10_outputs_follow_the_masked_distribution_and_weights_estimate_the_mass() -> None:
    model, n = ToyModel(scale=0.5), 3000
    grammar = mw.compile(mw.Regex("(a|ab|12|ab12)"), model.vocabulary)
    prompt = model.encode("p")
    truth = enumerate_outputs(model, grammar, prompt)
    assert len(truth) > 8
    assert sum(local for local, _ in truth.values()) == pytest.approx(1)
    results = run(model, [Request(tuple(prompt), grammar, Stream(i), 10) for i in range(n)])
    counts = {tokens: 0 for tokens in truth}
    for result in results:
        counts[tuple(result.tokens)] += 1
        assert math.exp(result.log_weight) == pytest.approx(truth[tuple(result.tokens)][1], rel=1e-4)
    statistic = sum((counts[t] - n * p) ** 2 / (n * p) for t, (p, _) in truth.items() if n * p >= 5)
    degrees = sum(n * p >= 5 for p, _ in truth.values()) - 1
    assert statistic < degrees + 4 * math.sqrt(2 * degrees)
    mass = sum(local * weight for local, weight in truth.values())
    weights = np.exp([result.log_weight for result in results])
    assert abs(weights.mean() - mass) < 4 * weights.std() / math.sqrt(n)


def test_stop_strings_end_free_text_and_stay_out_of_it(model: ToyModel) -> None:
    (free,) = run(model, [request(model, "p", None, budget=60)])
    stop = free.text[7:9]
    for include in (False, True):
        (result,) = run(model, [request(model, "p", None, budget=60, stops=(stop,), include_stop=include)])
        cut = free.text.index(stop)
        assert result.finish_reason == "stop"
        assert result.text == free.text[: cut + (len(stop) if include else 0)]
        assert result.tokens == free.tokens[: len(result.tokens)]
        assert stop in model.vocabulary.decode(result.tokens).decode("utf-8", "replace")


@pytest.mark.parametrize("seed", range(20))
def test_b6_a_stop_string_never_leaves_an_incomplete_text(seed: int) -> None:
    model = ToyModel(seed=seed, scale=1.0)
    pattern = r"\[([ab] ){2,20}\]( [ab]){0,20}"
    (result,) = run(model, [request(model, "p", pattern, seed=seed, budget=80, stops=("b ", " b"))])
    assert result.valid
    assert re.fullmatch(pattern, result.text)
    if result.finish_reason == "stop":
        assert result.text.endswith("]") or result.text[-2:] == " a"


def test_R07_bias_that_forbids_all_that_is_allowed_has_its_own_error(model: ToyModel) -> None:
    requests = [request(model, "p", r"xy{3}z")]
    for token in (ord("x"), ord("z")):  # drawn and forced alike
        with pytest.raises(mw.GenerationError, match="logit_bias forbids"):
            run(model, requests, Sampling(logit_bias={token: -math.inf}))


def test_R42_closing_the_steps_cancels() -> None:
    model = ToyModel()
    decoder = Decoder(model, [request(model, "p", r"[a-f]{20,30}"), request(model, "q", None)], Sampling())
    steps = decoder.steps()
    for _ in range(3):
        next(steps)
    steps.close()
    calls = len(model.calls)
    results = [result_of(row, {}) for row in decoder.rows]
    assert [r.finish_reason for r in results] == ["cancelled", "cancelled"]
    assert not results[0].valid
    assert results[0].text
    assert list(steps) == []
    assert len(model.calls) == calls


def test_R42_a_signal_cancels_before_the_next_step() -> None:
    model, signal = ToyModel(), threading.Event()
    decoder = Decoder(model, [request(model, "p", r"[a-f]{20,30}")], Sampling(), signal.is_set)
    steps = decoder.steps()
    next(steps)
    signal.set()
    assert list(steps) == []
    assert len(model.calls) == 1
    assert decoder.rows[0].finish_reason == "cancelled"


def test_samples_of_one_prompt_share_its_forward(model: ToyModel) -> None:
    model.calls.clear()
    run(model, [request(model, "the prompt", r"[a-f]{3}", seed=i) for i in range(5)])
    assert model.calls[0] == (len("the prompt"),)
    assert {len(call) for call in model.calls[1:]} <= {1, 2, 3, 4, 5}


def test_only_bit() -> None:
    row = np.zeros(3, dtype=np.uint32)
    assert only_bit(row) is None
    for bit in (0, 31, 32, 95):
        row[:] = 0
        row[bit // 32] = np.uint32(1 << (bit % 32))
        assert only_bit(row) == bit
    row[0] |= np.uint32(1)
    assert only_bit(row) is None
    row[:] = (3, 0, 0)
    assert only_bit(row) is None
