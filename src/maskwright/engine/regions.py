"""What a result tells about the named parts of an output, and about the fields of JSON."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from maskwright.compiler import compile
from maskwright.engine.stages import StagedGuide
from maskwright.grammar.plan import Constraint
from maskwright.grammar.regions import Alt, Capture, Free, Part, Seq, Special, as_constraint
from maskwright.vocabulary import Vocabulary

if TYPE_CHECKING:
    from maskwright.engine.draw import Alternative, Draw
    from maskwright.engine.row import Row
    from maskwright.engine.text import Offsets

__all__ = ["Field", "Region", "fields_of", "regions_of"]

Found = tuple[tuple[str, int, int, Part], ...]


@dataclass(frozen=True, slots=True)
class Region:
    """A named part of an output.

    Attributes:
        text: without the text that ended it.
        value: what the text stands for under its own constraint; None where it is not complete.
        start: offset of its text in the text of the result.
        tokens: ``(first, end)`` among the tokens of the result; a token at a border may belong to two regions.
        logprob: sum of the log-probabilities of its tokens; see ``Result.logprob``.
        log_weight: sum of the logs of the mass that their masks kept.
    """

    text: str
    value: Any
    start: int
    tokens: tuple[int, int]
    logprob: float
    log_weight: float


@dataclass(frozen=True, slots=True)
class Field:
    """A value inside JSON.

    Attributes:
        value: plain data.
        tokens: ``(first, end)`` among the tokens of the result that spell it; those at its borders may spell more.
        logprob: sum of the log-probabilities of these tokens.
        kept: the probability mass that the masks kept, multiplied over these tokens: low where the constraint fought
            the model.
        alternatives: per token what else the model considered, where ``logprobs=`` asked for it.
    """

    value: Any
    tokens: tuple[int, int]
    logprob: float
    kept: float
    alternatives: tuple[tuple[Alternative, ...], ...]


def regions_of(row: Row) -> dict[str, Region]:
    """The captures of an ended row, by name; of a name that occurs twice, the last."""
    grammar = row.request.constraint
    if grammar is None:
        return {}
    offsets, text = row.text.offsets, row.final_text
    found: dict[str, Region] = {}
    if isinstance(row.matcher, StagedGuide):
        before = len(row.request.prefix)
        for trace in row.matcher.traces():
            begin, end = (max(0, at - before) for at in (trace.begin, trace.end))
            first = 0 if trace.begin < before else _offset(offsets, begin, text)
            last = _offset(offsets, end, text)
            if trace.name is not None:
                found[trace.name] = _region(row, text[first:last], first, (begin, end), trace.part)
            else:
                found.update(_inside(row, trace.part, text[first:last], first, offsets))
    elif row.valid:
        found.update(_inside(row, grammar.constraint, text, 0, offsets))
    return found


def _offset(offsets: Offsets, token: int, text: str) -> int:
    return min(offsets.starts[token], len(text)) if token < len(offsets.starts) else len(text)


def _inside(row: Row, part: Part, text: str, first: int, offsets: Offsets) -> dict[str, Region]:
    """The captures in a piece of text."""
    if isinstance(part, Special) or not _captures(part):
        return {}
    cut = next((captures for end, captures in split(part, text, 0) if end == len(text)), ())
    return {
        name: _region(row, text[begin:end], first + begin, offsets.tokens(first + begin, first + end), inner)
        for name, begin, end, inner in cut
    }


def _region(row: Row, text: str, start: int, tokens: tuple[int, int], part: Part) -> Region:
    if isinstance(part, Free) and isinstance(part.until, str) and text.endswith(part.until):
        text = text[: -len(part.until)]
    draws = row.draws[slice(*tokens)]
    return Region(text, _value(part, text), start, tokens, _sum(draws, "logprob"), _sum(draws, "kept"))


def _value(part: Part, text: str) -> Any:
    parse = getattr(part, "parse", None)
    try:
        return text if parse is None else parse(text)
    except (ValueError, RecursionError):
        return None


def _sum(draws: Sequence[Draw], name: str) -> float:
    return math.fsum(getattr(draw, name) for draw in draws)


def _captures(part: Part) -> bool:
    return isinstance(part, Capture) or (isinstance(part, Seq | Alt) and any(map(_captures, part.parts)))


def split(part: Part, text: str, begin: int) -> Iterator[tuple[int, Found]]:
    """The ways to match a part from an offset on: ``(end, captures)``, long ones first."""
    if isinstance(part, Capture):
        for end, inner in split(part.parts[0], text, begin):
            yield end, ((part.name, begin, end, part.parts[0]), *inner)
    elif isinstance(part, Alt):
        for each in part.parts:
            yield from split(each, text, begin)
    elif isinstance(part, Seq):
        yield from _sequence(part.parts, text, begin)
    elif not isinstance(part, Special):
        for end in _ends(as_constraint(part), text, begin):
            yield end, ()


def _sequence(parts: Sequence[Part], text: str, begin: int) -> Iterator[tuple[int, Found]]:
    if not parts:
        yield begin, ()
        return
    seen: set[int] = set()
    for end, first in split(parts[0], text, begin):
        if end in seen:
            continue
        seen.add(end)
        for last, others in _sequence(parts[1:], text, end):
            yield last, first + others


def _ends(constraint: Constraint, text: str, begin: int) -> list[int]:
    """Where a match from an offset on may end, the longest first."""
    matcher = compile(constraint, _bytes()).matcher()
    found = [begin] if matcher.is_accepting else []
    for at in range(begin, len(text)):
        if not matcher.accept_text(text[at]):
            break
        if matcher.is_accepting:
            found.append(at + 1)
    return found[::-1]


@cache
def _bytes() -> Vocabulary:
    return Vocabulary([*(bytes([byte]) for byte in range(256)), b""], eos_ids=[256])


# --- fields

_SPACE = re.compile(r"[ \t\n\r]*")


def fields_of(text: str, start: int, draws: Sequence[Draw], offsets: Offsets) -> dict[str, Field]:
    """The values inside JSON by their pointers (RFC 6901).

    Args:
        text: the JSON.
        start: its offset in the text of the result.
        draws: of the result's tokens.
        offsets: where in that text these tokens are.

    Raises:
        ValueError: the text is no JSON.
    """
    found: dict[str, Field] = {}
    for pointer, begin, end, value in itertools.islice(_walk(text, _skip(text, 0), ""), 100_000):
        span = offsets.tokens(start + begin, start + end)
        here = draws[slice(*span)]
        found[pointer] = Field(
            value, span, _sum(here, "logprob"), math.exp(_sum(here, "kept")), tuple(draw.alternatives for draw in here)
        )
    return found


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _walk(text: str, at: int, pointer: str) -> Iterator[tuple[str, int, int, Any]]:
    """Pointer, begin, end and value of the value at an offset and of all inside it; the whole comes first."""
    value, end = json.JSONDecoder(strict=False).raw_decode(text, at)
    yield pointer, at, end, value
    if not isinstance(value, dict | list) or not value:
        return
    at = _skip(text, at + 1)
    for index in range(end):
        name = str(index)
        if isinstance(value, dict):
            key, at = json.JSONDecoder(strict=False).raw_decode(text, at)
            name = key.replace("~", "~0").replace("/", "~1")
            at = _skip(text, _skip(text, at) + 1)
        inner = None
        for each in _walk(text, at, f"{pointer}/{name}"):
            inner = inner or each
            yield each
        assert inner is not None
        at = _skip(text, inner[2])
        if text[at] != ",":
            return
        at = _skip(text, at + 1)
