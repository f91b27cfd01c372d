"""The options of a JsonSchema constraint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

KeyOrder = Literal["schema", "any"]
WhitespacePolicy = Literal["compact", "bounded", "any"]
Numbers = Literal["plain", "full"]
Escapes = Literal["minimal", "any"]
Formats = Literal["assert", "annotate"]
Draft = Literal["2020-12", "2019-09", "7", "6", "4", "openapi-3.0"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "key_order": ("schema", "any"),
    "whitespace": ("compact", "bounded", "any"),
    "numbers": ("plain", "full"),
    "escapes": ("minimal", "any"),
    "formats": ("assert", "annotate"),
    "default_draft": ("2020-12", "2019-09", "7", "6", "4", "openapi-3.0"),
}


@dataclass(frozen=True, slots=True)
class Options:
    """How the values of a schema are written; see `JsonSchema` for what each means.

    `typed` adds what the parser of a Python type asks for beyond its schema (`maskwright.grammar.types`); `lexical` is
    set for draft 4, where 1.0 is no integer.
    """

    key_order: KeyOrder = "schema"
    whitespace: WhitespacePolicy = "bounded"
    numbers: Numbers = "plain"
    escapes: Escapes = "minimal"
    formats: Formats = "assert"
    default_draft: Draft = "2020-12"
    typed: bool = False
    lexical: bool = False

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value: Any = getattr(self, name)
            if value not in choices:
                raise ValueError(f"{name} is one of {', '.join(map(repr, choices))}, not {value!r}")


@lru_cache(maxsize=64)
def lexical_of(options: Options) -> Options:
    """The same options for draft 4."""
    return replace(options, lexical=True)


_made: dict[tuple[object, ...], Options] = {}


def options_of(*values: Any) -> Options:
    """The options with these values, in the order of the fields; equal ones are one object.

    Raises:
        ValueError: a value is none of the choices.
    """
    try:
        return _made[values]
    except (KeyError, TypeError):
        made = Options(*values)
    return _made.setdefault(values, made)
