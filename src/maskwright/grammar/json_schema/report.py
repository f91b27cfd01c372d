"""What became of every keyword, told only when somebody asks: the scan keeps numbers, the sentences are made here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from maskwright.grammar.multiples import is_multiple
from maskwright.grammar.plan import Report, ReportEntry

from .dialect import MAP
from .keywords import table_of
from .kinds import FRACTION, NUMBER
from .model import words
from .options import Options
from .scan import Scan
from .values import MOST_SPELLED_NUMBERS

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
# Core vocabulary and annotations of the standard; what is in neither this nor the table of handlers is unknown.
_ANNOTATIONS = words(
    "$schema $id id $anchor $dynamicAnchor $recursiveAnchor $vocabulary $comment $defs definitions title "
    "description default examples deprecated readOnly writeOnly contentEncoding contentMediaType contentSchema "
    "then else minContains maxContains additionalItems"
)
_OPENAPI = {
    "nullable": 'OpenAPI 3.0 has it, beside type: default_draft="openapi-3.0"; else write null into type',
    "discriminator": "a hint of OpenAPI: which branch is meant is what oneOf or anyOf say",
}
_OPTIONS = {
    ("key_order", "schema"): "keys come in the order of the schema, others after them",
    ("whitespace", "compact"): "no white space between tokens",
    ("whitespace", "bounded"): "white space between tokens is a space, or one or two newlines and up to 20 blanks",
    ("numbers", "plain"): "numbers have no exponent and at most 20 fraction digits",
    ("escapes", "minimal"): "characters are escaped only where they must be",
}


def make_report(scan: Scan, extra: tuple[ReportEntry, ...] = ()) -> Report:
    """The report of a scanned schema; `extra` entries come last."""
    entries = [*_options(scan.options)]
    for i in range(len(scan.schemas)):
        if i not in scan.synthetics:
            entries += _schema(scan, i)
    if scan.is_copied:
        entries = list({(entry.pointer, entry.keyword): entry for entry in reversed(entries)}.values())[::-1]
    return Report((*entries, *extra))


def _options(options: Options) -> Iterator[ReportEntry]:
    for (name, value), detail in _OPTIONS.items():
        if getattr(options, name) == value:
            yield ReportEntry("", name, "over-constrained", detail)


def _schema(scan: Scan, i: int) -> Iterator[ReportEntry]:
    schema, table = scan.schemas[i], table_of(scan.draft)
    where = scan.where(i)
    alone = scan.draft <= 7 and "$ref" in schema
    told = False
    for keyword in schema:
        note = scan.notes.get((i, keyword))
        if alone and keyword != "$ref":
            yield ReportEntry(where, keyword, "annotation", "draft 7 and older ignore what stands beside $ref")
        elif note is not None:
            yield ReportEntry(where, keyword, note.status, note.detail)
        elif keyword not in table:
            yield ReportEntry(where, keyword, "annotation", _unknown(keyword, table.keys()))
        elif keyword == "multipleOf" and scan.types.get(i, NUMBER) & NUMBER:
            yield _multiple(scan, where, i)
        elif detail := "" if told else _numbers(scan, i, keyword):
            told = True
            yield ReportEntry(where, keyword, "over-constrained", detail)
        else:
            joint = keyword in scan.joint.get(i, ())
            yield ReportEntry(where, keyword, "enforced", cost="joint" if joint else "plain")


def _numbers(scan: Scan, i: int, keyword: str) -> str:
    """How the numbers of a schema are narrowed, told at the first keyword that speaks of them."""
    plain = scan.options.numbers == "plain"
    if keyword in ("enum", "const"):
        values = scan.schemas[i][keyword] if keyword == "enum" else [scan.schemas[i][keyword]]
        numbers = sum(isinstance(v, int | float) or hasattr(v, "adjusted") for v in values if not isinstance(v, bool))
        if numbers > MOST_SPELLED_NUMBERS:
            return "numbers are written in one way each"
        return "numbers are written without an exponent" if numbers else ""
    if keyword == "type" and scan.types[i] & NUMBER:
        if plain:
            return "no exponent, at most 20 fraction digits; integers have no fraction"
        return "integers have no fraction but zeros and no negative exponent" if not scan.types[i] & NUMBER & ~4 else ""
    if keyword in _BOUNDS and scan.types.get(i, NUMBER) & NUMBER:
        return "numbers between bounds are written without an exponent"
    return ""


def _multiple(scan: Scan, where: str, i: int) -> ReportEntry:
    plain = scan.options.numbers == "plain"
    if plain or (not scan.types.get(i, NUMBER) & FRACTION and is_multiple(1, scan.schemas[i]["multipleOf"])):
        return ReportEntry(where, "multipleOf", "enforced")
    return ReportEntry(where, "multipleOf", "over-constrained", "multiples are written without an exponent")


def _unknown(keyword: str, known: Iterable[Any]) -> str:
    if keyword in _ANNOTATIONS or keyword in MAP:
        return ""
    if keyword in _OPENAPI:
        return _OPENAPI[keyword]
    names = {str(name).lower(): str(name) for name in [*known, *_ANNOTATIONS]}
    meant = names.get(keyword.lower())
    return "no keyword of this draft" + (f"; did you mean {meant}?" if meant and meant != keyword else "")
