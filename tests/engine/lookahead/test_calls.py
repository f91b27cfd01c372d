"""The calls that a program makes: generate with lookahead=, classify, topk; and R46, that nothing changes without."""

from __future__ import annotations

import asyncio
import enum
import math
from typing import Any

import pytest

import maskwright as mw
from engine.lookahead.drawing import SKEWED, chi_square
from engine.lookahead.tables import EOS, TOKENS, TableModel, table_law
from engine.models import ToyModel
from maskwright.engine.lookahead import run

MODEL = TableModel(11)
LAW = table_law(MODEL, SKEWED, 6)
TOTAL = sum(LAW.values())


def by_text(law: dict[tuple[int, ...], float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for sequence, p in law.items():
        text = b"".join(TOKENS[t] for t in sequence[:-1]).decode()
        found[text] = found.get(text, 0.0) + p
    return found


def test_r46_without_lookahead_its_code_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> Any:
        raise AssertionError("lookahead ran")

    def texts(**more: Any) -> list[Any]:
        results = mw.generate(ToyModel(3), ["a", "b"], mw.Regex("[ab]{2,5}"), n=3, seed=4, max_tokens=8, **more)
        return [(r.text, r.tokens, r.logprob, r.log_weight, r.finish_reason) for group in results for r in group]

    plain = texts()
    assert texts(lookahead="exact") != plain
    monkeypatch.setattr(run, "run", refuse)
    assert texts() == texts(lookahead=None) == plain
    with pytest.raises(AssertionError, match="lookahead ran"):
        texts(lookahead="exact")


def test_results_say_what_was_drawn() -> None:
    result = mw.generate(MODEL, "0", mw.Regex(SKEWED), seed=1, max_tokens=6, lookahead="exact")
    assert result.valid
    assert result.finish_reason == "eos"
    assert result.tokens[-1] == EOS
    assert result.logprob == pytest.approx(math.log(LAW[tuple(result.tokens)]), abs=1e-6)
    assert result.log_weight < 0
    stats = result.lookahead
    assert stats.method == "enumerate"
    assert stats.log_Z == pytest.approx(math.log(TOTAL), abs=1e-9)
    assert stats.mode == max(by_text(LAW), key=by_text(LAW).__getitem__)
    assert stats.calls == 2  # the prompt, and the whole language
    assert mw.generate(MODEL, "0", mw.Regex(SKEWED), seed=1, max_tokens=6).lookahead is None


def test_prompts_share_forwards_where_languages_are_finite() -> None:
    model = TableModel(3)
    results = mw.generate(model, ["0", "1", "00"], mw.Regex(SKEWED), seed=1, max_tokens=6, lookahead="exact")
    assert model.calls == 2
    assert [result.lookahead.log_Z for result in results] == [
        pytest.approx(math.log(sum(table_law(model, SKEWED, 6, prompt=model.encode(p)).values())), abs=1e-9)
        for p in ("0", "1", "00")
    ]


def test_a_prefix_is_part_of_the_output() -> None:
    ahead = mw.Lookahead(enumerate_nodes=0)
    arguments: Any = {"n": 150, "seed": 3, "max_tokens": 5, "lookahead": ahead, "prefix": "1"}
    results = mw.generate(MODEL, "0", mw.Regex(SKEWED), **arguments)
    assert {result.text[0] for result in results} == {"1"}
    law = table_law(MODEL, "[01]{4}", 5, prompt=[0, 1])
    assert chi_square([tuple(result.tokens) for result in results], law) > 0.001


def test_processors_and_details_go_with_it() -> None:
    def never_11(tokens: Any, logits: Any) -> Any:
        logits[5] = -math.inf
        return logits

    results = mw.generate(
        MODEL, "0", mw.Regex(SKEWED), n=20, seed=3, max_tokens=6, lookahead="exact", processor=never_11, logprobs=0
    )
    assert all(5 not in result.tokens for result in results)
    assert math.fsum(draw.logprob for draw in results[0].logprobs) == pytest.approx(results[0].logprob)


def test_values_validators_and_retries() -> None:
    found = mw.generate_regex(MODEL, "0", SKEWED, n=5, seed=2, max_tokens=6, lookahead="exact")
    assert set(found) <= set(by_text(LAW))
    assert mw.generate_choice(MODEL, "0", {"01": 1, "10": 2}, seed=2, lookahead="exact") in (1, 2)


def test_regions_of_tokens_are_conditioned_too() -> None:
    constraint = mw.Seq(mw.Free(until="1", max_tokens=3), mw.Capture("x", mw.Regex("[ab]")))
    result = mw.generate(MODEL, "0", constraint, seed=2, max_tokens=7, lookahead=mw.Lookahead(enumerate_nodes=0))
    assert result.valid
    assert result.value["x"] == result.text[-1]
    assert result.lookahead.exact


def test_asynchronous_calls_and_cancelling() -> None:
    made = mw.agenerate(MODEL, "0", mw.Regex(SKEWED), seed=1, max_tokens=6, lookahead="exact")
    assert asyncio.run(made).valid

    class Now:
        def is_set(self) -> bool:
            return True

    ahead = mw.Lookahead(enumerate_nodes=0, reuse=False)
    result = mw.generate(MODEL, "0", mw.Regex(SKEWED), seed=1, max_tokens=6, lookahead=ahead, cancel=Now())
    assert result.finish_reason == "cancelled"
    assert not result.valid


def test_truncating_rules_only_where_they_were_asked_for() -> None:
    rules: Any = {"sampling": mw.Sampling(top_k=4), "max_tokens": 6, "seed": 1}
    with pytest.raises(mw.GenerationError, match="truncating rules"):
        mw.generate(MODEL, "0", mw.Regex("[01]{1,4}"), lookahead="exact", **rules)
    law = table_law(MODEL, "[01]{1,4}", 6, change=lambda row, _: [x if x >= sorted(row)[-4] else -1e9 for x in row])
    ahead = mw.Lookahead(truncation=True)
    results = mw.generate(MODEL, "0", mw.Regex("[01]{1,4}"), n=200, lookahead=ahead, **rules)
    law = {key: p for key, p in law.items() if p > 1e-30}
    assert chi_square([tuple(result.tokens) for result in results], law) > 0.001


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling": mw.Sampling(0)}, "temperature is 0"),
        ({"stop": "0"}, "stop="),
        ({"stop": 1}, "stop="),
        ({"min_tokens": 2}, "min_tokens="),
        ({"sampling": mw.Sampling(lazy_mask=True)}, "lazy_mask"),
        ({"constraint": None}, "needs a constraint"),
        ({"max_tokens": 2}, "too few"),
        ({"max_tokens": 600}, "context"),
    ],
)
def test_what_has_no_exact_law_is_refused(options: dict[str, Any], message: str) -> None:
    calls = MODEL.calls
    arguments = {"constraint": mw.Regex(SKEWED), "max_tokens": 6, "lookahead": "exact", **options}
    with pytest.raises(mw.GenerationError, match=message):
        mw.generate(MODEL, "0", **arguments)
    assert MODEL.calls == calls


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "best"}, {"budget_calls": 0}, {"epsilon": 0}, {"epsilon": 1.0}, {"epsilon": math.nan},
        {"particles": 0}, {"ess_threshold": 2}, {"fallback": "none"}, {"tokenization": "some"}, {"frontier": 0},
        {"enumerate_nodes": -1},
    ],
)  # fmt: skip
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} is "):
        mw.Lookahead(**wrong)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="method is 'best'"):
        mw.generate(MODEL, "0", mw.Regex("a"), lookahead="best")
    with pytest.raises(TypeError, match="lookahead is 3"):
        mw.generate(MODEL, "0", mw.Regex("a"), lookahead=3)
    with pytest.raises(ValueError, match="stream gives it piece by piece"):
        mw.stream(MODEL, "0", mw.Regex("a"), lookahead="exact")
    with mw.Engine(MODEL) as engine, pytest.raises(TypeError, match="no lookahead"):
        engine.submit("0", mw.Regex("a"), lookahead="exact")
    with pytest.raises(ValueError, match="pass one of them"):
        mw.generate(MODEL, "0", mw.Regex("a"), lookahead="exact", strategy=mw.Beam(2))
    with pytest.raises(ValueError, match="k is 0"):
        mw.topk(MODEL, "0", mw.Regex("a"), 0)


class Label(enum.Enum):
    LOW = "0110"
    HIGH = "10"
    OTHER = "ab"


def test_classify_sums_all_tokenisations() -> None:
    masses = {text: sum(table_law(MODEL, text, 6).values()) for text in ("0110", "10", "ab")}
    found = mw.classify(MODEL, "0", Label)
    total = sum(masses.values())
    assert found.probabilities == pytest.approx({text: p / total for text, p in masses.items()}, abs=1e-9)
    assert list(found.probabilities) == ["0110", "10", "ab"]
    assert found.log_Z == pytest.approx(math.log(total), abs=1e-9)
    assert found.best is Label(max(masses, key=masses.__getitem__))
    assert sum(found.probabilities.values()) == pytest.approx(1)


def test_classify_within_a_bound() -> None:
    law = {text: sum(table_law(MODEL, text, 6).values()) for text in ("0110", "10", "ab", "0101")}
    total, exact = sum(law.values()), mw.classify(MODEL, "0", list(law))
    assert exact.tv_bound == 0
    for epsilon in (0.3, 0.05, 1e-6):
        ahead = mw.Lookahead(method="certified", epsilon=epsilon, reuse=False, frontier=1)
        found = mw.classify(MODEL, "0", list(law), lookahead=ahead)
        away = 0.5 * sum(abs(found.probabilities[text] - law[text] / total) for text in law)
        assert away <= found.tv_bound + 1e-12 <= epsilon + 1e-12
        assert found.nodes <= exact.nodes
    assert mw.classify(MODEL, "0", list(law), lookahead=mw.Lookahead(method="certified")).nodes < exact.nodes
    with pytest.raises(mw.BudgetError, match="did not come to epsilon"):
        tight = mw.Lookahead(method="certified", epsilon=1e-6, budget_calls=2, reuse=False)
        mw.classify(MODEL, "0", list(law), lookahead=tight)
    with pytest.raises(ValueError, match="'smc'"):
        mw.classify(MODEL, "0", list(law), lookahead=mw.Lookahead(method="smc"))


def test_classify_reads_prompts_together() -> None:
    model = TableModel(8)
    found = mw.classify(model, ["0", "10", "ab"], ["0110", "10"])
    assert model.calls == 2
    alone = [mw.classify(TableModel(8), prompt, ["0110", "10"]) for prompt in ("0", "10", "ab")]
    assert [each.probabilities for each in found] == [each.probabilities for each in alone]
    assert len({each.log_Z for each in found}) == 3


def test_classify_refuses_more_than_it_was_allowed() -> None:
    with pytest.raises(mw.GenerationError, match="more than 5 prefixes"):
        mw.classify(MODEL, "0", ["0110", "10"], lookahead=mw.Lookahead(enumerate_nodes=5))
    with pytest.raises(mw.UnsatisfiableError, match="probability 0"):
        mw.classify(MODEL, "0", ["a", "aa"], sampling=mw.Sampling(logit_bias={6: -math.inf}))


@pytest.mark.parametrize("nodes", [0, 4096])
def test_topk_gives_the_most_probable_outputs(nodes: int) -> None:
    ahead = mw.Lookahead(enumerate_nodes=nodes, budget_calls=1000, tokenization="canonical")

    def is_canonical(output: tuple[int, ...]) -> bool:
        return MODEL.encode(b"".join(TOKENS[t] for t in output).decode()) == list(output)

    law = by_text(table_law(MODEL, SKEWED, 6, keep=is_canonical))
    expected = sorted(law, key=law.__getitem__, reverse=True)
    found = mw.topk(MODEL, "0", mw.Regex(SKEWED), 5, max_tokens=6, lookahead=ahead)
    assert [result.text for result in found] == expected[:5]
    assert [result.logprob for result in found] == pytest.approx([math.log(law[text]) for text in expected[:5]])
    everything = mw.topk(MODEL, "0", mw.Regex(SKEWED), 99, max_tokens=6, lookahead=ahead)
    assert [result.text for result in everything] == expected


def test_topk_sums_tokenisations_of_a_language_known_as_a_whole() -> None:
    law = by_text(LAW)
    found = mw.topk(MODEL, "0", mw.Regex(SKEWED), 17, max_tokens=6)
    assert [result.text for result in found] == sorted(law, key=law.__getitem__, reverse=True)
    assert [result.logprob for result in found] == pytest.approx([math.log(law[r.text]) for r in found])


def test_topk_draws_without_replacement() -> None:
    """The first of the samples has the exact law over texts, the second that of what the first one left."""
    law = by_text(LAW)
    names = sorted(law, key=law.__getitem__, reverse=True)
    pairs: dict[tuple[int, ...], float] = {}
    for first in names:
        for second in names:
            if first != second:
                rest = TOTAL - law[first]
                key = (names.index(first), names.index(second))
                pairs[key] = law[first] / TOTAL * law[second] / rest
    drawn = []
    for seed in range(200):
        found = mw.topk(MODEL, "0", mw.Regex(SKEWED), 2, max_tokens=6, seed=seed)
        drawn.append(tuple(names.index(result.text) for result in found))
    assert all(first != second for first, second in drawn)
    assert chi_square(drawn, pairs) > 0.001
    assert chi_square([pair[::-1] for pair in drawn], pairs) < 1e-6


def test_topk_within_a_budget() -> None:
    ahead = mw.Lookahead(enumerate_nodes=0, budget_calls=25, frontier=1, reuse=False)
    with pytest.raises(mw.BudgetError, match=r"found \d+ of 17 outputs") as caught:
        mw.topk(MODEL, "0", mw.Regex(SKEWED), 17, max_tokens=6, lookahead=ahead)
    assert 0 < len(caught.value.best) < 17
    assert caught.value.log_Z[0] <= math.log(TOTAL) <= caught.value.log_Z[1]
