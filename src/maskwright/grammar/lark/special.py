"""Declared terminals that stand for special tokens of the vocabulary.

The core reads bytes alone. So the token that a terminal is bound to is given two bytes that no text has, 0xff and a
number, in the vocabulary that the core works with; and the terminal's program reads them, as one character beyond
Unicode (kSpecials in src/core/lark/code.h). To terminals that look ahead such a token is a character that they do not
have, and not the end of the text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from maskwright.errors import LarkError
from maskwright.vocabulary import Vocabulary

if TYPE_CHECKING:
    from maskwright.grammar.ir import Ranges
    from maskwright.grammar.lark.source import Places

_FIRST = 0x110000
_MARK = 0xFF
_MOST = 256


def read_special(special: Mapping[str, Any]) -> dict[str, str]:
    """Terminals and names of tokens, from what the caller gave: a str or a Special. Raises TypeError."""
    if not isinstance(special, Mapping):
        raise TypeError(f"special maps terminals to names of tokens, and is not {type(special).__name__}")
    out = {}
    for terminal, token in special.items():
        name = getattr(token, "name", token)
        if not isinstance(terminal, str) or not isinstance(name, str) or not name:
            raise TypeError(f"special maps terminals to names of tokens, not {terminal!r} to {token!r}")
        out[terminal] = name
    return out


def characters(number: int) -> Ranges:
    """What the terminal of this number in `special` reads."""
    return ((_FIRST + number, _FIRST + number),)


def check_special(special: Mapping[str, str], declared: set[str], places: Places) -> None:
    """Raises LarkError for names that the grammar does not declare, or too many."""
    for terminal in special:
        if terminal not in declared:
            hint = f"Write `%declare {terminal}` and use it in a rule, or leave it out of special="
            message = f"terminal {terminal} is bound to a token and not declared"
            raise LarkError(message, location=places.terminal(terminal), hint=hint)
    if len(special) > _MOST:
        message = f"over {_MOST} terminals are bound to tokens"
        raise LarkError(message, location="option special", hint="Bind fewer")


def with_special(vocabulary: Vocabulary, special: Mapping[str, str], banned: Collection[int]) -> Vocabulary:
    """The vocabulary in which each bound token has its bytes. Raises LarkError where it has no such token."""
    tokens = list(vocabulary.tokens)
    # No text has the byte: tokens that do are of no use but to spell ours.
    silent = {i for i, token in enumerate(tokens) if _MARK in token} | set(vocabulary.special_ids)
    bound: dict[int, str] = {}
    for number, (terminal, name) in enumerate(special.items()):
        found = _token(vocabulary, name)
        if found is None:
            _refuse(terminal, name, "is no token of the vocabulary", "Name a token of the tokenizer, or write a string")
        if found in vocabulary.eos_ids:
            _refuse(terminal, name, "is an EOS token, where outputs end", "Name another token")
        if found in banned:
            _refuse(terminal, name, "is among the banned ids", "Allow it, or write a grammar without it")
        if found in bound:
            _refuse(terminal, name, f"is bound to {bound[found]} as well", "Use one terminal for it")
        bound[found] = terminal
        tokens[found] = bytes((_MARK, number))
    return Vocabulary(tokens, eos_ids=vocabulary.eos_ids, special_ids=silent - set(bound))


def _refuse(terminal: str, name: str, what: str, hint: str) -> NoReturn:
    raise LarkError(f"{name!r}, for terminal {terminal}, {what}", location="option special", hint=hint)


def _token(vocabulary: Vocabulary, name: str) -> int | None:
    """Its id; one that is called special goes before one of the same text."""
    named = [i for i, token in enumerate(vocabulary.tokens) if token == name.encode()]
    return min(named, key=lambda i: not vocabulary.kinds[i], default=None)
