"""Arrays whose items must differ, by brute force: all that there are, or strings that remember those before them.

That is enough to judge the rest by: `uniqueItems` over items that have few values, all of which are listed, or over
strings. Others are not decided.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

from maskwright.reference.applicable import Places
from maskwright.reference.json_text import Style
from maskwright.reference.json_value import identity
from maskwright.reference.language import EMPTY, Node, alt, cat, complement, intersect, is_empty, literal, member
from maskwright.reference.spelling import Undecided

if TYPE_CHECKING:
    from maskwright.reference.schema import SchemaLanguage

_MOST = 400  # arrays that are listed


class Distinct:
    """The arrays of one schema with `uniqueItems`."""

    def __init__(self, schema: SchemaLanguage, style: Style) -> None:
        self._schema = schema
        self._style = style

    def array(self, branch: Places) -> Node:
        """The texts, brackets included."""
        arrays = self._all(branch)
        if arrays is None:
            return cat(literal(b"["), self._strings(branch, 0, ()))
        return alt(*(self._schema.constant(list(items)) for items in arrays))

    def fits(self, branch: Places) -> bool:
        """Whether there is one."""
        arrays = self._all(branch)
        return bool(arrays) if arrays is not None else self._strings(branch, 0, ()) is not EMPTY

    def _all(self, branch: Places) -> list[tuple[Any, ...]] | None:
        sets = self._schema.sets
        least, most = sets.counts(branch, "minItems", "maxItems")
        found: list[tuple[Any, ...]] = []
        for n in range(8):
            if most is not None and n > most:
                return found
            lists: list[list[Any]] = []
            for i in range(n):
                values = self._schema.few(sets.item(branch, i))
                if values is None:
                    return None
                lists.append(values)
            arrays = [items for items in product(*lists) if len(set(map(identity, items))) == n]
            found += arrays if n >= least else []
            if len(found) > _MOST:
                raise Undecided("too many arrays")
            if not arrays:
                return found
        raise Undecided("arrays too long")

    def _strings(self, branch: Places, index: int, used: tuple[str, ...]) -> Node:
        sets, space = self._schema.sets, self._style.space
        least, most = sets.counts(branch, "minItems", "maxItems")
        if least > 1:
            raise Undecided("some strings may be kept for later items")
        close = literal(b"]") if index >= least else EMPTY
        more = EMPTY
        if most is None or index < most:
            texts = self._schema.strings(sets.item(branch, index))
            if texts is None:
                raise Undecided("uniqueItems over items that are neither few nor strings")
            free = intersect(texts, complement(alt(*(self._style.text(text) for text in used)))) if used else texts
            if not is_empty(free):
                more = member(free, b"", self._after(branch, index, used))
        return cat(space, alt(close, more if index == 0 else cat(literal(b","), space, more)))

    def _after(self, branch: Places, index: int, used: tuple[str, ...]) -> Callable[[bytes | None], Node]:
        most = self._schema.sets.counts(branch, "minItems", "maxItems")[1]
        still = most is None and index >= max(1, self._schema.sets.prefix(branch))
        at = index if still else index + 1

        def after(text: bytes | None) -> Node:
            came = used if text is None else tuple(sorted({*used, json.loads(text)}))
            return self._schema.kept((branch, at, came), lambda: self._strings(branch, at, came))

        return self._schema.after((branch, at, used), after)
