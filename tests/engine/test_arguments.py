"""Arguments that are slips are refused before anything runs, by name."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import maskwright as mw
from engine.models import ToyModel

REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: mw.NGram(33, "abc"), ValueError, "order is 33"),
    (lambda: mw.NGram(0), ValueError, "order is 0"),
    (lambda: mw.Speculative(mw.PromptLookup(), width=65), ValueError, "width is 65"),
    (lambda: mw.Speculative(mw.PromptLookup(), costs=(0.1,)), ValueError, "two numbers"),  # type: ignore[arg-type]
    (lambda: mw.Contrastive(k=257), ValueError, "k is 257"),
    (lambda: mw.generate(ToyModel(), "p", cancel=3), TypeError, "cancel is 3"),  # type: ignore[arg-type]
    (lambda: mw.classify(ToyModel(), "p", ["a"], lookahead="smc"), ValueError, "'exact' or 'certified'"),
    (lambda: mw.topk(ToyModel(), "p", mw.Choice(["a"]), 2.5), TypeError, "integer"),  # type: ignore[arg-type]
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
