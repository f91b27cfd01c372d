"""Vocabulary from raw bytes: content, identity, errors."""

from __future__ import annotations

import copy
import hashlib
import pickle
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from maskwright import Vocabulary, VocabularyError

TOKENS = [b"a", b"b", b"", b"ab", b"a", b"<s>", b"</s>", b"<end>"]
VALID_UTF8_BYTES = [*range(0xC0), *range(0xC2, 0xF5)]


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary(TOKENS, eos_ids=[7, 6], special_ids=[5])


def test_content(vocabulary: Vocabulary) -> None:
    assert vocabulary.size == len(vocabulary) == 8
    assert list(vocabulary.tokens) == TOKENS
    assert vocabulary.eos_ids == (6, 7)
    assert vocabulary.special_ids == {5, 6, 7}
    assert list(vocabulary.kinds) == [0, 0, 1, 0, 0, 1, 1, 1]
    assert repr(vocabulary) == "Vocabulary(8 tokens, eos_ids=(6, 7), 3 special)"


def test_one_eos_id_and_numpy_ids() -> None:
    assert Vocabulary(TOKENS, eos_ids=7).eos_ids == (7,)
    assert Vocabulary(TOKENS, eos_ids=np.array([7, 6, 7])).eos_ids == (6, 7)
    assert type(Vocabulary(TOKENS, eos_ids=[np.int32(7)]).eos_ids[0]) is int


def test_decode_leaves_out_what_matches_no_text(vocabulary: Vocabulary) -> None:
    assert vocabulary.decode([5, 0, 3, 2, 1, 6]) == b"aabb"
    assert vocabulary.decode(np.array([3, 7])) == b"ab"
    assert vocabulary.decode([]) == b""
    for wrong in (8, -1, True, 1.0):
        with pytest.raises(VocabularyError) as caught:
            vocabulary.decode([0, wrong])
        assert caught.value.location == "ids[1]"


def test_what_was_passed_in_can_change(vocabulary: Vocabulary) -> None:
    tokens = list(TOKENS)
    other = Vocabulary(tokens, eos_ids=[6, 7], special_ids=[5])
    tokens[0] = b"z"
    assert other.tokens[0] == b"a" and other == vocabulary


def test_immutable(vocabulary: Vocabulary) -> None:
    for name in ("size", "tokens", "eos_ids", "special_ids", "kinds", "fingerprint", "core", "anything"):
        with pytest.raises(AttributeError):
            setattr(vocabulary, name, None)
    with pytest.raises(TypeError):
        vocabulary.tokens[0] = b""  # type: ignore[index]


def test_equal_by_content(vocabulary: Vocabulary) -> None:
    twin = Vocabulary(tuple(TOKENS), eos_ids={6, 7}, special_ids=(5, 6))
    assert twin == vocabulary and hash(twin) == hash(vocabulary) and twin.fingerprint == vocabulary.fingerprint
    others = [
        Vocabulary([b"c", *TOKENS[1:]], eos_ids=[6, 7], special_ids=[5]),
        Vocabulary([b"ab", b"", *TOKENS[2:]], eos_ids=[6, 7], special_ids=[5]),
        Vocabulary(TOKENS, eos_ids=[6], special_ids=[5, 7]),
        Vocabulary(TOKENS, eos_ids=[6, 7]),
        Vocabulary([*TOKENS, b""], eos_ids=[6, 7], special_ids=[5]),
        Vocabulary([b"a", b"b", b"ab", b"", *TOKENS[4:]], eos_ids=[6, 7], special_ids=[5]),
    ]
    assert len({v.fingerprint for v in [vocabulary, *others]}) == 7
    assert all(v != vocabulary for v in others) and vocabulary != "vocabulary"


def test_fingerprint_stays() -> None:
    """It names files on disk, so that it must not change between runs, machines and releases."""
    parts = (3, 1, 1, 0), (1, 2)  # each as its count and its members: the lengths of the tokens, the EOS ids
    packed = b"".join(struct.pack(f"<Q{p[0]}I", *p) for p in parts)
    wanted = hashlib.sha256(b"maskwright vocabulary 1\0" + packed + b"\0\0\1" + b"a\xff").hexdigest()
    assert Vocabulary([b"a", b"\xff", b""], eos_ids=[2]).fingerprint == wanted


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_by_content(vocabulary: Vocabulary, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(vocabulary, protocol))
    assert again == vocabulary and again.tokens == vocabulary.tokens and again.special_ids == vocabulary.special_ids
    assert copy.copy(vocabulary) is copy.deepcopy(vocabulary) is vocabulary


@pytest.mark.parametrize(
    ("tokens", "eos_ids", "special_ids", "location", "said"),
    [
        ([b"a", "b", b"c"], [2], [], "token 1", "str, not bytes at token 1. Encode it"),
        ([b"a", None, b"c"], [2], [], "token 1", "NoneType, not bytes"),
        ([b"a", bytearray(b"b"), b"c"], [2], [], "token 1", "bytearray, not bytes"),
        ([b"a", b"b"], [], [], "eos_ids", "no token ends a text"),
        ([b"a", b"b"], [2], [], "eos_ids[0]", "id 2 is out of range, the vocabulary has 2 tokens"),
        ([b"a", b"b"], [1, -1], [], "eos_ids[1]", "id -1 is out of range"),
        ([b"a", b"b"], [np.int64(-1)], [], "eos_ids[0]", "id -1 is out of range"),
        ([b"a", b"b"], [True], [], "eos_ids[0]", "True of type bool, not an integer"),
        ([b"a", b"b"], ["b"], [], "eos_ids[0]", "'b' of type str, not an integer"),
        ([b"a", b"b"], 1.0, [], "eos_ids[0]", "1.0 of type float, not an integer"),
        ([b"a", b"b"], [1], [0, 7], "special_ids[1]", "id 7 is out of range"),
        ([b"a", b"b"], [1], [False], "special_ids[0]", "not an integer"),
        ([b"a", b"b"], [1], [0], None, "no token matches text"),
        ([b"", b"b"], [1], [], None, "no token matches text"),
        ([], [], [], "eos_ids", "no token ends a text"),
    ],
)
def test_errors(tokens, eos_ids, special_ids, location, said) -> None:
    with pytest.raises(VocabularyError) as caught:
        Vocabulary(tokens, eos_ids=eos_ids, special_ids=special_ids)
    assert caught.value.location == location
    assert said in str(caught.value)


@pytest.mark.parametrize("tokens", ["ab", b"ab", 7, None])
def test_no_sequence_of_tokens(tokens) -> None:
    with pytest.raises(TypeError, match="sequence of bytes"):
        Vocabulary(tokens, eos_ids=[0])


def test_core_is_built_once() -> None:
    vocabulary = Vocabulary([b"once", b"only", b"<eos>"], eos_ids=[2])
    start = threading.Barrier(8)

    def core(_: int) -> object:
        start.wait()
        return vocabulary.core

    with ThreadPoolExecutor(8) as pool:
        cores = list(pool.map(core, range(8)))
    assert all(found is cores[0] for found in cores)
    assert cores[0].size == 3
    again = pickle.loads(pickle.dumps(vocabulary))
    assert again.core is vocabulary.core


def test_byte_complete() -> None:
    single = [bytes([b]) for b in VALID_UTF8_BYTES]
    assert Vocabulary([*single, b"<eos>"], eos_ids=[len(single)]).is_byte_complete
    assert Vocabulary([*reversed(single), b"\xff", b"ab", b"<eos>"], eos_ids=[len(single) + 2]).is_byte_complete
    for missing in (0x00, 0x41, 0x80, 0xBF, 0xC2, 0xF4):
        at = VALID_UTF8_BYTES.index(missing)
        without = [*single[:at], bytes([missing, 0x41]), *single[at + 1 :], b"<eos>"]
        assert not Vocabulary(without, eos_ids=[len(single)]).is_byte_complete
        # A special token is no text token.
        assert not Vocabulary([*single, b"<eos>"], eos_ids=[len(single)], special_ids=[at]).is_byte_complete
