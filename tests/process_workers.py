"""What the tests of processes run elsewhere: in spawned children, and in interpreters of their own.

`python -c "import process_workers as w; w.NAME()"` with this folder on the path: a failed check ends with a traceback.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from pydantic import BaseModel

import maskwright as mw
from maskwright.grammar.automata import automaton

LIMIT = 30  # seconds that a child may take
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-zé]{1,30}( [A-Z][a-z]*)*$", "minLength": 3},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 4},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    },
    "required": ["name", "next"],
}
TEXT = '{"name": "Ada Lovelace", "tags": ["red", "blue"], "next": {"name": "Emil", "next": null}}'
# Patterns that contradict each other, which only shows after millions of states.
HARD: dict[str, Any] = {"type": "string", "allOf": [{"pattern": "a[ab]{21}$"}, {"pattern": "^[ab]*b[ab]{21}$"}]}
PATIENT = mw.CompileLimits(seconds=600, states=10**9)


class Person(BaseModel):
    """A type that pickles by its name."""

    name: str
    age: int


def vocabulary(size: int = 4000) -> mw.Vocabulary:
    """All bytes, and random pieces of the kind of text that the tests are about."""
    rng = random.Random(0)
    pieces = {bytes([b]) for b in range(256)}
    while len(pieces) < size:
        start, length = rng.randrange(len(TEXT)), rng.randint(2, 8)
        noise = "".join(rng.choice('abcdeyzABCé{}[]":, ') for _ in range(length // 2 + 1))
        pieces.add((TEXT[start : start + length] if rng.random() < 0.4 else noise).encode())
    return mw.Vocabulary([*sorted(pieces), b"<eos>"], eos_ids=[size])


def masks(compiled: mw.CompiledGrammar, text: str = TEXT) -> bytes:
    """The masks along a text, character by character."""
    matcher = compiled.matcher()
    row = np.zeros((compiled.vocabulary.size + 31) // 32, dtype=np.int32)
    found = []
    for letter in text:
        matcher.fill_mask(row)
        found.append(row.tobytes())
        assert matcher.accept_text(letter), letter
    assert matcher.is_accepting
    return b"".join(found)


def masks_of_pickled(compiled: mw.CompiledGrammar) -> tuple[str, int, tuple[int, ...], bytes]:
    """What another process makes of a compiled grammar that it was sent."""
    return compiled.constraint.fingerprint(), compiled.limits.states, compiled.banned_ids, masks(compiled)


def error_of(pattern: str) -> None:
    """Raises in another process what the caller has to get whole."""
    mw.compile(mw.Regex(pattern), vocabulary())


def report(constraint: Any, vocab: mw.Vocabulary) -> tuple[Any, str, str]:
    """Constraint, its report and the vocabulary's fingerprint, as another process sees them."""
    return constraint, str(mw.compile(constraint, vocab).report), vocab.fingerprint


def in_child(check: Callable[[], None]) -> None:
    """Runs a check in a forked child, which has to end in time and well."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(LIMIT)  # a lock that stays shut ends here
            check()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with {os.waitstatus_to_exitcode(status)}"


class Load:
    """Threads that use everything, without pause."""

    def __init__(self, vocab: mw.Vocabulary, shared: mw.CompiledGrammar) -> None:
        self.vocab, self.shared = vocab, shared
        self.stop = threading.Event()
        self.errors: list[BaseException] = []
        self.rounds = 0
        jobs = [self.walk, self.compile_patterns, self.compile_schemas, self.batch, self.walk, self.contradict]
        self.threads = [threading.Thread(target=self.loop, args=(job, seed)) for seed, job in enumerate(jobs)]

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def loop(self, job: Callable[[random.Random], None], seed: int) -> None:
        rng = random.Random(seed)
        try:
            while not self.stop.is_set():
                job(rng)
                self.rounds += 1
        except BaseException as error:
            self.errors.append(error)

    def walk(self, rng: random.Random) -> None:
        masks(self.shared)

    def compile_patterns(self, rng: random.Random) -> None:
        low, word = rng.randint(1, 50), "".join(rng.choices("abcdef", k=8))
        compiled = mw.compile(mw.Regex(f"[a-z]{{{low},}}{word}(x|y[0-9]){{2,9}}"), self.vocab)
        matcher = compiled.matcher()
        matcher.fill_mask(np.zeros((self.vocab.size + 31) // 32, dtype=np.int32))
        matcher.min_tokens_to_accept()

    def compile_schemas(self, rng: random.Random) -> None:
        schema = {**SCHEMA, "title": str(rng.random())}
        masks(mw.compile(mw.JsonSchema(schema), self.vocab))

    def batch(self, rng: random.Random) -> None:
        matchers = [self.shared.matcher() for _ in range(8)]
        for count, matcher in enumerate(matchers):
            assert matcher.accept_text(TEXT[: 9 * count])
        mw.fill_bitmask(matchers, mw.allocate_bitmask(8, self.vocab))

    def contradict(self, rng: random.Random) -> None:
        limits = mw.CompileLimits(states=rng.randint(2000, 20000))
        schema = mw.JsonSchema({**HARD, "minLength": rng.randint(1, 10**6)})
        try:
            mw.compile(schema, self.vocab, limits)
        except mw.LimitError:
            return
        raise AssertionError("nothing can settle this")


def fork_under_load() -> None:
    """Forks while other threads are inside the core, the caches and the pool; parent and children go on."""
    vocab = vocabulary()
    shared = mw.compile(mw.JsonSchema(SCHEMA), vocab)
    expected = masks(shared)
    started = shared.matcher()
    assert started.accept_text(TEXT[:20])

    def check(number: int) -> None:
        assert masks(shared) == expected
        assert started.fork().accept_text(TEXT[20:])
        assert masks(mw.compile(mw.JsonSchema({**SCHEMA, "title": f"new {number}"}), vocab)) == expected
        assert masks(mw.compile(mw.JsonSchema(SCHEMA), mw.Vocabulary(vocab.tokens, vocab.eos_ids))) == expected
        assert mw.compile(mw.Regex("[a-z]+" * number), vocab).matcher().accept_text("a" * number)
        bitmask = mw.allocate_bitmask(5, vocab)
        mw.fill_bitmask([shared.matcher() for _ in range(5)], bitmask)
        assert (bitmask == bitmask[0]).all()
        assert started.accept_text(TEXT[20:])

    with Load(vocab, shared) as load:
        while load.rounds < 20:
            time.sleep(0.01)
        for number in range(25):
            in_child(partial(check, number))
    assert masks(shared) == expected
    assert started.accept_text(TEXT[20:])


def fork_during_import() -> None:
    """Forks while another thread imports what a name of the package needs; parent and child both get it."""
    entered = threading.Event()

    class Slow:
        """Finds nothing, and takes its time to do so."""

        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "maskwright.masks" and not entered.is_set():
                entered.set()
                time.sleep(0.5)

    sys.meta_path.insert(0, Slow())  # type: ignore[arg-type]
    vocab = vocabulary(300)
    importing = threading.Thread(target=lambda: mw.allocate_bitmask(1, vocab))
    importing.start()
    assert entered.wait(20)
    in_child(lambda: mw.allocate_bitmask(2, vocab))
    importing.join()
    assert mw.allocate_bitmask(2, vocab).shape[0] == 2


def fork_again_in_children() -> None:
    """Children have children; each uses the pool after its parent did."""
    vocab = vocabulary()
    shared = mw.compile(mw.JsonSchema(SCHEMA), vocab)

    def check(depth: int = 0) -> None:
        bitmask = mw.allocate_bitmask(4, vocab)
        mw.fill_bitmask([shared.matcher() for _ in range(4)], bitmask)
        if depth < 3:
            in_child(partial(check, depth + 1))
        mw.fill_bitmask([shared.matcher() for _ in range(4)], bitmask)

    check()


def exit_under_load() -> None:
    """Returns, and so ends the process, while daemon threads are in the core."""
    vocab = vocabulary()
    load = Load(vocab, mw.compile(mw.JsonSchema(SCHEMA), vocab))
    for thread in load.threads:
        thread.daemon = True
        thread.start()
    while load.rounds < 20:
        time.sleep(0.01)


def interrupt(pause: float, work: Callable[[], object]) -> float:
    """Seconds from Ctrl-C, `pause` seconds after the start of `work`, to the KeyboardInterrupt."""
    sent = [0.0]

    def press() -> None:
        time.sleep(pause)
        sent[0] = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    try:
        work()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    finally:
        presser.join()
    raise AssertionError("the work was done before it was interrupted")


def interrupt_long_compiles() -> None:
    """Ctrl-C comes through at once while the core decides emptiness, and the compile can be done again."""
    vocab = vocabulary()
    assert vocab.core.size == vocab.size
    hard = mw.JsonSchema(HARD)
    works = {
        "compile": lambda: mw.compile(hard, vocab, PATIENT),
        "compile_many": lambda: mw.compile_many([mw.Regex("a"), hard, mw.Regex("b")], vocab, PATIENT),
    }
    for name, work in works.items():
        times: list[float] = []
        while len(times) < 6 and not (times and min(times) < 0.2):
            times.append(interrupt(0.3, work))
        assert min(times) < 0.2, f"{name}: {times}"
    masks(mw.compile(mw.JsonSchema(SCHEMA), vocab))


def interrupt_large_automaton() -> None:
    """Ctrl-C during the making of a large automaton, which one call into the core does."""
    term = mw.Regex("|".join(f"word{n}x{n * 7919 % 10007}" for n in range(12_000))).language()
    make = partial(automaton.__wrapped__, term)  # what the cache calls
    start = time.perf_counter()
    assert make().matches("word7x5398")
    whole = time.perf_counter() - start
    for share in (0.1, 0.3, 0.5):
        assert interrupt(share * whole, make) < 0.2 + 0.2 * whole
    assert make().matches("word7x5398")
