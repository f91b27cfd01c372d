"""The JSON Schema front end: drafts 4 to 2020-12, enforced exactly or refused by name and place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from maskwright.errors import LimitError
from maskwright.grammar.ir import Ranges
from maskwright.grammar.plan import WHITESPACE_CODES, Budget, Cancel, CompileLimits, Constraint, Report, ReportEntry

from .alphabet import spares
from .conditions import separate
from .disjoint import crossings, expand_all, overlapping
from .dynamic import NeedsCopies
from .facets import Facets
from .forms import Forms
from .lower import Lowering
from .model import Key
from .options import Draft, Escapes, Formats, KeyOrder, Numbers, Options, WhitespacePolicy, options_of
from .productive import Productivity
from .refs import registry_texts
from .report import make_report
from .scan import Scan
from .source import check_depth, dump, load

__all__ = ["JsonSchema", "SchemaPlan"]


class JsonSchema(Constraint):
    """JSON texts whose value satisfies a JSON Schema.

    Args:
        schema: a dict, a bool, JSON text (str or bytes), or a Python type: a pydantic model, a dataclass, or whatever a
            `pydantic.TypeAdapter` takes.
        key_order: "schema": properties in their order, then names known only from `required`, then all others; "any".
        whitespace: between the tokens of JSON: "compact": none; "bounded": nothing, a space, or one or two newlines
            and up to 20 blanks; "any".
        numbers: "plain": no exponent, at most 20 fraction digits; "full": JSON's own.
        escapes: "minimal": only what must be escaped; "any": every escape that JSON has.
        formats: "assert": known formats are enforced; "annotate": none is.
        registry: URI to schema, for references to other documents; nothing is ever fetched.
        default_draft: the draft of a schema that does not name one by `$schema`; "openapi-3.0": what OpenAPI 3.0 has,
            draft 4 and `nullable: true` beside a `type`.

    The schema is read and judged when it is compiled, not here: what is malformed, unsupported or unsatisfiable
        raises a
    ConstraintError with a JSON pointer from `maskwright.compile`. Wrong options raise ValueError, and a schema given
    as data that is no JSON raises SchemaError here.
    """

    text: str
    options: Options
    registry: dict[str, str]
    type: Any

    def __init__(
        self,
        schema: Any,
        *,
        key_order: KeyOrder = "schema",
        whitespace: WhitespacePolicy = "bounded",
        numbers: Numbers = "plain",
        escapes: Escapes = "minimal",
        formats: Formats = "assert",
        registry: Mapping[str, object] | None = None,
        default_draft: Draft = "2020-12",
    ) -> None:
        target = None
        if isinstance(schema, str):
            text = schema
        elif isinstance(schema, bytes | bytearray):
            text = _decode(bytes(schema))
        elif isinstance(schema, dict | bool):
            text = dump(schema)
        else:
            from maskwright.grammar.types import schema_text

            target, text = schema, schema_text(schema)
        options = options_of(key_order, whitespace, numbers, escapes, formats, default_draft, target is not None)
        self._set(text=text, options=options, registry=registry_texts(registry) if registry else {}, type=target)

    def fingerprint(self) -> str:
        """The content key of the compile cache."""
        o = self.options
        registry = json.dumps(sorted(self.registry.items())) if self.registry else ""
        flags = f"{o.key_order},{o.whitespace},{o.numbers},{o.escapes},{o.formats},{o.default_draft},{o.typed}"
        target = ""
        if self.type is not None:
            from maskwright.grammar.types import describe

            target = describe(self.type)
        return f"json:{flags}:{target}:{registry}:{self.text}"

    def parse(self, text: str | bytes) -> Any:
        """The value of a generated text: of the Python type that was given, or plain data.

        Raises:
            ValueError: a validator of the type refuses the value (`pydantic.ValidationError`), or the text is no JSON.
        """
        if self.type is None:
            return json.loads(text)
        from maskwright.grammar.types import parse

        return parse(self.type, text)

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> SchemaPlan:
        """The support scan.

        Raises:
            SchemaError: the schema is malformed, or uses what cannot be enforced exactly.
            UnsatisfiableError: no value satisfies it.
            LimitError: it is too large, too deep, or took too long.
        """
        budget = Budget(limits, cancel)
        budget.check("")
        try:
            return self._plan(budget)
        except RecursionError:
            raise LimitError(
                "The schema is nested too deeply", location="", hint="Write it flatter, with $defs"
            ) from None
        finally:
            budget.close()

    def _plan(self, budget: Budget) -> SchemaPlan:
        document = load(self.text)
        check_depth(document, self.text, budget.limits.depth)
        scan = self._scan(document, budget)
        known: dict[Key, list[Facets]] = {}
        while True:
            forms = Forms(scan, known)
            productivity = Productivity(forms)
            suspect, overlaps = _expand(forms, productivity) if scan.groups or scan.joint else (False, {})
            if not overlaps:
                break
            # Once more, with each of those branches cut down to what the others leave.
            separate(scan, overlaps)
            known = forms.beside(overlaps.keys())
        for i in scan.unique - scan.inner:
            forms.is_plain((i,))  # refuses what cannot be told
        if suspect or scan.suspect:
            root = scan.resolve(scan.root)
            if not productivity.has_value(root):
                productivity.blame(root)
            return SchemaPlan(forms, productivity, self.type)
        return SchemaPlan(forms, None, self.type)

    def _scan(self, document: Any, budget: Budget) -> Scan:
        try:
            return Scan(document, self.text, self.options, self.registry, budget)
        except NeedsCopies:
            return Scan(document, self.text, self.options, self.registry, budget, dynamic=True)

    def __repr__(self) -> str:
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        return f"JsonSchema({shown!r})"


class SchemaPlan:
    """A scanned schema, lowered on reach."""

    def __init__(self, forms: Forms, productivity: Productivity | None, target: Any) -> None:
        self._forms = forms
        self._productivity = productivity
        self._target = target
        self._lowering: Lowering | None = None
        self._report: Report | None = None

    @property
    def whitespace(self) -> int:
        """White space policy: 0 compact, 1 bounded, 2 any."""
        return WHITESPACE_CODES[self._forms.scan.options.whitespace]

    @property
    def report(self) -> Report:
        """What became of every keyword; made when first asked for."""
        if self._report is None:
            extra: tuple[ReportEntry, ...] = ()
            if self._target is not None:
                from maskwright.grammar.types import unseen_checks

                extra = unseen_checks(self._target)
            self._report = make_report(self._forms.scan, extra)
        return self._report

    def spares(self, lacking: Ranges) -> bool:
        """Whether nothing is missed where a vocabulary lacks some characters; False also where that is not plain."""
        return spares(self._forms.scan, lacking)

    def start(self, program: Any) -> None:
        """Allocates the root."""
        self._lowering = Lowering(self._forms, self._productivity)
        self._lowering.start(program)

    def lower(self, program: Any, node: int) -> None:
        """Defines a node."""
        assert self._lowering is not None, "a program is started before it is lowered"
        self._lowering.lower(program, node)


def _expand(forms: Forms, productivity: Productivity) -> tuple[bool, dict[int, set[tuple[int, int]]]]:
    """Expands all keys in which schemas meet: whether one may have no value, and which `oneOf`s overlap.

    What is plain comes first: where that already shows an overlap, the joint evaluation is not asked in vain.
    """
    seen, suspect = set[Key](), False
    keys = crossings(forms.scan)
    while True:
        some, joint = expand_all(forms, keys, seen)
        suspect = suspect or some
        overlaps = overlapping(forms, productivity) if forms.claims else {}
        if overlaps or not joint:
            return suspect, overlaps
        keys = [below for key in joint for below in forms.joint.explore(key)]


def _decode(data: bytes) -> str:
    from maskwright.errors import SchemaError

    try:
        return data.decode(json.detect_encoding(data))
    except UnicodeDecodeError as error:
        raise SchemaError(f"The schema is no text: {error.reason}, byte {error.start}", location="") from None
