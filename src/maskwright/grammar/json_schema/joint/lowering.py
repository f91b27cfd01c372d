"""From questions to machines: strings and scalars as regular languages, containers with a control automaton."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from maskwright.grammar.automata import automaton
from maskwright.grammar.ir import ALL, EMPTY, union

from ..kinds import STRING
from ..model import ANYTHING
from ..values import value_pieces, written
from .arrays import ArrayFrame
from .engine import Engine, Frame, Goal
from .members import KeyClass
from .nodes import Ids
from .objects import fits
from .plans import ObjectFrame

if TYPE_CHECKING:
    from maskwright._core import Program

    from ..lower import Lowering

Piece = Callable[["Program", int], None]


class JointLowering:
    """One schema lowered into one program, as far as several schemas have to be told apart on one value."""

    def __init__(self, engine: Engine, lowering: Lowering, escapes: bool) -> None:
        self._engine = engine
        self._lowering = lowering
        self._escapes = escapes
        self._nodes: dict[Any, int] = {}
        self._controls: dict[Any, int] = {}
        self._names: dict[str, int] = {}
        self._classes: dict[KeyClass, int] = {}

    def pieces(self, must: Ids, may: Ids, goal: Goal) -> list[Piece]:
        """What defines the values of a question whose vector is in the goal."""
        engine, options = self._engine, self._lowering.options
        values = engine.candidates(must)
        if values is not None:
            return value_pieces(self._lowering, [v for v in values if fits(engine.vector_of(v, may), goal)], options)
        cells = [c for c in engine.scalars.cells(must, may) if fits(c.vector, goal)]
        strings = union(*(c.language for c in cells if c.type == STRING))
        others = union(*(c.language for c in cells if c.type != STRING))
        pieces: list[Piece] = []
        if others != EMPTY:
            pieces.append(lambda program, node: program.define_regex(node, automaton(others)))
        if strings == ALL:
            pieces.append(lambda program, node: program.define_string(node, 0, -1, self._escapes))
        elif strings != EMPTY:
            pieces.append(lambda program, node: program.define_regex_string(node, automaton(strings), self._escapes))
        frames: tuple[Any, ...] = engine.frames(must, may)
        pieces += [self._container(f, goal) for f in frames if f.possible and f.is_live(f.start(), goal)]
        return pieces

    def _container(self, frame: Frame, goal: Goal) -> Piece:
        def define(program: Program, node: int) -> None:
            start = self._control(program, frame, frame.start(), goal)
            if isinstance(frame, ObjectFrame):
                program.define_joint_object(node, start)
            else:
                texts = [written(value).encode() for value in frame.texts]
                program.define_joint_array(node, start, ([], texts) if frame.unique else None)

        return define

    def _control(self, program: Program, frame: Frame, state: Any, goal: Goal) -> int:
        key = (id(frame), state, goal)
        node = self._controls.get(key)
        if node is None:
            node = self._controls[key] = self._lowering.defer(
                program, lambda program, node: self._define_control(program, node, frame, state, goal)
            )
        return node

    def _define_control(self, program: Program, node: int, frame: Any, state: Any, goal: Goal) -> None:
        steps = frame.steps(state, goal)
        keys, offsets, children, nexts = list[int](), [0], list[int](), list[int]()
        last = None
        for step in steps:
            if isinstance(frame, ObjectFrame):
                place = step.key
                if place != last:
                    keys.append(self._key(program, frame.classes[place]))
            else:
                place = state.position
            if last is not None and place != last:
                offsets.append(len(children))
            last = place
            must, may = frame.child(place)
            children.append(self.node(program, must, may, step.vectors))
            nexts.append(self._control(program, frame, step.after, goal))
        if steps:
            offsets.append(len(children))
        end = frame.may_end(state, goal)
        witness = -1 if end else frame.witness(state, goal, steps)
        texts = frame.texts if isinstance(frame, ArrayFrame) else []
        dearest = max((len(written(value).encode()) for value in texts), default=0)
        program.define_control(node, end, keys, offsets, children, nexts, witness, dearest)

    def _key(self, program: Program, key: KeyClass) -> int:
        name, escapes = key.name, self._escapes
        if name is not None:
            if name not in self._names:
                self._names[name] = self._lowering.defer(
                    program, lambda program, node: program.define_choice_string(node, [name.encode()], escapes)
                )
            return self._names[name]
        at = id(key)
        found = self._nodes.get(("key", at))
        if found is None:
            found = self._nodes["key", at] = self._lowering.defer(
                program, lambda program, node: program.define_key(node, automaton(key.language), escapes)
            )
        return found

    def node(self, program: Program, must: Ids, may: Ids, goal: Goal) -> int:
        """The node of a question and a goal; plain ones are the lowering's own."""
        must, may, goal = self._engine.reduce(must, may, goal)
        if not may and not any(map(self._engine.nodes.is_constant, must)):
            return self._lowering.node(program, must or ANYTHING)
        key = (must, may, goal)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = self._lowering.defer(
                program, lambda program, node: self._lowering.define(program, node, self.pieces(must, may, goal))
            )
        return found
