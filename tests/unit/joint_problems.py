"""Objects and arrays ruled by control states, small enough that all their texts can be listed.

The truth is that list, spelled out member by member; a program of the core is made of the same description, node by
node when they are reached.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

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
    return [closing[0] + ",".join(parts) + closing[1] for parts in _rests(value, "start", ())]


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


def members(key: Key, *values: Value, then: str) -> Entry:
    return key, tuple((v, then) for v in values)


PROBLEMS: dict[str, Joint] = {
    "duplicates": joint(start=State(True, (members(A, ONE, then="start2"),)),
                        start2=State(True, (members(A, DIGITS, then="start3"),)),
                        start3=State(True, (members(A, ONE, then="end"),)), end=LOOSE),
    "exhausted": joint(start=State(False, (members(TWO, ONE, then="more"),)),
                       more=State(False, (members(TWO, NULL, then="end"),)), end=LOOSE),
    "endless": joint(start=State(False, (members(ENDLESS, ONE, then="more"),)),
                     more=State(False, (members(ENDLESS, ONE, then="end"),)), end=LOOSE),
    "alternatives": joint(
        start=State(False, ((A, ((ONE, "left"), (DIGITS, "right"))), (Name("n"), ((NULL, "left"), (ONE, "end"))))),
        left=State(True, ((Name("l"), ((ONE, "end"),)),)),
        right=State(False, ((Name("r"), ((ONE, "end"), (NULL, "left"))), (TWO, ((ONE, "end"),)))), end=LOOSE),
    "escapes": joint(start=State(True, (members(NASTY, ONE, then="more"),)),
                     more=State(True, (members(NASTY, ONE, then="last"), members(TREE, ONE, then="last"))),
                     last=State(True, (members(TREE, ONE, then="end"), members(NASTY, ONE, then="end"))),
                     end=LOOSE),
    "names": joint(start=State(False, (members(Name("é\n"), ONE, NULL, then="end"),
                                       members(Name(""), ONE, then="end"), members(A, ONE, then="end"))),
                   end=LOOSE),
    "array": joint(True, start=State(True, items=((ONE, "one"), (DIGITS, "many"))),
                   one=State(False, items=((literal('"a"', "12"), "many"), (NULL, "end"))),
                   many=State(True, items=((literal('"b"'), "end"),)), end=LOOSE),
    "nested": joint(
        start=State(True, ((TWO, ((joint(start=State(True, (members(TWO, ONE, then="end"),)), end=LOOSE), "end"),
                                  (joint(True, start=State(False, items=((ONE, "end"),)), end=LOOSE), "end"))),)),
        end=State(True, ((TWO, ((ONE, "last"),)),)), last=LOOSE),
}  # fmt: skip

LONG = Class("xy*", tuple("x" + "y" * n for n in range(LONGEST)))
VALUES: tuple[Texts, ...] = (ONE, DIGITS, NULL, literal('"a"', "12"))


def random_problem(rng: random.Random, depth: int = 3) -> Joint:
    """States level by level, so that texts have at most `depth` members and no class runs out of keys."""
    is_array = rng.random() < 0.3
    levels = [["start"], *([f"{d}{i}" for i in range(rng.randint(1, 2))] for d in range(1, depth))]
    states: dict[str, State] = {"end": LOOSE}
    for level, after in zip(levels, [*levels[1:], ["end"]], strict=True):
        for name in level:
            may_close = rng.random() < 0.4
            if is_array:
                states[name] = State(may_close, items=_alternatives(rng, after, depth))
                continue
            keys = rng.sample((A, NASTY, TREE, LONG, Name("n"), Name('a"b')), rng.randint(1, 2))
            states[name] = State(may_close, tuple((key, _alternatives(rng, after, depth)) for key in keys))
    return joint(is_array, **states)


def _alternatives(rng: random.Random, after: list[str], depth: int) -> tuple[tuple[Value, str], ...]:
    found: list[tuple[Value, str]] = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        nested = depth == 3 and rng.random() < 0.1
        found.append((random_problem(rng, 1) if nested else rng.choice(VALUES), rng.choice([*after, "end"])))
    return tuple(found)


LETTERS = ("a", "b", "c", '"', '":', ",", "1", '{"', "}", "q", "é", "[", "]")


@lru_cache
def vocabulary_for(name: str) -> mw.Vocabulary:
    """All bytes, short texts over the letters of the problems, and pieces of the problem's own texts."""
    return vocabulary_of(texts_of(PROBLEMS[name]), random.Random(name))


def vocabulary_of(texts: list[str], rng: random.Random) -> mw.Vocabulary:
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
    return b"c" * (LONGEST - 2) not in prefix and b"y" * (LONGEST - 2) not in prefix


def spellable(texts: list[str], tokens: set[bytes]) -> set[bytes]:
    """What can be typed of the texts so that tokens finish one."""
    longest, live = max(map(len, tokens)), set()
    for text in {t.encode() for t in texts}:
        ends = [False] * len(text) + [True]
        for i in range(len(text) - 1, -1, -1):
            ends[i] = any(ends[j] and text[i:j] in tokens for j in range(i + 1, min(i + longest, len(text)) + 1))
        live.update(text[:i] for i, end in enumerate(ends) if end)
    return live


def lacking(name: str, seed: int) -> mw.Vocabulary:
    rng = random.Random(f"{name} {seed}")
    whole = vocabulary_for(name).tokens[:-1]
    used = sorted({t for text in texts_of(PROBLEMS[name]) for t in text})
    absent = rng.sample(used, rng.randint(1, 3))
    if seed % 2:  # whole characters
        gone = {b for c in absent for b in (c.encode() if c < "\x80" else c.encode()[:1])}
        tokens = [t for t in whole if len(t) == 1 and t[0] not in gone]
        tokens += [t for t in whole[256:] if not any(b in gone for b in t) and rng.random() < 0.5]
    else:
        gone = {b for c in absent for b in c.encode()}
        tokens = [t for t in whole[:256] if t[0] not in gone]
        tokens += [t for t in whole[256:] if rng.random() < 0.2]
    return mw.Vocabulary([*tokens, b"<eos>"], eos_ids=[len(tokens)])
