"""From keys to alternatives: what a conjunction of schemas with `anyOf`, `allOf`, `oneOf` and `$ref` comes to.

The schemas of a key and all that apply beside them are collected; every `anyOf` or `oneOf` in between is multiplied
out, so that what is left are alternatives without branches (`Facets`). A `oneOf` is taken for an `anyOf`, and the
claim that its branches exclude each other is noted, to be proved (`disjoint`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from maskwright.errors import SchemaError

from .assertions import check_names
from .distinct import Distinct
from .evaluate import distinct, fits_locally
from .facets import Facets
from .joint import Joint
from .kinds import ARRAY, EVERY, OBJECT
from .model import ALWAYS, NEVER, NOTHING, Group, Key

if TYPE_CHECKING:
    from .scan import Scan

# More alternatives than this are refused: each is a machine that runs beside the others.
MOST_ALTERNATIVES = 256


class TooManyAlternatives(SchemaError):
    """A conjunction of unions multiplies out to more than can run side by side."""


class Claim(NamedTuple):
    """That the branches of a `oneOf` exclude each other for values that fit `members`."""

    owner: int
    group: Group
    members: tuple[int, ...]


class Forms:
    """The alternatives of keys, memoised; `known` are some from before.

    Attributes:
        claims: what `oneOf`s claimed in the keys expanded since they were last settled.
        joint: the evaluation of the keys that have no alternatives of this kind.
        reasons: for keys without any alternative, a schema and keyword that is to blame.
    """

    def __init__(self, scan: Scan, known: dict[Key, list[Facets]] | None = None) -> None:
        self.scan = scan
        self.joint = Joint(scan)
        self.claims: list[Claim] = []
        self.reasons: dict[Key, tuple[int, str]] = {}
        self._memo: dict[Key, list[Facets]] = known or {}
        self._distinct = self.joint.distinct = Distinct(self)
        if scan.joint:
            scan.judge = self.joint.engine.holds

    def union(self, key: Key) -> list[Key] | None:
        """The keys of the branches, where the key is nothing but an `anyOf` or `oneOf`."""
        group = self.scan.unions.get(key[0]) if len(key) == 1 else None
        if group is None:
            return None
        return list(dict.fromkeys(self.scan.resolve(branch) for branch in group.branches))

    def beside(self, changed: Collection[int]) -> dict[Key, list[Facets]]:
        """What is known of keys to which no schema of `changed` belongs, whose branches are fewer from now on."""
        if self.scan.unique:
            return {}  # what values there are depends on other keys
        return {
            key: alternatives
            for key, alternatives in self._memo.items()
            if alternatives and not any(i in changed for facets in alternatives for i in facets.members)
        }

    def is_plain(self, key: Key) -> bool:
        """Whether a key has alternatives, and not too many; else the joint evaluation takes it."""
        if self.joint.is_joint(key):
            return False
        if key not in self._memo:
            try:
                self.of(key)
            except TooManyAlternatives:
                self.joint.crowd(key)
                return False
        return True

    def of(self, key: Key) -> list[Facets]:
        """The alternatives of a key; none where no value can fit.

        Raises:
            SchemaError: there are too many of them.
        """
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._make(key)
        return found

    def _make(self, key: Key) -> list[Facets]:
        scan = self.scan
        if key == NOTHING:
            return []
        if len(key) == 1 and key[0] not in scan.groups:
            members: Iterator[tuple[int, ...]] = iter([key])
        else:
            members = self.expand(list(key), (), key)
        return [facets for m in members if (facets := self.settle(m, key)) is not None]

    def settle(self, members: tuple[int, ...], key: Key) -> Facets | None:
        """The conjunction of schemas without their branches; None where it is empty by itself."""
        scan = self.scan
        facets = Facets(scan, members)
        if scan.long and facets.types & OBJECT:
            check_names(scan, scan.where(members[0]) if members else "", facets.properties(scan)[0])
        if facets.unique and facets.types & ARRAY and facets.values is None:
            self._distinct.settle(facets, next(i for i in members if i in scan.unique))
        if not facets.types:
            self.reasons.setdefault(key, facets.reason or (members[0], "type"))
            return None
        if facets.values is not None:
            facets.values = [v for v in distinct(facets.values) if all(fits_locally(scan, i, v) for i in members)]
            if not facets.values:
                owner = next(i for i in members if "enum" in scan.schemas[i] or "const" in scan.schemas[i])
                self.reasons.setdefault(key, (owner, "enum" if "enum" in scan.schemas[owner] else "const"))
                return None
        return facets

    def expand(self, pending: list[int], members: tuple[int, ...], key: Key) -> Iterator[tuple[int, ...]]:
        """The sets of schemas, one branch chosen of every group, that apply beside `members`; depth first, in order."""
        scan, count, most = self.scan, 1, 0
        stack = [(pending[::-1], dict.fromkeys(members), EVERY, list[tuple[int, Group]]())]
        while stack:
            pending, chosen, types, choices = stack.pop()
            types = self._collect(pending, chosen, types, choices, key)
            if not types:
                continue
            if not choices:
                yield tuple(chosen)
                continue
            owner, group = choices.pop(0)
            if group.kind == "one" and len(group.branches) > 1:
                self.claims.append(Claim(owner, group, tuple(chosen)))
            branches = list(dict.fromkeys(scan.canonical(branch) for branch in group.branches))
            count += len(branches) - 1
            most = most or MOST_ALTERNATIVES + len(branches)  # one group alone multiplies nothing
            if count > most:
                raise TooManyAlternatives(
                    f"{group.keyword} beside others multiplies out to more than {MOST_ALTERNATIVES} alternatives",
                    location=scan.where(owner, group.keyword),
                    hint="Write one anyOf of the cases that are meant",
                )
            for branch in reversed(branches):
                if branch == NEVER:
                    self.reasons.setdefault(key, (owner, group.keyword))
                    continue
                stack.append(([branch], dict(chosen), types, list(choices)))

    def _collect(
        self, pending: list[int], chosen: dict[int, None], types: int, choices: list[tuple[int, Group]], key: Key
    ) -> int:
        """Adds schemas and what applies beside them; the types left, 0 where they contradict each other."""
        scan = self.scan
        while pending:
            i = pending.pop()
            if i == NEVER:
                self.reasons.setdefault(key, (next(reversed(chosen), scan.root), "false"))
                return 0
            if i == ALWAYS or i in chosen:
                continue
            chosen[i] = None
            types &= scan.types.get(i, EVERY)
            if not types:
                self.reasons.setdefault(key, (i, "type"))
                return 0
            for group in scan.groups.get(i, ()):
                if group.kind == "all":
                    if NEVER in group.branches:
                        self.reasons.setdefault(key, (i, group.keyword))
                        return 0
                    pending.extend(reversed(group.branches))
                else:
                    choices.append((i, group))
        return types
