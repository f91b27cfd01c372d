"""Declared terminals that stand for special tokens: exact under every lexer, by the names of the tokens."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import maskwright as mw
from laws.lark_grammars import PAIRS
from maskwright.grammar.descriptions import describe, restore

# All single bytes, 0xff among them, some pieces, two tokens of one name, and the end.
TOKENS = [*(bytes([i]) for i in range(256)), b"ab", b"\xff\x00", b"<go>", b"<go>", b"<stop>", b"<eos>"]
PLAIN_GO, GO, STOP, EOS = 258, 259, 260, 261
VOCABULARY = mw.Vocabulary(TOKENS, eos_ids=[EOS], special_ids=[GO, STOP, EOS])
GRAMMAR = "start: GO word STOP | word\nword: A+\nA: /a(?!c)/ | /[b-c]/\n%declare GO STOP\n"
PLAIN = GRAMMAR.replace("(?!c)", "")
SPECIAL = {"GO": "<go>", "STOP": mw.Special("<stop>")}


def compiled(text: str, parser: str, lexer: str, **options: Any) -> mw.CompiledGrammar:
    grammar = mw.Lark(text, parser=parser, lexer=lexer, **{"special": SPECIAL, **options})
    return mw.compile(grammar, VOCABULARY)


def allowed(matcher: mw.Matcher) -> set[str | int]:
    return {TOKENS[t].decode() if t <= 256 else t for t in matcher.allowed_tokens()}


@pytest.mark.parametrize(("parser", "lexer"), PAIRS)
@pytest.mark.parametrize("ignored", ["", '%ignore " "\n'])
def test_tokens_stand_where_their_terminals_may(parser: str, lexer: str, ignored: str) -> None:
    blank = {" "} if ignored else set()
    matcher = compiled(PLAIN + ignored, parser, lexer).matcher()
    assert allowed(matcher) == {"a", "b", "c", "ab", GO} | blank
    assert matcher.accept(GO)
    assert not matcher.is_accepting
    assert allowed(matcher) == {"a", "b", "c", "ab"} | blank
    assert matcher.accept_text("ab")
    assert allowed(matcher) == {"a", "b", "c", "ab", STOP} | blank
    assert not matcher.fork().accept(GO)
    assert matcher.accept(STOP)
    assert matcher.is_accepting
    assert allowed(matcher) == {EOS} | blank
    matcher.rollback(2)
    assert allowed(matcher) == {"a", "b", "c", "ab"} | blank


@pytest.mark.parametrize("lexer", ["dynamic", "basic"])
def test_a_lookahead_sees_a_token_as_no_character_and_no_end(lexer: str) -> None:
    matcher = compiled(GRAMMAR, "earley", lexer).matcher()
    assert matcher.accept(GO)
    assert matcher.accept_text("a")
    assert allowed(matcher) == {"a", "b", "ab", STOP}
    ends = compiled("start: GO A STOP?\nA: /a$/\n%declare GO STOP\n", "earley", lexer).matcher()
    assert ends.accept(GO)
    assert ends.accept_text("a")
    assert allowed(ends) == {EOS}


def test_the_text_of_a_name_is_no_such_token() -> None:
    matcher = compiled(PLAIN, "lalr", "contextual").matcher()
    assert not matcher.accept_text("<go>")
    assert not matcher.accept(PLAIN_GO)
    assert not matcher.accept(257)
    assert matcher.accept(GO)


def test_the_budget_counts_them() -> None:
    matcher = compiled(PLAIN + '%ignore " "\n', "lalr", "contextual").matcher()
    assert matcher.accept(GO)
    assert matcher.min_tokens_to_accept() >= 2
    assert not matcher.allowed_tokens(max_tokens=1)


def test_over_a_vocabulary_without_single_bytes() -> None:
    tokens = [b"ab", b"b", b"<go>", b"<stop>", b"<eos>"]
    vocabulary = mw.Vocabulary(tokens, eos_ids=[4], special_ids=[2, 3, 4])
    matcher = mw.compile(mw.Lark(PLAIN, special=SPECIAL), vocabulary).matcher()
    assert matcher.allowed_tokens() == [0, 1, 2]
    assert matcher.accept(2)
    assert matcher.allowed_tokens() == [0, 1]
    assert matcher.accept(0)
    assert matcher.allowed_tokens() == [0, 1, 3]


def test_banned_and_doubly_bound_tokens_are_refused() -> None:
    grammar = mw.Lark(PLAIN, special=SPECIAL)
    with pytest.raises(mw.LarkError, match="banned"):
        mw.compile(grammar, VOCABULARY, banned_ids=[STOP])
    with pytest.raises(mw.LarkError, match="bound to GO as well"):
        mw.compile(mw.Lark(PLAIN, special={"GO": "<go>", "STOP": "<go>"}), VOCABULARY)
    for wrong in ("<go>", {"GO": 3}, {"GO": ""}):
        with pytest.raises(TypeError, match="special maps"):
            mw.Lark(PLAIN, special=wrong)  # type: ignore[arg-type]


def test_without_special_nothing_changes_and_with_it_there_is_no_tree() -> None:
    grammar = mw.Lark(PLAIN, parser="lalr", special=SPECIAL)
    assert pickle.loads(pickle.dumps(grammar)) == grammar
    assert restore(describe(grammar), "x") == grammar
    assert grammar != mw.Lark(PLAIN, parser="lalr", special={"GO": "<go>", "STOP": "<other>"})
    assert mw.Lark("start: /a/", special={}) == mw.Lark("start: /a/")
    with pytest.raises(mw.LarkError, match="no parser"):
        grammar.tree("a")
    with pytest.raises(mw.LarkError, match="replays texts"):
        mw.explain(grammar, "a")
