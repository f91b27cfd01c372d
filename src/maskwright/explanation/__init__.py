"""Why a text is refused: `explain` replays it and tells where, what was found, and what was expected there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import SupportsIndex

from maskwright.compiler import CompiledGrammar, compile
from maskwright.errors import LarkError
from maskwright.grammar.json_schema import JsonSchema
from maskwright.grammar.lark import Lark
from maskwright.grammar.plan import CompileLimits, Constraint
from maskwright.matcher import Matcher
from maskwright.vocabulary import Vocabulary

from .continuations import END, Characters, quote
from .expected import expected_in_grammar, expected_in_json, expected_in_text, rules_in_progress
from .json_text import Place, place_of
from .reasons import Reason, reasons
from .replay import Stop, replay_text, replay_tokens
from .report import Explanation
from .schema import Schemas

__all__ = ["Characters", "Explanation", "explain"]

_SHOWN = 20  # characters of what was found
_MOST_REASONS = 4


@lru_cache(maxsize=1)
def _bytes() -> Vocabulary:
    return Vocabulary([*(bytes([byte]) for byte in range(256)), b"<end>"], eos_ids=[END])


def explain(
    constraint: Constraint | CompiledGrammar,
    text_or_tokens: str | bytes | Iterable[SupportsIndex],
    vocab: Vocabulary | None = None,
) -> Explanation:
    """Replays a text or tokens and tells where and why they are refused, and what was expected there.

    Args:
        constraint: a `Regex`, `Choice`, `JsonSchema`, ..., or what `compile` made of one.
        text_or_tokens: a text (str, or bytes in UTF-8), or token ids.
        vocab: the tokens of the model; needed for ids, unless the constraint is compiled. With a vocabulary the text
            must also be one that its tokens can spell.

    What is expected is told in characters, whatever the tokens; a vocabulary that cannot spell all characters may
    allow fewer.

    Raises:
        ConstraintError: as `compile`; or the constraint is a Lark grammar with special tokens.
        TypeError: token ids without a vocabulary.
    """
    limits = CompileLimits()
    compiled: CompiledGrammar | None = None
    if isinstance(constraint, CompiledGrammar):
        compiled, limits, constraint = constraint, constraint.limits, constraint.constraint
        vocab = compiled.vocabulary
    if isinstance(constraint, Lark) and constraint.options.get("special"):
        hint = "Ask a matcher of the compiled grammar for its allowed_tokens()"
        raise LarkError("explain replays texts, which have no special tokens", location="option special", hint=hint)
    if compiled is None and vocab is not None:
        compiled = compile(constraint, vocab)
    spelled = compile(constraint, _bytes(), limits)
    if isinstance(text_or_tokens, str | bytes | bytearray):
        data = text_or_tokens.encode("utf-8", "surrogatepass") if isinstance(text_or_tokens, str) else text_or_tokens
        stop = replay_text(bytes(data), spelled, compiled)
    elif compiled is None:
        raise TypeError("token ids mean nothing without a vocabulary: explain(constraint, ids, vocab)")
    else:
        stop = replay_tokens(text_or_tokens, spelled, compiled)
    return _explained(stop, constraint, spelled)


@dataclass(frozen=True)
class _Findings:
    expected: tuple[str, ...]
    characters: Characters
    can_end: bool
    reasons: tuple[Reason, ...] = ()
    place: Place | None = None
    schema_path: str | None = None
    rule: str | None = None


def _explained(stop: Stop, constraint: Constraint, spelled: CompiledGrammar) -> Explanation:
    matcher = spelled.matcher()
    read, rest = _decode(stop.data[: stop.at]), _decode(stop.data[stop.at :])
    assert matcher.accept_text(stop.data[: stop.at])
    if isinstance(constraint, JsonSchema):
        findings = _in_json(constraint, matcher, read, "" if stop.ok or stop.why else rest)
    elif isinstance(constraint, Lark):
        rule = rules_in_progress(spelled.rules, matcher)
        findings = _Findings(*expected_in_grammar(spelled.terminals, matcher), rule=rule)
    else:
        findings = _Findings(*expected_in_text(constraint, matcher, read))
    notes = (stop.why,) if stop.why else tuple(reason.text for reason in findings.reasons)
    return Explanation(
        ok=stop.ok,
        complete=stop.complete,
        text=read + rest,
        byte=stop.at,
        offset=len(read),
        line=read.count("\n") + 1,
        column=len(read) - (read.rfind("\n") + 1) + 1,
        found=stop.found or _found(rest),
        expected=() if stop.why and not findings.expected else findings.expected,
        characters=findings.characters,
        can_end=findings.can_end,
        reasons=notes[:_MOST_REASONS],
        pointer=findings.place.pointer if findings.place else None,
        schema_path=findings.schema_path,
        token=stop.token,
        rule=findings.rule,
    )


def _in_json(constraint: JsonSchema, matcher: Matcher, read: str, refused: str) -> _Findings:
    place = place_of(read)
    expected = expected_in_json(constraint, matcher, place)
    found: tuple[Reason, ...] = ()
    if refused:
        place = _settled(place, refused, expected.characters)
        found = tuple(dict.fromkeys(reasons(constraint, place, refused)))
    known = [reason.place for reason in found if reason.place]
    pointers = [pointer for _, pointer in Schemas(constraint, place.path).pointers()]
    schema_path = known[0] if known else pointers[0] if pointers else None
    return _Findings(*expected, found, place, schema_path)


def _settled(place: Place, refused: str, allowed: Characters) -> Place:
    """The place that a refused character speaks about.

    Behind a number, where the number may end and what follows is no part of one; in the array that a bracket closes.
    """
    if place.state == "value" and refused[0] == "]" and place.container == "array":
        return replace(place, state="after", path=place.path[:-1])
    if place.state != "scalar" or refused[0] not in ",]} \n\t\r" or not any(mark in allowed for mark in ",]} "):
        return place
    if not place.container:
        return Place("end")
    count = place.count + (place.container == "array")
    keys = place.keys + tuple(str(key) for key in place.path[-1:] if place.container == "object")
    return Place("after", place.path[:-1], place.container, keys, count)


def _found(rest: str) -> str:
    """What stands at a place: the word or the character there."""
    if not rest:
        return "end of text"
    size = 1
    if rest[0].isalnum():
        while size < min(len(rest), _SHOWN) and (rest[size].isalnum() or rest[size] == "_"):
            size += 1
    return quote(rest[:size])


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")

