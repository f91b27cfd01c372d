"""Fifteen schemas and fifteen regular expressions of everyday kinds, each possible within 120 tokens."""

from typing import Any

NODE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "required": ["v", "next"],
    "additionalProperties": False,
}

SCHEMAS: dict[str, Any] = {
    "person": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 30},
            "age": {"type": "integer", "minimum": 0, "maximum": 130},
            "married": {"type": "boolean"},
        },
        "required": ["name", "age", "married"],
        "additionalProperties": False,
    },
    "optional": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "string"}, "c": {"type": "null"}},
        "required": ["b"],
        "additionalProperties": False,
    },
    "label": {"enum": ["spam", "ham", "not sure", 3, None, {"x": [True]}]},
    "numbers": {
        "type": "array",
        "items": {"type": "integer", "minimum": -20, "maximum": 1999},
        "minItems": 2,
        "maxItems": 8,
    },
    "pair": {
        "type": "array",
        "prefixItems": [{"type": "string", "maxLength": 12}, {"type": "boolean"}],
        "items": False,
        "minItems": 2,
    },
    "list": {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
    "dates": {
        "type": "object",
        "properties": {"from": {"type": "string", "format": "date"}, "to": {"type": "string", "format": "date"}},
        "required": ["from", "to"],
        "additionalProperties": False,
    },
    "instant": {"type": "string", "format": "date-time"},
    "id": {"type": "string", "format": "uuid"},
    "code": {
        "type": "object",
        "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}$"}},
        "required": ["code"],
    },
    "shape": {
        "anyOf": [
            {
                "type": "object",
                "properties": {"kind": {"const": "circle"}, "radius": {"type": "number", "minimum": 0}},
                "required": ["kind", "radius"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"kind": {"const": "point"}},
                "required": ["kind"],
                "additionalProperties": False,
            },
        ]
    },
    "map": {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
    "nested": {
        "type": "object",
        "properties": {
            "order": {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "sku": {"type": "string", "maxLength": 8},
                                "count": {"type": "integer", "minimum": 1},
                            },
                            "required": ["sku", "count"],
                        },
                        "minItems": 1,
                        "maxItems": 3,
                    }
                },
                "required": ["items"],
            }
        },
        "required": ["order"],
    },
    "any": True,
    "text": {"type": "string", "minLength": 5, "maxLength": 200},
}

REGEXES: dict[str, str] = {
    "date": r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])",
    "time": r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?",
    "phone": r"\+\d{1,3} \(\d{2,4}\) \d{3}-\d{4}",
    "mail": r"[a-z0-9._]{1,16}@[a-z0-9]{1,12}(\.[a-z]{2,6}){1,2}",
    "address": r"((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)",
    "hex": r"0x[0-9a-fA-F]{1,16}",
    "words": r"([A-Z][a-z]{2,9} ){2,5}[A-Z][a-z]{2,9}\.",
    "decimal": r"-?(0|[1-9]\d{0,8})(\.\d{1,6})?",
    "integers": r"\[(\d{1,4}(, \d{1,4})*)?\]",
    "key": r"[A-Z]{5}(-[A-Z0-9]{5}){4}",
    "answer": r"(?i:yes|no|maybe( later)?)[.!]?",
    "line": r"[^\n]{10,80}",
    "free": r"[\s\S]*",
    "unicode": r"\w{3,12}(\s\w{3,12}){0,3}",
    "quoted": r'"([^"\\]|\\["\\n])*"',
}
