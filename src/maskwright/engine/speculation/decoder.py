"""The step loop with drafts of a source of its own beside those of the grammar."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from maskwright.engine.decode import Decoder
from maskwright.engine.speculation.drafting import Drafting
from maskwright.engine.speculation.lookup import Lookup, up_to_date
from maskwright.engine.speculation.options import PromptLookup, Speculative
from maskwright.engine.speculation.pace import Given, Measured, Pace
from maskwright.engine.speculation.sources import HeadSource, source_for
from maskwright.engine.speculation.tally import Tally
from maskwright.engine.speculation.window import Window

if TYPE_CHECKING:
    from maskwright.engine.model import Cache, LanguageModel
    from maskwright.engine.request import Request
    from maskwright.engine.row import Drafter, Row
    from maskwright.engine.sampling import Sampling
    from maskwright.engine.step import Read

__all__ = ["SpeculativeDecoder"]


class SpeculativeDecoder(Decoder):
    """Generates for some requests at a time, with drafts.

    Args:
        model: the language model.
        requests: one per row.
        sampling: the rules, shared by the rows.
        how: the drafts.
        cancelled: asked before every step.
        drafter: the grammar's own drafts, which go first.
        details: see :func:`maskwright.engine.draw.draw`.

    Raises:
        GenerationError: as :class:`Decoder`; a draft that does not go with the model.
        ValueError: sampling with a lazy mask: drafts need masks.
    """

    def __init__(
        self,
        model: LanguageModel,
        requests: Sequence[Request],
        sampling: Sampling,
        how: Speculative,
        cancelled: Callable[[], bool] = lambda: False,
        drafter: Drafter | None = None,
        details: int | None = None,
    ) -> None:
        super().__init__(model, requests, sampling, cancelled, drafter, details)
        if sampling.lazy_mask:
            raise ValueError("lazy_mask does not go with Speculative: the masks of drafts are needed")
        self._how = how
        # Whether a row is drafted for must not depend on its neighbours.
        self._rows_with_drafts = len(self.rows)
        plain = isinstance(how.draft, PromptLookup)
        self._before: Sequence[int] = ()
        if isinstance(how.draft, PromptLookup) and how.draft.text:
            self._before = model.encode(how.draft.text, add_special=False)
        self._lookups: dict[Row, Lookup] = {}
        self._source = None if isinstance(how.draft, PromptLookup) else source_for(how.draft, model)
        self._wants_states = self._wants_states or isinstance(self._source, HeadSource)
        if self._source is not None:
            size, room = model.vocabulary.size, model.context_length
            self._drafting = Drafting(self._source, sampling, how.variant, how.width, room, size)
        # Where the output depends on how long windows are, they must not depend on a clock.
        same = plain or sampling.greedy or how.variant == "coupled"
        self._clock = Measured() if same and how.costs is None else None
        costs = self._clock or Given(*(how.costs or ()))
        self._paces = {row: Pace(costs, how.longest) for row in self.rows}
        self._own: set[Row] = set()  # rows with a window of ours
        self._began = 0.0
        for row in self.rows:
            row.tally = Tally()

    def _propose(self, rows: list[Row]) -> None:
        super()._propose(rows)
        begun = time.perf_counter()
        free = [row for row in rows if row.running and row.window is None]
        if self._source is None:
            for row in free:
                self._look_up(row)
        else:
            self._drafting.fill({row: self._length(row) for row in free})
        self._own = {row for row in free if row.window is not None}
        self._began = time.perf_counter()
        drafted = sum(len(row.draft) for row in self._own)
        if self._clock is not None and drafted:
            self._clock.note_drafts(drafted, self._began - begun)

    def _length(self, row: Row) -> int:
        return self._paces[row].length() if self._how.gamma == "auto" else self._how.gamma

    def _look_up(self, row: Row) -> None:
        assert isinstance(self._how.draft, PromptLookup)
        lookup = up_to_date(self._lookups.setdefault(row, Lookup(self._how.draft, self._before)), row)
        room = self._model.context_length - len(row.request.read_first) - len(row.tokens)
        window = Window(row, room)
        found = lookup.follow(self._how.width, self._how.longest if self._how.gamma == "auto" else self._how.gamma)
        length = self._length(row) if found else 0
        for draft in found:
            node: int | None = -1
            for token in draft[:length]:
                node = None if node is None else window.add(node, token)
        row.watch(window)

    def advance(self, rows: list[Row], read: Read, cache: Cache) -> None:
        """As of :class:`Stepper`; notes how long the forward took."""
        count = max((len(row.unseen) + len(row.draft) for row in rows), default=0)
        super().advance(rows, read, cache)
        if self._clock is not None and self._began:
            self._clock.note_forward(count, time.perf_counter() - self._began)

    def _note(self, row: Row, window: Window | None, path: list[int], read: Read) -> None:
        if window is not None and row in self._own and row.tally is not None and row.error is None:
            # One token was drawn at the next place, and one after each node that stays; what is forced comes after.
            drawn = row.draws[len(row.draws) - len(path) - 1 :]
            self._paces[row].note(*row.tally.note(window, path, [draw.token for draw in drawn]))
        if isinstance(self._source, HeadSource) and read.are_states and row.running:
            last = path[-1] + 1 if path else 0
            self._source.states[row] = read.blocks[0][last].clone(), len(row.draws) - 1
