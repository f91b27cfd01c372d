"""Random vocabularies with nasty merges, partly cut out of texts of the language that they are used for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from laws import coverage
from maskwright.reference.language import EMPTY, Node, derive, first_bytes

MERGES = (
    b'"}', b'":', b'": ', b'","', b'", "', b'{"', b'"]', b"},", b"}}", b"]]", b"],[", b'{"a":', b'"a":1,"b":', b"{}",
    b"[]", b"[[", b"null", b"true", b"false", b"tru", b"1,", b"12", b"-1", b"0.", b".0", b"e+1", b"1}", b"   ",
    b"\n\n", b"\n    ", b"\n" + b" " * 21, b" " * 9, b"\t\t", b"\r\n", b"\\", b'\\"', b"\\n", b"\\u00", b"\\u0",
    b"\\ud83d", b"\\ude00", b"\\/", b'\\"}', b'""', b'"",', b"aa", b"ab", b"aab", b'ab"', b'a","', b"\xc3",
    b"\xc3\xa9", b'\xa9"', b"a\xc3", b"\xf0\x9f", b"\x98\x80", b"\xf0\x9f\x98\x80", b"\x80\xf0", b"\xe2\x82", b"\xff",
    b'": {"', b'":["', b'"}]}', b" :", b" ,", b"  \n", b"abab", b'aaaaaaaaaaaa', b'aaa"}',
)  # fmt: skip

coverage.expect(
    "vocabulary",
    ["byte-complete", "incomplete", "quote-with-closer", "split-utf8", "long-space", "duplicate", "empty",
    "special-with-text", "two-eos", "long-token", "from-text", "eos-among-text"],
)

LIKELY = b'"}]:,{[ab01\\' + "é€😀".encode()


@dataclass(frozen=True)
class VocabularyCase:
    """Tokens by id, the ids that end a text, the ids that are never text."""

    tokens: tuple[bytes, ...]
    eos_ids: tuple[int, ...]
    special_ids: tuple[int, ...]
    constructs: frozenset[str]


def sample(language: Node, rng: random.Random, most: int = 40) -> bytes:
    """A prefix of a text, by a walk over bytes that prefers those with which texts rarely go on for ever."""
    out = bytearray()
    node = language
    while node is not EMPTY and len(out) < most:
        bytes_ = list(first_bytes(node))
        if not bytes_ or (node.nullable and rng.random() < 0.3):
            break
        likely = [b for b in bytes_ if b in LIKELY]
        byte = rng.choice(likely if likely and rng.random() < 0.8 else bytes_)
        out.append(byte)
        node = derive(node, bytes((byte,)))
    return bytes(out)


def pieces(language: Node, rng: random.Random, count: int) -> list[bytes]:
    """Tokens cut out of texts of the language: they span keys, values and closers as merges of real tokenizers do."""
    found: list[bytes] = []
    while len(found) < count:
        text = sample(language, rng)
        at = rng.randrange(len(text) + 1)
        length = rng.choice((2, 2, 3, 3, 4, 6, 9, 14))
        found.append(text[at : at + length])
    return found


def vocabulary(rng: random.Random, language: Node, complete: bool | None = None) -> VocabularyCase:
    """A vocabulary for a language that is not empty; byte-complete or not, or as asked for."""
    is_complete = rng.random() < 0.6 if complete is None else complete
    cut = pieces(language, rng, rng.randint(1, 12))
    tokens: list[bytes] = rng.sample(MERGES, rng.randint(2, 20)) + cut
    if is_complete:
        tokens += [bytes((b,)) for b in range(256)]
    else:
        texts = [sample(language, rng, 80) for _ in range(4)]
        known = sorted({b for text in texts for b in text} | set(b'"{}[]:,01ae'))
        lacking = set(rng.sample(known, min(len(known), rng.randint(0, 4))))
        tokens += [bytes((b,)) for b in known if b not in lacking] or [b"a"]
    if rng.random() < 0.5:
        tokens += rng.sample(tokens, 3)
    tokens += [b""] * rng.choice((0, 0, 1, 2))
    rng.shuffle(tokens)
    specials = rng.sample(MERGES, rng.choice((0, 0, 1, 3)))
    ends = [rng.choice((b"<eos>", b'"', b"a", b"")) for _ in range(rng.randint(1, 2))]
    return _assemble(tokens, specials, ends, rng, is_complete, bool(cut))


def _assemble(
    tokens: list[bytes], specials: Sequence[bytes], ends: Sequence[bytes], rng: random.Random, complete: bool, cut: bool
) -> VocabularyCase:
    """Shuffle the special tokens in, so that ids of no kind are contiguous."""
    marked = [(t, "text") for t in tokens] + [(t, "special") for t in specials] + [(t, "eos") for t in ends]
    if rng.random() < 0.7:
        rng.shuffle(marked)
    eos_ids = tuple(i for i, (_, kind) in enumerate(marked) if kind == "eos")
    special_ids = tuple(i for i, (_, kind) in enumerate(marked) if kind == "special")
    text = [token for token, kind in marked if kind == "text"]
    uses = {
        "byte-complete": complete,
        "incomplete": not complete,
        "quote-with-closer": any(b'"}' in t or b'"]' in t for t in text),
        "split-utf8": any(t and (t[-1] >= 0xC0 or 0x80 <= t[0] < 0xC0) and len(t) > 1 for t in text),
        "long-space": any(len(t) > 3 and not t.strip() for t in text),
        "duplicate": len(set(text)) < len(text),
        "empty": b"" in text,
        "special-with-text": any(token for token in specials),
        "two-eos": len(eos_ids) > 1,
        "long-token": any(len(t) > 8 for t in text),
        "from-text": cut,
        "eos-among-text": bool(eos_ids) and eos_ids[0] < len(text) // 2,
    }
    constructs = frozenset(name for name, hit in uses.items() if hit)
    return VocabularyCase(tuple(t for t, _ in marked), eos_ids, special_ids, constructs)
