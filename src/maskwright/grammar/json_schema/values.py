"""The texts of given values, for `enum` and `const`."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from maskwright.grammar.automata import automaton
from maskwright.grammar.ir import literal, union

from .kinds import NUMBER
from .numbers import canonical, value_ir
from .options import Options

if TYPE_CHECKING:
    from maskwright._core import Program

    from .lower import Lowering

    Piece = Callable[[Program, int], None]

# Up to so many numbers in one list get all their writings; beyond, one each, and the report says so.
MOST_SPELLED_NUMBERS = 64


def written(value: Any) -> str:
    """A JSON text of a value, as short as any."""
    if isinstance(value, list):
        return f"[{','.join(map(written, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{written(name)}:{written(v)}' for name, v in value.items())}}}"
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return canonical(value)
    return json.dumps(value, ensure_ascii=False)


def value_pieces(lowering: Lowering, values: list[Any], options: Options, types: int = NUMBER) -> list[Piece]:
    """The machines of a list of values: one for all strings, one for all other scalars, one for each container.

    Args:
        lowering: what defines the nodes of containers.
        values: JSON values.
        options: how they are written.
        types: the types of numbers that are left, for those that an integer's writing depends on.
    """
    escapes = options.escapes == "any"
    strings = [v.encode() for v in values if isinstance(v, str)]
    scalars = [v for v in values if not isinstance(v, str | list | dict)]
    pieces: list[Piece] = []
    if strings:
        pieces.append(lambda program, node: program.define_choice_string(node, strings, escapes))
    if scalars:
        pieces.append(_scalars(scalars, options, types))
    pieces += [_container(lowering, v, options) for v in values if isinstance(v, list | dict)]
    return pieces


def _scalars(values: list[Any], options: Options, types: int) -> Piece:
    words = {None: "null", True: "true", False: "false"}
    numbers = [v for v in values if v is not None and not isinstance(v, bool)]
    named = [words[v] for v in values if v is None or isinstance(v, bool)]
    if not numbers or len(numbers) > MOST_SPELLED_NUMBERS:
        texts = [t.encode() for t in [*named, *map(canonical, numbers)]]
        return lambda program, node: program.define_choice(node, texts)
    regex = automaton(union(*map(literal, named), *(value_ir(v, options, types) for v in numbers)))
    return lambda program, node: program.define_regex(node, regex)


def _container(lowering: Lowering, value: Any, options: Options) -> Piece:
    def make(inner: Any) -> Piece:
        return lambda program, node: lowering.define(program, node, value_pieces(lowering, [inner], options))

    if isinstance(value, list):
        return lambda program, node: lowering.define_list(program, node, value, make)
    return lambda program, node: lowering.define_record(program, node, value, make)
