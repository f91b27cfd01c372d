"""Objects and arrays ruled by control states, driven through the core's own interface.

A token is allowed where the text so far and its bytes begin one of all the texts, which are listed.
"""

from __future__ import annotations

import json
import random

import pytest

import maskwright as mw
from maskwright import _core
from unit.joint_problems import (
    ANY,
    BOUNDED,
    COMPACT,
    ENDLESS,
    LOOSE,
    ONE,
    PROBLEMS,
    Class,
    State,
    joint,
    lacking,
    lazily,
    members,
    prefixes,
    program,
    random_problem,
    spellable,
    spelled_out,
    texts_of,
    vocabulary_for,
    vocabulary_of,
)


@pytest.mark.parametrize("name", PROBLEMS)
def test_masks_hold_the_tokens_that_begin_a_text(name: str) -> None:
    texts, vocabulary = texts_of(PROBLEMS[name]), vocabulary_for(name)
    live, whole = prefixes(texts), {t.encode() for t in texts}
    tokens, eos = vocabulary.tokens, vocabulary.size - 1
    rng = random.Random(name)
    made = program(PROBLEMS[name], vocabulary)
    for _ in range(40):
        matcher, text = made.matcher(), b""
        while True:
            allowed = set(matcher.allowed_tokens())
            for t, piece in enumerate(tokens[:-1]):
                if spelled_out(text + piece):
                    assert (t in allowed) == (text + piece in live), (text, piece)
            assert (eos in allowed) == (text in whole), text
            choices = [t for t in allowed if t == eos or spelled_out(text + tokens[t])]
            if not choices:
                break
            token = rng.choice(choices)
            assert matcher.accept(token)
            if token == eos:
                break
            text += tokens[token]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("space", [COMPACT, BOUNDED, ANY])
def test_budgets_are_kept(name: str, space: int) -> None:
    vocabulary = vocabulary_for(name)
    made, eos, rng = program(PROBLEMS[name], vocabulary, space), vocabulary.size - 1, random.Random(space)
    for n in range(40):
        matcher = made.matcher()
        left = matcher.min_tokens_to_accept() + 1 + n // 4
        while left > 0:
            plain, allowed = set(matcher.allowed_tokens()), matcher.allowed_tokens(left)
            assert allowed, (left, matcher.min_tokens_to_accept())
            assert plain.issuperset(allowed)
            if left > 40:
                assert plain == set(allowed)
            token = rng.choice(allowed)
            assert matcher.accept(token)
            left -= 1
            if token == eos:
                break
            assert matcher.min_tokens_to_accept() < left
        assert matcher.is_finished


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("space", [COMPACT, BOUNDED, ANY])
@pytest.mark.parametrize("any_escapes", [False, True])
def test_masks_agree_with_what_is_accepted(name: str, space: int, any_escapes: bool) -> None:
    vocabulary = vocabulary_for(name)
    tokens, rng = vocabulary.tokens, random.Random(name)
    made = program(PROBLEMS[name], vocabulary, space, any_escapes)
    whole = {_plain(t) for t in texts_of(PROBLEMS[name])}
    for _ in range(4):
        matcher, text = made.matcher(), b""
        while not matcher.is_finished and len(text) < 60:
            allowed = set(matcher.allowed_tokens())
            for t in range(vocabulary.size):
                fork = matcher.fork()
                assert fork.accept(t) == (t in allowed), (text, tokens[t])
            likely = [t for t in allowed if tokens[t].strip()] or list(allowed)
            token = rng.choice(likely if rng.random() < 0.8 else list(allowed))
            assert matcher.accept(token)
            if token < vocabulary.size - 1:
                text += tokens[token]
        if matcher.is_finished and spelled_out(text):
            assert _plain(text.decode()) in whole


def _plain(text: str) -> str:
    return json.dumps(json.loads(text), separators=(",", ":"))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", [n for n in PROBLEMS if n != "endless"])
def test_vocabularies_that_lack_bytes(name: str, seed: int) -> None:
    texts, vocabulary = texts_of(PROBLEMS[name]), lacking(name, seed)
    tokens, eos, rng = vocabulary.tokens, vocabulary.size - 1, random.Random(seed)
    live, whole = spellable(texts, set(tokens[:-1])), {t.encode() for t in texts}
    made = program(PROBLEMS[name], vocabulary)
    for n in range(10):
        matcher, text = made.matcher(), b""
        left = matcher.min_tokens_to_accept() + n if b"" in live else 0
        while not matcher.is_finished:
            allowed = set(matcher.allowed_tokens())
            for t, piece in enumerate(tokens[:-1]):
                assert (t in allowed) == (text + piece in live), (text, piece)
            assert (eos in allowed) == (text in whole), text
            if not allowed:
                assert b"" not in live
                break
            if n % 2:
                allowed &= set(matcher.allowed_tokens(left + 1))
            token = rng.choice(sorted(allowed))
            assert matcher.accept(token)
            text, left = text + (tokens[token] if token != eos else b""), left - 1


def test_a_key_that_was_typed_does_not_come_again() -> None:
    value = joint(start=State(True, (members(ENDLESS, ONE, then="start"),)))
    matcher = program(value, vocabulary_for("endless")).matcher()
    assert matcher.accept_text('{"a":1,"')
    assert not matcher.fork().accept_text("a")
    assert not matcher.fork().accept_text("\\")
    assert matcher.fork().accept_text('b":1,"bc":1,"bcc":1}')
    assert matcher.accept_text("b")
    assert matcher.fork().accept_text('":1,"bc":1}')
    assert not matcher.fork().accept_text('":1,"b"')
    matcher.rollback(1)
    fork = matcher.fork()
    assert fork.accept_text('bc":1,"b')
    assert fork.accept_text('":1}') and fork.is_accepting
    assert matcher.accept_text('b":1,"bc":1}') and matcher.is_accepting


@pytest.mark.parametrize("seed", range(40))
def test_random_problems(seed: int) -> None:
    rng = random.Random(seed)
    while True:
        value = random_problem(rng)
        texts = texts_of(value)
        if 0 < len(texts) < 8000:
            break
    live, whole = prefixes(texts), {t.encode() for t in texts}
    vocabulary = vocabulary_of(texts, rng)
    tokens, eos = vocabulary.tokens, vocabulary.size - 1
    made = program(value, vocabulary)
    for n in range(6):
        matcher, text = made.matcher(), b""
        left = matcher.min_tokens_to_accept() + 1 + n
        while not matcher.is_finished:
            allowed = set(matcher.allowed_tokens())
            for t, piece in enumerate(tokens[:-1]):
                if spelled_out(text + piece):
                    assert (t in allowed) == (text + piece in live), (text, piece)
            assert (eos in allowed) == (text in whole), text
            if n < 4:
                allowed &= set(matcher.allowed_tokens(left))
                assert allowed
            allowed = {t for t in allowed if t == eos or spelled_out(text + tokens[t])}
            if not allowed:
                break
            token = rng.choice(sorted(allowed))
            assert matcher.accept(token)
            text, left = text + (tokens[token] if token != eos else b""), left - 1


def test_control_states_are_made_when_reached() -> None:
    made, lowering = lazily(PROBLEMS["duplicates"], vocabulary_for("duplicates"))
    matcher = made.matcher()
    assert lowering.reached == ["start"] or lowering.reached == []
    assert matcher.accept_text('{"a":1')
    assert lowering.reached == ["start"]
    assert matcher.accept_text(",")
    assert lowering.reached == ["start", "start2"]


def test_long_chains_of_required_members() -> None:
    n = 3000
    # By hand, since the truth is too long a text for `texts_of`.
    vocabulary = vocabulary_for("array")
    made = _core.Program(vocabulary.core, COMPACT, None)
    root, one = made.new_node(), made.new_node()
    controls = [made.new_node() for _ in range(n + 1)]
    made.define_choice(one, [b"1"])
    made.define_joint_object(root, controls[0])
    for i, control in enumerate(controls[:-1]):
        key = made.new_node()
        made.define_choice_string(key, [f"k{i}".encode()], False)
        made.define_control(control, False, [key], [0, 1], [one], [controls[i + 1]], 0)
    made.define_control(controls[-1], True, [], [0], [], [], -1)
    matcher = made.matcher()
    least = matcher.min_tokens_to_accept()
    assert n < least < 12 * n
    assert matcher.allowed_tokens(least + 1)
    assert not matcher.allowed_tokens(least)


def test_keys_of_a_kind_cost_more_when_the_cheap_ones_are_typed() -> None:
    kind = Class("a|b{5}", ("a", "bbbbb"))
    value = joint(start=State(False, (members(kind, ONE, then="more"),)),
                  more=State(False, (members(kind, ONE, then="end"),)), end=LOOSE)  # fmt: skip
    tokens = [bytes((b,)) for b in range(256)]
    vocabulary = mw.Vocabulary([*tokens, b"<eos>"], eos_ids=[256])
    matcher = program(value, vocabulary).matcher()
    assert matcher.min_tokens_to_accept() == len('{"a":1,"bbbbb":1}')
    assert matcher.accept_text('{"a":1,')
    assert matcher.min_tokens_to_accept() == len('"bbbbb":1}')
    assert matcher.accept_text('"')
    assert matcher.min_tokens_to_accept() == len('bbbbb":1}')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((False, [1], [0, 1], [1], [2], -1), "witness"),
        ((True, [1], [0, 1], [1], [2], 0), "witness"),
        ((False, [1], [0, 1], [1], [2], 1), "witness"),
        ((True, [1], [0, 1], [1], [], -1), "length"),
        ((True, [1], [0], [1], [2], -1), "offset"),
        ((True, [1], [0, 2], [1], [2], -1), "offsets"),
        ((True, [1, 1], [0, 1, 1], [1], [2], -1), "alternatives"),
        ((True, [1, 1], [0, 2, 1], [1], [2], -1), "alternatives"),
        ((True, [9], [0, 1], [1], [2], -1), "node"),
        ((True, [1], [0, 1], [9], [2], -1), "node"),
        ((True, [1], [0, 1], [1], [-1], -1), "node"),
    ],
)
def test_malformed_control_states_are_refused(
    arguments: tuple[bool, list[int], list[int], list[int], list[int], int], message: str
) -> None:
    made = _core.Program(vocabulary_for("array").core, COMPACT, None)
    for _ in range(4):
        made.new_node()
    with pytest.raises(ValueError, match=message):
        made.define_control(0, *arguments)
