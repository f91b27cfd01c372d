"""How many values a schema has, and which, where they are few: what arrays need whose items must differ.

The core sees that no item is written twice, and that each can be finished (`src/core/uniqueness.h`). What it takes
for granted is decided here: that positions which have to be filled do not run out of values. Positions with at least
`minItems` values never do; the others are a matching problem (Hall, "On representatives of subsets", 1935), solved
here for the empty array and by the core from then on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from maskwright.errors import SchemaError
from maskwright.grammar import digits

from .evaluate import fits_locally, identity
from .kinds import ARRAY, BOOLEAN, FRACTION, INTEGER, NULL, OBJECT, STRING
from .model import ANYTHING, NOTHING, Key
from .numbers import integer_bounds
from .strings import string_automaton
from .values import written

if TYPE_CHECKING:
    from .facets import Facets
    from .forms import Forms

# Beyond these, arrays with minItems are refused: so many positions, so many candidates looked at for one of them.
MOST_POSITIONS = 256
MOST_CANDIDATES = 5_000


class TooFew(Exception):
    """It cannot be told whether there are as many values as needed."""


class Distinct:
    """Lists values of keys, as many as are asked for."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._scan = forms.scan
        self._under_way: set[Key] = set()

    def settle(self, facets: Facets, owner: int) -> None:
        """Takes arrays out of an alternative whose items must differ and cannot; notes the positions with few values.

        Raises:
            SchemaError: it cannot be told.
        """
        least = facets.min_items
        if least < 2 or 0 <= facets.max_items < least:
            return
        prefix, rest = facets.items(self._scan)
        try:
            few = self._few([*prefix[:least], *[rest] * (least > len(prefix))], least, len(prefix))
        except TooFew:
            if self._under_way:
                raise  # so it is left to the array around this one
            raise SchemaError(
                "uniqueItems with minItems is not supported over items that may have too few values to fill the array",
                location=self._scan.where(owner, "uniqueItems"),
                hint="Leave minItems out, or give the items more values",
            ) from None
        if few is None:
            facets.narrow(~ARRAY, owner, "uniqueItems")
        else:
            facets.few = few

    def _few(self, keys: list[Key], least: int, prefix: int) -> tuple[list[list[bytes]], list[bytes]] | None:
        """By position, the values of those that have fewer than `least`, and values of the others.

        None where the positions cannot all differ.
        """
        if not prefix:  # all alike: the pigeonhole principle
            found = self.values(keys[0], least)
            return ([], _texts(found)) if len(found) >= least else None
        if least > MOST_POSITIONS:
            raise TooFew
        lists = [self.values(key, least) for key in keys]
        lists += [lists[-1]] * (least - len(lists))
        few = [values if len(values) < least else [] for values in lists]
        if not all(lists) or not covers([set(map(identity, values)) for values in few if values]):
            return None
        many = [value for values in lists if len(values) >= least for value in values]
        return [_texts(values) for values in few] if any(few) else [], _texts(many)

    # ------------------------------------------------------------------ values

    def values(self, key: Key, most: int) -> list[Any]:
        """Up to `most` different values of a key, all where there are fewer.

        Raises:
            TooFew: there may be more than were found.
        """
        found: dict[Any, Any] = {}
        looked_at = 0
        complete = True
        for value in self._candidates(key):
            looked_at += 1
            if value is INCOMPLETE or looked_at > MOST_CANDIDATES:
                complete = False
            if looked_at > MOST_CANDIDATES:
                break
            if value is INCOMPLETE or value is SKIPPED:
                continue
            found.setdefault(identity(value), value)
            if len(found) >= most:
                return list(found.values())
        if not complete:
            raise TooFew
        return list(found.values())

    def some_values(self, key: Key) -> Iterator[tuple[Any] | None]:
        """Values of a key, each in a tuple; at the end None where there may be others."""
        complete = True
        for n, value in enumerate(self._candidates(key)):
            if value is INCOMPLETE or n >= MOST_CANDIDATES:
                complete = False
            if n >= MOST_CANDIDATES:
                break
            if value is not INCOMPLETE and value is not SKIPPED:
                yield (value,)
        if not complete:
            yield None

    def _candidates(self, key: Key) -> Iterator[Any]:
        """The values of a key, some of them more than once; INCOMPLETE where others were left out.

        SKIPPED stands for what took time and came to nothing, so that this can be bounded.
        """
        if key == NOTHING:
            return
        if key == ANYTHING:
            yield from (None, True, False, [], {}, "")
            for n in range(1 << 40):
                yield from (n, f"{n}", [n], {f"{n}": n})
            return
        if key in self._under_way:
            yield INCOMPLETE
            return
        self._under_way.add(key)
        try:
            members = self._forms.union(key)
            if members is not None:
                for member in members:
                    yield from self._candidates(member)
            elif self._forms.joint.is_joint(key):
                yield from self._joint(key)
            else:
                for facets in self._alternatives(key):
                    if facets is INCOMPLETE:
                        yield INCOMPLETE
                        continue
                    for value in self._of(facets):
                        if value is INCOMPLETE or value is SKIPPED:
                            yield value
                        else:
                            fits = all(fits_locally(self._scan, i, value) for i in facets.members)
                            yield value if fits else SKIPPED
        finally:
            self._under_way.discard(key)

    def _alternatives(self, key: Key) -> list[Any]:
        try:
            return self._forms.of(key)
        except TooFew:  # it is about the key that is being settled
            return [INCOMPLETE]

    def _joint(self, key: Key) -> Iterator[Any]:
        engine = self._forms.joint.engine
        values = engine.candidates(key)
        if values is not None:
            yield from values
            return
        for value in [None, True, False, *range(64), *map(chr, range(97, 123)), [], {}]:
            if all(engine.holds(n, value) for n in key):
                yield value
        yield INCOMPLETE

    def _of(self, facets: Facets) -> Iterator[Any]:
        if facets.values is not None:
            yield from facets.values
            return
        types = facets.types
        if types & NULL:
            yield None
        if types & BOOLEAN:
            yield from (True, False)
        if types & INTEGER:
            yield from _integers(facets)
        if types & FRACTION:
            yield from self._fractions(facets)
        if types & STRING:
            yield from _strings(facets)
        if types & ARRAY:
            yield from self._arrays(facets)
        if types & OBJECT:
            yield from self._objects(facets)

    def _fractions(self, facets: Facets) -> Iterator[Any]:
        low = Decimal(facets.low[0]) if facets.low else None
        high = Decimal(facets.high[0]) if facets.high else None
        start = low if low is not None else high - 1 if high is not None else Decimal(0)
        for places in range(1, digits.PLAIN_FRACTION_DIGITS + 1):
            unit = Decimal(1).scaleb(-places)
            first = start // unit
            for n in range(min(1000, 10**places)):
                value = (first + n) * unit
                if high is not None and value > high:
                    break
                yield value
        yield INCOMPLETE

    def _arrays(self, facets: Facets) -> Iterator[Any]:
        prefix, rest = facets.items(self._scan)
        for n in range(facets.min_items, facets.max_items + 1 if facets.max_items >= 0 else facets.min_items + 50):
            keys = [*prefix[:n], *[rest] * (n - len(prefix))]
            for items in self._product(keys, facets.unique):
                yield list(items) if type(items) is tuple else items
            if n >= len(prefix) and rest == NOTHING:
                return
        if facets.max_items < 0:
            yield INCOMPLETE

    def _objects(self, facets: Facets) -> Iterator[Any]:
        names, others = facets.properties(self._scan)
        present = [name for name in names if name in facets.required]
        optional = [name for name in names if name not in facets.required]
        for chosen in ([], optional, *([name] for name in optional)):
            shown = [name for name in names if name in facets.required or name in chosen]
            for items in self._product([names[name] for name in shown]):
                yield dict(zip(shown, items, strict=True)) if type(items) is tuple else items
        if len(optional) > 1:
            yield INCOMPLETE
        if others == NOTHING:
            return
        for items in self._product([*(names[name] for name in present), others]):
            if type(items) is tuple:
                for n in range(10_000):
                    yield {**dict(zip(present, items[:-1], strict=True)), f"{n}": items[-1]}
                break
            yield items
        yield INCOMPLETE

    def _product(self, keys: list[Key], unique: bool = False, used: tuple[Hashable, ...] = ()) -> Iterator[Any]:
        """Tuples of values of these keys, where asked for all different from each other and from those used."""
        if not keys:
            yield ()
            return
        for head in self._candidates(keys[0]):
            if head is INCOMPLETE or head is SKIPPED:
                yield head
            elif unique and identity(head) in used:
                yield SKIPPED
            else:
                some = False
                for tail in self._product(keys[1:], unique, (*used, identity(head)) if unique else ()):
                    some = True
                    yield (head, *tail) if type(tail) is tuple else tail
                if not some and not unique:
                    return  # whatever the head is
                if not some:
                    yield SKIPPED


INCOMPLETE: Any = object()
SKIPPED: Any = object()


def _texts(values: list[Any]) -> list[bytes]:
    return list(dict.fromkeys(written(value).encode() for value in values))


def _integers(facets: Facets) -> Iterator[Any]:
    least, most = integer_bounds(facets.low, facets.high)
    if least is None:
        yield from range(0, 1 << 40) if most is None else range(most, most - (1 << 40), -1)
    else:
        yield from range(least, least + (1 << 40) if most is None else most + 1)


def _strings(facets: Facets) -> Iterator[Any]:
    """Strings of one length, by their last characters; of a regex as many as are wanted, if it has them."""
    least, most = facets.min_length, facets.max_length
    if facets.regexes:
        automaton = string_automaton(facets.regexes, least, most)
        for some in (64, MOST_CANDIDATES):
            found = automaton.strings(some)
            yield from found
            if len(found) < some:
                return
        yield INCOMPLETE
        return
    if least == 0:
        yield ""
    if most != 0:
        for n in range(least or 1, most + 1 if most >= 0 else 1 << 40):
            yield from ("a" * (n - 1) + chr(c) for c in range(97, 123))
        yield INCOMPLETE


def covers(sets: list[set[Any]]) -> bool:
    """Whether each set can have an element of its own: augmenting paths (Kuhn, 1955)."""
    owner: dict[Any, int] = {}

    def augment(n: int, tried: set[Any]) -> bool:
        for value in sets[n] - tried:
            tried.add(value)
            if value not in owner or augment(owner[value], tried):
                owner[value] = n
                return True
        return False

    return all(augment(n, set()) for n in range(len(sets)))
