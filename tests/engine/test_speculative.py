"""Speculative decoding (R27-R33, R35 of the engine): the law of the output, by the accept test and through the engine.

The variants of the accept test that look right and are not are here as mutants; each must be caught.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

import maskwright as mw
from engine.models import EOS, STOP, TableModel, ToyModel
from engine.statistics import p_value
from engine.test_decode import Outputs, enumerate_outputs
from maskwright.engine.batch import decoder_for
from maskwright.engine.decode import Decoder
from maskwright.engine.requests import build_requests, rules
from maskwright.engine.rng import Stream
from maskwright.engine.speculation import verify
from maskwright.engine.speculation.tally import predicted_tokens
from maskwright.engine.speculation.verify import accepts, residual, tried

N = 200_000
PATTERN = r"[a-f]{3,19}( \d{2,5}){2}"


def opposed() -> ToyModel:
    """A draft that wants what no constraint here allows, and to end at once."""
    model = TableModel(seed=9)
    model.bias[[0, 1, 255]] = 60.0
    model.bias[[EOS, STOP]] = 59.0
    return model


DRAFTS: dict[str, Callable[[], Any]] = {
    "the same model": lambda: TableModel(0),
    "another model": lambda: TableModel(1),
    "lookup": lambda: mw.PromptLookup(shortest=1),
    "trigram": mw.NGram,
    "bigram of a text": lambda: mw.NGram(2, "abcdef 12 34 abc ede 123"),
    "always invalid": opposed,
}


def outputs(
    model: Any, constraint: Any, strategy: Any = None, prompts: Sequence[str] = ("pab abc",), **options: Any
) -> Any:
    return mw.generate(model, list(prompts), constraint, strategy=strategy, **{"max_tokens": 40, **options})


def tokens(results: list[mw.Result]) -> list[list[int]]:
    return [result.tokens for result in results]


# --- the accept test on a toy


Toy = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # p, q and the mask, float64 and bool (V,)


def toy(seed: int = 0) -> Toy:
    generator = torch.Generator().manual_seed(seed)
    p, q = (torch.softmax(1.2 * torch.randn(8, generator=generator, dtype=torch.float64), -1) for _ in range(2))
    return p, q, torch.tensor([True, True, False, True, False, True, True, False])


def within(p: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    left = torch.where(mask, p, 0.0)
    return left / left.sum()


def drawn(p: torch.Tensor, seed: int) -> torch.Tensor:
    """One token per row of probabilities ``(n, V)``."""
    noise = torch.rand(len(p), 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (p.cumsum(-1) < noise * p.sum(-1, keepdim=True)).sum(-1)


Test = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def rounds(p: torch.Tensor, q: torch.Tensor, seed: int, test: Test = tried, tries: int = 1) -> Any:
    """How often each token comes, where drafts from q are tried against p by a test."""
    drafts = torch.stack([drawn(q.expand(N, -1), 31 * seed + 7 + i) for i in range(tries)], -1)
    u = torch.rand(N, tries, generator=torch.Generator().manual_seed(1000 + seed), dtype=torch.float64)
    after = test(p.expand(N, -1), q.expand(N, -1), drafts, u)
    return np.bincount(drawn(after, 17 * seed + 3).numpy(), minlength=len(p))


def test_R28_the_toy_of_the_textbook() -> None:
    p = torch.tensor([0.5, 0.2, 0.2, 0.1], dtype=torch.float64)
    q = torch.full((4,), 0.25, dtype=torch.float64)
    assert float(torch.minimum(p, q).sum()) == pytest.approx(0.75)
    for seed in range(5):
        drafts, u = drawn(q.expand(N, -1), seed), torch.rand(N, generator=torch.Generator().manual_seed(99 + seed))
        rate = float(accepts(p.expand(N, -1), q.expand(N, -1), drafts, u.double()).double().mean())
        assert abs(rate - 0.75) < 4.5 * math.sqrt(0.75 * 0.25 / N)
        assert p_value(rounds(p, q, seed), p.numpy()) > 1e-3
    assert residual(p[None], q[None])[0].tolist() == pytest.approx([1, 0, 0, 0])


@pytest.mark.parametrize("tries", [1, 2, 3])
@pytest.mark.parametrize("variant", ["both", "target"])
def test_R28_the_law_of_the_accept_test(variant: str, tries: int) -> None:
    for seed in range(5):
        p, q, mask = toy(seed)
        target = within(p, mask)
        draft = within(q, mask) if variant == "both" else q
        assert p_value(rounds(target, draft, seed, tries=tries), target.numpy()) > 1e-3


def mutants() -> Iterator[tuple[str, Any]]:
    """The four wrong variants of the specification: (what drafts are drawn from, test)."""
    p, q, mask = toy()
    p_mask, q_mask = within(p, mask), within(q, mask)

    def by(ratio: torch.Tensor, rest: torch.Tensor) -> Test:
        def test(left: torch.Tensor, _: torch.Tensor, drafts: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
            accepted = accepts(left, ratio.expand(N, -1), drafts[:, 0], u[:, 0])
            sure = torch.nn.functional.one_hot(drafts[:, 0], 8).double()
            return torch.where(accepted.unsqueeze(-1), sure, rest.expand(N, -1))

        return test

    def over(left: torch.Tensor) -> torch.Tensor:
        return left.clamp(min=0) / left.clamp(min=0).sum()

    yield "right", (q_mask, by(q_mask, over(p_mask - q_mask)))
    yield "drafts without the mask, ratio with it", (q, by(q_mask, over(p_mask - q_mask)))
    yield "residual without the mask", (q_mask, by(q_mask, over(p - q)))
    yield "drafts with the mask, ratio without it", (q_mask, by(q, over(p_mask - q)))
    yield "residual masked after the difference", (q, by(q, over(torch.where(mask, p - q, 0.0))))


@pytest.mark.parametrize(("name", "mutant"), list(mutants()), ids=[name for name, _ in mutants()])
def test_R28_wrong_variants_are_caught(name: str, mutant: Any) -> None:
    draft, test = mutant
    p, _, mask = toy()
    value = p_value(rounds(within(p, mask), draft, 0, test), within(p, mask).numpy())
    assert value > 1e-3 if name == "right" else value < 1e-6


@pytest.mark.parametrize("u", [0.0, 2.0**-53, 1 - 2.0**-24])
def test_R29_the_test_is_strict(u: float) -> None:
    p, q = torch.tensor([[0.0, 1.0]]).double(), torch.tensor([[0.5, 0.5]]).double()
    refused, taken = torch.tensor([0]), torch.tensor([1])
    uniform = torch.tensor([u]).double()
    assert not bool(accepts(p, q, refused, uniform))
    assert bool(accepts(p, q, taken, uniform))
    assert tried(p, q, refused[None], uniform[None])[0].tolist() == [0, 1]
    if u == 0:  # the usual way to write it lets a token of probability 0 pass
        assert bool(uniform * q[0, 0] <= p[0, 0])


@pytest.mark.parametrize("u", [0.0, 1 - 2.0**-24])
def test_R29_drafts_of_probability_zero_never_come_out(u: float, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Stream.uniforms

    def fixed(self: Stream, position: int, count: int) -> Any:
        return np.full(count, u) if self.channel == verify.ACCEPT else inner(self, position, count)

    monkeypatch.setattr(Stream, "uniforms", fixed)
    for seed in range(8):
        how = mw.Speculative(opposed(), gamma=3, variant="target", width=1 + seed % 2)
        (result,) = outputs(TableModel(), mw.Regex(PATTERN), how, seed=seed)
        assert re.fullmatch(PATTERN, result.text)
        assert result.stats.speculation.windows > 0


def test_R30_where_both_are_the_same_all_is_accepted_and_nothing_divided_by_zero() -> None:
    p = torch.tensor([[0.25, 0.75, 0.0]]).double()
    for other in (p, p * (1 + 1e-15), p / (1 + 2e-16)):
        assert torch.allclose(residual(p, other), p)
        assert bool(residual(p, other).isfinite().all())
    for variant, constraint in itertools.product(("both", "coupled"), (mw.Regex(PATTERN), None)):
        how = mw.Speculative(TableModel(), gamma=4, variant=variant)
        (result,) = outputs(TableModel(), constraint, how, seed=3)
        assert result.stats.speculation.acceptance == 1


# --- through the engine


@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("draft", DRAFTS)
def test_R27_greedy_outputs_are_those_without_drafts(draft: str, constrained: bool) -> None:
    constraint = mw.Regex(PATTERN) if constrained else None
    prompts = ["pab abc", "12 34 12"]
    plain = outputs(TableModel(), constraint, prompts=prompts)
    ways = [(1 + gamma, "both", 1) for gamma in range(8)] + [(3, "target", 2), (4, "coupled", 3)]
    for gamma, variant, width in ways:
        how = mw.Speculative(DRAFTS[draft](), gamma=gamma, variant=variant, width=width)
        found = outputs(TableModel(), constraint, how, prompts)
        assert tokens(found) == tokens(plain)
        for one, other in zip(found, plain, strict=True):
            assert (one.text, one.finish_reason, one.valid) == (other.text, other.finish_reason, other.valid)
            assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
            assert one.log_weight == pytest.approx(other.log_weight, abs=1e-4)


@pytest.fixture(scope="module")
def language() -> tuple[mw.CompiledGrammar, Outputs]:
    model = TableModel()
    grammar = mw.compile(mw.Regex("[ab]{3,4}1?"), model.vocabulary)
    return grammar, enumerate_outputs(model, grammar, model.encode("p"))


def law(language: tuple[mw.CompiledGrammar, Outputs], how: mw.Speculative, **options: Any) -> float:
    """The p-value of outputs under the law of the masks."""
    grammar, truth = language
    n, ids = 700, {output: at for at, output in enumerate(truth)}
    results = mw.generate(
        TableModel(), ["p"] * n, grammar, seed=list(range(n)), strategy=how, max_tokens=10, batch_size=200, **options
    )
    assert sum(result.stats.speculation.tested for result in results) > n
    counts = np.bincount([ids[tuple(result.tokens)] for result in results], minlength=len(ids))
    return p_value(counts, np.array([p for p, _ in truth.values()]))


WAYS: list[Any] = [("another model", "both", 1), ("another model", "target", 2), ("trigram", "both", 2)]
MORE = [("another model", "target", 1), ("another model", "both", 3), ("another model", "coupled", 2)]
MORE += [("bigram of a text", "both", 1), ("trigram", "target", 2), ("the same model", "target", 1)]
WAYS += [pytest.param(*way, marks=pytest.mark.slow) for way in MORE]


@pytest.mark.parametrize(("draft", "variant", "width"), WAYS)
def test_R28_outputs_follow_the_masked_law(language: Any, draft: str, variant: Any, width: int) -> None:
    assert law(language, mw.Speculative(DRAFTS[draft](), gamma=2, variant=variant, width=width)) > 1e-3


FAULTS: dict[str, Any] = {
    "residual": lambda p, q: p,
    "accepts": lambda p, q, drafts, u: u < p.gather(-1, drafts.unsqueeze(-1)).squeeze(-1),
}


@pytest.mark.parametrize("fault", ["residual", pytest.param("accepts", marks=pytest.mark.slow)])
def test_R28_planted_faults_show_in_the_outputs(
    language: Any, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, fault, FAULTS[fault])
    assert law(language, mw.Speculative(TableModel(1), gamma=2)) < 1e-6


SAMPLINGS = [mw.Sampling(1.3, top_p=0.9), mw.Sampling(presence_penalty=1.0, penalty_scope="all", top_k=9)]


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_outputs_of_certain_drafts_are_those_without_under_every_rule(sampling: mw.Sampling) -> None:
    for draft, variant in (("lookup", "both"), ("another model", "coupled"), ("the same model", "coupled")):
        for constraint, seed in itertools.product((mw.Regex(PATTERN), None), range(2)):
            how = mw.Speculative(DRAFTS[draft](), variant=variant, width=1 + seed)
            options = {"prompts": ["pab abc", "q"], "sampling": sampling, "seed": seed}
            plain = outputs(TableModel(), constraint, None, **options)
            assert tokens(outputs(TableModel(), constraint, how, **options)) == tokens(plain)


def test_the_same_rules_hold_for_drafts_and_outputs() -> None:
    """A draft by the model itself is always accepted only if temperature, truncation and penalties are the same."""
    rules_ = mw.Sampling(0.8, top_k=30, top_p=0.9, presence_penalty=2.0, repetition_penalty=1.3, penalty_scope="all")
    how = mw.Speculative(TableModel(), gamma=5)
    for constraint in (mw.Regex(r"[a-z ]{20,30}"), None):
        (result,) = outputs(TableModel(), constraint, how, sampling=rules_, seed=1)
        assert result.stats.speculation.acceptance == 1
        assert result.stats.speculation.tested > 10


def stepping(how: mw.Speculative, constraint: Any, **options: Any) -> Decoder:
    asked = rules(strategy=how, max_tokens=40, **options)
    model = TableModel()
    requests = build_requests(model, ["pab abc"], [mw.compile(constraint, model.vocabulary)], asked)
    return decoder_for(model, requests, asked, asked.sampling)


@pytest.mark.parametrize("draft", DRAFTS)
def test_R31_matchers_are_as_if_the_tokens_had_come_one_by_one(draft: str, monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = mw.Regex(PATTERN)
    for variant, seed in itertools.product(("both", "target"), range(3)):
        decoder = stepping(mw.Speculative(DRAFTS[draft](), gamma=4, variant=variant), constraint, seed=seed)
        (row,) = decoder.rows
        inner = type(decoder)._propose

        def watched(self: Any, rows: Any, row: Any = row, inner: Any = inner) -> None:
            before = row.matcher.allowed_tokens(), row.matcher.is_accepting
            inner(self, rows)
            assert (row.matcher.allowed_tokens(), row.matcher.is_accepting) == before  # drafting changes nothing

        monkeypatch.setattr(type(decoder), "_propose", watched)
        for _ in decoder.steps():
            again = mw.compile(constraint, TableModel().vocabulary).matcher()
            assert again.accept_tokens(row.tokens) == len(row.tokens)
            assert again.allowed_tokens() == row.matcher.allowed_tokens()
            assert again.is_accepting == row.matcher.is_accepting
        monkeypatch.undo()


def test_R32_ends_inside_a_window_are_where_they_are_without() -> None:
    model = TableModel(scale=0.3)
    model.bias[[EOS, STOP]] = 2.0
    reasons = set()
    for seed in range(12):
        ends = {"stop": ["e", "a1", ord("7")], "max_tokens": 6 + seed % 5, "min_tokens": seed % 4, "seed": seed}
        for constraint in (None, mw.Regex(r"[a-f0-9]{0,12}")):
            plain = outputs(model, constraint, None, **ends)
            for variant, width in (("coupled", 1), ("coupled", 2)):
                how = mw.Speculative(model, gamma=5, variant=variant, width=width)
                found = outputs(model, constraint, how, **ends)
                for one, other in zip(found, plain, strict=True):
                    assert (one.tokens, one.text, one.finish_reason) == (other.tokens, other.text, other.finish_reason)
                    reasons.add(one.finish_reason)
            (other,) = outputs(model, constraint, mw.Speculative(model, gamma=5), **ends)
            assert len(other.tokens) <= ends["max_tokens"]
            assert not set(other.tokens[:-1]) & {EOS, STOP}
            assert other.stats.speculation.acceptance in (1, None)
    assert reasons >= {"eos", "stop", "length"}


def test_R32_windows_keep_to_budgets_and_contexts() -> None:
    for budget in range(9, 30, 4):
        model, draft = TableModel(context_length=budget + 7), TableModel(1, context_length=20)
        how = mw.Speculative(draft, gamma=8, width=3)
        (result,) = outputs(model, mw.Regex(PATTERN), how, seed=budget, max_tokens=budget)
        assert re.fullmatch(PATTERN, result.text)
        assert len(result.tokens) <= budget


def test_R33_what_is_told_of_drafts() -> None:
    assert predicted_tokens(0.5, 3) == pytest.approx((1 - 0.5**4) / (1 - 0.5))
    (result,) = outputs(TableModel(), None, mw.Speculative(TableModel(1), gamma=3), seed=0)
    told, stats = result.stats.speculation, result.stats
    assert stats.tokens_per_call == pytest.approx(len(result.tokens) / stats.model_calls)
    assert 0 < told.acceptance < 1
    assert told.tokens == len(result.tokens) - (stats.model_calls - told.windows)
    assert told.tokens_per_window == pytest.approx(told.tokens / told.windows)
    assert told.predicted == pytest.approx(told.tokens_per_window, abs=0.3)
    assert result.manifest["strategy"]["gamma"] == 3
    (plain,) = outputs(TableModel(), None, seed=0)
    assert plain.stats.speculation is None
    assert "strategy" not in plain.manifest


def test_R33_masking_the_draft_never_lowers_the_acceptance(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, inner = [], verify.tried

    def logged(p: torch.Tensor, q: torch.Tensor, drafts: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        masked = torch.where(p > 0, q, 0.0)
        masked = masked / masked.sum(-1, keepdim=True)
        rates = torch.minimum(p, masked).sum(-1), torch.minimum(p, q).sum(-1)
        steps.extend(zip(rates[0].tolist(), rates[1].tolist(), strict=True))
        return inner(p, q, drafts, u)

    monkeypatch.setattr(verify, "tried", logged)
    for seed in range(5):
        outputs(TableModel(), mw.Regex(PATTERN), mw.Speculative(TableModel(1), gamma=3, variant="target"), seed=seed)
    assert len(steps) > 50
    assert all(a >= b - 1e-12 for a, b in steps)
    assert sum(a for a, _ in steps) > 2 * sum(b for _, b in steps)


class Copier(TableModel):
    """Goes on as the text went on before: a copy task."""

    def __init__(self) -> None:
        super().__init__(scale=0.1)
        for here, there in itertools.pairwise([*b"the quick brown fxjmpsvlazydg", ord("t")]):
            self.table[here, there] = 9.0


def test_R35_copying_takes_far_fewer_forwards_and_what_does_not_pay_is_left() -> None:
    text = "the quick brown fxjmpsvlazydg" * 2
    for constraint in (None, mw.Regex(r"[a-z ]{100}")):
        plain, found = (outputs(Copier(), constraint, how, [text], max_tokens=110) for how in (None, mw.Speculative()))
        assert tokens(found) == tokens(plain)
        assert found[0].stats.model_calls * 1.3 < plain[0].stats.model_calls
    # An unrelated draft, in units of a decode step: what its drafts and their verification cost is under a tenth.
    costs = (0.1, 0.1)
    for variant, seed in itertools.product(("both", "coupled"), range(4)):
        how = mw.Speculative(TableModel(5, scale=3.0), variant=variant, costs=costs)
        (result,) = outputs(TableModel(4, scale=3.0), None, how, seed=seed, max_tokens=200)
        told = result.stats.speculation
        extra = sum(n * length * sum(costs) for length, n in told.lengths.items())
        assert told.windows > 0
        assert extra < 0.1 * len(result.tokens)
