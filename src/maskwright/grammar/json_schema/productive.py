"""Which keys have a value at all: the least fixpoint over what their alternatives need.

A value exists for a key iff for some alternative and container type all members that are needed have one. That is
Horn satisfiability, decided in linear time by counting (Dowling and Gallier, "Linear-time algorithms for testing the
satisfiability of propositional Horn formulae", J. Logic Programming 1(3), 1984).
"""

from __future__ import annotations

from collections import defaultdict
from typing import NoReturn

from maskwright.errors import UnsatisfiableError

from .facets import Facets
from .forms import Forms
from .kinds import ARRAY, EVERY, OBJECT
from .model import ANYTHING, NOTHING, Key


class Productivity:
    """Decides keys on demand and remembers them."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        forms.joint.productivity = self
        self._known: dict[Key, bool] = {NOTHING: False, ANYTHING: True}

    def has_value(self, key: Key) -> bool:
        """Whether any value belongs to a key."""
        found = self._known.get(key)
        if found is None:
            found = self.plainly(key)
        if found is None:
            self._decide(key)
            found = self._known[key]
        return found

    def _plain_clause(self, key: Key) -> list[Key] | None:
        """The keys that all need a value for one schema to have one, where this shows without expanding it."""
        scan, number = self._forms.scan, key[0]
        if len(key) > 1 or number < 0 or number in scan.groups or number in scan.joint or number in scan.doubted:
            return None
        schema, types = scan.schemas[number], scan.types.get(number, EVERY)
        if types & ~(OBJECT | ARRAY) or "enum" in schema or (scan.draft >= 6 and "const" in schema):
            return []  # the scan would have doubted it
        if types & OBJECT:
            required = schema.get("required")
            if not required:
                return []
            if types & ARRAY:
                return None
            named, rest = schema.get("properties", {}), schema.get("additionalProperties")
            if rest is None and scan.draft >= 2019:
                rest = schema.get("unevaluatedProperties")
            rest = True if rest is None else rest
            return [key for name in required if (key := scan.key(named.get(name, rest)))]
        return [scan.key(schema["items"])] if schema.get("minItems") and "items" in schema else []

    def plainly(self, key: Key) -> bool | None:
        """The same where it shows without expanding any key; None where it does not."""
        open_, stack = set[Key](), [key]
        while stack:
            top = stack[-1]
            if self._known.get(top) is not None:
                stack.pop()
                continue
            clause = self._plain_clause(top)
            if clause is None:
                return None
            if any(self._known.get(k) is False for k in clause):
                self._known[top] = False
            elif missing := [k for k in clause if k not in self._known]:
                if top in open_:
                    return None  # a circle: not as plain as that
                open_.add(top)
                stack += missing
            else:
                self._known[top] = True
        return self._known[key]

    def is_inhabited(self, facets: Facets) -> bool:
        """Whether any value belongs to one alternative."""
        if self._forms.joint.is_joint(facets.members):
            return self.has_value(facets.members)
        return any(all(self.has_value(key) for key in need) for need in facets.needs(self._forms.scan))

    def clauses(self, key: Key) -> list[list[Key]]:
        """The ways to have a value: for each, the keys that all need one."""
        plain = self._plain_clause(key) if key else []
        if plain is not None:
            return [plain]
        members = self._forms.union(key)
        if members is not None:
            return [[member] for member in members]
        if not self._forms.is_plain(key):
            if self._forms.joint.has_value(key):
                return [[]]
            self._forms.reasons.setdefault(key, (key[0], ""))
            return []
        return [need for facets in self._forms.of(key) for need in facets.needs(self._forms.scan)]

    def _decide(self, key: Key) -> None:
        """Settles a key and all that it needs."""
        known, budget = self._known, self._forms.scan.budget
        waiting: dict[Key, list[int]] = defaultdict(list)
        heads: list[Key] = []
        missing: list[int] = []
        proven: list[Key] = []
        seen, stack = {key}, [key]
        while stack:
            top = stack.pop()
            budget.check("")
            for need in self.clauses(top):
                open_ = {k for k in need if not known.get(k)}
                if any(known.get(k) is False for k in open_):
                    continue
                heads.append(top)
                missing.append(len(open_))
                if not open_:
                    proven.append(top)
                for k in open_:
                    waiting[k].append(len(heads) - 1)
                    if k not in seen:
                        seen.add(k)
                        stack.append(k)
        while proven:
            top = proven.pop()
            if known.get(top):
                continue
            known[top] = True
            for clause in waiting[top]:
                missing[clause] -= 1
                if not missing[clause]:
                    proven.append(heads[clause])
        for k in seen:
            known.setdefault(k, False)

    def blame(self, root: Key) -> NoReturn:
        """Raises the error for a root without values, at the place to blame: down along what is needed and missing."""
        forms, seen, key = self._forms, set[Key](), root
        place, detail, step = "", "it requires itself without end", None
        while key not in seen:
            seen.add(key)
            step = next((k for need in self.clauses(key) for k in need if not self.has_value(k)), None)
            place = self._place(key, step) or place
            if step is None or step == NOTHING:
                break
            key = step
        if step == NOTHING:
            detail = "it asks for what nothing can be"
        elif step is None:
            owner, keyword = forms.reasons.get(key, (-1, "false"))
            if owner >= 0:
                place = forms.scan.where(owner) if keyword in ("", "false") else forms.scan.where(owner, keyword)
            detail = _DETAILS.get(keyword, f"{keyword} contradicts the rest")
        raise UnsatisfiableError(
            f"No value satisfies the schema: {detail}", location=place, hint="Change that part, or do not require it"
        )

    def _place(self, key: Key, below: Key | None) -> str | None:
        """Where a needed member stands: its own schema, or what says that there is none."""
        scan = self._forms.scan
        if below is not None and below and below[0] >= 0:
            return scan.where(below[0])
        if below == NOTHING and self._forms.union(key) is None and not self._forms.joint.is_joint(key):
            for facets in self._forms.of(key):
                for i in facets.members:
                    schema = scan.schemas[i]
                    for name in facets.required:
                        if schema.get("properties", {}).get(name, True) is False:
                            return scan.where(i, "properties", name)
                    rest = ["additionalProperties", "unevaluatedProperties"] if facets.required else []
                    rest += ["items", "unevaluatedItems"] if facets.min_items else []
                    for keyword in rest:
                        if schema.get(keyword) is False:
                            return scan.where(i, keyword)
        return scan.where(key[0]) if key and key[0] >= 0 else None


_DETAILS = {
    "enum": "enum has no value, or none that fits the keywords beside it",
    "const": "the const does not fit the keywords beside it",
    "": "its keywords contradict each other",
    "false": "a part that always applies is false",
    "type": "the types asked for exclude each other",
    "minimum": "no number lies between the bounds",
    "multipleOf": "no multiple lies between the bounds, or none that is left",
    "pattern": "no string fits pattern, format and lengths together",
    "maxLength": "minLength is larger than maxLength",
    "uniqueItems": "uniqueItems and minItems ask for more different items than there are",
    "minItems": "minItems is larger than maxItems",
}
