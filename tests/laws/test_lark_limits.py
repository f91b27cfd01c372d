"""The search for dead ends: it ends, it can be stopped, and nothing is left of it for the middle of a generation."""

from __future__ import annotations

import itertools
import logging
import random
import signal
import threading
from collections.abc import Callable

import pytest

import maskwright as mw
from laws.lark_grammars import PAIRS
from laws.test_lark_laws import VOCABULARIES, draw, oracle_of, vocabulary, walk

# Ways through it are as many as there are texts: an earlier form of the search did not end over eleven tokens.
AMBIGUOUS = """
start: r3 T2 (T1 (r0 T0 r3 | T1 "ba")? | start (T2 r0)) | T2 | T3 start | T3
r0: T3 | r0 T2 | (T0 r2) ~ 1..2 | "aB"i T0 | r2 start (r2 r3)
r1: r0 r2 | (r2 | T2 (r1)? "ab" | (r3 | T2 r0)* r1 T1)? | T3 r1 | T1 | T0
r2: (start T0 | r1) ~ 1..2 ([r0 | /[^c]/ T0] r0 T0 | "aa" "ab" | T1 r0)? | T3
r3: [[T0 T2 | start] (T2 r2 T1 | "A"i r2 | r1 /c.?/)+ | T2 r1 "c"] start | r1
T0: /c.?/
T1: /[^c]/
T2: /(ab)+/
T3: "a b"
"""
# Whose guards are many sets, which forbid the same.
GUARDED = """
start: T0 | T0 T0 T0 | _T2 | [start (start | r0 r1 T0 | T1 r1)* | T0] (/b(?!.*c)/ | T1) ~ 2
r0: _T2 r0 | r0 | T0 _T2 r1 | T0
r1: _T2 | T0
T0: "A"i
T1: "a b" | /(^a|b)+/
_T2: (/b(?!.*c)/)+
%ignore /^c| /
"""
# No single bytes, and so many places in the trie of the tokens that it takes minutes.
WIDE = vocabulary(["".join(p).encode() for p in itertools.product("abc", repeat=5)] + [b" "])


@pytest.mark.parametrize("name", ["bytes", "pieces"])
@pytest.mark.parametrize(("text", "lexer"), [(AMBIGUOUS, "dynamic_complete"), (GUARDED, "dynamic")])
def test_what_did_not_end_does(text: str, lexer: str, name: str) -> None:
    matcher = mw.compile(mw.Lark(text, lexer=lexer), VOCABULARIES[name]).matcher()
    assert matcher.allowed_tokens()


def wide(limits: mw.CompileLimits | None = None, cancel: threading.Event | None = None) -> None:
    mw.compile(mw.Lark(AMBIGUOUS, lexer="dynamic_complete"), WIDE, limits=limits, cancel=cancel)


def test_too_long_a_search_is_an_error_that_names_the_rule() -> None:
    with pytest.raises(mw.LimitError, match="too many ways lead through rule") as caught:
        wide(mw.CompileLimits(seconds=0.5))
    assert caught.value.location.startswith("line")
    assert "CompileLimits.seconds" in (caught.value.hint or "")
    assert "token for every byte" in (caught.value.hint or "")


def ended(threads_before: set[threading.Thread]) -> bool:
    """The core has stopped searching."""
    for thread in set(threading.enumerate()) - threads_before:
        if thread.name == "maskwright-core":
            thread.join(30)
            if thread.is_alive():
                return False
    return True


def test_a_cancelled_search_stops() -> None:
    before, cancel = set(threading.enumerate()), threading.Event()
    timer = threading.Timer(0.3, cancel.set)
    timer.start()
    with pytest.raises(mw.LimitError, match="cancelled"):
        wide(mw.CompileLimits(seconds=600), cancel)
    timer.join()
    assert ended(before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals here")
def test_an_interrupted_search_stops() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before: set[threading.Thread] = set(threading.enumerate())
    old: Callable[..., object] | int | None = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            wide(mw.CompileLimits(seconds=600))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert ended(before)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_generation_meets_nothing_that_the_compile_did_not(pair: tuple[str, str]) -> None:
    logging.getLogger("lark").setLevel(logging.CRITICAL)
    searched = 0
    for seed in range(60):
        rng = random.Random(f"limits.{pair}.{seed}")
        case = draw(rng, pair)
        try:
            grammar = mw.compile(mw.Lark(case.text, **case.options), VOCABULARIES["bytes"])
        except mw.ConstraintError:
            continue
        core = grammar._plan.grammar  # type: ignore[attr-defined]
        before = core.counts()
        oracle = oracle_of(case)
        if core.survey() == 1 or oracle is None:
            continue
        walk(grammar, rng, oracle)
        assert core.counts()[:2] == before[:2], case.text
        searched += 1
        if searched == 8:
            return
    assert searched >= 4
