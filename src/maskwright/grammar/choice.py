"""One text out of a list, and the item that it stands for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import Enum, EnumMeta
from typing import Any, Literal, get_args, get_origin

from maskwright.errors import ConstraintError, UnsatisfiableError
from maskwright.grammar.plan import Cancel, CompileLimits, Constraint, Plan, Report, ReportEntry, RootPlan

__all__ = ["Choice"]

_PLAIN = (str, int, float, complex, bool, type(None), Decimal)


class Choice(Constraint):
    """Exactly one of some texts.

    Args:
        choices: a list (or other iterable) of items, an `Enum` class, a `Literal[...]`, or a dict of label to item. The
            text of an item is `str(item)`, that of a member of an Enum `str(member.value)`; the labels of a dict are
            its keys.

    `parse` gives the item that a text stands for. Equal items may occur twice. What is no collection, and items without
    a text of their own (bytes, plain objects), raise TypeError. Raised when the choice is compiled: UnsatisfiableError
    without any choice, ConstraintError where two different items have the same text or a text has no UTF-8.
    """

    texts: tuple[str, ...]
    items: tuple[Any, ...]

    def __init__(self, choices: Iterable[Any] | Mapping[Any, Any] | type[Enum] | Any) -> None:
        pairs = _pairs(choices)
        self._set(texts=tuple(text for text, _ in pairs), items=tuple(item for _, item in pairs))

    def parse(self, text: str) -> Any:
        """The item of a text. Raises ValueError where it is none of the choices."""
        found = self.__dict__.get("_by_text")
        if found is None:
            found = dict(zip(reversed(self.texts), reversed(self.items), strict=True))
            self._set(_by_text=found)
        if text not in found:
            raise ValueError(f"{text!r} is none of the {len(found)} choices")
        return found[text]

    def fingerprint(self) -> str:
        """The content key of the compile cache. Items that are not plain values count by identity."""
        found: str | None = self.__dict__.get("_fingerprint")
        if found is None:
            digest = hashlib.sha256()
            for text, item in zip(self.texts, self.items, strict=True):
                for part in (text, _item_key(item)):
                    data = part.encode("utf-8", "surrogatepass")
                    digest.update(len(data).to_bytes(8, "little") + data)
            found = "choice:" + digest.hexdigest()
            self._set(_fingerprint=found)
        return found

    def plan(self, limits: CompileLimits, cancel: Cancel | None = None) -> Plan:
        """Checks the choices. Raises UnsatisfiableError and ConstraintError, with the number of the choice."""
        if not self.texts:
            raise UnsatisfiableError("there is no choice", location="choices", hint="List at least one text")
        texts = list(self._encoded())
        report = Report((ReportEntry("", "choice", "enforced", f"{len(texts)} texts"),))
        return RootPlan(lambda program, node: program.define_choice(node, texts), report)

    def _encoded(self) -> dict[bytes, None]:
        """The texts in UTF-8, each once."""
        found: dict[bytes, Any] = {}
        for at, (text, item) in enumerate(zip(self.texts, self.items, strict=True)):
            try:
                data = text.encode()
            except UnicodeEncodeError as error:
                hint = "Leave it out: no output can hold it"
                message = f"the choice {text[:50]!r} has a lone surrogate at offset {error.start}"
                raise ConstraintError(message, location=f"choice {at}", hint=hint) from None
            if data in found and not _is_same(found[data], item):
                message = f"two choices, {found[data]!r} and {item!r}, have the text {text[:50]!r}"
                hint = "Give each its own label: Choice({label: item})"
                raise ConstraintError(message, location=f"choice {at}", hint=hint)
            found.setdefault(data, item)
        return dict.fromkeys(found)

    def __getstate__(self) -> dict[str, Any]:
        # Neither what is derived nor a fingerprint by identities that mean nothing in another process.
        return {"texts": self.texts, "items": self.items}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(**state)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.items[:8])) + (", ..." if len(self.items) > 8 else "")
        return f"Choice([{shown}])"


def _pairs(choices: Any) -> list[tuple[str, Any]]:
    if isinstance(choices, EnumMeta):
        members: list[Enum] = list(choices)
        return [(_text(member), member) for member in members]
    if get_origin(choices) is Literal:
        return [(_text(item), item) for item in get_args(choices)]
    if isinstance(choices, Mapping):
        return [(_text(label), item) for label, item in choices.items()]
    if isinstance(choices, str | bytes | type) or not isinstance(choices, Iterable):
        raise TypeError(f"choices are a list, an Enum, a Literal or a dict, not {choices!r}: write [{choices!r}]")
    pairs = [(_text(item), item) for item in choices]
    # A set has no order of its own, and constraints of the same content are to be equal.
    return sorted(pairs, key=lambda pair: pair[0]) if isinstance(choices, set | frozenset) else pairs


def _text(label: Any) -> str:
    if isinstance(label, Enum):
        label = label.value
    kind: Any = type(label)
    if isinstance(label, bytes | bytearray):
        raise TypeError(f"the choice {label!r} is {kind.__name__}: decode it, a choice is a text")
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        raise TypeError(f"a choice of type {kind.__name__} has no text of its own: write Choice({{label: item}})")
    return str(label)


def _item_key(item: Any) -> str:
    """What tells items apart: type and value of plain ones and of Enum members, the identity of others.

    An identity cannot be taken over by another object: whoever keeps the fingerprint, keeps the constraint.
    """
    kind = type(item)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(item, Enum):
        return f"{name}.{item.name}@{id(kind)}"
    return f"{name}={item!r}" if kind in _PLAIN else f"{name}@{id(item)}"


def _is_same(one: Any, other: Any) -> bool:
    """Whether two items of one text are interchangeable: 1 and True, 1 and 1.0 are not."""
    return one is other or (type(one) is type(other) and bool(one == other))
