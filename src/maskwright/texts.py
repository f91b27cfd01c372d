"""Valid texts without a model: random walks over the masks of a small vocabulary of our own.

At every step the mask holds exactly the tokens after which the text can still be finished within the budget, so that
every walk ends in a valid text. Which of them is taken decides only how the texts look.
"""

from __future__ import annotations

import json
import operator
import random
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from maskwright.compiler import compile
from maskwright.errors import LimitError
from maskwright.vocabulary import Vocabulary

if TYPE_CHECKING:
    from maskwright.grammar.plan import Constraint
    from maskwright.matcher import Matcher

__all__ = ["Walker", "kind_of", "sample", "walk_vocabulary"]

# What is common in texts and would be rare among random bytes.
_MERGED = (
    *("the", "and", "ing", "er", "an", "lo", "ra", "mi", " a", " b", "10", "20", "2024", "\\n", "\\u00"),
    *("é", "ß", "ñ", "€", "λ", "Ж", "日", "本", "한", "😀"),
)
_EOS = 256 + len(_MERGED)
_MOST_KEYS = 1000

# Kinds of tokens, in the order in which texts get less simple, and how often each is taken where all are possible.
_WEIGHTS = {"key": 12, "letter": 12, "digit": 6, "mark": 5, "merged": 4, "space": 1, "other": 1}

# Budgets that no valid text needs: a walk that asks for more has met a cost that is not known well.
_MOST_TOKENS = 1 << 24

Choose = Callable[[list[int], Callable[[], list[int]]], int]


@lru_cache(maxsize=64)
def walk_vocabulary(keys: tuple[str, ...] = ()) -> Vocabulary:
    """The vocabulary of the walks: all bytes, so that it spells every text; some merged tokens, an EOS, keys."""
    tokens = [bytes([byte]) for byte in range(256)] + [text.encode() for text in _MERGED] + [b"<eos>"]
    return Vocabulary([*tokens, *(key.encode() for key in keys)], eos_ids=[_EOS])


def _keys_of(constraint: Constraint) -> tuple[str, ...]:
    """The keys that a schema names, each with its quotes and colon.

    Among the letters of all other keys, those of the names would hardly ever come one after the other.
    """
    found: dict[str, None] = {}
    try:
        waiting: list[Any] = [json.loads(text) for text in _schemas(constraint)]
    except (ValueError, RecursionError):
        return ()  # the compiler says what is wrong, and where
    while waiting and len(found) < _MOST_KEYS:
        part = waiting.pop()
        if isinstance(part, dict):
            named = part.get("properties")
            found |= dict.fromkeys(named if isinstance(named, dict) else ())
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return tuple(f"{json.dumps(key, ensure_ascii=False)}:" for key in found if key.isprintable())


def _schemas(constraint: Any) -> Iterator[str]:
    """The schemas among the parts of a constraint."""
    from maskwright.grammar.json_schema import JsonSchema

    if isinstance(constraint, JsonSchema):
        yield constraint.text
    for part in getattr(constraint, "parts", ()):
        yield from _schemas(part)


@cache
def kind_of(token: int) -> str:
    """The kind of a token of `walk_vocabulary`: letter, digit, mark, merged, space or other."""
    if token > _EOS:
        return "key"
    if token > 255:
        return "merged"
    character = chr(token)
    if not character.isascii() or not (character.isprintable() or character in "\t\n\r"):
        return "other"
    if character.isalpha():
        return "letter"
    return "digit" if character.isdigit() else "space" if character.isspace() else "mark"


def sample(constraint: Constraint, n: int = 1, seed: int | None = None) -> list[str]:
    """Draws valid texts, without any model.

    The texts are random walks over the tokens that the masks allow: every valid text that is not much longer than the
    shortest can come, but not all are equally likely. They vary in length. The same seed gives the same texts, and the
    first of them for a smaller ``n``. Texts may repeat, as they must where few are valid.

    Args:
        constraint: a ``Regex``, ``Choice``, ``JsonSchema``, ... Validator functions of a Python type are not asked.
        n: how many texts, 0 or more.
        seed: any integer; by default other texts come every time.

    Returns:
        The ``n`` texts, also where the constraint has values of another type.

    Raises:
        ConstraintError: the constraint cannot be enforced, or nothing is valid.
        ValueError: ``n`` is negative.
        TypeError: an argument of a wrong type.
    """
    if operator.index(n) < 0:
        raise ValueError(f"n is {n}; it must be at least 0")
    rng = random.Random() if seed is None else random.Random(operator.index(seed))
    walker = Walker(constraint)
    shortest = walker.matcher.min_tokens_to_accept()
    return [_draw(walker, shortest, random.Random(rng.getrandbits(64))) for _ in range(n)]


def _draw(walker: Walker, shortest: int, rng: random.Random) -> str:
    hurry = rng.choice((0.02, 0.1, 0.1, 0.25))
    # In proportion to the shortest text: what may be repeated is likely to be about as long.
    spare = int(max(4.0, shortest / 4) * 2 ** (rng.random() * 6))

    def choose(allowed: list[int], closing: Callable[[], list[int]]) -> int:
        # Among the many tokens of a string the quote would come late: now and then the shortest way out is taken.
        tokens = closing() if rng.random() < hurry else allowed
        groups: dict[str, list[int]] = {}
        for token in tokens:
            groups.setdefault("mark" if token == _EOS else kind_of(token), []).append(token)
        kinds = list(groups)
        (kind,) = rng.choices(kinds, [_WEIGHTS[kind] for kind in kinds])
        return rng.choice(groups[kind])

    return walker.walk(spare, choose)


class Walker:
    """Walks from the start to the end of valid texts, one at a time.

    Args:
        constraint: what the texts must be.

    Attributes:
        matcher: over a vocabulary that holds that of `walk_vocabulary`.

    Raises:
        ConstraintError: the constraint cannot be enforced, or nothing is valid.
    """

    def __init__(self, constraint: Constraint) -> None:
        compiled = compile(constraint, walk_vocabulary(_keys_of(constraint)))
        self.matcher = compiled.matcher()
        self._tokens = compiled.vocabulary.tokens

    def fork(self) -> Walker:
        """Another walker for the same texts; it may walk in another thread."""
        other = copy(self)
        other.matcher = self.matcher.fork()
        return other

    def walk(self, spare: int, choose: Choose) -> str:
        """Makes one text.

        Args:
            spare: how many tokens it may have more than the shortest one.
            choose: given the allowed tokens (ascending, two or more), and a function that gives those with which the
                rest can be shortest (EOS alone where it is allowed), returns one of either.

        Raises:
            LimitError: no valid text has fewer than millions of tokens.
        """
        matcher, spelled = self.matcher, bytearray()
        matcher.reset()
        left = matcher.min_tokens_to_accept() + 1 + spare
        while True:
            allowed, left = _allowed(matcher, left)
            token = allowed[0] if len(allowed) == 1 else choose(allowed, self._closing)
            if token == _EOS:
                return spelled.decode()
            if not matcher.accept(token):
                raise ValueError(f"token {token} was chosen, which is not allowed here")
            spelled += self._tokens[token]
            left -= 1

    def _closing(self) -> list[int]:
        fewest = self.matcher.min_tokens_to_accept() + 1
        return _allowed(self.matcher, fewest)[0]


def _allowed(matcher: Matcher, left: int) -> tuple[list[int], int]:
    """The tokens allowed in a budget, which grows where it is too small for any text."""
    while not (allowed := matcher.allowed_tokens(left)):
        left *= 2
        if left > _MOST_TOKENS:
            raise LimitError(
                "the shortest valid text is too long to be sampled",
                location="sample",
                hint="Lower minLength, minItems or the counts of the pattern",
            )
    return allowed, left

