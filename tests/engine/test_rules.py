"""All rules of sampling against a float64 reference, the law of the draws and its wrong variants (R1-R10)."""

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

import maskwright as mw
from engine.models import ToyModel
from engine.reference_rules import reference
from engine.statistics import p_value
from engine.test_sampling import bitmask, kept_ids, probabilities
from maskwright.engine import draw as draw_module
from maskwright.engine import truncation
from maskwright.engine.draw import Draw, draw
from maskwright.engine.rng import Stream
from maskwright.engine.sampling import ORDER, TRUNCATIONS, Sampling
from maskwright.engine.truncation import keep_epsilon, keep_eta, keep_top_p, keep_typical


def ours(logits: np.ndarray, sampling: Sampling, allowed: list[int], seen: dict[int, int]) -> np.ndarray:
    free, _ = draw_module.before_mask(torch.from_numpy(logits).unsqueeze(0), sampling, [seen])
    masked = draw_module.mask_logits(free, bitmask([allowed], len(logits)))
    final = truncation.truncate(masked, sampling, draw_module._after_mask(sampling))
    return torch.softmax(final.double(), -1)[0].numpy()


def random_sampling(rng: np.random.Generator, size: int) -> Sampling:
    truncations = list(TRUNCATIONS)
    rng.shuffle(truncations)
    after = ["temperature", *truncations]
    if rng.random() < 0.5:
        rng.shuffle(after)
    before = ["logit_bias", "penalties"][:: int(rng.choice([1, -1]))]
    return Sampling(
        temperature=float(rng.choice([0.3, 0.7, 1.0, 1.5])),
        top_k=int(rng.choice([0, 1, 5, 40])),
        top_p=float(rng.choice([0.5, 0.9, 0.97, 1.0])),
        min_p=float(rng.choice([0.0, 0.02, 0.1])),
        typical_p=float(rng.choice([0.3, 0.8, 1.0, 1.0])),
        eta=float(rng.choice([0.0, 0.002, 0.1])),
        epsilon=float(rng.choice([0.0, 0.001, 0.05])),
        repetition_penalty=float(rng.choice([1.0, 1.3, 0.8])),
        frequency_penalty=float(rng.choice([0.0, 0.4, -0.2])),
        presence_penalty=float(rng.choice([0.0, 0.7])),
        penalty_space=str(rng.choice(["logit", "logprob"])),  # type: ignore[arg-type]
        penalty_exempt=rng.choice(size, 2).tolist(),
        logit_bias={int(i): float(rng.normal()) for i in rng.choice(size, 2, replace=False)},
        order=[*before, "mask", *after] if rng.random() < 0.7 else ORDER,
    )


@pytest.mark.parametrize("seed", range(200))
def test_R01_any_order_of_all_rules_equals_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 600))
    logits = (rng.normal(size=size) * rng.choice([0.3, 2, 6])).astype(np.float32)
    allowed = sorted(rng.choice(size, rng.integers(1, size + 1), replace=False).tolist())
    seen = dict(Counter(rng.choice(size, 8).tolist()))
    sampling = random_sampling(rng, size)
    want, got = reference(logits, sampling, allowed, seen), ours(logits, sampling, allowed, seen)
    assert np.flatnonzero(want).tolist() == np.flatnonzero(got).tolist()
    np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (("mask", "nonsense"), "it must name some of"),
        (("mask", "mask"), "each once"),
        (("temperature",), "leaves out mask"),
        (("mask", "temperature"), "leaves out top_p"),
        (("mask", "logit_bias", "temperature", "top_p"), "come before the mask"),
        (("top_p", "mask", "temperature"), "come before the mask"),
    ],
)
def test_R01_orders_that_are_refused(order: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Sampling(top_p=0.9, order=order)


def test_R01_an_order_may_leave_out_what_is_off() -> None:
    sampling = Sampling(top_p=0.5, order=("mask", "top_p", "temperature"))
    assert Sampling(**sampling.as_dict()) == sampling
    assert hash(Sampling(**json.loads(json.dumps(sampling.as_dict())))) == hash(sampling)


def test_R02_the_way_of_a_device_keeps_the_same_nucleus(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 3000)).astype(np.float32)).round(decimals=1)
    for share in (0.01, 0.5, 0.95):
        here = keep_top_p(logits, share)
        monkeypatch.setattr(truncation, "on_host", lambda _: False)
        assert torch.equal(keep_top_p(logits, share), here)
        monkeypatch.undo()


def test_R04_typical_eta_and_epsilon_by_hand() -> None:
    p = [0.5, 0.25, 0.125, 0.125]  # entropy 1.75 bits; surprises 1, 2, 3, 3 bits
    x = probabilities(*p)
    assert kept_ids(keep_typical(x, 0.2)) == [1]
    assert kept_ids(keep_typical(x, 0.26)) == [0, 1]
    assert kept_ids(keep_typical(x, 0.76)) == [0, 1, 2]
    assert kept_ids(keep_epsilon(x, 0.2)) == [0, 1]
    assert kept_ids(keep_epsilon(x, 0.9)) == [0]  # the most probable stays
    # exp(-entropy) = 2 ** -1.75 = 0.297; sqrt(0.5) * 0.297 = 0.21
    assert kept_ids(keep_eta(x, 0.5)) == [0, 1]
    assert kept_ids(keep_eta(x, 0.1)) == [0, 1, 2, 3]
    flat = torch.zeros(1, 64)
    for rule in (keep_typical(flat, 1e-9), keep_eta(flat, 0.99), keep_epsilon(flat, 0.99)):
        assert len(kept_ids(rule)) >= 1


@pytest.mark.parametrize(
    "bad",
    [
        {"typical_p": 0.0}, {"typical_p": 1.1}, {"eta": -0.1}, {"eta": 1.0}, {"epsilon": 1.0}, {"epsilon": math.nan},
        {"repetition_penalty": 0.0}, {"repetition_penalty": math.inf}, {"frequency_penalty": math.nan},
        {"presence_penalty": math.inf}, {"penalty_scope": "prompt"}, {"penalty_space": "p"},
        {"lazy_mask": True, "top_k": 3},
    ],
)  # fmt: skip
def test_R05_bad_values_of_further_rules_raise(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Sampling(**bad)


def law(sampling: Sampling, logits: np.ndarray, allowed: list[int], seen: dict[int, int], seed: int, n: int) -> Any:
    rows = torch.from_numpy(logits).expand(n, len(logits))
    mask = bitmask([allowed], len(logits)).expand(n, -1)
    drawn = draw(rows, sampling, mask, [Stream(seed)] * n, list(range(n)), [seen] * n)
    return np.bincount([d.token for d in drawn if isinstance(d, Draw)], minlength=len(logits))


FULL = Sampling(
    temperature=0.6, top_k=24, top_p=0.9, min_p=0.015, logit_bias={3: 1.0, 23: -0.5}, typical_p=0.95, eta=0.004,
    epsilon=0.006, repetition_penalty=1.4, frequency_penalty=0.3, presence_penalty=0.2, penalty_exempt=(37,),
)  # fmt: skip


def mutants(logits: np.ndarray, allowed: list[int], seen: dict[int, int]) -> dict[str, np.ndarray]:
    """Distributions of wrong samplers."""
    everything = list(range(len(logits)))

    def changed(**values: Any) -> np.ndarray:
        return reference(logits, Sampling(**{**FULL.as_dict(), **values}), allowed, seen)

    late = [*ORDER[:2], *ORDER[3:]]
    unmasked = reference(logits, FULL, everything, seen, late)
    outside = sum(unmasked[i] for i in everything if i not in allowed)
    inside = np.array([unmasked[i] if i in allowed else 0.0 for i in everything])
    return {
        "another temperature": changed(temperature=1.0),
        "no penalties": changed(repetition_penalty=1.0, frequency_penalty=0.0, presence_penalty=0.0),
        "exempt tokens penalised": changed(penalty_exempt=()),
        "counts ignored": reference(logits, FULL, allowed, dict.fromkeys(seen, 1)),
        "no bias": changed(logit_bias={}),
        "mask after truncation": inside / inside.sum(),
        # llama.cpp's way: draw without the mask, and again with it first where the token is not allowed.
        "draw, then draw again": inside + outside * reference(logits, FULL, allowed, seen),
        "temperature last": changed(order=[*(r for r in ORDER if r != "temperature"), "temperature"]),
    }


@pytest.mark.parametrize("seed", range(5))
def test_R08_draws_with_every_knob_on_follow_the_law_and_no_mutant(seed: int) -> None:
    rng = np.random.default_rng(7)
    logits = rng.normal(size=50).astype(np.float32)
    best = np.argsort(-logits)
    allowed = sorted(best[[1, 3, 4, 6, 9, 10, 12, 14, 17, 19, 21, 24, 27, 30, 33, 36]].tolist())
    seen = {int(best[1]): 3, int(best[9]): 2, 2: 2, int(best[3]): 1, int(best[4]): 1}
    counts = law(FULL, logits, allowed, seen, seed, 20_000)
    truth = reference(logits, FULL, allowed, seen)
    assert (truth > 0).sum() > 5
    assert p_value(counts, truth) > 1e-3
    for name, wrong in mutants(logits, allowed, seen).items():
        assert p_value(counts, wrong) < 1e-6, name


def test_R06_penalties_follow_the_output_or_all_that_was_read() -> None:
    """Greedy with penalties, step by step against the reference."""
    for scope in ("output", "all"):
        model = ToyModel(seed=4)
        sampling = Sampling(0, repetition_penalty=1.5, frequency_penalty=0.4, presence_penalty=0.3,
                            penalty_scope=scope, penalty_exempt=[ord("b")])  # type: ignore[arg-type]  # fmt: skip
        grammar = mw.compile(mw.Regex("[a-h]{30}"), model.vocabulary)
        result = mw.generate(model, "abcabc", grammar, sampling=sampling, drafts=False)
        prompt, tokens, matcher = model.encode("abcabc"), [], grammar.matcher()
        for token in result.tokens:
            logits = model.forward([[*prompt, *tokens]], model.new_cache(1))[0, : model.vocabulary.size].numpy()
            seen = Counter([*prompt, *tokens] if scope == "all" else tokens)
            warm = Sampling(**{**sampling.as_dict(), "temperature": 1.0})
            p = reference(logits, warm, matcher.allowed_tokens(), seen)
            assert token == int(p.argmax())
            assert matcher.accept(token)
            tokens.append(token)
        unpenalised = mw.generate(model, "abcabc", grammar, strategy="greedy")
        assert result.tokens != unpenalised.tokens


@pytest.mark.parametrize(
    "penalty", [{"repetition_penalty": 1e6}, {"frequency_penalty": 1e20}, {"presence_penalty": -1e6}]
)
def test_R06_with_any_penalty_every_token_is_one_that_the_mask_allows(penalty: dict[str, float]) -> None:
    model = ToyModel()
    for seed in range(20):
        result = mw.generate(model, "p", mw.Regex(r"(ab|ba|[12]{2}){5,9}"), sampling=Sampling(**penalty), seed=seed)
        assert result.valid
        assert mw.compile(mw.Regex(r"(ab|ba|[12]{2}){5,9}"), model.vocabulary).matcher().accept_text(result.text)


def test_R10_raw_masked_and_processed_logprobs_are_distributions() -> None:
    rng = np.random.default_rng(3)
    size, allowed = 40, [1, 4, 5, 9, 20, 33, 39]
    logits = torch.from_numpy(rng.normal(size=(1, size)).astype(np.float32))
    sampling = Sampling(0.7, top_k=5, logit_bias={4: 1.0})
    found: dict[int, Draw] = {}
    for position in range(200):
        (each,) = draw(logits, sampling, bitmask([allowed], size), [Stream(1)], [position], details=size)
        assert isinstance(each, Draw)
        found[each.token] = each
    one = next(iter(found.values()))
    assert sum(math.exp(a.raw) for a in one.alternatives) == pytest.approx(1, abs=1e-6)
    assert sum(math.exp(a.masked) for a in one.alternatives) == pytest.approx(1, abs=1e-6)
    assert {a.token for a in one.alternatives if a.masked > -math.inf} == set(allowed)
    assert [a.raw for a in one.alternatives] == sorted((a.raw for a in one.alternatives), reverse=True)
    assert len(found) == 5
    assert sum(math.exp(each.processed) for each in found.values()) == pytest.approx(1, abs=1e-6)
    raw = torch.log_softmax(logits[0].double(), -1)
    for token, each in found.items():
        assert each.raw == pytest.approx(float(raw[token]), abs=1e-6)
        assert each.masked == pytest.approx(float(raw[token] - raw[allowed].logsumexp(-1)), abs=1e-6)


@pytest.mark.parametrize("sampling", [Sampling(0), Sampling(0.7, top_k=30, frequency_penalty=0.2), Sampling(1.3)])
def test_R10_the_logprobs_of_a_result_equal_rescoring(sampling: Sampling) -> None:
    model = ToyModel()
    pattern = mw.Regex(r'\{"a": ([a-f]{3}|\d+), "name": "[a-z]{2,6}"\}')
    grammar = mw.compile(pattern, model.vocabulary)
    for seed in range(5):
        result = mw.generate(model, "p", grammar, sampling=sampling, seed=seed, logprobs=3, max_tokens=60)
        assert result.logprobs is not None
        assert [each.token for each in result.logprobs] == result.tokens
        (logits,) = model.forward_all([[*model.encode("p"), *result.tokens[:-1]]], model.new_cache(1))
        raw = torch.log_softmax(logits[:, : model.vocabulary.size].double(), -1)
        matcher = grammar.matcher()
        for at, each in enumerate(result.logprobs):
            allowed = matcher.allowed_tokens()
            assert each.raw == pytest.approx(float(raw[at, each.token]), abs=1e-5)
            if len(result.tokens) < 50:  # no token was kept out by the budget
                masked = float(raw[at, each.token] - raw[at, allowed].logsumexp(-1))
                assert each.masked == pytest.approx(masked, abs=1e-5)
            assert each.processed <= 1e-9
            assert len(each.alternatives) == 3
            assert each.alternatives[0].raw == pytest.approx(float(raw[at].max()), abs=1e-5)
            matcher.accept(each.token)
        assert result.log_weight == pytest.approx(sum(each.kept for each in result.logprobs), abs=1e-9)
        assert result.logprob == pytest.approx(sum(each.logprob for each in result.logprobs), abs=1e-9)


class Reads(TorchFunctionMode):
    """Counts where numbers of float tensors, or of tensors made from them, are read by Python."""

    NAMES = frozenset({"tolist", "item", "__bool__", "__int__", "__float__", "__index__", "cpu", "numpy", "nonzero"})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        # Masks (int32) are made on the host and never read back.
        if name in self.NAMES and isinstance(args[0], torch.Tensor) and args[0].dtype != torch.int32:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "greedy"},
        {"seed": 1},
        {"seed": 1, "logprobs": 4, "sampling": FULL},
        {"seed": 1, "sampling": Sampling(top_p=0.7, typical_p=0.9, penalty_scope="all", presence_penalty=1.0)},
    ],
)
@pytest.mark.parametrize("pattern", [None, r'\{"key": "[a-z ]{4,20}", "other": (true|\d{3})\}'])
def test_one_host_synchronisation_a_step(
    options: dict[str, Any], pattern: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (truncation, draw_module):
        monkeypatch.setattr(module, "on_host", lambda _: False)  # the way of other devices
    model = ToyModel()
    constraint = None if pattern is None else mw.Regex(pattern)
    with Reads() as reads:
        result = mw.generate(model, ["p", "qq"], constraint, max_tokens=40, **options)[0]
    assert len(result.tokens) > 10
    assert reads.found == ["tolist"] * len(model.calls)


def test_the_way_of_a_device_draws_the_same_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pattern = ToyModel(), mw.Regex("[a-z ]{4,20}")
    for sampling in (Sampling(), FULL):
        here = mw.generate(model, "p", pattern, seed=2, sampling=sampling).tokens
        for module in (truncation, draw_module):
            monkeypatch.setattr(module, "on_host", lambda _: False)
        assert mw.generate(model, "p", pattern, seed=2, sampling=sampling).tokens == here
        monkeypatch.undo()


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.5])
def test_R25_lazy_masks_give_the_same_tokens(temperature: float) -> None:
    patterns = [r"[a-f]{3,9}", r"x*", r"(\d{1,3}, ){2}\d{1,3}", r'"[^"]{0,40}"', r"[\s\S]*", r"\w{2}é?"]
    fills = 0
    for seed in range(10):
        model = ToyModel(seed=seed, scale=2.0)
        for pattern in patterns:
            grammar = mw.compile(mw.Regex(pattern), model.vocabulary)
            budget = grammar.matcher().min_tokens_to_accept() + 2 + seed % 20
            arguments: Any = {"max_tokens": budget, "seed": seed, "drafts": False}
            eager = mw.generate(model, "p", grammar, sampling=Sampling(temperature), **arguments)
            lazy = mw.generate(model, "p", grammar, sampling=Sampling(temperature, lazy_mask=True), **arguments)
            assert (lazy.tokens, lazy.text, lazy.finish_reason) == (eager.tokens, eager.text, eager.finish_reason)
            assert lazy.valid
            assert not lazy.tokens or math.isnan(lazy.log_weight)
            fills += len(eager.tokens)
    assert fills > 300
