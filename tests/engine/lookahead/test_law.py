"""What law the samples have: T1-T3, T8, T11-T13 and T15 of the lookahead sampler's test plan.

Every law is compared with a brute-force oracle, and every statistical test has a sampler that must fail it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from engine.lookahead.drawing import SKEWED, chi_square, distance, drawn, largest_error, one, session
from engine.lookahead.tables import EOS, TOKENS, TableModel, local_law, table_law
from engine.statistics import p_value
from maskwright.engine.lookahead.search import Race, Search
from maskwright.engine.rng import Stream

MODEL = TableModel(11)
LAW = table_law(MODEL, SKEWED, 6)
LOCAL = local_law(MODEL, list(LAW))

EXACT = {
    "enumerate": {"method": "exact"},
    "search": {"method": "exact", "enumerate_nodes": 0},
    "search, one at a time": {"method": "exact", "enumerate_nodes": 0, "frontier": 1, "drafts": False},
}


def local_samples(n: int, seed: int) -> list[tuple[int, ...]]:
    """What the engine draws by masking step by step; where nothing else may follow it leaves the EOS out."""
    results = mw.generate(MODEL, "0", mw.Regex(SKEWED), n=n, seed=seed, max_tokens=6)
    return [(*(t for t in result.tokens if t != EOS), EOS) for result in results]


def test_the_oracle_is_a_law_that_masking_gets_wrong() -> None:
    assert 100 < len(LAW) < 300
    assert 0.01 < sum(LAW.values()) < 0.1
    assert sum(LOCAL.values()) == pytest.approx(1)
    assert distance(LAW, LOCAL) > 0.5


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("seed", [1, 2])
def test_t1_samples_have_the_exact_law(kind: str, seed: int) -> None:
    samples = drawn(session(MODEL, **EXACT[kind]), "exact", 700, seed)
    assert chi_square(samples, LAW) > 0.001
    assert largest_error(samples, LAW) < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("seed", range(5))
def test_t1_at_length(kind: str, seed: int) -> None:
    samples = drawn(session(MODEL, **EXACT[kind]), "exact", 20_000, 100 + seed)
    assert chi_square(samples, LAW) > 0.001
    assert largest_error(samples, LAW) < 4.5


def test_t1_rejection_has_the_exact_law() -> None:
    model = TableModel(11, bias={6: -3.0, 7: -3.0, EOS: 1.0})
    law = table_law(model, r"[01]{1,3}", 4)
    samples = drawn(session(model, r"[01]{1,3}", 4), "reject", 400, 5)
    assert chi_square(samples, law) > 0.001
    assert chi_square(samples, local_law(model, list(law))) < 1e-3


def test_t1_masking_step_by_step_fails() -> None:
    assert chi_square(local_samples(300, 3), LAW) < 1e-6


@pytest.mark.timeout(400)  # two thousand samplers, on machines that do other things too
def test_t2_the_first_sample_of_a_fresh_sampler_has_the_exact_law() -> None:
    model, short = TableModel(11, bias={6: -3.0, 7: -3.0, EOS: 0.5}), "00|1[01]{2}"  # few nodes per sample
    law = table_law(model, short, 4)
    settings = {"enumerate_nodes": 0, "frontier": 1, "drafts": False}
    fresh = [one(session(model, short, 4, **settings), "exact", Stream(7, at)) for at in range(2000)]
    assert chi_square(fresh, law) > 0.001
    assert chi_square(fresh, local_law(model, list(law))) < 1e-6


def test_t2_asap_passes_pooled_and_fails_the_first_sample() -> None:
    """Its bias falls with the samples drawn: pooled over many the law looks right, that of the first is masking's."""
    pooled = drawn(session(MODEL), "asap", 3000, 11)
    assert chi_square(pooled[-1500:], LAW) > 0.001
    first = [one(session(MODEL), "asap", Stream(7, at)) for at in range(300)]
    assert chi_square(first, LAW) < 1e-6
    assert chi_square(first, LOCAL) > 0.001


def independence(samples: list[tuple[int, ...]]) -> float:
    """The p-value of neighbouring samples' independence, by their texts in four classes of about the same size."""
    texts = [b"".join(TOKENS[t] for t in sample[:-1]) for sample in samples]
    ranked = [text for text, _ in Counter(texts).most_common()]
    kinds = np.array([min(ranked.index(text), 3) for text in texts])
    table = np.zeros((4, 4), dtype=np.int64)
    np.add.at(table, (kinds[:-1], kinds[1:]), 1)
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    statistic = ((table - expected) ** 2 / expected).sum()
    import torch

    return float(torch.special.gammaincc(torch.tensor(4.5, dtype=torch.float64), torch.tensor(statistic / 2)))


def test_t3_neighbouring_samples_are_independent() -> None:
    samples = drawn(session(MODEL, enumerate_nodes=0), "exact", 1500, 21)
    assert independence(samples) > 0.001
    sticky = [samples[at - at % 2] for at in range(len(samples))]
    assert independence(sticky) < 1e-6


@pytest.mark.parametrize("kind", ["enumerate", "search"])
def test_t8_outputs_end_within_the_budget(kind: str) -> None:
    model = TableModel(3, bias={6: 2.5})
    law = table_law(model, "a*b", 4)
    assert len(law) == 3
    samples = drawn(session(model, "a*b", 4, **EXACT[kind]), "exact", 800, 4)
    assert all(sample[-1] == EOS and len(sample) <= 4 for sample in samples)
    assert chi_square(samples, law) > 0.001
    assert chi_square(samples, local_law(model, list(law))) < 1e-6


def test_t8_a_long_tail_that_does_not_fit_is_never_entered() -> None:
    model = TableModel(3, bias={7: 6.0})
    assert set(drawn(session(model, "a|b{60}", 8, enumerate_nodes=0), "exact", 5, 1)) == {(6, EOS)}
    (result,) = mw.topk(model, "0", mw.Regex("a|b{60}"), 3, max_tokens=8)
    assert result.text == "a"


DRAFTERS: dict[str, Any] = {
    "wrong": lambda current, node: [int(node.ids[(7 * node.depth) % len(node.ids)])] * 4 if len(node.ids) else [],
    "good": lambda current, node: greedy_path(current, node),
    "own": None,
}


def greedy_path(current: Any, node: Any) -> list[int]:
    """What the model itself would write, among what is allowed: three tokens."""
    found, guide = [], node.guide.fork()
    for _ in range(3):
        ids = current.base.allowed(guide, [*node.output(), *found])
        ids = [i for i in ids if i != EOS]
        if not ids:
            break
        logits = MODEL.logits((0, *node.output(), *found))
        found.append(int(max(ids, key=lambda i: float(logits[i]))))
        guide = current.base.advance(guide, found[-1])
    return found


@pytest.mark.parametrize("kind", DRAFTERS)
def test_t11_drafts_change_no_sample_and_save_forwards(kind: str) -> None:
    plain = session(MODEL, enumerate_nodes=0, frontier=1, drafts=False)
    drafted = session(MODEL, enumerate_nodes=0, frontier=1, drafts=True)
    expected = drawn(plain, "exact", 150, 5)
    if DRAFTERS[kind] is None:
        samples = drawn(drafted, "exact", 150, 5)
    else:
        samples = [searched(drafted, DRAFTERS[kind], Stream(5, at)) for at in range(150)]
    assert samples == expected
    assert drafted.reader.calls <= plain.reader.calls
    if kind == "good":
        assert drafted.reader.calls < plain.reader.calls


def searched(current: Any, drafter: Any, stream: Stream) -> tuple[int, ...]:
    def arrivals(node: Any, time: float) -> Race:
        return Race(node, time, stream)

    search = Search(current.base, current.trie, current.reader, arrivals, 1, lambda node: drafter(current, node))
    leaf = search.next()
    assert leaf is not None
    return tuple(leaf.output())


def test_t11_text_that_must_follow_is_read_in_one_forward() -> None:
    model = TableModel(2)
    pattern = "(0110|1)aababba(0|1)"
    plain = session(model, pattern, 14, enumerate_nodes=0, frontier=1, drafts=False)
    drafted = session(model, pattern, 14, enumerate_nodes=0, frontier=1)
    assert drawn(plain, "exact", 3, 1) == drawn(drafted, "exact", 3, 1)
    assert drafted.reader.calls <= plain.reader.calls - 4


@pytest.mark.parametrize("tokenization", ["all", "canonical"])
@pytest.mark.parametrize("nodes", [0, 4096])
def test_t12_tokenisations(tokenization: Any, nodes: int) -> None:
    def is_canonical(output: tuple[int, ...]) -> bool:
        return MODEL.encode(b"".join(TOKENS[t] for t in output).decode()) == list(output)

    canonical = table_law(MODEL, SKEWED, 6, keep=is_canonical)
    assert len(canonical) == 17
    law = canonical if tokenization == "canonical" else LAW
    samples = drawn(session(MODEL, tokenization=tokenization, enumerate_nodes=nodes), "exact", 500, 9)
    assert chi_square(samples, law) > 0.001
    if tokenization == "all":
        assert set(samples) - set(canonical)


def test_t12_choices_in_canonical_spelling_are_listed_directly() -> None:
    texts = ["0110", "10101", "ab"]
    found = mw.classify(MODEL, "0", texts, lookahead=mw.Lookahead(tokenization="canonical"))
    law = {text: table_law(MODEL, text, 6, keep=lambda o, t=text: MODEL.encode(t) == list(o)) for text in texts}
    masses = {text: sum(each.values()) for text, each in law.items()}
    total = sum(masses.values())
    assert found.probabilities == pytest.approx({text: mass / total for text, mass in masses.items()}, abs=1e-9)
    assert found.nodes == 1 + sum(len(MODEL.encode(text)) for text in texts) - 0


@pytest.mark.parametrize("kind", ["enumerate", "search"])
def test_t13_temperature_and_penalties_are_part_of_the_law(kind: str) -> None:
    sampling = mw.Sampling(0.7, repetition_penalty=1.5, logit_bias={1: 0.5})

    def change(row: np.ndarray, output: tuple[int, ...]) -> np.ndarray:
        row = row.copy()
        row[1] += 0.5
        for token in set(output):
            row[token] = row[token] / 1.5 if row[token] > 0 else row[token] * 1.5
        return row / 0.7

    law = table_law(MODEL, SKEWED, 6, change=change)
    assert distance(law, LAW) > 0.1
    samples = drawn(session(MODEL, sampling=sampling, **EXACT[kind]), "exact", 800, 2)
    assert chi_square(samples, law) > 0.001
    assert chi_square(samples, LAW) < 1e-6


def test_t15_the_statistic_gives_few_false_alarms() -> None:
    p = np.array(list(LAW.values())) / sum(LAW.values())
    rng = np.random.default_rng(3)
    alarms = sum(p_value(rng.multinomial(2000, p).astype(np.int64), p) < 0.01 for _ in range(200))
    assert alarms <= 7
