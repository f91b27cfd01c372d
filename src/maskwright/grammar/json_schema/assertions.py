"""The keywords that say something about a value by itself: their values are checked, patterns parsed, limits compared.

A handler gets the scan, the number of the schema, the schema, and the keyword's value. JSON Schema Validation
2020-12, section 6.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from maskwright.errors import LimitError, RegexError, SchemaError
from maskwright.grammar.formats import possible_ir
from maskwright.grammar.ir import MAX_MODULUS, Ir, complement, literal, union

from .kinds import BITS, is_integral, type_of
from .metaschemas import is_metaschema
from .model import Note, words
from .numbers import Steps, fit
from .paths import tokens_of
from .strings import format_ir, pattern_ir

if TYPE_CHECKING:
    from .scan import Scan

# Lengths and counts beyond this are no less than endless for a text that anybody generates, and fit the core's
# integers.
_MANY = (1 << 39) - 1
# The most bytes that the names of one object may take in the core.
_MOST_NAME_BYTES = (1 << 20) - 8
# What says more of items than `items` alone.
_OF_TUPLES = words("prefixItems additionalItems unevaluatedItems")
# Formats of the standard that no automaton is there for.
_STANDARD_FORMATS = words(
    "date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference iri iri- "
    "reference uuid uri-template json-pointer relative-json-pointer regex"
)

_FORMAT_NOTES = {
    "hostname": Note("over-constrained", "no label begins with xn-- (Punycode)"),
    "idn-email": Note("enforced", "labels of the domain may have any characters beyond ASCII"),
}


def on_type(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`type`: a name or a list of names."""
    bits = BITS.get(value) if type(value) is str else None
    if bits is None:
        names = value if isinstance(value, list) else [value]
        bits = 0
        for name in names:
            bit = BITS.get(name) if isinstance(name, str) else None
            if bit is None:
                scan.bad(i, "type", f"one or several of {', '.join(BITS)}", name)
            bits |= bit
        if not bits:
            scan.bad(i, "type", "a type or several", value)
    if scan.openapi and schema.get("nullable") is True:
        bits |= BITS["null"]
        scan.notes[i, "nullable"] = Note("enforced", "")
    scan.types[i] = bits


def on_enum(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`enum`: a list of any values."""
    if not isinstance(value, list):
        scan.bad(i, "enum", "a list of values", value)
    check_values(scan, i, "enum", value)


def on_const(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`const`: any value."""
    check_values(scan, i, "const", [value])


def check_text(scan: Scan, i: int, keyword: str, text: str) -> None:
    """Refuses lone surrogates: no UTF-8 text can hold one."""
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise SchemaError(
            f"{text[:60]!a} holds a lone surrogate, which UTF-8 cannot write",
            location=scan.where(i, keyword),
            hint="Remove it, or write the pair",
        )


def check_names(scan: Scan, where: str, names: Iterable[str]) -> None:
    """Refuses more names than an object of the core takes; asked only where the whole text is as long."""
    if scan.long and sum(len(name.encode()) for name in names) > _MOST_NAME_BYTES:
        raise LimitError(
            "The names of an object take over 1 MB",
            location=where,
            hint="Let additionalProperties stand for most of them",
        )


def check_values(scan: Scan, i: int, keyword: str, values: list[Any]) -> None:
    """Refuses lone surrogates anywhere in given values. O(size), iterative."""
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            check_text(scan, i, keyword, value)
        elif isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, dict):
            stack.extend(value)
            stack.extend(value.values())
            check_names(scan, scan.where(i, keyword), value)


def suspect_values(scan: Scan, i: int, schema: dict[str, Any], asserted: int) -> None:
    """Raises the suspicion unless a value plainly belongs: nothing but `type` stands beside them, and fits."""
    values = schema["enum"] if "enum" in schema else [schema["const"]]
    bits = scan.types.get(i)
    alone = asserted == (1 if bits is None else 2)
    if not (alone and values and (bits is None or any(type_of(v, scan.draft) & bits for v in values))):
        scan.doubt(i)


def on_bound(keyword: str) -> Any:
    """The handler of `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`."""
    exclusive = keyword.startswith("exclusive")

    def handle(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        if exclusive and scan.draft == 4:
            if not isinstance(value, bool):
                scan.bad(i, keyword, "true or false in draft 4", value)
        elif isinstance(value, bool) or not isinstance(value, int | Decimal):
            if exclusive and isinstance(value, bool):
                raise SchemaError(
                    f"{keyword} is a number, not a boolean",
                    location=scan.where(i, keyword),
                    hint='Give the bound itself, or "$schema": "http://json-schema.org/draft-04/schema#"',
                )
            scan.bad(i, keyword, "a number", value)

    return handle


def on_multiple(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`multipleOf`: a number greater than 0."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or value <= 0:
        scan.bad(i, "multipleOf", "a number greater than 0", value)


def check_steps(scan: Scan, i: int, types: int, steps: Steps) -> None:
    """Refuses multiples of a number (a common one of several) that the core cannot count by."""
    if not fit(types, steps, scan.options):
        raise LimitError(
            f"multipleOf comes to counting by a number beyond {MAX_MODULUS}, its point aside",
            location=scan.where(i, "multipleOf"),
            hint="Give a number of fewer digits, or an enum",
        )


def count_of(scan: Scan, i: int, keyword: str, value: Any) -> int:
    """A length or a count: a non-negative integer, also written 2.0."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or value < 0 or not is_integral(value):
        scan.bad(i, keyword, "a non-negative integer", value)
    return int(value)


def on_least(keyword: str, most: str) -> Any:
    """The handler of `minLength` and `minItems`."""

    def handle(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        least = count_of(scan, i, keyword, value)
        if least > _MANY:
            raise LimitError(f"{keyword} is larger than {_MANY}", location=scan.where(i, keyword))
        if not least:
            return
        limit = schema.get(most)
        if isinstance(limit, int | Decimal) and limit < least:
            scan.doubt(i)
        if keyword == "minItems" and (
            isinstance(schema.get("items"), bool | list) or not schema.keys().isdisjoint(_OF_TUPLES)
        ):
            scan.doubt(i)

    return handle


def on_most(keyword: str) -> Any:
    """The handler of `maxLength` and `maxItems`."""

    def handle(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
        count_of(scan, i, keyword, value)

    return handle


def clamp(most: int | Decimal | None) -> int:
    """An upper count for the core: -1 for none, or for one so large that it says nothing."""
    return -1 if most is None or most > _MANY else int(most)


def on_pattern(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`pattern`: an ECMA-262 regular expression, found anywhere in the string."""
    if not isinstance(value, str):
        scan.bad(i, "pattern", "a regular expression", value)
    scan.regexes.setdefault(i, []).append((f"p{value}", read_pattern(scan, i, "pattern", value)))


def read_pattern(scan: Scan, i: int, keyword: str, value: str) -> Ir:
    """The strings in which the pattern is found; refusals name the keyword."""
    try:
        return pattern_ir(value, scan.budget.limits)
    except RegexError as error:
        loose = _loosely(value, scan)
        if loose is not None:
            detail = f"read without flag u: {error.message}, {error.location}; it stands for the character"
            scan.notes[i, keyword] = Note("enforced", detail)
            return loose
        raise SchemaError(
            f"{keyword}: pattern {value[:200]!r}: {error.message}, {error.location or 'offset 0'}",
            location=scan.where(i, keyword),
            hint=error.hint,
        ) from None
    except LimitError as error:
        raise LimitError(f"{keyword}: {error.message}", location=scan.where(i, keyword), hint=error.hint) from None


def _loosely(pattern: str, scan: Scan) -> Ir | None:
    """A pattern read without flag u; None where that does not help."""
    try:
        return pattern_ir(pattern, scan.budget.limits, loose=True)
    except RegexError:
        return None


def on_format(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """`format`: an assertion where it is known and the option says so."""
    if not isinstance(value, str):
        scan.bad(i, "format", "the name of a format", value)
    if scan.options.formats == "annotate":
        scan.notes[i, "format"] = Note("annotation", "formats are not asserted, by option")
        return
    ir = format_ir(value, scan.options.typed)
    if ir is not None:
        if value in _FORMAT_NOTES:
            scan.notes[i, "format"] = _FORMAT_NOTES[value]
        scan.regexes.setdefault(i, []).append((f"{'t' if scan.options.typed else 'f'}{value}", ir))
    elif is_metaschema(tokens_of(scan.paths[i])[0]):
        scan.notes[i, "format"] = Note("annotation", "formats of metaschemas that have no automaton are not asserted")
    elif value in _STANDARD_FORMATS:
        raise SchemaError(
            f"format {value!r} is not supported",
            location=scan.where(i, "format"),
            hint='Give formats="annotate" to have no format enforced, or leave it out',
        )
    else:
        scan.notes[i, "format"] = Note("annotation", f"{value!r} is no format of the standard")


def on_type_bits(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """The types of a synthetic schema."""
    scan.types[i] = value


def on_except(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """The strings or numbers that a synthetic schema leaves out."""
    strings = [v for v in value if isinstance(v, str)]
    if strings:
        name = "x" + "\0".join(strings)
        scan.regexes.setdefault(i, []).append((name, complement(union(*map(literal, strings)))))
    if len(strings) < len(value):
        scan.excluded[i] = tuple([v for v in value if not isinstance(v, str)])


def on_apart(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """The number whose multiples a synthetic schema leaves out."""


def on_outside(scan: Scan, i: int, schema: dict[str, Any], value: Any) -> None:
    """The language of strings that a synthetic schema leaves out."""
    name, ir = value
    if name[1:] == "hostname" and name[0] in "tf":
        ir = possible_ir("hostname") or ir  # a label that was left out may be right
    scan.regexes.setdefault(i, []).append((f"!{name}", complement(ir)))
