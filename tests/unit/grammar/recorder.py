"""A stand-in for the core's Program: records the definitions and judges JSON texts by them, one value at a time."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from maskwright.grammar.json_schema import JsonSchema, SchemaPlan
from maskwright.grammar.plan import CompileLimits
from maskwright.reference.json_value import identity


class Number(str):
    """A number as it was written."""


class Members(list[tuple[str, Any]]):
    """The members of an object in the order written."""


def parse(text: str) -> Any:
    def members(pairs: list[tuple[str, Any]]) -> Members:
        return Members(pairs)

    return json.loads(text, parse_int=Number, parse_float=Number, object_pairs_hook=members)


class Recorder:
    """Implements Program's definitions; `accepts` lowers on reach as the core does."""

    def __init__(self, plan: SchemaPlan) -> None:
        self.plan = plan
        self.count = 0
        self.nodes: dict[int, tuple[Any, ...]] = {}
        plan.start(self)

    def new_node(self) -> int:
        self.count += 1
        return self.count - 1

    def _define(self, node: int, *what: Any) -> None:
        assert node not in self.nodes, "a node is defined once"
        self.nodes[node] = what

    def define_choice(self, node: int, texts: list[bytes]) -> None:
        self._define(node, "choice", texts)

    def define_choice_string(self, node: int, texts: list[bytes], escapes_any: bool) -> None:
        self._define(node, "choice_string", texts)

    def define_regex(self, node: int, regex: Any) -> None:
        self._define(node, "regex", regex)

    def define_string(self, node: int, least: int, most: int, escapes_any: bool) -> None:
        self._define(node, "string", least, most)

    def define_regex_string(self, node: int, regex: Any, escapes_any: bool) -> None:
        self._define(node, "regex_string", regex)

    def define_object(
        self,
        node: int,
        names: list[bytes],
        children: list[int],
        required: list[bool],
        additional: int,
        any_order: bool,
        escapes_any: bool,
    ) -> None:
        assert len(names) == len(children) == len(required) and len(set(names)) == len(names)
        assert not any(needed and child < 0 for needed, child in zip(required, children, strict=True))
        self._define(node, "object", [n.decode() for n in names], children, required, additional, any_order)

    def uses_unique(self) -> None:
        """Nothing to do: arrays say it."""

    def define_array(
        self, node: int, prefix: list[int], items: int, least: int, most: int, unique: object = None
    ) -> None:
        assert most < 0 or (least <= most and len(prefix) <= most)
        self._define(node, "array", prefix, items, least, most, unique is not None)

    def define_union(self, node: int, members: list[int]) -> None:
        assert members
        self._define(node, "union", members)

    def at(self, node: int) -> tuple[Any, ...]:
        assert 0 <= node < self.count
        if node not in self.nodes:
            self.plan.lower(self, node)
        return self.nodes[node]

    def accepts(self, text: str) -> bool:
        try:
            return self.check(0, parse(text))
        except ValueError:
            return False

    def check(self, node: int, value: Any) -> bool:
        kind, *args = self.at(node)
        if kind == "union":
            return any(self.check(member, value) for member in args[0])
        if kind == "array":
            return isinstance(value, list) and not isinstance(value, Members) and self._array(value, *args)
        if kind == "object":
            return isinstance(value, Members) and self._object(value, *args)
        if isinstance(value, list):
            return False
        if kind in ("string", "regex_string", "choice_string"):
            return isinstance(value, str) and not isinstance(value, Number) and self._string(kind, args, value)
        raw = str(value) if isinstance(value, Number) else None if isinstance(value, str) else json.dumps(value)
        if raw is None:
            return kind == "choice" and json.dumps(value, ensure_ascii=False).encode() in args[0]
        return raw.encode() in args[0] if kind == "choice" else bool(args[0].matches(raw))

    def _string(self, kind: str, args: list[Any], value: str) -> bool:
        if any("\ud800" <= c <= "\udfff" for c in value):
            return False
        if kind == "string":
            return args[0] <= len(value) and (args[1] < 0 or len(value) <= args[1])
        return value.encode() in args[0] if kind == "choice_string" else bool(args[0].matches(value))

    def _array(
        self, value: list[Any], prefix: list[int], items: int, least: int, most: int, unique: bool
    ) -> bool:
        if len(value) < least or 0 <= most < len(value):
            return False
        if unique and len({identity(plain(v)) for v in value}) < len(value):
            return False
        nodes = [prefix[n] if n < len(prefix) else items for n in range(len(value))]
        return all(node >= 0 and self.check(node, v) for node, v in zip(nodes, value, strict=True))

    def _object(
        self,
        value: Members,
        names: list[str],
        children: list[int],
        required: list[bool],
        additional: int,
        any_order: bool,
    ) -> bool:
        keys = [k for k, _ in value]
        rank = [names.index(k) if k in names else len(names) for k in keys]
        if len(set(keys)) < len(keys) or (rank != sorted(rank) and not any_order):
            return False
        if any(needed and name not in keys for name, needed in zip(names, required, strict=True)):
            return False
        nodes = [children[names.index(k)] if k in names else additional for k in keys]
        return all(node >= 0 and self.check(node, v) for node, (_, v) in zip(nodes, value, strict=True))


def plain(value: Any) -> Any:
    """A parsed value as Python data."""
    if isinstance(value, Number):
        return Decimal(str(value))
    if isinstance(value, Members):
        return {name: plain(v) for name, v in value}
    return [plain(v) for v in value] if isinstance(value, list) else value


def record(schema: Any, **options: Any) -> Recorder:
    """A schema scanned and ready to judge texts."""
    return Recorder(JsonSchema(schema, **options).plan(CompileLimits()))
