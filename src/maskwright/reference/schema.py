"""JSON Schema (2020-12, the supported subset), read keyword by keyword as the standard says, as a language of bytes.

Which sets of schemas (applicable.py) have values at all is a least fixed point; only those are turned into
expressions, each when a text reaches it. DESIGN.md fixes key order, white space, numbers and escapes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from maskwright.grammar import ir
from maskwright.reference.applicable import Applicable, Places
from maskwright.reference.distinct import Distinct
from maskwright.reference.formats import FORMATS
from maskwright.reference.json_text import Style, quoted
from maskwright.reference.json_value import Schema, decimal, identity, type_of
from maskwright.reference.language import (
    EMPTY,
    EPSILON,
    Lazy,
    Node,
    alt,
    cat,
    complement,
    contains,
    intersect,
    is_empty,
    literal,
    member,
)
from maskwright.reference.multiples import multiples
from maskwright.reference.numbers import between, fits, integer, number, places, writings


@dataclass(frozen=True)
class _Object:
    """An object after some of its members: `seen` are their names, and only names from the `at`-th on may follow."""

    branch: Places
    seen: frozenset[str] = frozenset()
    at: int = 0


class SchemaLanguage:
    """The texts that a schema accepts.

    Args:
        schema: the schema, as Python data.
        style: how values are written.
        pattern: from the text of a `pattern` to its regular term (a search, not a full match).
    """

    def __init__(self, schema: Schema, style: Style, pattern: Callable[[str], ir.Ir]) -> None:
        self.sets = Applicable(schema)
        self._style = style
        self._pattern = pattern
        self._has_values: dict[Places, bool] = {}
        self._lazy: dict[object, Node] = {}
        self._strings: dict[Places, Node] = {}
        self._after: dict[object, Callable[[bytes | None], Node]] = {}

    @property
    def language(self) -> Node:
        """The texts; `EMPTY` where the schema cannot be satisfied."""
        return self._value(((),))

    # -- which sets have values ----------------------------------------------------------------------------------------

    def _live(self, places: Places) -> bool:
        """Whether some value satisfies all schemas of a set: the least fixed point, iterated from nothing."""
        table = self._has_values
        if places not in table:
            table[places] = False
            changed = True
            while changed:
                size = len(table)
                grown = [p for p in list(table) if not table[p] and self._some_value(p)]
                table.update(dict.fromkeys(grown, True))
                changed = bool(grown) or len(table) > size
        return table[places]

    def _some_value(self, places: Places) -> bool:
        # Lists, not generators: every child set has to get into the table.
        return any([self._branch_lives(branch, kind) for branch, kind in self._cases(places)])

    def _cases(self, places: Places) -> list[tuple[Places, str]]:
        return [(branch, kind) for branch in self.sets.branches(places) for kind in self.sets.kinds(branch)]

    def _branch_lives(self, branch: Places, kind: str) -> bool:
        sets, known = self.sets, self._has_values
        listed = self._listed(branch, kind)
        if listed is not None:
            return bool(listed)
        if kind == "object":
            known.setdefault(sets.member(branch, None), False)
            lives = {name: known.setdefault(sets.member(branch, name), False) for name in sets.names(branch)}
            return all(lives[name] for name in sets.required(branch))
        if kind == "array":
            least, most = sets.counts(branch, "minItems", "maxItems")
            items = [known.setdefault(sets.item(branch, i), False) for i in range(sets.prefix(branch) + 1)]
            if (most is not None and most < least) or not all(items[:least]):
                return False
            return True not in sets.said(branch, "uniqueItems") or Distinct(self, self._style).fits(branch)
        return not is_empty(self._scalar(branch, kind))

    # -- texts ---------------------------------------------------------------------------------------------------------

    def kept(self, key: object, make: Callable[[], Node]) -> Node:
        """An expression that is made when first needed; neither empty nor nullable."""
        if key not in self._lazy:
            self._lazy[key] = Lazy(make, key)
        return self._lazy[key]

    def _value(self, places: Places) -> Node:
        if not self._live(places):
            return EMPTY
        return self.kept(places, lambda: alt(*(self._branch(branch, kind) for branch, kind in self._cases(places))))

    def _branch(self, branch: Places, kind: str) -> Node:
        if not self._branch_lives(branch, kind):
            return EMPTY
        listed = self._listed(branch, kind)
        if listed is not None:
            return alt(*(self.constant(value) for value in listed))
        if kind == "object":
            return cat(literal(b"{"), self._members(_Object(branch), first=True))
        if kind == "array":
            if True in self.sets.said(branch, "uniqueItems"):
                return Distinct(self, self._style).array(branch)
            return cat(literal(b"["), self._items(branch, 0))
        return self._scalar(branch, kind)

    def few(self, places: Places) -> list[Any] | None:
        """The values of a set that is listed by `enum`, `const`, null and booleans; None where there are others."""
        found: list[Any] = []
        for branch, kind in self._cases(places):
            listed = self._listed(branch, kind)
            if listed is None and kind not in ("null", "boolean"):
                return None
            found += listed if listed is not None else [None] if kind == "null" else [True, False]
        return list({identity(v): v for v in found}.values())

    def strings(self, places: Places) -> Node | None:
        """The texts of a set that has strings alone, and no list of them; None where there are others."""
        cases = list(self._cases(places))
        if any(kind != "string" or self._listed(branch, kind) is not None for branch, kind in cases):
            return None
        return alt(*(self._scalar(branch, kind) for branch, kind in cases))

    def after(self, state: object, make: Callable[[bytes | None], Node]) -> Callable[[bytes | None], Node]:
        """What follows a text: one function a state, so that equal nodes stay one."""
        return self._after.setdefault(state, make)

    def _scalar(self, branch: Places, kind: str) -> Node:
        if kind == "null":
            return literal(b"null")
        if kind == "boolean":
            return alt(literal(b"true"), literal(b"false"))
        if kind == "string":
            if branch not in self._strings:
                self._strings[branch] = self._string(branch)
            return self._strings[branch]
        return self._number(branch)

    def _number(self, branch: Places) -> Node:
        low, high = self.sets.number_bounds(branch)
        whole, style = self.sets.integers_only(branch), self._style.numbers
        steps = [s for s in self.sets.steps(branch) if not whole or 1 % s]  # others are said of every integer
        if low is None and high is None and not steps:
            return integer(style) if whole else number(style)
        return intersect(between(low, high, places(whole, style)), *map(multiples, steps))

    def _string(self, branch: Places) -> Node:
        sets = self.sets
        least, most = sets.counts(branch, "minLength", "maxLength")
        parts = [self._style.content(self._pattern(text)) for text in sets.said(branch, "pattern")]
        if self._style.formats == "assert":
            parts += [_format(name, self._style.escapes) for name in sets.said(branch, "format") if name in FORMATS]
        if not parts or least or most is not None:
            parts.append(self._style.any_content(least, most))
        content = intersect(*parts)
        return EMPTY if is_empty(content) else quoted(content)

    # -- objects and arrays --------------------------------------------------------------------------------------------

    def _members(self, state: _Object, first: bool) -> Node:
        """The rest of an object, its closing brace included: after `{`, or after a member's value."""
        return self.kept((state, first), lambda: self._make_members(state, first))

    def _make_members(self, state: _Object, first: bool) -> Node:
        space = self._style.space
        close = literal(b"}") if self.sets.required(state.branch) <= state.seen else EMPTY
        more = self._any_member(state)
        return cat(space, alt(close, more if first else cat(literal(b","), space, more)))

    def _any_member(self, state: _Object) -> Node:
        names, required = self.sets.names(state.branch), self.sets.required(state.branch)
        in_order = self._style.key_order == "schema"
        parts = []
        for i, name in enumerate(names):
            if i < state.at or name in state.seen:
                continue
            parts.append(self._named(replace(state, at=i + 1 if in_order else 0), name))
            if in_order and name in required:
                return alt(*parts)  # it cannot be passed over
        if not self._live(self.sets.member(state.branch, None)):
            return alt(*parts)
        unused = complement(alt(*(self._style.text(name) for name in {*names, *state.seen})))
        keys = intersect(quoted(self._style.any_content(0, None)), unused)
        return alt(*parts, member(keys, b"", self._other(replace(state, at=len(names) if in_order else 0))))

    def _named(self, state: _Object, name: str) -> Node:
        places = self.sets.member(state.branch, name)
        if not self._live(places):
            return EMPTY
        space = self._style.space
        rest = self._members(replace(state, seen=state.seen | {name}), first=False)
        return cat(self._style.text(name), space, literal(b":"), space, self._value(places), rest)

    def _other(self, state: _Object) -> Callable[[bytes | None], Node]:
        """What follows a key that the schema does not name: one function a state, so that equal nodes stay one."""

        def after(key: bytes | None) -> Node:
            seen = state.seen if key is None else state.seen | {json.loads(key)}
            value = self._value(self.sets.member(state.branch, None))
            space = self._style.space
            return cat(space, literal(b":"), space, value, self._members(replace(state, seen=seen), first=False))

        return self.after(state, after)

    def _items(self, branch: Places, index: int) -> Node:
        """The rest of an array after `index` items, its closing bracket included."""
        return self.kept((branch, index), lambda: self._make_items(branch, index))

    def _make_items(self, branch: Places, index: int) -> Node:
        least, most = self.sets.counts(branch, "minItems", "maxItems")
        space = self._style.space
        places = self.sets.item(branch, index)
        more = EMPTY
        if (most is None or index < most) and self._live(places):
            # From some index on nothing changes any more; the count stands still there.
            still = most is None and index >= max(least, self.sets.prefix(branch), 1)
            more = cat(self._value(places), self._items(branch, index if still else index + 1))
        close = literal(b"]") if index >= least else EMPTY
        return cat(space, alt(close, more if index == 0 else cat(literal(b","), space, more)))

    # -- enum and const ------------------------------------------------------------------------------------------------

    def _listed(self, branch: Places, kind: str) -> list[Any] | None:
        """The values of a type that `enum`, `const` and everything else allow; None without these keywords."""
        lists = [*self.sets.said(branch, "enum"), *([value] for value in self.sets.said(branch, "const"))]
        if not lists:
            return None
        common = set.intersection(*({identity(v) for v in values} for values in lists))
        values = {identity(v): v for v in lists[0] if identity(v) in common and type_of(v) == kind}
        return [v for v in values.values() if self._satisfies(v, branch)]

    def _allows(self, value: Any, places: Places) -> bool:
        return any(self._in_branch(value, branch) for branch in self.sets.branches(places))

    def _in_branch(self, value: Any, branch: Places) -> bool:
        kind = type_of(value)
        if kind not in self.sets.kinds(branch):
            return False
        listed = self._listed(branch, kind)
        if listed is not None:
            return identity(value) in {identity(v) for v in listed}
        return self._satisfies(value, branch)

    def _satisfies(self, value: Any, branch: Places) -> bool:
        """Whether a value satisfies the keywords other than enum, const and type."""
        sets, kind = self.sets, type_of(value)
        if kind == "object":
            names = sets.names(branch)
            members = all(self._allows(v, sets.member(branch, k if k in names else None)) for k, v in value.items())
            return members and sets.required(branch) <= set(value)
        if kind == "array":
            least, most = sets.counts(branch, "minItems", "maxItems")
            items = all(self._allows(v, sets.item(branch, i)) for i, v in enumerate(value))
            if True in sets.said(branch, "uniqueItems") and len(set(map(identity, value))) < len(value):
                return False
            return items and least <= len(value) and (most is None or len(value) <= most)
        if kind == "string":
            text = json.dumps(value, ensure_ascii=False)
            return contains(self._scalar(branch, kind), text.encode(errors="surrogatepass"))
        if kind == "number":
            whole = decimal(value) % 1 == 0
            if any(Fraction(decimal(value)) % step for step in sets.steps(branch)):
                return False
            return fits(decimal(value), *sets.number_bounds(branch)) and (whole or not sets.integers_only(branch))
        return True

    def constant(self, value: Any) -> Node:
        """The writings of one value; objects with their keys in the order given, or in any."""
        kind, space = type_of(value), self._style.space
        if kind == "number":
            return writings(decimal(value), self._style.numbers)
        if kind == "string":
            return self._style.text(value)
        if kind == "array":
            return _listing(b"[", [self.constant(v) for v in value], b"]", space)
        if kind == "object":
            colon = cat(space, literal(b":"), space)
            members = {k: cat(self._style.text(k), colon, self.constant(v)) for k, v in value.items()}
            if self._style.key_order == "schema":
                return _listing(b"{", list(members.values()), b"}", space)
            return cat(literal(b"{"), space, _permutations(frozenset(members.items()), space, True), literal(b"}"))
        return literal(json.dumps(value).encode())


@cache
def _format(name: str, escapes: str) -> Node:
    """The writings of a format's strings, kept: there are thousands of times of day."""
    return Style(escapes=escapes).content(FORMATS[name]())


def _listing(opening: bytes, parts: list[Node], closing: bytes, space: Node) -> Node:
    body = EPSILON
    for i, part in enumerate(parts):
        body = cat(body, EPSILON if i == 0 else cat(literal(b","), space), part, space)
    return cat(literal(opening), space, body, literal(closing))


def _permutations(members: frozenset[tuple[str, Node]], space: Node, first: bool) -> Node:
    comma = EPSILON if first else cat(literal(b","), space)
    if not members:
        return EPSILON
    return alt(*(cat(comma, m[1], space, _permutations(members - {m}, space, False)) for m in members))
