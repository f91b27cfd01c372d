"""Random grammars: every text that lark parses can be produced, and every complete output parses under lark.

For each grammar, over short texts and complete outputs that were changed a little, the verdict is lark's; random walks
over the masks of two vocabularies, of three, end in a text that lark parses, by the way that the costs tell; masks hold
exactly the tokens that are accepted.
"""

from __future__ import annotations

import logging
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import product
from types import FrameType

import lark  # at once: half an import, when a limit strikes in it, stays
import pytest

import maskwright as mw
from laws.lark_grammars import CONSTRUCTS, PAIRS, GrammarCase, random_grammar
from maskwright.reference.lark import LarkOracle

BYTES = [bytes([i]) for i in range(256)]
MERGES = [b"ab", b"aa", b" a", b"ba ", b"abc", b"  ", b"cb", b"bab", b" c", b"\na", b"b\n"]


def vocabulary(tokens: list[bytes]) -> mw.Vocabulary:
    return mw.Vocabulary([*tokens, b"<eos>"], eos_ids=[len(tokens)], special_ids=[len(tokens)])


VOCABULARIES = {
    "bytes": vocabulary(BYTES + MERGES),
    "characters": vocabulary([b for b in BYTES if b not in (b"b", b"B")] + [m for m in MERGES if b"b" not in m]),
    "pieces": vocabulary([b"a", b"ab", b"b ", b"cb", b"  ", b"aac", b" c", b"ba", b"A", b"b", b"bc", b"\n", b"a\n"]),
}


class Slow(BaseException):
    """A step took too long; not an Exception, lest something swallow it."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Ends what takes longer, in CPU time, so that a busy machine changes no verdict."""

    def stop(_: int, frame: FrameType | None) -> None:
        # What a callback of the garbage collector raises is lost: the next tick will do.
        if frame is None or frame.f_code.co_name != "gc_callback":
            raise Slow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def accepts(compiled: mw.CompiledGrammar, text: str) -> bool:
    matcher = compiled.matcher()
    return bool(matcher.accept_text(text) and matcher.is_accepting)


def finish(matcher: mw.Matcher, tokens: list[bytes], text: bytes) -> bytes:
    """Goes down the costs to the end: each step has a token that lowers them."""
    cost = matcher.min_tokens_to_accept()
    while not matcher.is_accepting:
        best: tuple[int, int] | None = None
        for token in (t for t in matcher.allowed_tokens() if t < len(tokens)):
            after = matcher.fork()
            assert after.accept(token)
            best = min(best or (1 << 30, 0), (after.min_tokens_to_accept(), token))
        assert best is not None, f"a dead end behind {text!r}"
        assert best[0] < cost, f"no token lowers the cost {cost} behind {text!r}"
        cost = best[0]
        assert matcher.accept(best[1])
        text += tokens[best[1]]
    return text


def walk(compiled: mw.CompiledGrammar, rng: random.Random, oracle: LarkOracle) -> str:
    """A complete text, of some random tokens and a way to the end."""
    tokens = list(compiled.vocabulary.tokens[:-1])
    matcher, text = compiled.matcher(), b""
    for _ in range(rng.randint(1, 6)):
        allowed = [t for t in matcher.allowed_tokens() if t < len(tokens)]
        assert allowed == [t for t in range(len(tokens)) if matcher.fork().accept(t)], text
        plain = [t for t in allowed if tokens[t].isascii()]
        if not plain:
            break
        token = rng.choice(plain)
        assert matcher.accept(token)
        text += tokens[token]
    text = finish(matcher, tokens, text)
    assert oracle.accepts(text.decode()) is not False, text
    return text.decode()


@lru_cache
def all_texts(alphabet: str, most: int) -> list[str]:
    return ["".join(p) for n in range(most + 1) for p in product(alphabet, repeat=n)]


def mutated(text: str, alphabet: str, rng: random.Random) -> str:
    """The text with a few letters left out, put in or changed."""
    for _ in range(rng.randint(1, 2)):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(("", *alphabet)) + text[at + rng.randint(0, 1) :]
    return text


def draw(rng: random.Random, pair: tuple[str, str]) -> GrammarCase:
    """A random grammar; most are ambiguous, which lalr refuses, so there it is the first of some that lark takes."""
    case = random_grammar(rng, *pair)
    for _ in range(3 if pair[0] == "lalr" else 0):
        with suppress(Slow):
            if oracle_of(case) is not None:
                break
        case = random_grammar(rng, *pair)
    return case


def oracle_of(case: GrammarCase) -> LarkOracle | None:
    """None where lark refuses the grammar, by whatever exception. Raises Slow."""
    with suppress(Exception), limit(3):
        return LarkOracle(case.text, case.options)
    return None


def compared(case: GrammarCase, rng: random.Random, length: int, most: int = 400) -> str:
    """Holds one grammar against lark, on some (at most) of the texts of a length, and on others; what became of it."""
    texts = all_texts(case.alphabet, length)
    texts = texts if len(texts) <= most else rng.sample(texts, most)
    refusal: mw.ConstraintError | None = None
    try:
        oracle = None if case.options["parser"] == "cyk" else oracle_of(case)  # over unit cycles cyk hangs
    except Slow:
        return "lark is slow"
    try:
        with limit(60):
            compiled = mw.compile(mw.Lark(case.text, **case.options), VOCABULARIES["bytes"])
    except Slow:
        raise AssertionError("the compile hangs") from None
    except mw.ConstraintError as error:
        assert error.location
        refusal = error
    if refusal is not None and not isinstance(refusal, mw.UnsatisfiableError):
        return "refused"
    oracle = oracle or oracle_of(case)
    if oracle is None:
        assert refusal is not None, "lark refuses the grammar"
        return "refused"
    try:
        with limit(5):
            verdicts = {text: oracle.accepts(text) for text in texts}
    except Slow:
        return "lark is slow"
    if refusal is not None:
        assert not any(verdicts.values()), "unsatisfiable, but lark parses some text"
        return "unsatisfiable"
    for text, verdict in verdicts.items():
        assert verdict is None or accepts(compiled, text) == verdict, (text, verdict)
    for name in ("bytes", rng.choice(("characters", "pieces"))):
        try:
            grammar = mw.compile(mw.Lark(case.text, **case.options), VOCABULARIES[name])
        except mw.UnsatisfiableError:
            assert name != "bytes"
            continue
        text = walk(grammar, rng, oracle)
        for other in (mutated(text, case.alphabet, rng) for _ in range(4)):
            verdict = oracle.accepts(other)
            assert verdict is None or accepts(compiled, other) == verdict, (other, verdict)
    return "compared"


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize(
    "count", [120, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(28_800)])], ids=["few", "many"]
)
def test_language_is_larks(pair: tuple[str, str], count: int) -> None:
    lark.logger.setLevel(logging.CRITICAL)
    outcomes: Counter[str] = Counter()
    for seed in range(count):
        rng = random.Random(f"{pair}.{seed}")
        case = draw(rng, pair)
        try:
            outcomes[compared(case, rng, *((3, 40) if count < 1000 else (4, 400)))] += 1
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {case.options}:\n{case.text}\n{error}") from error
    print(*pair, dict(outcomes))
    assert outcomes["compared"] >= count // 4, outcomes


def test_every_construct_occurs() -> None:
    seen: Counter[str] = Counter()
    for pair in PAIRS:
        for seed in range(300):
            seen.update(random_grammar(random.Random(f"{pair}.{seed}"), *pair).constructs)
    print({c: f"{seen[c] / (3 * len(PAIRS)):.0f} %" for c in CONSTRUCTS})
    assert {c for c in CONSTRUCTS if seen[c] < 0.02 * 300 * len(PAIRS)} == set(), seen
