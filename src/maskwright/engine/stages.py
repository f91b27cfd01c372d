"""Leading a row through regions of tokens: special tokens by name, text counted in tokens, and texts between them.

A guide holds branches: where it may be. Each is in one piece of the output and knows the pieces after it. Branches
never change, a token makes new ones, so that a copy of a guide costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.compiler import CompiledGrammar, compile
from maskwright.engine.bitsets import Words, bits
from maskwright.errors import ConstraintError
from maskwright.grammar.plan import CompileLimits, Constraint
from maskwright.grammar.regions import Alt, Capture, Free, Part, Seq, Special, as_constraint, is_of_tokens, text_plan

if TYPE_CHECKING:
    from maskwright.engine.model import LanguageModel
    from maskwright.matcher import Matcher

__all__ = ["StagedGrammar", "StagedGuide", "Trace", "token_id"]


@dataclass(frozen=True, slots=True)
class Trace:
    """Some tokens of an output: a piece of text, or (`name`) what a capture spans.

    Attributes:
        begin: index of the first token, in the output with its prefix.
        end: after the last.
        name: of a capture.
        part: what was captured, or is to be looked at for captures.
    """

    begin: int
    end: int
    name: str | None
    part: Part


@dataclass(frozen=True, eq=False)
class _Piece:
    """One piece and what follows it.

    Attributes:
        kind: "text", "token", "open" or "close" of a capture, "alt".
        after: the next piece; None at the end.
        cost: tokens that suffice from the beginning of this piece to the end of the output.
        part: what it was made from.
        grammar: of a text.
        token: the token; of a text, the one that ends it, None for none.
        limit: the most tokens of a text, its end included.
        options: the pieces that an alternative may go on with.
    """

    kind: str
    after: _Piece | None
    cost: int
    part: Part
    grammar: CompiledGrammar | None = None
    token: int | None = None
    limit: int | None = None
    options: tuple[_Piece | None, ...] = ()


def _cost(piece: _Piece | None) -> int:
    return 0 if piece is None else piece.cost


class StagedGrammar:
    """A constraint with regions of tokens, made for one model; see `maskwright.engine.request.Grammar`.

    Raises:
        ConstraintError: a special token that the model does not have; a region too short for its end; a text that
            cannot be enforced.
    """

    def __init__(self, constraint: Constraint, model: LanguageModel) -> None:
        self.constraint = constraint
        self.vocabulary = model.vocabulary
        self._model = model
        self._root = self._chain(constraint, None)

    def matcher(self) -> StagedGuide:
        """A guide at the start."""
        return StagedGuide(self, _closure(self._root, 0, ()), 0)

    def _chain(self, part: Part, after: _Piece | None) -> _Piece | None:
        """The pieces of a part, before others."""
        if isinstance(part, Special):
            return _Piece("token", after, 1 + _cost(after), part, token=self.id_of(part))
        if not is_of_tokens(part):
            return self._text(part, compile(as_constraint(part), self.vocabulary), after)
        if isinstance(part, Free):
            return self._free(part, after)
        if isinstance(part, Capture):
            inner = self._chain(part.parts[0], _Piece("close", after, _cost(after), part))
            return _Piece("open", inner, _cost(inner), part)
        if isinstance(part, Alt):
            options = tuple(self._chain(each, after) for each in part.parts)
            return _Piece("alt", None, min(map(_cost, options)), part, options=options)
        assert isinstance(part, Seq)
        for each in reversed(_joined(part.parts)):
            after = self._chain(each, after)
        return after

    def _free(self, free: Free, after: _Piece | None) -> _Piece:
        grammar = CompiledGrammar(free, self.vocabulary, text_plan(free), CompileLimits())
        end = self.id_of(free.until) if isinstance(free.until, Special) else None
        return self._text(free, grammar, after, end, free.max_tokens)

    def _text(
        self,
        part: Part,
        grammar: CompiledGrammar,
        after: _Piece | None,
        end: int | None = None,
        limit: int | None = None,
    ) -> _Piece:
        least = grammar.matcher().min_tokens_to_accept() + (end is not None)
        if limit is not None and least > limit:
            raise ConstraintError(
                f"max_tokens is {limit}, but the region takes {least}",
                location=repr(part)[:80],
                hint=f"Allow max_tokens={least} or more",
            )
        return _Piece("text", after, least + _cost(after), part, grammar, end, limit)

    def id_of(self, special: Special) -> int:
        """The token that a name stands for here."""
        token = token_id(self._model, special)
        if token in self.vocabulary.eos_ids:
            raise ConstraintError(
                f"{special.name!r} is an EOS token of {self._model.name}: outputs end there",
                location=repr(special),
                hint="End the region with another token, or with a text",
            )
        return token


def token_id(model: LanguageModel, special: Special) -> int:
    """The token of a name; one that the tokenizer calls special goes before one of the same text.

    Raises:
        ConstraintError: there is none.
    """
    vocabulary = model.vocabulary
    named = [i for i, token in enumerate(vocabulary.tokens) if token == special.name.encode()]
    named.sort(key=lambda i: not vocabulary.kinds[i])
    found = named or model.encode(special.name, add_special=False)
    if len(found) != 1 and not named:
        raise ConstraintError(
            f"{model.name} has no token {special.name!r}",
            location=repr(special),
            hint="Name a token of its tokenizer, or write the text as a string",
        )
    return found[0]


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Parts with neighbouring texts as one, so that tokens may span their borders."""
    joined: list[Part] = []
    for part in parts:
        if joined and not is_of_tokens(part) and not is_of_tokens(joined[-1]):
            joined[-1] = Seq(joined[-1], part)
        else:
            joined.append(part)
    return joined


@dataclass(frozen=True, eq=False, slots=True)
class _Branch:
    """A place in a piece; `piece` None: the output may end.

    Attributes:
        piece: where it is.
        begin: how many tokens came before this piece.
        traces: what is behind it.
        opened: captures that are open, as (name, first token).
        matcher: of a text.
    """

    piece: _Piece | None
    begin: int
    traces: tuple[Trace, ...]
    opened: tuple[tuple[str, int], ...] = ()
    matcher: Matcher | None = None


def _closure(
    piece: _Piece | None, at: int, traces: tuple[Trace, ...], opened: tuple[tuple[str, int], ...] = ()
) -> list[_Branch]:
    """The branches at the beginning of a piece, before any of its tokens."""
    if piece is None:
        return [_Branch(None, at, traces)]
    if piece.kind == "open":
        assert isinstance(piece.part, Capture)
        return _closure(piece.after, at, traces, (*opened, (piece.part.name, at)))
    if piece.kind == "close":
        assert isinstance(piece.part, Capture)
        name, begin = opened[-1]
        return _closure(piece.after, at, (*traces, Trace(begin, at, name, piece.part.parts[0])), opened[:-1])
    if piece.kind == "alt":
        return [branch for option in piece.options for branch in _closure(option, at, traces, opened)]
    if piece.kind == "token":
        return [_Branch(piece, at, traces, opened)]
    assert piece.grammar is not None
    return _in_text(_Branch(piece, at, traces, opened, piece.grammar.matcher()), at)


def _in_text(branch: _Branch, at: int) -> list[_Branch]:
    """A branch inside a text, and those after it where the text may end."""
    piece, matcher = branch.piece, branch.matcher
    assert piece is not None
    assert matcher is not None
    found = [branch]
    if piece.token is None and matcher.is_accepting:
        trace = Trace(branch.begin, at, None, piece.part)
        found += _closure(piece.after, at, (*branch.traces, trace), branch.opened)
    return found


class StagedGuide:
    """A place in an output with regions of tokens; see `maskwright.engine.request.Guide`."""

    def __init__(self, grammar: StagedGrammar, branches: list[_Branch], at: int, finished: bool = False) -> None:
        self._grammar = grammar
        self._branches = branches
        self._at = at
        self.is_finished = finished

    @property
    def is_accepting(self) -> bool:
        """Whether the output is complete."""
        return not self.is_finished and any(branch.piece is None for branch in self._branches)

    def fork(self) -> StagedGuide:
        """A copy."""
        return StagedGuide(self._grammar, self._branches, self._at, self.is_finished)

    def fill_mask(self, row: Any, max_tokens: int | None = None) -> None:
        """Sets the bits of the tokens that may follow."""
        row[:] = 0
        vocabulary = self._grammar.vocabulary
        eos = bits(vocabulary.eos_ids, vocabulary.size)
        if self.is_finished or (self.is_accepting and (max_tokens is None or max_tokens > 0)):
            row |= eos
        for branch in [] if self.is_finished else self._branches:
            row |= self._allowed(branch, max_tokens) & ~eos

    def _allowed(self, branch: _Branch, left: int | None) -> Words:
        size = self._grammar.vocabulary.size
        row: Words = np.zeros((size + 31) // 32, dtype=np.uint32)
        piece, matcher = branch.piece, branch.matcher
        if piece is None:
            return row
        rest = _cost(piece.after)
        ends = piece.token is not None and (matcher is None or matcher.is_accepting)
        if matcher is not None:
            room = None if left is None else left - rest - (piece.token is not None)
            if piece.limit is not None:
                own = piece.limit - (self._at - branch.begin) - (piece.token is not None) + 1
                room = own if room is None else min(room, own)
            if room is None or room > 0:
                matcher.fill_mask(row, room)
        if ends and (left is None or rest + 2 <= left):
            assert piece.token is not None
            row |= bits((piece.token,), size)
        return row

    def accept(self, token: int) -> bool:
        """Appends a token."""
        if token in self._grammar.vocabulary.eos_ids:
            self.is_finished = self.is_finished or self.is_accepting
            return self.is_finished
        after = [] if self.is_finished else [each for branch in self._branches for each in self._follow(branch, token)]
        if after:
            self._branches, self._at = after, self._at + 1
        return bool(after)

    def _follow(self, branch: _Branch, token: int) -> list[_Branch]:
        piece, at = branch.piece, self._at + 1
        if piece is None:
            return []
        found: list[_Branch] = []
        if branch.matcher is not None:
            matcher = branch.matcher.fork()
            if matcher.accept(token) and self._fits(piece, matcher, at - branch.begin):
                found = _in_text(replace(branch, matcher=matcher), at)
        if token == piece.token and (branch.matcher is None or branch.matcher.is_accepting):
            trace = Trace(branch.begin, at, None, piece.part)
            found += _closure(piece.after, at, (*branch.traces, trace), branch.opened)
        return found

    def _fits(self, piece: _Piece, matcher: Matcher, used: int) -> bool:
        if piece.limit is None:
            return True
        return matcher.can_finish_within(piece.limit - used - (piece.token is not None))

    def accept_text(self, text: str | bytes) -> bool:
        """Appends text inside one piece: for drafts. False, and nothing changed, where it is not certain which."""
        if len(self._branches) != 1 or self._branches[0].matcher is None:
            return False
        matcher = self._branches[0].matcher.fork()
        if not matcher.accept_text(text):
            return False
        self._branches = [replace(self._branches[0], matcher=matcher)]
        return True

    def min_tokens_to_accept(self) -> int:
        """Tokens that suffice to complete the output."""
        return min(map(self._least, self._branches))

    def can_finish_within(self, max_tokens: int) -> bool:
        """Whether so many tokens suffice."""
        return any(self._finishes_within(branch, max_tokens) for branch in self._branches)

    def _finishes_within(self, branch: _Branch, max_tokens: int) -> bool:
        if branch.piece is None:
            return max_tokens >= 0
        left = max_tokens - (branch.piece.token is not None) - _cost(branch.piece.after)
        return left >= 0 if branch.matcher is None else branch.matcher.can_finish_within(left)

    def _least(self, branch: _Branch) -> int:
        if branch.piece is None:
            return 0
        inside = 0 if branch.matcher is None else branch.matcher.min_tokens_to_accept()
        return inside + (branch.piece.token is not None) + _cost(branch.piece.after)

    def allowed_tokens(self, max_tokens: int | None = None) -> list[int]:
        """The ids that may follow, ascending."""
        size = self._grammar.vocabulary.size
        row: Words = np.zeros((size + 31) // 32, dtype=np.uint32)
        self.fill_mask(row, max_tokens)
        found: list[int] = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[:size]).tolist()
        return found

    def traces(self) -> tuple[Trace, ...]:
        """What the output is made of, by the first branch that is complete; of an incomplete one, the first of all."""
        complete = [branch for branch in self._branches if branch.piece is None]
        return (complete or self._branches)[0].traces
