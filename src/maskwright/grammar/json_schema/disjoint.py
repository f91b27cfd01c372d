"""Which keys must be expanded before anything is lowered, and the proof that branches of a `oneOf` exclude each other.

Two branches exclude each other iff their conjunction, together with what applies beside the `oneOf`, has no value:
the same question as for any other key. So different types, constants of a required property, bounds, patterns all
count, at any depth.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import combinations
from typing import Any

from .evaluate import identity
from .forms import Claim, Forms
from .kinds import EVERY, OBJECT
from .model import NEVER, NOTHING, Key
from .productive import Productivity

_SCRATCH: Key = (-3,)


def expand_all(forms: Forms) -> bool:
    """Expands every key in which several schemas meet, so that what cannot be enforced is refused now.

    Returns:
        Whether one of them may have no value.

    Raises:
        SchemaError: a conjunction has too many alternatives.
    """
    scan = forms.scan
    suspect = False
    joint = forms.joint
    stack = [scan.resolve(i) for i in {**scan.groups, **dict.fromkeys(scan.joint)} if i not in scan.inner]
    seen: set[Key] = set()
    while stack:
        key = stack.pop()
        if key in seen or (len(key) <= 1 and (not key or key[0] not in scan.groups) and not joint.is_joint(key)):
            continue
        seen.add(key)
        scan.limit_nodes(len(scan.schemas) + len(seen), key[0])
        scan.budget.check("")
        members = forms.union(key)
        if members is not None:
            group = scan.unions[key[0]]
            if group.kind == "one" and len(group.branches) > 1:
                forms.claims.append(Claim(key[0], group, ()))
            stack += members
            continue
        if not forms.is_plain(key):
            stack += joint.explore(key)
            continue
        alternatives = forms.of(key)
        suspect = suspect or not alternatives
        for facets in alternatives:
            if len(facets.members) > 1:
                suspect = suspect or (scan.linked and bool(facets.required or facets.min_items))
                suspect = suspect or any(NOTHING in need for need in facets.needs(scan))
                stack += facets.below(scan)
    return suspect


def overlapping(forms: Forms, productivity: Productivity) -> dict[str, set[tuple[int, int]]]:
    """The pairs of branches, by the pointer of their `oneOf`, that are not proved to exclude each other."""
    found: dict[int, set[tuple[int, int]]] = {}
    proven: dict[int, list[frozenset[int]]] = {}
    for claim in sorted(forms.claims, key=lambda claim: len(claim.members)):
        contexts = proven.setdefault(claim.owner, [])
        if any(context <= set(claim.members) for context in contexts):
            continue
        known = found.setdefault(claim.owner, set())
        known.update(_overlaps(forms, productivity, claim, known))
        if not known:
            contexts.append(frozenset(claim.members))
    return {forms.scan.where(owner, "oneOf"): pairs for owner, pairs in found.items() if pairs}


def _overlaps(
    forms: Forms, productivity: Productivity, claim: Claim, known: set[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The pairs of branches that may hold together, without those that are known already."""
    scan, branches = forms.scan, claim.group.branches
    context, required = EVERY, set[str]()
    for member in claim.members:
        context &= scan.types.get(member, EVERY)
        schema = scan.schemas[member]
        if not (scan.draft <= 7 and "$ref" in schema):
            required.update(schema.get("required", ()))
    types = [_types(forms, branch) & context for branch in branches]
    if _distinguished(forms, claim, types, required):
        return []
    lists = [_listed(forms, branch) for branch in branches]
    where, found = scan.where(claim.owner, "oneOf"), []
    for a, b in combinations(range(len(branches)), 2):
        pair = (branches[a], branches[b])
        if (a, b) in known or not types[a] & types[b] or NEVER in pair:
            continue
        one, other = lists[a], lists[b]
        if one is not None and other is not None and one.isdisjoint(other):
            continue
        scan.budget.check(where)
        if _meet(forms, productivity, pair, claim.members):
            found.append((a, b))
    return found


def _meet(forms: Forms, productivity: Productivity, pair: tuple[int, int], members: tuple[int, ...]) -> bool:
    """Whether some value satisfies two branches and the schemas that apply beside."""
    for together in forms.expand(list(pair), members, _SCRATCH):
        facets = forms.settle(together, _SCRATCH)
        if facets is not None and productivity.is_inhabited(facets):
            return True
    return False


def _types(forms: Forms, branch: int) -> int:
    """The types that a branch plainly allows."""
    types, scan = EVERY, forms.scan
    for number in {branch, *scan.resolve(branch)}:
        types &= scan.types.get(number, EVERY)
    return types


def _listed(forms: Forms, branch: int) -> set[Hashable] | None:
    """What a branch that lists values allows at most, each by its identity."""
    scan = forms.scan
    key = scan.resolve(branch)
    if len(key) != 1 or key[0] < 0:
        return None
    schema = scan.schemas[key[0]]
    if scan.draft <= 7 and "$ref" in schema:
        return None
    if "const" in schema and scan.draft >= 6:
        return {identity(schema["const"])}
    return set(map(identity, schema["enum"])) if "enum" in schema else None


def _distinguished(forms: Forms, claim: Claim, types: list[int], required: set[str]) -> bool:
    """Whether all branches require one property with strings of their own: the usual case, told in linear time."""
    scan = forms.scan
    schemas = []
    for branch, bits in zip(claim.group.branches, types, strict=True):
        key = scan.resolve(branch)
        if len(key) != 1 or key[0] < 0 or bits != OBJECT:
            return False
        schemas.append(scan.schemas[key[0]])
    names = schemas[0].get("properties", {})
    return scan.draft >= 6 and any(_differ(schemas, name, name in required) for name in names)


def _differ(schemas: list[dict[str, Any]], name: str, required: bool) -> bool:
    seen: set[str] = set()
    for schema in schemas:
        tag = schema.get("properties", {}).get(name)
        if not isinstance(tag, dict) or "$ref" in tag or not (required or name in schema.get("required", ())):
            return False
        values = [tag["const"]] if "const" in tag else tag.get("enum", [None])
        if not all(isinstance(v, str) and v not in seen for v in values):
            return False
        seen.update(values)
    return True
