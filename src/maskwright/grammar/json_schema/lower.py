"""From keys to machines of the core, node by node, when a matcher reaches them. The scan saw all: nothing can fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .evaluate import distinct
from .facets import Facets
from .forms import Forms
from .joint import JointLowering
from .kinds import ARRAY, BOOLEAN, FRACTION, NULL, NUMBER, OBJECT, STRING
from .model import ANYTHING, NOTHING, Key
from .numbers import scalar_automaton
from .productive import Productivity
from .strings import string_automaton
from .values import value_pieces

if TYPE_CHECKING:
    from maskwright._core import Program

# Defines a node of the program.
Piece = Callable[["Program", int], None]


class Lowering:
    """One schema lowered into one program.

    Args:
        forms: the scanned schema.
        productivity: what has a value; None where everything has.
    """

    def __init__(self, forms: Forms, productivity: Productivity | None) -> None:
        self._forms = forms
        self._scan = forms.scan
        self._productivity = productivity
        options = self.options = forms.scan.options
        self._escapes = options.escapes == "any"
        self._any_order = options.key_order == "any"
        self._nodes: dict[Key, int] = {}
        self._pending: dict[int, Key | Piece] = {}

    @cached_property
    def _joint(self) -> JointLowering:
        return JointLowering(self._forms.joint.engine, self, self._escapes)

    def start(self, program: Program) -> None:
        """Allocates the root."""
        if self._scan.unique:
            program.uses_unique()
        self.node(program, self._scan.resolve(self._scan.root))

    def lower(self, program: Program, node: int) -> None:
        """Defines a node."""
        what = self._pending[node]  # kept until the end: an interrupted step can be done again
        if not isinstance(what, tuple):
            what(program, node)
        elif (members := self._forms.union(what)) is not None:
            self._union(program, node, [key for key in members if self._has_value(key)])
        elif what != ANYTHING and not self._forms.is_plain(what):
            self.define(program, node, self._joint.pieces(tuple(sorted(what)), (), None))
        else:
            pieces: list[Piece] = []
            for facets in [Facets(self._scan, ())] if what == ANYTHING else self._forms.of(what):
                pieces += self._pieces(facets)
            self.define(program, node, pieces)
        self._pending.pop(node, None)

    def _union(self, program: Program, node: int, keys: list[Key]) -> None:
        """Defines a union; the branches that are only lists of values become one list, and so one machine."""
        nodes: list[int] = []
        values: list[Any] = []
        for key in keys:
            listed = self._listed(key)
            if listed is None:
                nodes.append(self.node(program, key))
            else:
                values += listed
        pieces = value_pieces(self, distinct(values), self._scan.options) if values else []
        if not nodes:
            self.define(program, node, pieces)
            return
        for piece in pieces:
            nodes.append(program.new_node())
            piece(program, nodes[-1])
        program.define_union(node, nodes)

    def _listed(self, key: Key) -> list[Any] | None:
        """The values of a key that is nothing but `enum`s and `const`s."""
        if key == ANYTHING or self._forms.union(key) is not None or not self._forms.is_plain(key):
            return None
        found: list[Any] = []
        for facets in self._forms.of(key):
            if facets.values is None or (self._scan.options.lexical and not facets.types & FRACTION):
                return None
            found += facets.values
        return found

    def define(self, program: Program, node: int, pieces: list[Piece]) -> None:
        """Defines a node as the union of pieces."""
        if len(pieces) == 1:
            pieces[0](program, node)
            return
        members = []
        for piece in pieces:
            members.append(program.new_node())
            piece(program, members[-1])
        program.define_union(node, members)

    def node(self, program: Program, key: Key) -> int:
        """The node of a key."""
        node = self._nodes.get(key)
        if node is None:
            node = program.new_node()
            self._pending[node] = key
            self._nodes[key] = node
        return node

    def defer(self, program: Program, piece: Piece) -> int:
        """A node that `piece` will define on reach."""
        node = program.new_node()
        self._pending[node] = piece
        return node

    def _has_value(self, key: Key) -> bool:
        return key != NOTHING and (self._productivity is None or self._productivity.has_value(key))

    def _pieces(self, facets: Facets) -> list[Piece]:
        if facets.values is not None:
            return value_pieces(self, facets.values, self._scan.options, facets.types)
        pieces: list[Piece] = []
        types = facets.types
        if types & (NULL | BOOLEAN | NUMBER):
            bounds = facets.low, facets.high
            regex = scalar_automaton(types, *bounds, facets.excluded, self._scan.options, facets.steps)
            pieces.append(lambda program, node: program.define_regex(node, regex))
        if types & STRING:
            pieces.append(self._string(facets))
        if types & OBJECT and (piece := self._object(facets)) is not None:
            pieces.append(piece)
        if types & ARRAY and (piece := self._array(facets)) is not None:
            pieces.append(piece)
        return pieces

    def _string(self, facets: Facets) -> Piece:
        least, most, escapes = facets.min_length, facets.max_length, self._escapes
        if not facets.regexes:
            return lambda program, node: program.define_string(node, least, most, escapes)
        regex = string_automaton(facets.regexes, least, most)
        return lambda program, node: program.define_regex_string(node, regex, escapes)

    def _object(self, facets: Facets) -> Piece | None:
        names, others = facets.properties(self._scan)
        required = facets.required
        closed = not self._has_value(others)
        kept: list[tuple[str, Key | None]] = []
        for name, key in names.items():
            if self._has_value(key):
                kept.append((name, key))
            elif name in required:
                return None
            elif not closed:
                kept.append((name, None))

        def define(program: Program, node: int) -> None:
            program.define_object(
                node,
                [name.encode() for name, _ in kept],
                [-1 if key is None else self.node(program, key) for _, key in kept],
                [name in required for name, _ in kept],
                -1 if closed else self.node(program, others),
                self._any_order,
                self._escapes,
            )

        return define

    def _array(self, facets: Facets) -> Piece | None:
        prefix, rest = facets.items(self._scan)
        least, most = facets.min_items, facets.max_items
        for n, key in enumerate(prefix):
            if not self._has_value(key):
                del prefix[n:]
                most = n if most < 0 else min(most, n)
                break
        open_ = self._has_value(rest) and not 0 <= most <= len(prefix)
        if not open_ and (most < 0 or most > len(prefix)):
            most = len(prefix)
        if 0 <= most < least:
            return None
        if 0 <= most < len(prefix):
            del prefix[most:]

        def define(program: Program, node: int) -> None:
            children = [self.node(program, key) for key in prefix]
            items = self.node(program, rest) if open_ else -1
            program.define_array(node, children, items, least, most, facets.few if facets.unique else None)

        return define

    def define_list(self, program: Program, node: int, items: list[Any], make: Callable[[Any], Piece]) -> None:
        """Defines an array of exactly these items."""
        children = [self.defer(program, make(item)) for item in items]
        program.define_array(node, children, -1, len(items), len(items))

    def define_record(self, program: Program, node: int, record: dict[str, Any], make: Callable[[Any], Piece]) -> None:
        """Defines an object of exactly these members."""
        program.define_object(
            node,
            [name.encode() for name in record],
            [self.defer(program, make(value)) for value in record.values()],
            [True] * len(record),
            -1,
            self._any_order,
            self._escapes,
        )
