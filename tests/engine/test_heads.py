"""The head's rows of allowed tokens alone: the same outputs, and the same of what is told about them."""

from typing import Any

import pytest
import torch

import maskwright as mw
from engine.gguf_files import tiny_llama_bytes
from engine.test_cache import count_reads
from maskwright.engine import heads
from maskwright.engine.load import load_model
from maskwright.engine.native import NativeModel

PATTERNS = [r'\{"the": (true|"[a-f]{1,3}"), "n": \d{1,2}\}', "[a-z ]{3,9}", r"(the|no)+!"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKWRIGHT_CACHE", str(path.parent / "cache"))
        path.write_bytes(tiny_llama_bytes())
        return load_model(path, prefix_cache=0)


def count_heads(patch: pytest.MonkeyPatch) -> list[bool]:
    """Notes of each product with the head whether it was with all of it."""
    wide: list[bool] = []
    inner = NativeModel.logits_of

    def counted(self: Any, states: torch.Tensor, ids: Any = None) -> torch.Tensor:
        wide.append(ids is None)
        return inner(self, states, ids)

    patch.setattr(NativeModel, "logits_of", counted)
    return wide


@pytest.mark.parametrize("sampling", [mw.Sampling(0), mw.Sampling(1.2, top_p=0.9), mw.Sampling(logit_bias={97: 2.0})])
def test_few_allowed_tokens_change_nothing_that_is_told(
    model: Any, sampling: mw.Sampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(4):
        for pattern in PATTERNS:
            prompts, options = ["the", "a the"], {"sampling": sampling, "seed": seed, "max_tokens": 40}
            with monkeypatch.context() as patch:
                wide = count_heads(patch)
                some = mw.generate(model, prompts, mw.Regex(pattern), **options)
            assert False in wide  # some places had their rows alone
            with monkeypatch.context() as patch:
                patch.setattr(NativeModel, "splits_head", False)
                whole = mw.generate(model, prompts, mw.Regex(pattern), **options)
            for one, other in zip(some, whole, strict=True):
                assert (one.tokens, one.finish_reason) == (other.tokens, other.finish_reason)
                assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
                assert one.log_weight == pytest.approx(other.log_weight, abs=1e-4)
                assert all(draw.postponed is None for draw in one.trace[0])
                for a, b in zip(one.trace[0], other.trace[0], strict=True):
                    assert a.token == b.token
                    assert (a.logprob, a.kept) == pytest.approx((b.logprob, b.kept), abs=1e-4)


def test_places_with_many_tokens_have_all_logits(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "_FEW", 1)
    one = mw.generate(model, "the", mw.Regex("[a-c]{5}x{3}"), drafts=False)
    monkeypatch.setattr(heads, "_FEW", 128)
    other = mw.generate(model, "the", mw.Regex("[a-c]{5}x{3}"), drafts=False)
    assert one.tokens == other.tokens
    assert one.log_weight == pytest.approx(other.log_weight, abs=1e-4)


def test_who_looks_at_all_logits_gets_them(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read = count_reads(monkeypatch, model.network, "forward")
    states = count_reads(monkeypatch, model, "forward_states")
    for options in ({"logprobs": 2}, {"sampling": mw.Sampling(presence_penalty=1.0)}, {"processor": lambda _, x: x}):
        mw.generate(model, "the", mw.Regex("[a-c]{3}"), **options)
    assert len(read) >= 9
    assert not states
    mw.generate(model, "the", mw.Regex("[a-c]{3}"))
    assert states


def test_a_cancelled_output_is_measured_as_far_as_it_goes(model: Any) -> None:
    chunks = mw.stream(model, "the", mw.Regex("[a-c]{20}"), max_tokens=30)
    answers = iter([False] * 6 + [True] * 99)

    class Signal:
        def is_set(self) -> bool:
            return next(answers)

    chunks.close()
    result = mw.generate(model, "the", mw.Regex("[a-c]{20}"), max_tokens=30, cancel=Signal())
    assert result.finish_reason == "cancelled"
    assert 0 < len(result.tokens) < 20
    assert result.log_weight < 0
    assert torch.isfinite(torch.tensor([result.logprob, result.log_weight])).all()
