"""What is computed, and what is claimed of it: T4, T6, T7, T9, T10, T14 and R47-R49."""

from __future__ import annotations

import gc
import math
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from engine.lookahead.drawing import SKEWED, distance, drawn, session
from engine.lookahead.tables import EOS, TOKENS, TableModel, table_law
from engine.models import tiny_llama
from maskwright.engine.lookahead import exact
from maskwright.engine.lookahead.certified import distance as certified_distance
from maskwright.engine.lookahead.search import ByMass, Race, Search
from maskwright.engine.rng import Stream

MODEL = TableModel(11)
LAW = table_law(MODEL, SKEWED, 6)
TOTAL = sum(LAW.values())


@pytest.fixture(scope="module")
def llama() -> Any:
    return mw.TransformersModel(*tiny_llama())


def futures(law: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    """The mass of valid sequences below each prefix (times the prefix's own probability)."""
    found: dict[tuple[int, ...], float] = {}
    for sequence, p in law.items():
        for at in range(len(sequence)):
            found[sequence[:at]] = found.get(sequence[:at], 0.0) + p
    return found


def test_t4_the_whole_language_in_exact_arithmetic() -> None:
    current = session(MODEL)
    exact.read_finite([current])
    root = current.trie.root
    assert root.log_lower == pytest.approx(math.log(TOTAL), abs=1e-9)
    assert root.log_upper == pytest.approx(math.log(TOTAL), abs=1e-9)
    below = futures(LAW)
    for node in current.trie.known():
        here = math.exp(node.log_path + node.log_lower)
        assert here == pytest.approx(below[tuple(node.output())], rel=1e-9)
        onwards = [math.exp(node.logp_of(i) - node.log_lower) for i in node.ids[node.ends]]
        onwards += [math.exp(c.log_edge + c.log_lower - node.log_lower) for c in node.children.values() if c.known]
        assert sum(onwards) == pytest.approx(1, abs=1e-9)
    texts = current.texts
    assert sum(map(math.exp, texts.logprobs)) == pytest.approx(TOTAL, rel=1e-9)
    by_text: dict[bytes, float] = {}
    for sequence, p in LAW.items():
        text = b"".join(TOKENS[t] for t in sequence[:-1])
        by_text[text] = by_text.get(text, 0.0) + p
    assert dict(zip(texts.texts, texts.logprobs, strict=True)) == pytest.approx(
        {text: math.log(p) for text, p in by_text.items()}, abs=1e-9
    )
    assert texts.entropy == pytest.approx(-sum(p / TOTAL * math.log(p / TOTAL) for p in LAW.values()), abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 1000),
    pattern=st.sampled_from([SKEWED, "[01]{0,4}", "(a|b0)*1", "0*|1b"]),
    order=st.randoms(use_true_random=False),
)
def test_t6_bounds_hold_whatever_is_read(seed: int, pattern: str, order: Any) -> None:
    model = TableModel(seed, scale=2.0)
    law = table_law(model, pattern, 5)
    below, current = futures(law), session(model, pattern, 5, enumerate_nodes=0)
    current.reader.read([current.trie.root])
    highest, frontier = 0.0, [current.trie.root]
    while frontier:
        node = frontier.pop(order.randrange(len(frontier)))
        current.reader.read([node])
        children = [current.trie.child(current.base, node, int(t)) for t in node.ids if t != EOS]
        frontier += [child for child in children if not child.dead]
        root = current.trie.root
        assert root.log_upper <= highest
        highest = root.log_upper
        for known in current.trie.known():
            phi = math.log(below[tuple(known.output())]) - known.log_path
            assert known.log_lower <= phi + 1e-9
            assert known.log_upper >= phi - 1e-9
    assert current.trie.root.log_upper == pytest.approx(math.log(sum(law.values())), abs=1e-9)
    assert current.trie.root.log_lower == pytest.approx(current.trie.root.log_upper, abs=1e-9)


def test_t7_the_certificate_holds_at_every_budget() -> None:
    """The law of a certified sample is that of the outputs found so far, each by its probability."""
    current = session(MODEL, enumerate_nodes=0, frontier=1)
    search, bounds = Search(current.base, current.trie, current.reader, ByMass), []
    while search.step(lambda: True):
        found = {
            (*node.output(), EOS): math.exp(node.log_path + node.logp_of(EOS))
            for node in current.trie.known()
            if len(node.ends)
        }
        bound = certified_distance(current.log_bounds)
        bounds.append(bound)
        if found:
            assert distance(found, LAW) <= bound + 1e-12
            assert sum(found.values()) == pytest.approx(math.exp(current.log_bounds[0]), rel=1e-9)
        else:
            assert bound == 1
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == pytest.approx(0, abs=1e-9)
    assert sum(0.01 < bound < 0.99 for bound in bounds) > 20


def test_t7_a_certified_sample_is_drawn_from_what_was_found() -> None:
    ahead = mw.Lookahead(method="certified", epsilon=0.3, enumerate_nodes=0, frontier=1, reuse=False)
    results = mw.generate(MODEL, "0", mw.Regex(SKEWED), n=300, seed=4, max_tokens=6, lookahead=ahead)
    stats = results[0].lookahead
    assert 0 < stats.tv_bound <= 0.3
    assert not stats.exact
    assert stats.log_Z[0] <= math.log(TOTAL) <= stats.log_Z[1]
    assert {result.lookahead.calls for result in results[1:]} == {0}
    counts: dict[tuple[int, ...], float] = {}
    for result in results:
        counts[tuple(result.tokens)] = counts.get(tuple(result.tokens), 0) + 1
    assert set(counts) <= set(LAW)
    assert distance(counts, LAW) < 0.3 + 0.15


def test_t9_no_mass_at_all_is_refused_at_once() -> None:
    calls = MODEL.calls
    for nodes in (0, 4096):
        with pytest.raises(mw.UnsatisfiableError, match="probability 0"):
            mw.generate(
                MODEL, "0", mw.Regex("a[01]*"), max_tokens=40, seed=1, sampling=mw.Sampling(logit_bias={6: -math.inf}),
                lookahead=mw.Lookahead(enumerate_nodes=nodes),
            )  # fmt: skip
    assert MODEL.calls - calls <= 4


def test_t9_little_mass_ends_in_an_error_with_bounds() -> None:
    model = TableModel(4, bias=dict.fromkeys(range(6), -16.0))
    law = table_law(model, "a*b?0[01]{1,3}", 6)
    total = sum(law.values())
    assert 1e-9 < total < 1e-6
    ahead = mw.Lookahead(budget_calls=5, frontier=1, enumerate_nodes=0)
    with pytest.raises(mw.BudgetError, match="raise budget_calls") as caught:
        mw.generate(model, "0", mw.Regex("a*b?0[01]{1,3}"), max_tokens=6, seed=1, lookahead=ahead)
    low, high = caught.value.log_Z
    assert low <= math.log(total) <= high
    assert caught.value.result is not None
    assert not caught.value.result.valid
    ahead = mw.Lookahead(method="certified", budget_calls=25, frontier=1, epsilon=1e-6, enumerate_nodes=0)
    with pytest.raises(mw.BudgetError) as caught:
        mw.generate(model, "0", mw.Regex("a*b?0[01]{1,3}"), max_tokens=6, seed=1, lookahead=ahead)
    best = caught.value.best
    assert best
    assert all(each.valid and tuple(each.tokens) in law for each in best)
    assert [each.logprob for each in best] == sorted((each.logprob for each in best), reverse=True)
    assert caught.value.log_Z[0] <= math.log(total) <= caught.value.log_Z[1]


def test_a_fallback_is_never_called_exact() -> None:
    ahead = mw.Lookahead(budget_calls=2, frontier=1, enumerate_nodes=0, fallback="local", reuse=False)
    result = mw.generate(MODEL, "0", mw.Regex(SKEWED), max_tokens=6, seed=1, lookahead=ahead, drafts=False)
    assert result.lookahead.method == "local"
    assert not result.lookahead.exact
    assert result.valid
    assert result.lookahead.calls > 2


@pytest.mark.parametrize("drafts", [True, False])
def test_t10_samples_depend_on_the_seed_alone(drafts: bool) -> None:
    def texts(n: int, **more: Any) -> list[tuple[int, ...]]:
        ahead = mw.Lookahead(**{"enumerate_nodes": 0, "reuse": False, **more})
        made = mw.generate(
            MODEL, ["0", "1"], mw.Regex(SKEWED), n=n, seed=3, max_tokens=6, lookahead=ahead, drafts=drafts
        )
        return [tuple(result.tokens) for group in made for result in group]

    expected = texts(12)
    assert len(set(expected)) > 6
    for frontier in (1, 2, 8, 16):
        assert texts(12, frontier=frontier) == expected
    assert texts(12, reuse=True) == expected  # the cache is empty
    assert texts(12, reuse=True) == expected  # and now it is not
    assert texts(5) == expected[:5] + expected[12:17]


@pytest.mark.timeout(400)  # the first to import transformers
def test_r49_the_frontier_changes_no_sample_of_a_transformer(llama: Any) -> None:
    def draw(frontier: int) -> list[Any]:
        ahead = mw.Lookahead(frontier=frontier, enumerate_nodes=0, reuse=False, budget_calls=2000)
        results = mw.generate(llama, "ab", mw.Regex("(yes|no)[12]{0,3}"), n=6, seed=5, max_tokens=8, lookahead=ahead)
        return [(result.tokens, result.text) for result in results]

    assert draw(1) == draw(4) == draw(16)


def test_r48_a_tree_is_read_as_its_prefixes_are(llama: Any) -> None:
    current = session(llama, "(yes|no|maybe)[12]{0,3}", 12, "ab12")
    exact.read_finite([current])
    nodes = list(current.trie.known())
    assert len(nodes) > 100
    assert current.reader.calls + current.ahead[0] < 5
    for node in nodes[:: len(nodes) // 40]:
        logits = llama.forward([[*current.base.request.prompt, *node.output()]], llama.new_cache(1))
        wanted = torch.log_softmax(logits[0, : llama.vocabulary.size].double(), -1)[node.ids.tolist()]
        assert node.logp == pytest.approx(wanted.numpy(), abs=1e-4)


def test_r48_the_search_reads_what_prefixes_are_read_as(llama: Any) -> None:
    current = session(llama, "(yes|no|maybe)[12]{0,3}", 12, "ab12", enumerate_nodes=0, frontier=4)
    drawn(current, "exact", 25, 1)
    assert current.trie.nodes > 12
    for node in list(current.trie.known())[::3]:
        logits = llama.forward([[*current.base.request.prompt, *node.output()]], llama.new_cache(1))
        wanted = torch.log_softmax(logits[0, : llama.vocabulary.size].double(), -1)[node.ids.tolist()]
        assert node.logp == pytest.approx(wanted.numpy(), abs=1e-4)


def test_t4_a_transformer_gives_the_same_law_as_its_oracle(llama: Any) -> None:
    found = mw.classify(llama, ["ab", "{"], ["yes", "no"])
    for prompt, each in zip(["ab", "{"], found, strict=True):
        masses = {text: spelt(llama, prompt, text) for text in ("yes", "no")}
        total = sum(masses.values())
        assert each.log_Z == pytest.approx(math.log(total), abs=1e-4)
        assert each.probabilities == pytest.approx({t: mass / total for t, mass in masses.items()}, abs=1e-5)


def spelt(model: Any, prompt: str, text: str) -> float:
    """The probability of a text and EOS after a prompt, summed over its spellings, each read on its own."""
    tokens, total = model.vocabulary.tokens, 0.0
    stack: list[tuple[list[int], bytes]] = [([], text.encode())]
    while stack:
        output, rest = stack.pop()
        if rest:
            stack += [([*output, i], rest[len(t) :]) for i, t in enumerate(tokens) if t and rest.startswith(t)]
            continue
        ids = [*model.encode(prompt), *output]
        (logits,) = model.forward_all([ids], model.new_cache(1))
        logp = torch.log_softmax(logits[:, : model.vocabulary.size].double(), -1)
        begin = len(ids) - len(output) - 1
        total += math.exp(sum(float(logp[begin + at, t]) for at, t in enumerate([*output, model.eos_ids[0]])))
    return total


@pytest.mark.parametrize(
    ("ahead", "pattern", "is_exact"),
    [
        (mw.Lookahead(), SKEWED, True),
        (mw.Lookahead(enumerate_nodes=0), SKEWED, True),
        (mw.Lookahead(method="reject", budget_calls=100_000), "[01]{1,3}", True),
        (mw.Lookahead(method="asap"), SKEWED, False),
        (mw.Lookahead(method="certified", enumerate_nodes=0), SKEWED, False),
        (mw.Lookahead(method="certified", enumerate_nodes=0, epsilon=1e-12), SKEWED, True),  # all of it was read
        (mw.Lookahead(budget_calls=1, fallback="local", frontier=1, enumerate_nodes=0), SKEWED, False),
    ],
)
def test_r47_exact_is_said_only_where_it_is(ahead: mw.Lookahead, pattern: str, is_exact: bool) -> None:
    from maskwright.engine.lookahead.store import forget

    forget(MODEL)
    result = mw.generate(MODEL, "0", mw.Regex(pattern), seed=1, max_tokens=6, lookahead=ahead, drafts=False)
    stats = result.lookahead
    assert stats.exact is is_exact
    assert (stats.tv_bound == 0) is is_exact
    assert result.valid


class WideModel(TableModel):
    """131,072 tokens, of which 65,536 spell letters."""

    vocabulary = mw.Vocabulary(
        [chr(0x4E00 + i % 20_000).encode() + str(i).encode() for i in range(65_536)]
        + [b'"' + str(i).encode() for i in range(65_535)]
        + [b"<eos>"],
        eos_ids=[131_071],
    )
    eos_ids = (131_071,)

    def logits(self, prefix: tuple[int, ...]) -> torch.Tensor:
        return torch.from_numpy(np.random.default_rng(len(prefix)).normal(size=131_072).astype(np.float32))

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        return [0]


def calls_per_node(pattern: str) -> tuple[float, Any]:
    """Python calls that reading and entering a node takes, and a node with its children."""
    current = session(WideModel(), pattern, 30, enumerate_nodes=0, frontier=1, drafts=False)
    drawn_before = current.trie.nodes
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    stream = Stream(1)
    search = Search(current.base, current.trie, current.reader, lambda node, time: Race(node, time, stream))
    search.step(lambda: True)
    sys.setprofile(profile)
    try:
        for _ in range(8):
            search.step(lambda: True)
    finally:
        sys.setprofile(None)
    return count / (current.trie.nodes - drawn_before - 1), current.trie.root


def test_t14_a_large_mask_takes_no_python_per_token_and_little_memory() -> None:
    many, node = calls_per_node(r"[^\"]*")
    few, _ = calls_per_node(r"[\u4e00-\u4e09][^\"]*|[^\"]*1")
    assert len(node.ids) > 60_000
    assert many < 1.5 * few + 100
    assert many < 2000
    node.cumulative()
    kept = [value for name in node.__slots__ if isinstance(value := getattr(node, name), np.ndarray)]
    assert sum(array.nbytes for array in kept) <= 2 * 8 * len(node.ids)


def test_calls_that_follow_reuse_what_was_learnt() -> None:
    model = TableModel(5)
    ahead = mw.Lookahead(enumerate_nodes=0)
    arguments: Any = {"max_tokens": 6, "seed": 2, "lookahead": ahead}
    first = mw.generate(model, "0", mw.Regex(SKEWED), **arguments)
    again = mw.generate(model, "0", mw.Regex(SKEWED), **arguments)
    assert first.lookahead.calls > 0
    assert again.lookahead.calls == again.lookahead.nodes == 0
    assert again.tokens == first.tokens
    other = mw.generate(model, "0", mw.Regex(SKEWED), **arguments, sampling=mw.Sampling(0.9))
    assert other.lookahead.calls > 0


def test_what_is_kept_goes_with_the_model() -> None:
    import weakref

    model = TableModel(6)
    mw.generate(model, "0", mw.Regex(SKEWED), max_tokens=6, seed=1, lookahead="exact")
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.engine.lookahead import session as sessions
    from maskwright.engine.lookahead import store

    monkeypatch.setattr(sessions, "ENTRIES", 200)
    monkeypatch.setattr(store, "ENTRIES", 200)
    model = TableModel(11)
    arguments: Any = {"max_tokens": 6, "seed": 2, "lookahead": mw.Lookahead(enumerate_nodes=0)}
    some = mw.generate(model, "0", mw.Regex(SKEWED), n=15, **arguments)
    kept = [trie.entries for trie in store._kept[model].values()]
    assert len(kept) == 1
    assert 0 < kept[0] <= 200
    for prompt in ("1", "00", "11", "a"):
        mw.generate(model, prompt, mw.Regex(SKEWED), **arguments)
    assert sum(trie.entries for trie in store._kept[model].values()) <= 200
    monkeypatch.undo()
    again = mw.generate(TableModel(11), "0", mw.Regex(SKEWED), n=15, **arguments)
    assert [result.tokens for result in some] == [result.tokens for result in again]


def test_a_trie_that_forgets_stays_sound() -> None:
    current = session(MODEL, enumerate_nodes=0)
    expected = drawn(current, "exact", 30, 1)
    before, bounds = current.trie.entries, current.log_bounds
    current.trie.shrink(before // 4)
    assert current.trie.entries <= before // 4
    assert current.trie.entries == sum(len(node.ids) for node in current.trie.known())
    low, high = current.log_bounds
    assert low <= math.log(TOTAL) <= high
    assert low <= bounds[0]
    assert high >= bounds[1]
    assert drawn(current, "exact", 30, 1) == expected
