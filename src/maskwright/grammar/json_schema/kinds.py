"""The JSON types as bits, and which values belong to them."""

from __future__ import annotations

from decimal import Decimal

NULL, BOOLEAN, INTEGER, FRACTION, STRING, OBJECT, ARRAY = (1 << n for n in range(7))
NUMBER = INTEGER | FRACTION  # FRACTION: numbers that are no integers
EVERY = NULL | BOOLEAN | NUMBER | STRING | OBJECT | ARRAY
BITS = {
    "null": NULL,
    "boolean": BOOLEAN,
    "integer": INTEGER,
    "number": NUMBER,
    "string": STRING,
    "object": OBJECT,
    "array": ARRAY,
}
_OF: dict[type, int] = {type(None): NULL, bool: BOOLEAN, int: INTEGER, str: STRING, dict: OBJECT, list: ARRAY}


def type_of(value: object, draft: int = 2020) -> int:
    """The type bit of a JSON value as `source.load` gives it.

    1.0 is an integer from draft 6 on (Validation, 6.1.1); in draft 4 an integer has no fraction part (Core, 3.5).
    """
    bit = _OF.get(type(value))
    if bit is None:
        assert isinstance(value, Decimal)
        return INTEGER if draft > 4 and is_integral(value) else FRACTION
    return bit


def is_integral(value: int | Decimal) -> bool:
    """Whether a number has no fraction: 10.0 has none. O(digits)."""
    return isinstance(value, int) or value == value.to_integral_value()
