"""Text from tokens: UTF-8 and stop strings across tokens, and what may be shown of it when (R41 of the engine)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.models import EOS, TOKENS, byte_vocabulary
from maskwright.engine.text import Detokenizer

VOCABULARY = byte_vocabulary()


def spell(data: bytes, cuts: list[bool]) -> list[int]:
    """Token ids of some bytes: at each place the longest merge that fits, if the cuts say so."""
    ids, at = [], 0
    while at < len(data):
        fitting = [i for i in range(256, len(TOKENS)) if data.startswith(TOKENS[i], at)]
        take = max(fitting, key=lambda i: len(TOKENS[i])) if fitting and cuts[at % len(cuts)] else data[at]
        ids.append(take)
        at += len(TOKENS[take])
    return ids


def feed(tokens: list[int], stops: tuple[str, ...] = ()) -> tuple[Detokenizer, list[tuple[str, list[int]]], int | None]:
    """Feeds tokens as a generation does: up to the first stop, showing what can be shown after each."""
    text, shown, sent = Detokenizer(VOCABULARY, stops), [], 0
    for fed, token in enumerate(tokens, 1):
        found = text.push(token)
        if found:
            return text, shown, found[0][1]
        part, count = text.take()
        if count:
            shown.append((part, tokens[sent : sent + count]))
            sent += count
        assert text.safe_length() <= len(text.text)
        assert fed >= sent
    text.finish()
    return text, shown, None


texts = st.text(st.sampled_from('ab\n é€"{}😀the'), max_size=30)
noise = st.binary(max_size=12)
byte_strings = st.lists(st.one_of(texts.map(str.encode), noise), max_size=4).map(b"".join)
stop_strings = st.lists(st.text(st.sampled_from("ab\n é€😀"), min_size=1, max_size=4), max_size=3).map(tuple)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.one_of(texts.map(str.encode), noise), max_size=4).map(b"".join),
    stop_strings,
    st.lists(st.booleans(), min_size=1),
)
def test_R41_what_is_shown_adds_up_to_the_final_text(data: bytes, stops: tuple[str, ...], cuts: list[bool]) -> None:
    tokens = spell(data, cuts)
    text, shown, cut = feed(tokens, stops)
    final = text.text if cut is None else text.text[:cut]
    sent = sum(len(ids) for _, ids in shown)
    rest, _ = text.take_rest(final)
    assert "".join(part for part, _ in shown) + rest == final
    for part, ids in shown:  # the ids of a piece spell its text, and nothing that the final text lacks
        assert VOCABULARY.decode(ids).decode("utf-8", "replace") == part
    whole = VOCABULARY.decode(tokens).decode("utf-8", "replace")
    ends = [(whole.find(stop) + len(stop), whole.find(stop)) for stop in stops if stop in whole]
    if cut is None:
        assert final == whole
        assert not ends
        assert sent <= len(tokens)
    else:
        # It stops at the string that ends first; where two end together, the longer one is cut.
        assert final == whole[: min(ends)[1]]


@pytest.mark.parametrize(
    ("pieces", "stops", "final"),
    [
        ([b"ab", b"STO", b"P", b"x"], ("STOP",), "ab"),  # across tokens
        ([b"STOPab"], ("STOP",), ""),  # at the start, within a token
        (["x€".encode()[:2], "€".encode()[1:], b"y"], ("€",), "x"),  # within a character
        ([b"aab", b"aac"], ("aac",), "aab"),  # a false start
        ([b"a\n", b"\n", b"b"], ("\n\n",), "a"),
        ([b"abc"], ("bc", "abc"), ""),  # both end here, the longer begins first
        ([b"abc"], ("b", "abc"), "a"),  # the first to end
    ],
)
def test_R41_stop_strings(pieces: list[bytes], stops: tuple[str, ...], final: str) -> None:
    text, shown, cut = feed([byte for piece in pieces for byte in piece], stops)
    assert cut is not None
    assert text.text[:cut] == final
    assert final.startswith("".join(part for part, _ in shown))


def test_tokens_without_text_say_nothing() -> None:
    text = Detokenizer(VOCABULARY, ())
    for token in (ord("a"), EOS, ord("b")):
        text.push(token)
    assert text.text == "ab"
    assert text.take() == ("ab", 3)


def test_an_incomplete_character_is_held_back_and_replaced_at_the_end() -> None:
    text = Detokenizer(VOCABULARY, ())
    text.push(ord("a"))
    text.push("é".encode()[0])
    assert text.take() == ("a", 1)
    text.finish()
    assert text.take_rest(text.text) == ("�", 1)
