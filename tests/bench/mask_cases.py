"""The cases of bench_masks.py: schemas of our own, adversarial ones, and MaskBench where its data is present."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Schema = dict[str, Any]


class Case(NamedTuple):
    """A schema as JSON text, and texts that fit it."""

    group: str
    name: str
    schema: str
    texts: list[str]


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def own() -> Iterator[Case]:
    """Ordinary schemas: a person, an order, a call of a tool, a tree."""
    address = _object(street={"type": "string"}, zip={"type": "string", "pattern": "^[0-9]{5}$"})
    person = _object(
        name={"type": "string", "minLength": 1, "maxLength": 80},
        age={"type": "integer", "minimum": 0, "maximum": 130},
        email={"type": "string", "format": "email"},
        tags={"type": "array", "items": {"enum": ["new", "old", "sold"]}, "maxItems": 5},
        address=address,
    )
    ada = {
        "name": "Ada Lovelace",
        "age": 36,
        "email": "ada@example.com",
        "tags": ["old", "new"],
        "address": {"street": "St James's Square 12", "zip": "10115"},
    }
    yield Case("own", "person", _dump(person), [_dump(ada)])
    line = _object(sku={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}, count={"type": "integer", "minimum": 1})
    order = _object(
        id={"type": "string", "format": "uuid"},
        placed={"type": "string", "format": "date-time"},
        lines={"type": "array", "items": line, "minItems": 1},
        total={"type": "number", "minimum": 0},
    )
    placed = {
        "id": "8b9f2c1e-5d0a-4c55-9b7e-0d3f6a2b1c4d",
        "placed": "2026-11-30T12:00:00Z",
        "lines": [{"sku": "ABC-1234", "count": 2}, {"sku": "XYZ-0001", "count": 1}],
        "total": 59.9,
    }
    yield Case("own", "order", _dump(order), [_dump(placed)])
    calls = [
        _object(tool={"const": "search"}, query={"type": "string"}),
        _object(tool={"const": "open"}, url={"type": "string", "format": "uri"}),
        _object(tool={"const": "answer"}, text={"type": "string"}, sure={"type": "boolean"}),
    ]
    texts = [
        {"tool": "open", "url": "https://example.com/a?b=c"},
        {"tool": "answer", "text": "It rains.", "sure": True},
    ]
    yield Case("own", "tool call", _dump({"oneOf": calls}), [_dump(t) for t in texts])
    node = _object(value={"type": "integer"}) | {"required": ["value"]}
    node["properties"] |= {"left": {"$ref": "#"}, "right": {"$ref": "#"}}
    tree = {"value": 1, "left": {"value": 2, "right": {"value": 3}}, "right": {"value": 4}}
    yield Case("own", "tree", _dump(node), [_dump(tree)])
    yield Case("own", "any JSON", "{}", [_dump({"a": [1, 2.5, None, True, "text"], "b": {"c": "d"}})])


def adversarial() -> Iterator[Case]:
    """Bounds, large lists, many keys, overlaps, depth, size."""
    text = "the quick brown fox jumps over the lazy dog " * 12
    for most in (129, 512, 100_000):
        value = text[: min(most, 400)]
        yield Case("hard", f"maxLength {most}", _dump({"type": "string", "maxLength": most}), [_dump(value)])
    pattern = {"type": "string", "pattern": "^[a-z ]{1,500}$"}
    yield Case("hard", "[a-z ]{1,500}", _dump(pattern), [_dump(text[:400])])
    yield Case("hard", "minLength 200", _dump({"type": "string", "minLength": 200}), [_dump(text[:300])])
    both = {"type": "string", "pattern": "^[a-z]+( [a-z]+)*$", "maxLength": 200}
    yield Case("hard", "pattern with maxLength", _dump(both), [_dump(text[:150].strip())])
    words = {"type": "string", "pattern": r"^(\S+\s+){0,199}\S+$"}
    yield Case("hard", "counted words", _dump(words), [_dump(text[:300].strip())])
    items = {"type": "array", "items": {"type": "integer"}, "maxItems": 5000}
    yield Case("hard", "maxItems 5000", _dump(items), [_dump(list(range(100)))])
    for count in (2_000, 50_000):
        values = [f"value number {n} of {n % 97}" for n in range(count)]
        yield Case("hard", f"enum of {count}", _dump({"enum": values}), [_dump(values[n]) for n in (1, count // 2)])
    keys: Schema = {"type": "object", "properties": {f"key_{n}": {"type": "integer"} for n in range(500)}}
    yield Case("hard", "500 optional keys", _dump(keys), [_dump({f"key_{n}": n for n in range(0, 500, 25)})])
    overlap = [{"type": "string", "maxLength": 20}, {"type": "string", "pattern": "^a.{10,}$"}]
    yield Case("hard", "oneOf overlap", _dump({"oneOf": overlap}), [_dump("b short"), _dump("a" + "long text " * 3)])
    deep: Any = []
    for _ in range(60):
        deep = [deep]
    yield Case("hard", "deep recursion", _dump({"type": "array", "items": {"$ref": "#"}}), [_dump(deep)])
    large = {"$defs": {f"d{n}": _object(**{f"field_{k}": {"type": "string"} for k in range(20)}) for n in range(4600)}}
    large |= {"type": "object", "properties": {f"d{n}": {"$ref": f"#/$defs/d{n}"} for n in range(4600)}}
    yield Case("hard", "a schema of 4 MB", _dump(large), ["{}"])


def maskbench(limit: int) -> Iterator[Case]:
    """The first schemas of MaskBench in the order of the shared data; none where it is not there."""
    named = os.environ.get("MASKWRIGHT_SHARED")
    root = Path(named) if named else Path(__file__).parents[3] / "shared"
    path = root / "data" / "maskbench.open.jsonl.gz"
    if not path.is_file():
        return
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for _, line in zip(range(limit), lines, strict=False):
            record = json.loads(line)
            texts = [_dump(test["data"]) for test in record["tests"] if test["valid"]]
            yield Case("maskbench", record["id"], _dump(record["schema"]), texts[:8])
