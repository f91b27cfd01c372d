"""Objects and arrays ruled by control states, driven through the core's own interface.

The truth is a list of all texts, spelled out member by member; a token is allowed where the text so far and its bytes
begin one of them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

import pytest

import maskwright as mw
from maskwright import _core
from maskwright.grammar.automata import automaton
from maskwright.grammar.regex import pattern_ir

COMPACT, BOUNDED, ANY = 0, 1, 2
LONGEST = 6  # of the keys of an infinite class, those up to here are spelled out


@dataclass(frozen=True)
class Name:
    """A key that is fixed."""

    text: str


@dataclass(frozen=True)
class Class:
    """Keys that a pattern matches; `texts` are all of them, or those up to a length."""

    pattern: str
    texts: tuple[str, ...]


Key = Name | Class
Entry = tuple[Key, tuple[tuple["Value", str], ...]]  # alternatives: a value, the name of the next state


@dataclass(frozen=True)
class State:
    """A control state; of an array with `items` alone."""

    may_close: bool
    entries: tuple[Entry, ...] = ()
    items: tuple[tuple[Value, str], ...] = ()


@dataclass(frozen=True)
class Texts:
    """A value that is one of some JSON texts."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Joint:
    """An object or array, by its control states; it starts in the state called "start"."""

    states: tuple[tuple[str, State], ...]
    is_array: bool = False

    def state(self, name: str) -> State:
        return dict(self.states)[name]


Value = Texts | Joint


def literal(*texts: str) -> Texts:
    return Texts(texts)


def joint(is_array: bool = False, **states: State) -> Joint:
    return Joint(tuple(states.items()), is_array)


# ---------------------------------------------------------------- the truth


def texts_of(value: Value) -> list[str]:
    """All its texts, without white space."""
    if isinstance(value, Texts):
        return list(value.texts)
    closing = "[]" if value.is_array else "{}"
    return [closing[0] + ",".join(members) + closing[1] for members in _rests(value, "start", ())]


def _rests(value: Joint, name: str, typed: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    state = value.state(name)
    if state.may_close:
        yield ()
    for item, after in state.items:
        for text, rest in product(texts_of(item), list(_rests(value, after, ()))):
            yield (text, *rest)
    for key, alternatives in state.entries:
        for name_ in (key.text,) if isinstance(key, Name) else key.texts:
            if isinstance(key, Class) and name_ in typed:
                continue
            known = typed if isinstance(key, Name) else (*typed, name_)
            for item, after in alternatives:
                for text, rest in product(texts_of(item), list(_rests(value, after, known))):
                    yield (f"{quoted(name_)}:{text}", *rest)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# ---------------------------------------------------------------- the program


@dataclass
class Lowering:
    """Makes the nodes of a value when they are reached; counts the control states that were."""

    any_escapes: bool = False
    reached: list[str] = field(default_factory=list)
    todo: dict[int, Callable[[_core.Program, int], None]] = field(default_factory=dict)
    nodes: dict[object, int] = field(default_factory=dict)

    def node(self, program: _core.Program, what: object, make: Callable[[_core.Program, int], None]) -> int:
        if what not in self.nodes:
            self.nodes[what] = program.new_node()
            self.todo[self.nodes[what]] = make
        return self.nodes[what]

    def __call__(self, program: _core.Program, node: int) -> None:
        self.todo[node](program, node)

    def value(self, program: _core.Program, value: Value) -> int:
        if isinstance(value, Texts):
            texts = [t.encode() for t in value.texts]
            return self.node(program, value, lambda p, n: p.define_choice(n, texts))

        def make(p: _core.Program, n: int) -> None:
            define = p.define_joint_array if value.is_array else p.define_joint_object
            define(n, self.control(p, value, "start"))

        return self.node(program, value, make)

    def key(self, program: _core.Program, key: Key) -> int:
        if isinstance(key, Name):
            name = key.text.encode()
            return self.node(program, key, lambda p, n: p.define_choice_string(n, [name], self.any_escapes))
        regex = automaton(pattern_ir(key.pattern, "python", "full", 0, 10_000))
        return self.node(program, key, lambda p, n: p.define_key(n, regex, self.any_escapes))

    def control(self, program: _core.Program, value: Joint, name: str) -> int:
        def make(p: _core.Program, n: int) -> None:
            self.reached.append(name)
            state = value.state(name)
            keys, offsets, children, nexts = [], [0], [], []
            for key, alternatives in [*state.entries, *([(None, state.items)] if value.is_array else [])]:
                if key is not None:
                    keys.append(self.key(p, key))
                children += [self.value(p, v) for v, _ in alternatives]
                nexts += [self.control(p, value, after) for _, after in alternatives]
                offsets.append(len(children))
            p.define_control(n, state.may_close, keys, offsets, children, nexts, _witness(value, state))

        return self.node(program, (value, name), make)


def _witness(value: Joint, state: State) -> int:
    if state.may_close:
        return -1
    after = [then for _, alternatives in state.entries for _, then in alternatives] + [then for _, then in state.items]
    return min(range(len(after)), key=lambda a: _members(value, after[a]))


@lru_cache
def _members(value: Joint, name: str) -> int:
    """The fewest members to the end; states of a circle must be able to close."""
    state = value.state(name)
    if state.may_close:
        return 0
    after = [then for _, alternatives in state.entries for _, then in alternatives] + [then for _, then in state.items]
    return 1 + min(_members(value, then) for then in after)


def program(value: Value, vocabulary: mw.Vocabulary, space: int = COMPACT, any_escapes: bool = False) -> _core.Program:
    return lazily(value, vocabulary, space, any_escapes)[0]


def lazily(
    value: Value, vocabulary: mw.Vocabulary, space: int = COMPACT, any_escapes: bool = False
) -> tuple[_core.Program, Lowering]:
    lowering = Lowering(any_escapes)
    made = _core.Program(vocabulary.core, space, lowering)
    assert lowering.value(made, value) == 0
    return made, lowering


# ---------------------------------------------------------------- problems

A = Class("a|b|ab|abc", ("a", "b", "ab", "abc"))
TWO = Class("a|b", ("a", "b"))
ENDLESS = Class("a|bc*", ("a", *("b" + "c" * n for n in range(LONGEST))))
NASTY = Class('q["\\n\\\\é€]?', ("q", 'q"', "q\n", "q\\", "qé", "q€"))
TREE = Class("é{1,3}|€é", ("é", "éé", "ééé", "€é"))
ONE, DIGITS, NULL = literal("1"), literal("1", "12", "123"), literal("null", "1")

LOOSE = State(True)


def _members_of(key: Key, *values: Value, then: str) -> Entry:
    return key, tuple((v, then) for v in values)


PROBLEMS: dict[str, Joint] = {
    "duplicates": joint(start=State(True, (_members_of(A, ONE, then="start2"),)),
                        start2=State(True, (_members_of(A, DIGITS, then="start3"),)),
                        start3=State(True, (_members_of(A, ONE, then="end"),)), end=LOOSE),
    "exhausted": joint(start=State(False, (_members_of(TWO, ONE, then="more"),)),
                       more=State(False, (_members_of(TWO, NULL, then="end"),)), end=LOOSE),
    "endless": joint(start=State(False, (_members_of(ENDLESS, ONE, then="more"),)),
                     more=State(False, (_members_of(ENDLESS, ONE, then="end"),)), end=LOOSE),
    "alternatives": joint(
        start=State(False, ((A, ((ONE, "left"), (DIGITS, "right"))), (Name("n"), ((NULL, "left"), (ONE, "end"))))),
        left=State(True, ((Name("l"), ((ONE, "end"),)),)),
        right=State(False, ((Name("r"), ((ONE, "end"), (NULL, "left"))), (TWO, ((ONE, "end"),)))), end=LOOSE),
    "escapes": joint(start=State(True, (_members_of(NASTY, ONE, then="more"),)),
                     more=State(True, (_members_of(NASTY, ONE, then="last"), _members_of(TREE, ONE, then="last"))),
                     last=State(True, (_members_of(TREE, ONE, then="end"), _members_of(NASTY, ONE, then="end"))),
                     end=LOOSE),
    "names": joint(start=State(False, (_members_of(Name("é\n"), ONE, NULL, then="end"), _members_of(Name(""), ONE, then="end"),
                                       _members_of(A, ONE, then="end"))), end=LOOSE),
    "array": joint(True, start=State(True, items=((ONE, "one"), (DIGITS, "many"))),
                   one=State(False, items=((literal('"a"', "12"), "many"), (NULL, "end"))),
                   many=State(True, items=((literal('"b"'), "end"),)), end=LOOSE),
    "nested": joint(
        start=State(True, ((TWO, ((joint(start=State(True, (_members_of(TWO, ONE, then="end"),)), end=LOOSE), "end"),
                                  (joint(True, start=State(False, items=((ONE, "end"),)), end=LOOSE), "end"))),)),
        end=State(True, ((TWO, ((ONE, "last"),)),)), last=LOOSE),
}  # fmt: skip

LETTERS = ("a", "b", "c", '"', '":', ",", "1", '{"', "}", "q", "é", "[", "]")


@lru_cache
def vocabulary_for(name: str) -> mw.Vocabulary:
    """All bytes, short texts over the letters of the problems, and pieces of the problem's own texts."""
    rng = random.Random(name)
    texts = texts_of(PROBLEMS[name])
    pieces = set()
    for _ in range(300):
        text = rng.choice(texts).encode()
        at = rng.randrange(len(text))
        pieces.add(text[at : at + rng.choice((2, 3, 4, 6, 9, 14))])
    short = {"".join(p).encode() for n in (2, 3) for p in product(LETTERS, repeat=n)}
    tokens = [bytes((b,)) for b in range(256)] + sorted((pieces | short) - {b""})
    return mw.Vocabulary([*tokens, b"<eos>"], eos_ids=[len(tokens)])


def prefixes(texts: list[str]) -> set[bytes]:
    return {text[:n] for text in (t.encode() for t in texts) for n in range(len(text) + 1)}


def spelled_out(prefix: bytes) -> bool:
    """Whether the keys of endless classes that a text may have from here on are all in the list."""
    return b"c" * (LONGEST - 2) not in prefix


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


def test_a_key_that_was_typed_does_not_come_again() -> None:
    value = joint(start=State(True, (_members_of(ENDLESS, ONE, then="start"),)))
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
    value = joint(start=State(False, (_members_of(kind, ONE, then="more"),)),
                  more=State(False, (_members_of(kind, ONE, then="end"),)), end=LOOSE)  # fmt: skip
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
