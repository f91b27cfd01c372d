"""`not`, `if` and overlapping `oneOf`s: rewritten by way of complements once all has been scanned.

What has none as schemas is left to the joint evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .model import NEVER, Group
from .negation import complement
from .paths import Path

if TYPE_CHECKING:
    from .scan import Scan


def on_not(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`not`: the complement of its schema."""
    path = (scan.paths[i], "not")
    inner = scan.add(value, path, in_place=True)

    def rewrite() -> Path:
        schemas = None if scan.whole else complement(scan, inner)
        if schemas is None:
            scan.join(i, "not", Group("not", "not", (inner,)))
            return path
        scan.apply(i, "any", "not", tuple([scan.synthetic(s, path) for s in schemas]) or (NEVER,))
        scan.suspect = scan.suspect or not schemas
        return path

    scan.later.setdefault(i, []).append(rewrite)


def on_if(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`if`: both it and `then`, or its complement and `else`; alone it matters to `unevaluated` keywords."""
    path = scan.paths[i]
    condition = scan.add(value, (path, "if"), in_place=True)
    cases = {name: scan.add(schema.get(name, True), (path, name), in_place=True) for name in ("then", "else")}

    def rewrite() -> Path:
        if "then" not in schema and "else" not in schema and not scan.whole:
            return path
        schemas = None if scan.whole else complement(scan, condition)
        if schemas is None:
            scan.join(i, "if", Group("if", "if", (condition, cases["then"], cases["else"])))
            return (path, "if")
        then = scan.synthetic({"allOf": [scan.schema(condition), scan.schema(cases["then"])]}, (path, "if"))
        failing = {"anyOf": schemas} if schemas else False
        other = scan.synthetic({"allOf": [failing, scan.schema(cases["else"])]}, (path, "if"))
        scan.apply(i, "any", "if", (then, other))
        return (path, "if")

    scan.later.setdefault(i, []).append(rewrite)


def on_one_of(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`oneOf`: one branch; taken for `anyOf`, until two are known to overlap (`separate`)."""
    if not isinstance(value, list) or not value:
        scan.bad(i, "oneOf", "a list of one or more schemas", value)
    path = (scan.paths[i], "oneOf")
    scan.apply(i, "one", "oneOf", tuple([scan.add(sub, (path, n), in_place=True) for n, sub in enumerate(value)]))


def separate(scan: Scan, overlaps: Mapping[int, Iterable[tuple[int, int]]]) -> None:
    """Rewrites `oneOf`s, by schema, of which pairs of branches are known to overlap: each without the others."""
    for i, pairs in overlaps.items():
        group = next(g for g in scan.groups[i] if g.keyword == "oneOf")
        kept = [g for g in scan.groups[i] if g is not group]
        if kept:
            scan.groups[i] = kept
        else:
            del scan.groups[i]
        scan.unions.pop(i, None)
        scan.later.setdefault(i, []).append(partial(_separate, scan, i, group, pairs))
    scan.settle_all()


def _separate(scan: Scan, i: int, group: Group, overlaps: Iterable[tuple[int, int]]) -> Path:
    path: Path = (scan.paths[i], "oneOf")
    apart = []
    for n, branch in enumerate(group.branches):
        parts = [scan.schema(branch)]
        for other in sorted({a + b - n for a, b in overlaps if n in (a, b)}):
            schemas = None if scan.whole else complement(scan, group.branches[other])
            if schemas is None:
                scan.join(i, "oneOf", group)
                return path
            parts.append({"anyOf": schemas} if schemas else False)
        apart.append(branch if len(parts) == 1 else scan.synthetic({"allOf": parts}, (path, n)))
    scan.apply(i, "any", "oneOf", tuple(apart))
    return path
