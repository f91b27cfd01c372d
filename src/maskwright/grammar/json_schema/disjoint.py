"""Which keys must be expanded before anything is lowered, and the proof that branches of a `oneOf` exclude each other.

Two branches exclude each other iff their conjunction, together with what applies beside the `oneOf`, has no value:
the same question as for any other key. So different types, constants of a required property, bounds, patterns all
count, at any depth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from itertools import combinations
from typing import TYPE_CHECKING, Any

from maskwright.errors import ConstraintError

from .evaluate import fits_locally, identity, listed
from .forms import Claim, Forms
from .kinds import EVERY, OBJECT
from .model import NEVER, NOTHING, Key
from .productive import Productivity

if TYPE_CHECKING:
    from .scan import Scan

_SCRATCH: Key = (-3,)
# By a pair of branches, the schemas beside which they exclude each other, and so beside more than these.
Apart = dict[tuple[int, int], list[frozenset[int]]]


def expand_all(forms: Forms, keys: list[Key], seen: set[Key]) -> tuple[bool, list[Key]]:
    """Expands keys, and those below in which several schemas meet, so that what cannot be enforced is refused now.

    Args:
        forms: of the scanned schema.
        keys: where to start; `crossings` has all.
        seen: those that have been expanded, and are not once more.

    Returns:
        Whether one of them may have no value; those that are left to the joint evaluation.

    Raises:
        SchemaError: a conjunction has too many alternatives.
    """
    scan, is_joint = forms.scan, forms.joint.is_joint
    suspect, joint, stack = False, [], list(keys)
    while stack:
        key = stack.pop()
        if key in seen or (len(key) <= 1 and (not key or key[0] not in scan.groups) and not is_joint(key)):
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
            joint.append(key)
            continue
        alternatives = forms.of(key)
        suspect = suspect or not alternatives
        for facets in alternatives:
            if len(facets.members) > 1:
                suspect = suspect or (scan.linked and bool(facets.required or facets.min_items))
                suspect = suspect or any(NOTHING in need for need in facets.needs(scan))
                stack += facets.below(scan)
    return suspect, joint


def crossings(scan: Scan) -> list[Key]:
    """The keys of single schemas that bring in others."""
    inner, aliases = scan.inner, scan.aliases
    return [
        scan.resolve(i) if i in aliases else (i,)
        for i in ({**scan.groups, **scan.joint} if scan.joint else scan.groups)
        if i not in inner
    ]


def overlapping(forms: Forms, productivity: Productivity) -> dict[int, set[tuple[int, int]]]:
    """The pairs of branches, by the schema with their `oneOf`, that are not proved to exclude each other.

    The claims that were noted are taken for settled then.
    """
    found: dict[int, set[tuple[int, int]]] = {}
    apart: Apart = defaultdict(list)
    claims, forms.claims = forms.claims, []
    for claim in sorted(claims, key=lambda claim: len(claim.members)):
        known = found.setdefault(claim.owner, set())
        known.update(_overlaps(forms, productivity, claim, known, apart))
    return {owner: pairs for owner, pairs in found.items() if pairs}


def _overlaps(
    forms: Forms, productivity: Productivity, claim: Claim, known: set[tuple[int, int]], apart: Apart
) -> list[tuple[int, int]]:
    """The pairs of branches that may hold together, without those that are known already."""
    scan, branches = forms.scan, claim.group.branches
    context, members = EVERY, frozenset(claim.members)
    for member in members:
        context &= scan.types.get(member, EVERY)
    types = [_types(forms, branch) & context for branch in branches]
    if _are_apart(types):
        return []
    needed = _required(scan, claim.members)
    if _distinguished(forms, claim, types, needed):
        return []
    found = []
    for a, b in combinations(range(len(branches)), 2):
        pair = (branches[a], branches[b])
        if (a, b) in known or not types[a] & types[b] or NEVER in pair:
            continue
        proven = apart[pair]
        if any(fewer <= members for fewer in proven) or _clash(scan, *pair, types[a] & types[b], needed):
            continue
        scan.budget.check(lambda: scan.where(claim.owner, "oneOf"))
        if members and not proven and _exclude_alone(forms, productivity, pair):
            proven.append(frozenset())  # in all the other places too
        elif _meet(forms, productivity, pair, claim.members):
            found.append((a, b))
        else:
            proven.append(members)
    return found


def _exclude_alone(forms: Forms, productivity: Productivity, pair: tuple[int, int]) -> bool:
    """Whether two branches are seen to exclude each other whatever stands beside."""
    try:
        return not _meet(forms, productivity, pair, ())
    except ConstraintError:
        return False  # what stands beside may make it simpler


def _are_apart(types: list[int]) -> bool:
    """Whether no two of some sets of types, as bits, have one in common."""
    met = 0
    for bits in types:
        if met & bits:
            return False
        met |= bits
    return True


def _meet(forms: Forms, productivity: Productivity, pair: tuple[int, int], members: tuple[int, ...]) -> bool:
    """Whether some value satisfies two branches and the schemas that apply beside."""
    for together in forms.expand(list(pair), members, _SCRATCH):
        facets = forms.settle(together, _SCRATCH)
        if facets is not None and productivity.is_inhabited(facets):
            return True
    return False


def _clash(scan: Scan, a: int, b: int, types: int, needed: frozenset[str]) -> bool:
    """Whether two branches plainly exclude each other: other values, names that one needs and the other has not."""
    one, other = _local(scan, scan.resolve(a)), _local(scan, scan.resolve(b))
    if one is None or other is None:
        return False
    if _are_other_values(scan, one, other):
        return True
    if types != OBJECT:
        return False
    schemas = scan.schemas[one], scan.schemas[other]
    required = needed.union(*(schema.get("required", ()) for schema in schemas))
    for schema in schemas:
        closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
        if closed and not required <= schema.get("properties", {}).keys():
            return True
    mine, others = (schema.get("properties", {}) for schema in schemas)
    return any(_exclude(scan, mine[name], others[name]) for name in required & mine.keys() & others.keys())


def _exclude(scan: Scan, a: Any, b: Any) -> bool:
    """Whether two schemas of a member exclude each other by their types or by the values that they list."""
    keys = scan.key(a), scan.key(b)
    if NOTHING in keys:
        return True
    types = EVERY
    for key in keys:
        for number in key:
            types &= scan.types.get(number, EVERY)
    one, other = _local(scan, keys[0]), _local(scan, keys[1])
    return not types or (one is not None and other is not None and _are_other_values(scan, one, other))


def _local(scan: Scan, key: Key) -> int | None:
    """The one schema of a key, where it says something by itself."""
    if len(key) != 1 or key[0] < 0 or (scan.draft <= 7 and "$ref" in scan.schemas[key[0]]):
        return None
    return key[0]


def _are_other_values(scan: Scan, one: int, other: int) -> bool:
    """Whether one of two schemas lists values, and the other none of them, or plainly allows none."""
    mine, others = _listed(scan, one), _listed(scan, other)
    if mine is not None and others is not None:
        return mine.isdisjoint(others)
    if mine is None and others is None:
        return False
    number, against = (one, other) if others is None else (other, one)
    values = _values(scan, number)
    return not any(isinstance(v, dict | list) or fits_locally(scan, against, v) for v in values)


def _types(forms: Forms, branch: int) -> int:
    """The types that a branch plainly allows."""
    types, scan = EVERY, forms.scan
    for number in (branch, *scan.resolve(branch)):
        types &= scan.types.get(number, EVERY)
    return types


def _listed(scan: Scan, number: int) -> frozenset[Hashable] | None:
    """What a schema that lists values allows at most, each by its identity."""
    schema = scan.schemas[number]
    if "const" in schema and scan.draft >= 6:
        return frozenset((identity(schema["const"]),))
    return listed(scan, number) if "enum" in schema else None


def _values(scan: Scan, number: int) -> list[Any]:
    schema = scan.schemas[number]
    values: list[Any] = [schema["const"]] if "const" in schema and scan.draft >= 6 else schema["enum"]
    return values


def _required(scan: Scan, members: tuple[int, ...]) -> frozenset[str]:
    """The names that some schemas require."""
    schemas = [scan.schemas[member] for member in members]
    return frozenset(
        name for s in schemas if not (scan.draft <= 7 and "$ref" in s) for name in s.get("required", ())
    )


def _distinguished(forms: Forms, claim: Claim, types: list[int], required: frozenset[str]) -> bool:
    """Whether all branches require one property with strings of their own: the usual case, told in linear time."""
    scan = forms.scan
    schemas = []
    for branch, bits in zip(claim.group.branches, types, strict=True):
        key = scan.resolve(branch)
        if len(key) != 1 or key[0] < 0 or bits != OBJECT or (scan.draft <= 7 and "$ref" in scan.schemas[key[0]]):
            return False
        schemas.append(scan.schemas[key[0]])
    names = schemas[0].get("properties", {})
    return any(_differ(schemas, name, name in required, scan.draft) for name in names)


def _differ(schemas: list[dict[str, Any]], name: str, required: bool, draft: int) -> bool:
    seen: set[str] = set()
    for schema in schemas:
        tag = schema.get("properties", {}).get(name)
        if not isinstance(tag, dict) or "$ref" in tag or not (required or name in schema.get("required", ())):
            return False
        values = [tag["const"]] if "const" in tag and draft >= 6 else tag.get("enum", [None])
        if not all(isinstance(v, str) and v not in seen for v in values):
            return False
        seen.update(values)
    return True
