"""Drafts and their parts: lookup, counts, heads, trees, the length of windows, what is refused; random runs of all."""

import itertools
import random
import re
from typing import Any

import jsonschema
import pytest
import torch

import maskwright as mw
from engine.cases import REGEXES, SCHEMAS
from engine.gguf_files import tiny_llama_bytes
from engine.models import EOS, STOP, TableModel, ToyModel, byte_vocabulary
from engine.test_loop import KEYED, Wordy
from engine.test_speculative import DRAFTS
from maskwright.engine.load import load_model
from maskwright.engine.speculation.lookup import Lookup
from maskwright.engine.speculation.ngram import Counts
from maskwright.engine.speculation.pace import Given, Measured, Pace

# --- sources


def test_lookup_finds_what_followed_the_longest_run() -> None:
    lookup = Lookup(mw.PromptLookup(longest=3, shortest=1))
    lookup.extend([1, 2, 3, 4, 9, 3, 5, 9, 2, 3])
    assert lookup.follow(1, 3) == [[4, 9, 3]]  # 2 3 before 3 alone
    assert lookup.follow(3, 2) == [[4, 9], [5, 9]]  # then the latest that begins otherwise
    lookup.extend([7])
    assert lookup.follow(2, 5) == []  # 7 never came
    lookup.extend([3])
    assert lookup.follow(1, 9) == [[7, 3]]  # what follows ends with the text
    assert Lookup(mw.PromptLookup(shortest=2)).follow(1, 4) == []


def test_lookup_in_another_text_does_not_join_it_to_the_prompt() -> None:
    lookup = Lookup(mw.PromptLookup(longest=2, shortest=2), before=[1, 2, 3])
    lookup.extend([4, 5, 3, 4])
    assert lookup.follow(1, 2) == []  # 3 4 spans the two
    lookup.extend([1, 2])
    assert lookup.follow(1, 2) == [[3, 4]]


def test_counts_are_interpolated() -> None:
    counts = Counts(order=2, size=4)
    for part in ([0, 1], [0], [1, 0, 2]):  # 0 1 0 1 0 2, in pieces
        counts.extend(part)
    unigrams = [(3 * 0.25 + n) / 9 for n in (3, 2, 1, 0)]
    assert counts.logits([5, 0]).exp().tolist() == pytest.approx(
        [(2 * p + n) / 5 for p, n in zip(unigrams, (0, 2, 1, 0), strict=True)]
    )
    assert counts.logits([2]).exp().tolist() == pytest.approx(unigrams)  # nothing ever followed a 2
    assert counts.logits([1]).exp().sum() == pytest.approx(1)
    assert Counts(3, 4).logits([]).exp().tolist() == [0.25] * 4


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKWRIGHT_CACHE", str(path.parent / "cache"))
        path.write_bytes(tiny_llama_bytes())
        return load_model(path, prefix_cache=0)


def random_heads(model: Any, seen: list[tuple[torch.Tensor, tuple[int, ...]]]) -> mw.Heads:
    """Three heads with random weights, as Medusa has them."""
    width = model.network.embedding.shape[1]
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(3, width, width, generator=generator) / width**0.5

    def function(state: torch.Tensor, tokens: Any) -> torch.Tensor | None:
        seen.append((state, tuple(tokens)))
        return model.logits_of((weights[len(tokens) - 1] @ state)[None])[0] if len(tokens) <= 3 else None

    return mw.Heads(function)


@pytest.mark.parametrize("width", [1, 3])
def test_heads_read_the_state_of_the_last_token_and_change_nothing(native: Any, width: int) -> None:
    for constraint in (mw.Regex(r"[a-z ]{20,30}"), mw.Regex(r'\{"the key": [a-c]{9}\}'), None):
        for variant, sampled in itertools.product(("both", "coupled"), (False, True)):
            seen: list[tuple[torch.Tensor, tuple[int, ...]]] = []
            options = {"max_tokens": 40} | ({"seed": 4} if sampled else {})
            how = mw.Speculative(random_heads(native, seen), gamma=5, variant=variant, width=width)
            found = mw.generate(native, "the", constraint, strategy=how, **options)
            assert found.stats.speculation.windows > 1
            # Each head was given what the model says of the text before its tokens.
            prompt, text = native.encode("the"), found.tokens
            (states,) = native.forward_states([[*prompt, *text]], native.new_cache(1))
            firsts = [(state, tail) for state, tail in seen if len(tail) == 1]
            at = [int((states - state).abs().sum(-1).argmin()) for state, _ in firsts]
            assert all(torch.allclose(states[i], state, atol=1e-3) for i, (state, _) in zip(at, firsts, strict=True))
            assert [text[i - len(prompt) + 1] for i in at] == [tail[0] for _, tail in firsts]
            if variant == "coupled" or not sampled:
                assert found.tokens == mw.generate(native, "the", constraint, **options).tokens


def test_heads_that_fail_end_their_own_request(native: Any) -> None:
    def function(state: torch.Tensor, tokens: Any) -> torch.Tensor | None:
        if tokens[0] == first:
            raise KeyError("no such head")
        return None

    plain = mw.generate(native, ["the", "a"], max_tokens=9, seed=2)
    first = plain[0].tokens[1]
    assert first not in plain[1].tokens
    with pytest.raises(mw.GenerationError, match="KeyError: 'no such head'") as caught:
        mw.generate(native, ["the", "a"], max_tokens=9, seed=2, strategy=mw.Speculative(mw.Heads(function), gamma=2))
    assert caught.value.results[1].tokens == plain[1].tokens
    assert isinstance(caught.value.__cause__, KeyError)


# --- the length of windows


def test_windows_are_as_long_as_pays() -> None:
    cheap, dear = Given(0.01, 0.01), Given(0.4, 0.4)
    good, bad = Pace(cheap, 15), Pace(dear, 15)
    for _ in range(20):
        good.note(15, 15)
        bad.note(1, 0)
    assert good.length() == 15
    lengths = [bad.length() for _ in range(200)]
    assert lengths.count(0) > 190  # and a try now and then
    assert 3 <= sum(n > 0 for n in lengths) <= 8
    for _ in range(40):
        bad.note(3, 3)
    assert bad.length() > 0  # drafts that became good are noticed
    assert all(Pace(cheap, longest).length() <= longest for longest in range(1, 9))


def test_windows_of_no_length_are_none() -> None:
    for draft in ("lookup", "another model"):
        how = mw.Speculative(DRAFTS[draft](), gamma=0)
        result = mw.generate(TableModel(), "pab abc", seed=1, max_tokens=9, strategy=how)
        assert result.tokens == mw.generate(TableModel(), "pab abc", seed=1, max_tokens=9).tokens
        assert (result.stats.speculation.windows, result.stats.speculation.predicted) == (0, None)


def test_costs_are_learned_by_length() -> None:
    costs = Measured()
    for _ in range(9):
        costs.note_forward(1, 1.0)
        costs.note_forward(7, 2.5)
        costs.note_drafts(4, 0.4)
    assert (costs.verify(1), costs.verify(8)) == pytest.approx((1.0, 2.5))
    assert costs.verify(16) > 2.5  # not seen yet: more than what is shorter
    assert costs.draft(10) == pytest.approx(1.0, rel=0.2)
    for _ in range(30):
        costs.note_forward(1, 9.0)
    assert costs.verify(1) > 8  # a machine that has become slow


# --- trees, regions, streams


def test_trees_take_more_than_chains() -> None:
    taken = {}
    for width in (1, 4):
        model = TableModel(scale=2.0)
        how = mw.Speculative(TableModel(1, scale=0.2), gamma=1, width=width)
        results = mw.generate(model, ["pab abc"] * 4, mw.Regex("[a-f]{60}"), seed=0, strategy=how, max_tokens=70)
        taken[width] = sum(result.stats.speculation.accepted for result in results)
        assert (max(map(len, model.calls)) > 4) == (width > 1)  # this model reads each branch as a row
    assert taken[4] > 1.5 * taken[1]


def test_drafts_cross_from_thinking_to_the_answer_under_their_masks() -> None:
    model = TableModel(scale=0.4)
    model.bias[ord("!")] = 4.0
    thinking, crossed = mw.Thinking(end="!", max_tokens=8), 0
    for draft, variant in (("the same model", "both"), ("always invalid", "target"), ("another model", "coupled")):
        for seed in range(6):
            options = {"thinking": thinking, "seed": seed, "max_tokens": 90}
            how = mw.Speculative(model if draft == "the same model" else DRAFTS[draft](), gamma=6, variant=variant)
            result = mw.generate(model, "p", mw.JsonSchema(KEYED), strategy=how, **options)
            jsonschema.validate(result.value, KEYED)
            assert result.regions["thinking"].tokens[1] <= 8
            if variant == "coupled":
                assert result.tokens == mw.generate(model, "p", mw.JsonSchema(KEYED), **options).tokens
            crossed += result.stats.speculation.accepted
    assert crossed > 50


def test_other_forms_of_generating_take_drafts() -> None:
    model, how = Wordy(), mw.Speculative(Wordy(), gamma=3)
    value = mw.generate_json(model, "p", KEYED, strategy=how, seed=1, max_tokens=90)
    jsonschema.validate(value, KEYED)
    *_, last = mw.stream(model, "p", mw.JsonSchema(KEYED), strategy=how, seed=1, max_tokens=90)
    assert last.value == value
    assert last.result.stats.speculation.acceptance == 1
    assert last.result.stats.drafted > last.result.stats.speculation.tested  # what the grammar drafts comes first
    many = mw.generate(model, ["p", "q"], mw.JsonSchema(KEYED), strategy=how, seed=1, n=2, max_tokens=90)
    assert many[0][0].tokens == last.result.tokens
    plain = mw.generate_regex(model, "p", "[ab]{5}")
    assert mw.generate_regex(model, "p", "[ab]{5}", strategy=mw.Speculative()) == plain


def test_outputs_do_not_depend_on_the_batch() -> None:
    prompts = ["pab abc", "q", "12 34 12", "abcdef"]
    constraint = mw.Regex(r"[a-f]{3,19}( \d{2,5}){2}")
    for draft, width in (("another model", 1), ("another model", 2), ("trigram", 1)):
        how = mw.Speculative(DRAFTS[draft](), width=width)
        together = mw.generate(TableModel(), prompts, constraint, strategy=how, seed=[5, 6, 7, 8], max_tokens=40)
        for prompt, seed, result in zip(prompts, (5, 6, 7, 8), together, strict=True):
            alone = mw.generate(TableModel(), prompt, constraint, strategy=how, seed=seed, max_tokens=40)
            assert alone.tokens == result.tokens


# --- what is refused


class Other(ToyModel):
    """With another vocabulary."""

    def __init__(self, tokens: list[bytes], eos: list[int]) -> None:
        super().__init__()
        self.vocabulary = mw.Vocabulary(tokens, eos_ids=eos)


def test_a_draft_with_another_vocabulary_is_refused_by_its_first_difference() -> None:
    tokens = list(byte_vocabulary().tokens)
    changed = [*tokens[:98], b"other", *tokens[99:]]
    for other, said in (
        (Other(changed, [EOS, STOP]), r"token 98 is b'other' in one and b'b' in the other"),
        (Other([*tokens, b"more"], [EOS, STOP]), "the one has 273 tokens, the other 272"),
        (Other(tokens, [EOS]), r"the EOS tokens are \[270\] in one and \[270, 271\]"),
    ):
        with pytest.raises(mw.GenerationError, match=said):
            mw.generate(ToyModel(), "p", strategy=mw.Speculative(other))


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: mw.Speculative(gamma=-1), ValueError, "gamma is -1"),
        (lambda: mw.Speculative(gamma="some"), ValueError, "gamma is 'some'"),
        (lambda: mw.Speculative(variant="draft"), ValueError, "variant is 'draft'"),
        (lambda: mw.Speculative(width=0), ValueError, "width is 0"),
        (lambda: mw.Speculative(costs=(0.1, -1)), ValueError, r"costs\[1\] is -1"),
        (lambda: mw.Speculative("a model"), TypeError, "draft is str"),
        (lambda: mw.PromptLookup(shortest=5), ValueError, r"shortest is 5; .* longest, which is 4"),
        (lambda: mw.NGram(0), ValueError, "order is 0"),
        (lambda: mw.Heads(3), TypeError, "function is 3"),
        (lambda: mw.generate(ToyModel(), "p", strategy="beam"), ValueError, "strategy is 'beam'"),
        (lambda: mw.generate(ToyModel(), "p", strategy=mw.Speculative(), n=2), ValueError, "greedy"),
        (
            lambda: mw.generate(ToyModel(), "p", strategy=mw.Speculative(mw.Heads(print))),
            mw.GenerationError, "does not give the hidden states",
        ),
        (
            lambda: mw.generate(
                ToyModel(), "p", mw.Regex("a+b"), strategy=mw.Speculative(), sampling=mw.Sampling(lazy_mask=True)
            ),
            ValueError, "lazy_mask does not go with Speculative",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()


# --- random runs


def random_run(seed: int) -> mw.Result:
    """One constraint, draft, rule and seed; checked."""
    draws = random.Random(seed)
    model = ToyModel(seed=draws.randrange(20), scale=draws.choice([1.0, 3.0]))
    name = draws.choice([*SCHEMAS, *REGEXES])
    constraint = mw.JsonSchema(SCHEMAS[name]) if name in SCHEMAS else mw.Regex(REGEXES[name])
    how = mw.Speculative(
        DRAFTS[draws.choice(list(DRAFTS))](), gamma=draws.choice([1, 2, 4, 8, "auto"]),
        variant=draws.choice(["both", "target", "coupled"]), width=draws.choice([1, 1, 2, 3]),
    )  # fmt: skip
    rule = draws.choice([mw.Sampling(0), mw.Sampling(), mw.Sampling(1.3, top_p=0.95, frequency_penalty=0.3)])
    result = mw.generate(model, "a prompt", constraint, strategy=how, sampling=rule, seed=seed, max_tokens=120)
    assert result.valid, (name, how)
    assert len(result.tokens) <= 120
    if name in SCHEMAS:
        jsonschema.validate(result.value, SCHEMAS[name])
    else:
        assert re.fullmatch(REGEXES[name], result.text)
    return result


@pytest.mark.parametrize("seed", range(24))
def test_random_runs_are_valid(seed: int) -> None:
    random_run(seed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_thousand_random_runs_are_valid() -> None:
    results = [random_run(seed) for seed in range(1000, 2000)]
    assert sum(result.stats.speculation.accepted for result in results) > 1000
