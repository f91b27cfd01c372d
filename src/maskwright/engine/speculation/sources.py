"""Where drafts are drawn from: a smaller model, counts, heads over the model's states.

A source is asked in rounds. :meth:`Source.begin` gives logits of what follows each row; :meth:`Source.extend` continues
some of the texts it was asked about last, each by a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from maskwright.engine.speculation.ngram import Counts
from maskwright.engine.speculation.options import Draft, Heads, NGram, PromptLookup
from maskwright.errors import GenerationError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from maskwright.engine.model import Cache, LanguageModel
    from maskwright.engine.row import Row

__all__ = ["HeadSource", "Source", "check_same_vocabulary", "source_for"]


class Source(Protocol):
    """See the module."""

    def begin(self, rows: Sequence[Row]) -> list[Tensor | None]:
        """Per row the logits of what follows it, float32 ``(V,)``; None for no draft."""

    def extend(self, picked: Sequence[int], tokens: Sequence[int]) -> list[Tensor | None]:
        """Text ``i`` of the next round is text ``picked[i]`` of this one and ``tokens[i]``; logits as for `begin`."""


def source_for(draft: Draft, model: LanguageModel) -> Source:
    """The source of a draft that is drawn.

    Raises:
        GenerationError: a draft model with another vocabulary; heads for a model that does not give its states.
    """
    if isinstance(draft, NGram):
        return _NGrams(draft, model)
    if isinstance(draft, Heads):
        if not getattr(model, "splits_head", False):
            raise GenerationError(
                f"{model.name} does not give the hidden states that heads read",
                location="draft",
                hint="Use a packaged model in float32 on a CPU, or another draft",
            )
        return HeadSource(draft)
    assert not isinstance(draft, PromptLookup)
    check_same_vocabulary(draft, model)
    return _Model(draft)


def check_same_vocabulary(draft: LanguageModel, model: LanguageModel) -> None:
    """Raises GenerationError, naming the first difference, where a draft's token ids mean something else."""
    theirs, ours = draft.vocabulary, model.vocabulary
    pairs = zip(theirs.tokens, ours.tokens, strict=False)
    first = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
    if first is not None:
        found = f"token {first} is {theirs.tokens[first]!r} in one and {ours.tokens[first]!r} in the other"
    elif theirs.size != ours.size:
        found = f"the one has {theirs.size} tokens, the other {ours.size}"
    elif set(theirs.eos_ids) != set(ours.eos_ids):
        found = f"the EOS tokens are {list(theirs.eos_ids)} in one and {list(ours.eos_ids)} in the other"
    else:
        return
    raise GenerationError(
        f"{draft.name} cannot draft for {model.name}, whose vocabulary is another: {found}",
        location="draft",
        hint="Draft with a model that has the same tokenizer, or with PromptLookup()",
    )


class _Texts:
    """Sources without a cache: what follows a text is computed from all of it."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._tails: list[tuple[int, ...]] = []

    def begin(self, rows: Sequence[Row]) -> list[Tensor | None]:
        self._rows, self._tails = list(rows), [()] * len(rows)
        return [self.after(row, ()) for row in rows]

    def extend(self, picked: Sequence[int], tokens: Sequence[int]) -> list[Tensor | None]:
        self._tails = [(*self._tails[at], token) for at, token in zip(picked, tokens, strict=True)]
        self._rows = [self._rows[at] for at in picked]
        return [self.after(row, tail) for row, tail in zip(self._rows, self._tails, strict=True)]

    def after(self, row: Row, tail: tuple[int, ...]) -> Tensor | None:
        raise NotImplementedError


class _NGrams(_Texts):
    def __init__(self, how: NGram, model: LanguageModel) -> None:
        super().__init__()
        self._how = how
        self._size = model.vocabulary.size
        self._own: dict[Row, Counts] = {}
        self._given = None if how.text is None else _counted(how, how.text, model)

    def after(self, row: Row, tail: tuple[int, ...]) -> Tensor:
        counts = self._given or self._of(row)
        known = [*row.request.read_first[-self._how.order :], *row.tokens[-self._how.order :], *tail]
        return counts.logits(known[len(known) - self._how.order + 1 :] if self._how.order > 1 else [])

    def _of(self, row: Row) -> Counts:
        counts = self._own.setdefault(row, Counts(self._how.order, self._size))
        known = row.request.read_first
        if counts.read < len(known) + len(row.tokens):
            counts.extend(known[counts.read :])
            counts.extend(row.tokens[counts.read - len(known) :])
        return counts


def _counted(how: NGram, text: str, model: LanguageModel) -> Counts:
    """Counts of a text, kept with the description that names it."""
    kept = how.counted.get(id(model.vocabulary))
    if kept is None:
        counts = Counts(how.order, model.vocabulary.size)
        counts.extend(model.encode(text, add_special=False))
        kept = how.counted[id(model.vocabulary)] = (model.vocabulary, counts)
    counts = kept[1]
    return counts


class HeadSource(_Texts):
    """Heads; rows carry the state of the last token before the one that was drawn, and what came after it."""

    def __init__(self, how: Heads) -> None:
        super().__init__()
        self._how = how
        self.states: dict[Row, tuple[torch.Tensor, int]] = {}

    def after(self, row: Row, tail: tuple[int, ...]) -> Tensor | None:
        """Logits of what follows a row and some drafted tokens."""
        if row not in self.states:
            return None
        state, begin = self.states[row]
        try:
            found = self._how.function(state, (*row.tokens[begin:], *tail))
            return None if found is None else found.float()
        except Exception as error:  # whatever a caller's function raises ends its own request alone
            failure = GenerationError(f"the heads of this request raised {type(error).__name__}: {error}")
            failure.__cause__ = error
            row.fail(failure)
            return None


class _Model:
    """A smaller model with a cache of its own.

    Its cache holds the rows as they were when last asked about, and perhaps drafts behind them, which are dropped.
    Where only some rows are asked about, or texts branch, a copy of the cache is read on and then forgotten.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._rows: list[Row] = []
        self._base: Cache = model.new_cache(0)
        self._held: list[list[int]] = []
        # Of the texts that were asked about last:
        self._cache = self._base
        self._texts = self._held
        self._place: list[int] = []  # index among these

    def begin(self, rows: Sequence[Row]) -> list[Tensor | None]:
        texts = {row: [*row.request.read_first, *row.tokens] for row in rows}
        fitting = [row for row in rows if len(texts[row]) <= self._model.context_length]
        self._open(fitting)
        # One token is read in any case: its logits are what is wanted.
        common = [_common(held, texts[row][:-1]) for row, held in zip(fitting, self._texts, strict=True)]
        self._cache.truncate(common)
        for held, n in zip(self._texts, common, strict=True):
            del held[n:]
        new = {at: texts[row][n:] for at, (row, n) in enumerate(zip(fitting, common, strict=True))}
        places = {row: at for at, row in enumerate(fitting)}
        return self._read([places.get(row, -1) for row in rows], new)

    def extend(self, picked: Sequence[int], tokens: Sequence[int]) -> list[Tensor | None]:
        places = [self._place[at] for at in picked]
        fits = [len(self._texts[at]) < self._model.context_length for at in places]
        kept = [at for at, fit in zip(places, fits, strict=True) if fit]
        if kept != list(range(len(self._texts))):
            self._cache, self._texts = self._cache.fork(kept), [list(self._texts[at]) for at in kept]
        numbers = iter(range(len(kept)))
        new_places = [next(numbers) if fit else -1 for fit in fits]
        new = {at: [token] for at, token in zip(new_places, tokens, strict=True) if at >= 0}
        return self._read(new_places, new)

    def _open(self, rows: list[Row]) -> None:
        """Makes the cache one of these rows: the own one where it can be."""
        ended = [at for at, row in enumerate(self._rows) if not row.running]
        if ended:
            kept = [at for at in range(len(self._rows)) if at not in ended]
            self._base.select(kept)
            self._rows, self._held = [self._rows[at] for at in kept], [self._held[at] for at in kept]
        if not set(rows) <= set(self._rows):
            self._rows, self._held = list(rows), [[] for _ in rows]
            self._base = self._model.new_cache(len(rows))
        self._cache, self._texts = self._base, self._held
        if rows != self._rows:
            places = [self._rows.index(row) for row in rows]
            self._cache, self._texts = self._base.fork(places), [list(self._held[at]) for at in places]

    def _read(self, places: list[int], new: dict[int, list[int]]) -> list[Tensor | None]:
        """Reads new tokens of every text of the cache; logits by place, None for -1."""
        self._place = places
        if not new:
            return [None] * len(places)
        logits = self._model.forward([new[at] for at in range(len(new))], self._cache)
        for at, tokens in new.items():
            self._texts[at] += tokens
        return [None if at < 0 else logits[at] for at in places]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
