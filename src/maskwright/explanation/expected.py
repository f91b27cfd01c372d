"""What is expected at a place, in words: for any constraint by trying, for JSON also by where in the text it is."""

from __future__ import annotations

import json
from typing import NamedTuple

from maskwright.grammar.choice import Choice
from maskwright.grammar.json_schema import JsonSchema
from maskwright.grammar.plan import Constraint
from maskwright.matcher import Matcher

from .continuations import END, Characters, characters, literals, quote, words
from .json_text import Place
from .schema import Schemas

__all__ = ["Expected", "expected_in_grammar", "expected_in_json", "expected_in_text", "rules_in_progress"]

_MOST = 20  # keys and choices that are listed
_BLANKS = frozenset(b" \t\r\n")
_VALUES = {"{": "an object", "[": "an array", "t": "true", "f": "false", "n": "null"}
_PUNCTUATION = "':' ',' '}' ']'"


class Expected(NamedTuple):
    """What may come next.

    Args:
        phrases: in words, what is most telling first.
        characters: the single characters.
        can_end: the text may end.
    """

    phrases: tuple[str, ...]
    characters: Characters
    can_end: bool


def expected_in_text(constraint: Constraint, matcher: Matcher, read: str) -> Expected:
    """Literals, and a class of characters for the rest.

    Args:
        constraint: what is matched.
        matcher: of single bytes, at the place, between characters.
        read: the text up to there.
    """
    found, can_end = characters(matcher), matcher.is_accepting
    if isinstance(constraint, Choice):
        fitting = dict.fromkeys(text for text in constraint.texts if text.startswith(read) and text != read)
        texts = list(fitting)
        phrases = [quote(text) for text in texts[:_MOST]]
        if len(texts) > _MOST:
            phrases.append(f"one of {len(texts) - _MOST} more choices")
        left: Characters | None = None
    else:
        texts, firsts = literals(matcher)
        phrases = [quote(text) for text in texts]
        left = Characters(tuple(r for r in found.ranges if not _begins(r, firsts)), found.beyond)
    if left:
        phrases.append(str(left))
    return Expected((*phrases, *(["end of text"] if can_end else [])), found, can_end)


def expected_in_grammar(terminals: tuple[str, ...], matcher: Matcher) -> Expected:
    """The terminals of a Lark grammar that may begin at a place, or go on there.

    Args:
        terminals: how they are shown, by number.
        matcher: of single bytes, at the place, between characters.
    """
    found, can_end = characters(matcher), matcher.is_accepting
    phrases = [terminals[number] for number in matcher.expected_terminals()]
    return Expected((*phrases, *(["end of text"] if can_end else [])), found, can_end)


def rules_in_progress(rules: tuple[str, ...], matcher: Matcher) -> str | None:
    """The rules of a Lark grammar that go on at a place, as the parser's states tell.

    Args:
        rules: by state.
        matcher: at the place.
    """
    names = {name for state in matcher.parser_states() if state < len(rules) for name in rules[state].split(", ")}
    return ", ".join(sorted(names - {""})) or None


def _begins(bounds: tuple[int, int], firsts: set[int]) -> bool:
    """Whether a range of characters is one letter that a literal begins with."""
    low, high = bounds
    return low == high and chr(low).encode()[0] in firsts


def expected_in_json(constraint: JsonSchema, matcher: Matcher, place: Place) -> Expected:
    """Keys, values, punctuation; in strings and numbers the characters too. Arguments: as `expected_in_text`."""
    found, can_end = characters(matcher), matcher.is_accepting
    if place.in_escape:
        phrases = [str(found)]
    elif place.state in ("key", "key-string"):
        phrases = _keys(constraint, matcher, place)
    elif place.state == "value":
        phrases = _values(constraint, matcher)
    elif place.state == "string":
        phrases = _string(constraint, matcher, place, found)
    elif place.state == "scalar":
        phrases = _scalar(matcher, found)
    else:
        phrases = []
    leads = set(matcher.allowed_tokens()) - {END}
    if place.state not in ("string", "key-string"):
        phrases += [mark for mark in _PUNCTUATION.split() if ord(mark[1]) in leads]
        if not phrases and leads & _BLANKS:
            phrases.append("white space")
    return Expected((*phrases, *(["end of text"] if can_end else [])), found, can_end)


def _keys(constraint: JsonSchema, matcher: Matcher, place: Place) -> list[str]:
    inside = place.state == "key-string"
    if not inside and ord('"') not in matcher.allowed_tokens():
        return []
    if not inside:
        matcher.accept(ord('"'))
    listed, others = words(matcher, constraint.options.escapes == "minimal")
    keys = [place.written + _value(word) for word in listed]
    if others:
        keys += [key for key in _named(constraint, place) if _fits(matcher, key[len(place.written) :])]
    if not inside:
        matcher.rollback(1)
    keys = list(dict.fromkeys(keys))
    phrases = [f"the key {quote(key)}" for key in keys[:_MOST]]
    if len(keys) > _MOST:
        phrases.append(f"one of {len(keys) - _MOST} more keys")
    return phrases + (["any other key" if keys else "a key"] if others else [])


def _named(constraint: JsonSchema, place: Place) -> list[str]:
    """The names that the schema has for the properties of the object."""
    found: dict[str, None] = {}
    for _, value, _ in Schemas(constraint, place.path).keyword("properties", "required"):
        found.update(dict.fromkeys(key for key in value if isinstance(key, str)) if value else {})
    return [key for key in found if key.startswith(place.written)]


def _fits(matcher: Matcher, rest: str) -> bool:
    fits = matcher.accept_text(json.dumps(rest, ensure_ascii=False)[1:] + ":")
    if fits:
        matcher.rollback(1)
    return fits


def _value(word: bytes) -> str:
    """What the inside of a JSON string stands for."""
    value: str = json.loads(b'"' + word + b'"')
    return value


def _values(constraint: JsonSchema, matcher: Matcher) -> list[str]:
    leads = {chr(lead) for lead in matcher.allowed_tokens() if lead < 0x80}
    phrases: list[str] = []
    if '"' in leads:
        matcher.accept(ord('"'))
        listed, others = words(matcher, constraint.options.escapes == "minimal")
        matcher.rollback(1)
        few = not others and len(listed) <= _MOST
        phrases += list(dict.fromkeys(quote(_value(word)) for word in listed)) if few else ["a string"]
    if leads & set("-0123456789"):
        phrases.append("a number")
    return phrases + [what for lead, what in _VALUES.items() if lead in leads]


def _string(constraint: JsonSchema, matcher: Matcher, place: Place, found: Characters) -> list[str]:
    listed, others = words(matcher, constraint.options.escapes == "minimal")
    if not others and 0 < len(listed) <= _MOST and listed != [b""]:
        return list(dict.fromkeys(quote(place.written + _value(word)) for word in listed))
    inside = Characters(tuple(_without(found.ranges, ord('"'))), found.beyond)
    return ([str(inside)] if inside else []) + (["the closing '\"'"] if '"' in found else [])


def _scalar(matcher: Matcher, found: Characters) -> list[str]:
    rest = list(found.ranges)
    for mark in (*_BLANKS, *map(ord, ":,}]")):
        rest = _without(tuple(rest), mark)
    texts = [text for text in literals(matcher)[0] if text[0].isalnum()]  # true, false, null
    rest = [r for r in rest if not _begins(r, {ord(text[0]) for text in texts})]
    return [quote(text) for text in texts] + ([str(Characters(tuple(rest)))] if rest else [])


def _without(ranges: tuple[tuple[int, int], ...], code: int) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for low, high in ranges:
        if low <= code <= high:
            out += [part for part in ((low, code - 1), (code + 1, high)) if part[0] <= part[1]]
        else:
            out.append((low, high))
    return out
