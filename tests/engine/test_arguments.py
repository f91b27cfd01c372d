"""Arguments that are slips are refused before anything runs, by name."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from engine.models import ToyModel

REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: mw.NGram(33, "abc"), ValueError, "order is 33"),
    (lambda: mw.NGram(0), ValueError, "order is 0"),
    (lambda: mw.NGram(text=b"a"), TypeError, "text is b'a'"),  # type: ignore[arg-type]
    (lambda: mw.PromptLookup("2"), TypeError, "longest is '2'"),  # type: ignore[arg-type]
    (lambda: mw.PromptLookup(1, 2), ValueError, "shortest is 2; it must be at most longest, which is 1"),
    (lambda: mw.PromptLookup(text="a\ud800"), ValueError, "lone surrogate, .*, at offset 1"),
    (lambda: mw.Speculative(width=65), ValueError, "width is 65"),
    (lambda: mw.Speculative(gamma=True), TypeError, "gamma is True"),
    (lambda: mw.Speculative(gamma="some"), ValueError, "gamma is 'some'; it must be 'auto'"),  # type: ignore[arg-type]
    (lambda: mw.Speculative(costs=(0.1,)), ValueError, "two numbers"),  # type: ignore[arg-type]
    (lambda: mw.Speculative(costs=("a", 1)), TypeError, r"costs\[0\] is 'a'"),  # type: ignore[arg-type]
    (lambda: mw.Contrastive(k=257), ValueError, "k is 257"),
    (lambda: mw.Contrastive(k=1.5), TypeError, "k is 1.5"),  # type: ignore[arg-type]
    (lambda: mw.Beam(True), TypeError, "width is True"),
    (lambda: mw.Contrastive(alpha="1"), TypeError, "alpha is '1'"),  # type: ignore[arg-type]
    (lambda: mw.Beam(5, "power", "1"), TypeError, "alpha is '1'"),  # type: ignore[arg-type]
    (lambda: mw.Beam(2.5), TypeError, "width is 2.5"),  # type: ignore[arg-type]
    (lambda: mw.Beam(2, early_stopping=1), ValueError, "early_stopping is 1; .* True, False or 'never'"),  # type: ignore[arg-type]
    (lambda: mw.Sampling(temperature="1"), TypeError, "temperature is '1'"),  # type: ignore[arg-type]
    (lambda: mw.Sampling(temperature=math.nan), ValueError, "temperature is nan; it must be a finite number"),
    (lambda: mw.Sampling(top_k=True), TypeError, "top_k is True"),
    (lambda: mw.Sampling(top_p=None), TypeError, "top_p is None"),  # type: ignore[arg-type]
    (lambda: mw.Sampling(logit_bias=[1]), TypeError, "logit_bias is .1."),  # type: ignore[arg-type]
    (lambda: mw.Sampling(logit_bias={"a": 1}), TypeError, "an id of logit_bias is 'a'"),  # type: ignore[dict-item]
    (lambda: mw.Sampling(logit_bias={1: "a"}), TypeError, "logit_bias.1. is 'a'"),  # type: ignore[dict-item]
    (lambda: mw.Sampling(penalty_exempt="a"), TypeError, "penalty_exempt is 'a'"),  # type: ignore[arg-type]
    (lambda: mw.Sampling(lazy_mask="yes"), TypeError, "lazy_mask is 'yes'"),  # type: ignore[arg-type]
    (lambda: mw.Lookahead(truncation="yes"), TypeError, "truncation is 'yes'"),  # type: ignore[arg-type]
    (lambda: mw.Lookahead(particles="4"), TypeError, "particles is '4'"),  # type: ignore[arg-type]
    (lambda: mw.Lookahead(epsilon=0), ValueError, "epsilon is 0; it must be a number greater than 0 and less than 1"),
    (lambda: mw.Lookahead(twist="two-step"), ValueError, "twist is 'two-step'"),  # type: ignore[arg-type]
    (lambda: mw.generate(ToyModel(), "p", cancel=3), TypeError, "cancel is 3"),  # type: ignore[arg-type]
    (lambda: mw.generate(ToyModel(), "p", max_tokens="x"), TypeError, "max_tokens is 'x'"),  # type: ignore[arg-type]
    (lambda: mw.generate(ToyModel(), "p", n=0), ValueError, "n is 0"),
    (lambda: mw.generate(ToyModel(), "p", n="2"), TypeError, "n is '2'"),  # type: ignore[arg-type]
    (lambda: mw.generate(ToyModel(), "p", seed="x"), TypeError, "seed is 'x'"),  # type: ignore[arg-type]
    (lambda: mw.generate(ToyModel(), ["p"], seed=["x"]), TypeError, "a seed is 'x'"),  # type: ignore[list-item]
    (lambda: mw.generate(ToyModel(), "p", stop=1.5), TypeError, "a stop is 1.5"),  # type: ignore[arg-type]
    (lambda: mw.generate(ToyModel(), "p", drafts="no"), TypeError, "drafts is 'no'"),  # type: ignore[arg-type]
    (lambda: mw.generate("gpt2", "p"), TypeError, "pass maskwright.load_model.'gpt2'"),  # type: ignore[arg-type]
    (lambda: mw.generate(None, "p"), TypeError, "model is a NoneType"),  # type: ignore[arg-type]
    (lambda: mw.Engine(None), TypeError, "model is a NoneType"),  # type: ignore[arg-type]
    (lambda: mw.Engine(ToyModel(), max_rows="2"), TypeError, "max_rows is '2'"),  # type: ignore[arg-type]
    (lambda: mw.Engine(ToyModel(), max_rows=8, token_budget=4), ValueError, "token_budget is 4"),
    (lambda: mw.classify(ToyModel(), "p", ["a"], lookahead="smc"), ValueError, "'exact' or 'certified'"),
    (lambda: mw.topk(ToyModel(), "p", mw.Choice(["a"]), 2.5), TypeError, "k is 2.5"),  # type: ignore[arg-type]
    (lambda: mw.diagnose([[]], ToyModel().vocabulary), TypeError, "results holds a list"),  # type: ignore[list-item]
    (lambda: mw.diagnose([], ToyModel().vocabulary), ValueError, "at least one"),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_slips_are_refused(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_a_lookahead_that_is_cancelled_before_it_begins() -> None:
    stopped = threading.Event()
    stopped.set()
    result = mw.generate(ToyModel(), "p", mw.Choice(["a", "b"]), lookahead="exact", seed=1, cancel=stopped)
    assert result.finish_reason == "cancelled"
    assert not result.valid


def test_the_greatest_values_are_taken() -> None:
    assert mw.NGram(32, "abc").order == 32
    assert mw.Speculative(mw.PromptLookup(), width=64, costs=(0.1, 0.2)).width == 64
    assert mw.Contrastive(k=256).k == 256
    assert mw.generate(ToyModel(), "p", max_tokens=1, cancel=threading.Event()).tokens


def test_waiting_for_a_result_ends_in_time() -> None:
    engine = mw.Engine(ToyModel())
    handle = engine.submit("p", max_tokens=50)
    with pytest.raises(TimeoutError):
        handle.result(timeout=0)
    assert handle.result(timeout=None).tokens


def test_numbers_of_numpy_are_numbers() -> None:
    assert mw.Sampling(temperature=np.float32(0.5), top_k=np.int64(3)).top_k == 3  # type: ignore[arg-type]
    assert mw.generate(ToyModel(), "p", max_tokens=np.int64(1)).tokens  # type: ignore[arg-type]
