"""The support scan: one iterative pass over every schema that the root reaches.

Each schema object becomes a number, each keyword goes to its handler (`keywords`), which checks its value and notes
what the later steps need. A microsecond or two a schema, since it is much of the time to the first mask: no copies,
no strings built for what nobody may ask. What can be empty is only *suspected* here (`suspect`); `productive`
decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NoReturn

from maskwright.errors import LimitError, SchemaError
from maskwright.grammar.ir import Ir
from maskwright.grammar.plan import Budget

from .applicators import on_ref
from .cycles import find_cycles
from .dialect import DRAFTS, OPENAPI, draft_of, members
from .dynamic import Copies, NeedsCopies
from .keywords import conclude, table_of
from .kinds import BITS
from .model import ALWAYS, ANYTHING, NEVER, NOTHING, Group, Key, Note
from .options import Options, lexical_of
from .paths import ROOT, Path, pointer, tokens_of
from .refs import References

_IDENTIFIERS = {name: re.compile(rf'"{re.escape(name)}"\s*:\s*"') for name in ("id", "$id")}


class Scan:
    """The scanned document.

    Attributes:
        root: the number of the root schema.
        openapi: it is a schema of OpenAPI 3.0.
        schemas: the schema objects by number, those of the document and those made from a keyword (`synthetic`).
        paths: their places.
        types: type bits, where `type` stands.
        groups: what applies in place, for the schemas that have such keywords.
        regexes: patterns and formats of strings, each with a key to memoise by.
        excluded: numbers that a schema leaves out.
        judge: what evaluates schemas on values, where some are left to the joint evaluation.
        listed: what the values of an `enum` are equal to, once asked for.
        later: rewritings to do once all schemas have been scanned, by schema; each gives the place it is about.
        settling: schemas whose rewritings are under way.
        inner: schemas that apply in place only, never to a value of their own.
        aliases: schemas that are nothing but a reference, or annotations.
        unions: schemas that are nothing but an `anyOf` or `oneOf`.
        matched: schemas with a pattern for every property, beside which `additionalProperties` says nothing.
        joint: schemas that the plain forms cannot express, by keyword; the joint evaluation takes them, and all that
            they apply to.
        parts: what applies in place by keywords that the plain forms do not know, by schema.
        patterns: of `patternProperties`: a name for the term, the term, and the schema.
        unique: schemas that want items to differ, and allow more than one.
        whole: some schema asks what others evaluated, so that nothing is rewritten.
        suspect: something met may have no value at all, or a required part of it.
        doubted: the schemas that may have none by what they say themselves, as far as their groups do not show it.
        linked: there are references.
        long: the documents are long enough to hold a megabyte of names.
        texts: the document, and those it may refer to.
    """

    def __init__(
        self,
        document: Any,
        text: str,
        options: Options,
        registry: Mapping[str, str],
        budget: Budget,
        dynamic: bool = False,
    ) -> None:
        self.draft = draft_of(document, DRAFTS[options.default_draft], ROOT, registry)
        # A document that names a draft has what that draft has.
        self.openapi = options.default_draft == OPENAPI and not (isinstance(document, dict) and "$schema" in document)
        self.options = lexical_of(options) if self.draft == 4 else options
        self.budget = budget
        self.schemas: list[dict[str, Any]] = []
        self.paths: list[Path] = []
        self.index: dict[int, int] = {}
        self.types: dict[int, int] = {}
        self.groups: dict[int, list[Group]] = {}
        self.regexes: dict[int, list[tuple[str, Ir]]] = {}
        self.excluded: dict[int, tuple[Any, ...]] = {}
        self.settling: set[int] = set()
        self.later: dict[int, list[Callable[[], Path]]] = {}
        self.listed: dict[int, frozenset[Hashable]] = {}
        self.notes: dict[tuple[int, str], Note] = {}
        self.synthetics: set[int] = set()
        self.inner: set[int] = set()
        self.aliases: dict[int, Key] = {}
        self.unions: dict[int, Group] = {}
        self.matched: set[int] = set()
        self.joint: dict[int, set[str]] = {}
        self.parts: dict[int, list[Group]] = {}
        self.patterns: dict[int, list[tuple[str, Ir, Any]]] = {}
        self.unique: set[int] = set()
        self.whole = False
        self.judge: Callable[[int, Any], bool] | None = None
        self.suspect = False
        self.doubted: set[int] = set()
        self.linked = False
        self.text = text
        self.texts = (text, *registry.values())
        self.long = sum(map(len, self.texts)) > 250_000
        self._document = document
        self._registry = registry
        self._copies: Copies | None = None
        self._simple = not registry and not dynamic and _has_no_identifiers(document, text, self.draft)
        self._refs: References | None = None
        self._resolved: dict[str, int] = {}
        self._todo: list[int] = []
        if dynamic:
            self._refs = References(document, self.draft, False, registry)
            self._refs.index()
            self._copies = Copies(self._refs)
            self._document = self._copies.root(document)
        self.root = self._run()

    def add(self, value: Any, path: Path, in_place: bool = False) -> int:
        """The number of the schema at `path`, queued to be scanned; NEVER or ALWAYS for a boolean."""
        if type(value) is dict:
            number = self.index.get(id(value))
            if number is None:
                number = self.index[id(value)] = len(self.schemas)
                self.schemas.append(value)
                self.paths.append(path)
                self._todo.append(number)
                if in_place:
                    self.inner.add(number)
            elif not in_place:
                self.inner.discard(number)
            return number
        if value is True:
            return ALWAYS
        if value is False:
            self.suspect = self.suspect or in_place
            return NEVER
        raise SchemaError(
            f"A schema is an object, true or false, not {brief(value)}",
            location=pointer(path),
            hint="Write {} for anything",
        )

    def add_members(self, values: dict[str, Any], path: Path) -> None:
        """Queues the schemas of a map; `add` for each, written out since most schemas are members."""
        index, schemas = self.index, self.schemas
        for name, value in values.items():
            if type(value) is dict and id(value) not in index:
                number = index[id(value)] = len(schemas)
                schemas.append(value)
                self.paths.append((path, name))
                self._todo.append(number)
            else:
                self.add(value, (path, name))

    def synthetic(self, schema: dict[str, Any], path: Path) -> int:
        """A schema made from a keyword at `path`, to apply in place; the report says nothing of it."""
        number = self.add(schema, path, in_place=True)
        self.synthetics.add(number)
        return number

    def apply(self, i: int, kind: str, keyword: str, branches: tuple[int, ...]) -> None:
        """Notes a group of schemas that apply in place to what schema `i` applies to."""
        self.groups.setdefault(i, []).append(Group(kind, keyword, branches))

    def join(self, i: int, keyword: str, *parts: Group) -> None:
        """Leaves schema `i` to the joint evaluation for a keyword, and with it what applies in place by `parts`."""
        self.joint.setdefault(i, set()).add(keyword)
        self.suspect = True
        if parts:
            self.parts.setdefault(i, []).extend(parts)

    def doubt(self, i: int) -> None:
        """Raises the suspicion about schema `i`."""
        self.doubted.add(i)
        self.suspect = True

    def parts_of(self, i: int) -> list[Group]:
        """All that applies in place to what schema `i` applies to."""
        return [*self.groups.get(i, ()), *self.parts.get(i, ())]

    def edges(self, i: int) -> Iterator[int]:
        """The schemas that schema `i` refers to in any way."""
        for group in self.parts_of(i):
            yield from (b for b in group.branches if b >= 0)
        for value in members(self.schemas[i]):
            number = self.index.get(id(value))
            if number is not None:
                yield number

    def refer(self, ref: str, i: int) -> int:
        """The number of the schema that a reference of schema `i` points to."""
        self.linked = True
        path = self.paths[i]
        if self._copies is not None:
            return self.add(*self._copies.refer(self.schemas[i], ref, path), in_place=True)
        number = self._resolved.get(ref) if self._simple else None
        if number is None:
            if self._refs is None:
                self._refs = References(self._document, self.draft, self._simple, self._registry)
            value, at = self._refs.resolve(ref, path)
            number = self.add(value, at, in_place=True)
            if self._simple:
                self._resolved[ref] = number
        return number

    def refer_dynamically(self, ref: str, i: int, anchor: str) -> int:
        """The same for a reference that means the first schema of the dynamic scope with an anchor of its name."""
        if self._copies is not None:
            self.linked = True
            return self.add(*self._copies.refer_dynamically(self.schemas[i], ref, self.paths[i]), in_place=True)
        if self._registry or f'"{anchor}"' in self.text or "\\u00" in self.text or "json-schema.org/draft/20" in ref:
            raise NeedsCopies
        if tokens_of(self.paths[i])[0] is not None:
            raise NeedsCopies  # a metaschema
        return self.refer(ref, i)

    @property
    def is_copied(self) -> bool:
        """Whether a schema of the document may have several numbers, one for each dynamic scope."""
        return self._copies is not None

    def bad(self, i: int, keyword: str, expected: str, value: Any) -> NoReturn:
        """Raises a SchemaError about the value of a keyword."""
        raise SchemaError(f"{keyword} is {expected}, not {brief(value)}", location=self.where(i, keyword))

    def where(self, i: int, *tokens: object) -> str:
        """The pointer of a schema, or of a place below it; that of its keyword for a synthetic one."""
        return pointer(self.paths[i], *(() if i in self.synthetics else tokens))

    def resolve(self, number: int) -> Key:
        """The key of a schema by number; schemas that are only a reference or annotations are looked through."""
        if number < 0:
            return NOTHING if number == NEVER else ANYTHING
        found = self.aliases.get(number)
        if found is None:
            return (number,)
        trail = []
        while found and (after := self.aliases.get(found[0])) is not None:
            trail.append(number)
            number, found = found[0], after
        for passed in trail:
            self.aliases[passed] = found
        return found

    def canonical(self, number: int) -> int:
        """The number of the schema that a schema is an alias of; its own where it says something itself."""
        key = self.resolve(number)
        return key[0] if key else ALWAYS

    def schema(self, number: int) -> Any:
        """The schema of a number."""
        return self.schemas[number] if number >= 0 else number == ALWAYS

    def key(self, value: Any) -> Key:
        """The key of a subschema of the document."""
        if value is True:
            return ANYTHING
        if value is False:
            return NOTHING
        return self.resolve(self.index[id(value)])

    def _run(self) -> int:
        root = self.add(self._document, ROOT)
        self.suspect = root == NEVER
        self._scan_queued()
        self.settle_all()
        return root

    def settle_all(self) -> None:
        """Does the rewritings that wait, and looks for circles of references in what came of them."""
        while self.later:
            self.settle(next(iter(self.later)))
        if self.linked:
            find_cycles(self)
            self.suspect = True  # values may require each other in a circle

    def settle(self, number: int) -> None:
        """Does the rewritings that a schema still waits for, so that its groups are complete."""
        self.settling.add(number)
        for rewrite in self.later.pop(number, ()):
            known = len(self.schemas)
            path = rewrite()
            self._scan_queued()
            made = len(self.schemas) - known
            self.synthetics.update(range(known, known + made))
            self.paths[known:] = [path] * made
        self.settling.discard(number)

    def _scan_queued(self) -> None:
        handler_of = table_of(self.draft).get
        ref_alone, plain_type = self.draft <= 7, not self.openapi
        todo, types, budget = self._todo, self.types, self.budget
        count = 0
        while todo:
            number = todo.pop()
            schema = self.schemas[number]
            asserted = 0
            if ref_alone and "$ref" in schema:
                on_ref(self, number, schema, schema["$ref"])
                asserted = 1
            else:
                for keyword, value in schema.items():
                    handler = handler_of(keyword)
                    if handler is None:
                        continue
                    asserted += 1
                    if plain_type and keyword == "type" and type(value) is str and value in BITS:
                        types[number] = BITS[value]  # most keywords are these
                    else:
                        handler(self, number, schema, value)
            if asserted > 1 or number not in types:  # else there is but its type
                conclude(self, number, schema, asserted)
            count += 1
            if not count & 1023:
                budget.check(self.where(number))
                self.limit_nodes(len(self.schemas), number)

    def limit_nodes(self, count: int, number: int) -> None:
        """Raises a LimitError at a schema when there are too many schemas, or conjunctions of them."""
        if count > self.budget.limits.nodes:
            raise LimitError(
                f"The schema has more than {self.budget.limits.nodes} parts",
                location=self.where(number) if number >= 0 else "",
                hint="Raise CompileLimits.nodes, or write a smaller schema",
            )


def brief(value: Any) -> str:
    """What a value is, for an error."""
    if isinstance(value, str):
        return repr(value[:60])
    if isinstance(value, bool):
        return "true" if value else "false"
    names = {dict: "an object", list: "an array", type(None): "null"}
    return names.get(type(value)) or str(value)[:60]


def _has_no_identifiers(document: Any, text: str, draft: int) -> bool:
    """Whether only the root may have an identifier, judged by the text: escaped letters count as one."""
    if "\\u00" in text or 'nchor"' in text:
        return False
    name = "id" if draft == 4 else "$id"
    if f'"{name}"' not in text:
        return True
    named = len(_IDENTIFIERS[name].findall(text))  # a property of that name has no string behind it
    return named == (isinstance(document, dict) and isinstance(document.get(name), str))
