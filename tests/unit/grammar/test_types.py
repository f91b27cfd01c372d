"""Python types as constraints, and the way back."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import pickle
import random
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

import maskwright as mw
from maskwright.errors import SchemaError
from maskwright.grammar.json_schema import JsonSchema
from maskwright.grammar.plan import CompileLimits
from maskwright.grammar.types import adapter, parse, schema_text, unseen_checks
from unit.grammar.recorder import Recorder


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: Annotated[float, Field(gt=0, le=10)]


class Square(BaseModel):
    kind: Literal["square"]
    side: int


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=5)]
    age: Annotated[int, Field(ge=0, lt=150)]
    nick: str | None = None
    friends: list[Person] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Picky(BaseModel):
    name: str
    when: Annotated[datetime.date, Field(ge=datetime.date(2020, 1, 1))]
    codes: dict[int, str]

    @field_validator("name")
    @classmethod
    def check(cls, value: str) -> str:
        if value != "ok":
            raise ValueError("not ok")
        return value


def machine(target: Any, **options: Any) -> Recorder:
    return Recorder(JsonSchema(target, **options).plan(CompileLimits()))


ROWS: list[tuple[Any, list[str], list[str]]] = [
    (
        Person,
        ['{"name":"Kim","age":3}', '{"name":"Kim","age":3,"nick":null,"friends":[{"name":"Al","age":1}]}'],
        ['{"name":"","age":3}', '{"name":"Kim","age":150}', '{"name":"Kim","age":3,"x":1}', '{"name":"Kim"}'],
    ),
    (
        Circle | Square,
        ['{"kind":"circle","radius":0.5}', '{"kind":"square","side":3}'],
        ['{"kind":"circle","side":3}', '{"kind":"circle","radius":0}', '{"kind":"oval"}'],
    ),
    (
        Annotated[Circle | Square, Field(discriminator="kind")],
        ['{"kind":"square","side":3}'],
        ['{"kind":"square","radius":3}'],
    ),
    (Colour, ['"red"'], ['"green"', "1"]),
    (Literal[1, True, "x", None], ["1", "true", '"x"', "null"], ["2", "false"]),
    (list[int], ["[]", "[1,2]"], ["[1.5]", "{}"]),
    (tuple[int, str], ['[1,"a"]'], ["[1]", '[1,"a",2]', '["a",1]']),
    (dict[str, bool], ['{"a":true}'], ['{"a":1}']),
    (Point, ['{"x":1,"y":2}'], ['{"x":1}']),
    (decimal.Decimal, ["1.5", "-2"], ['"abc"', '"1.5"']),
    (uuid.UUID, ['"12345678-1234-1234-1234-123456789abc"'], ['"x"']),
    (ipaddress.IPv4Address, ['"127.0.0.1"'], ['"256.0.0.1"']),
    (datetime.date, ['"0001-01-01"', '"9999-12-31"', '"2024-02-29"'], ['"0000-01-01"', '"2023-02-29"']),
    (datetime.time, ['"10:00:00Z"', '"23:59:59.5+05:30"'], ['"23:59:60Z"', '"24:00:00Z"']),
    (datetime.datetime, ['"2024-01-01T10:00:00Z"'], ['"0000-01-01T10:00:00Z"', '"2016-12-31T23:59:60Z"']),
    (datetime.timedelta, ['"P1DT2H"', '"P3W"', '"PT0S"'], ['"P1000000000D"', '"P"', '"1 day"']),
    (int, ["9" * 4300, "-" + "9" * 4300], ["9" * 4301]),
    (float, ["9" * 308, "-0.5"], ["9" * 309, "1e400"]),
    (Any, ["1", "{}", '{"a":[null]}'], []),
]


@pytest.mark.parametrize(("target", "accepted", "refused"), ROWS)
def test_masks_and_parsers_agree(target: Any, accepted: list[str], refused: list[str]) -> None:
    recorder = machine(target)
    for text in accepted:
        assert recorder.accepts(text), text
        parse(target, text)
    assert [text for text in refused if recorder.accepts(text)] == []


def test_the_value_has_the_type() -> None:
    constraint = JsonSchema(Person)
    person = constraint.parse('{"name":"Kim","age":3}')
    assert isinstance(person, Person) and person.age == 3
    assert JsonSchema(TypeAdapter(list[Colour])).parse('["red"]') == [Colour.RED]
    assert JsonSchema(Point).parse('{"x":1,"y":2}') == Point(1, 2)
    assert pickle.loads(pickle.dumps(constraint)) == constraint
    assert JsonSchema(Circle) != JsonSchema(Square)


def test_models_keep_the_order_of_their_fields() -> None:
    recorder = machine(Point)
    assert recorder.accepts('{"x":1,"y":2}') and not recorder.accepts('{"y":2,"x":1}')


def test_checks_that_no_mask_can_see_are_reported() -> None:
    entries = {(e.pointer, e.keyword): e.detail for e in unseen_checks(Picky)}
    assert set(entries) == {
        ("/properties/name", "validator"),
        ("/properties/when", "date"),
        ("/properties/codes", "keys"),
    }
    assert "check" in entries["/properties/name", "validator"]
    report = JsonSchema(Picky).plan(CompileLimits()).report
    assert {(e.pointer, e.keyword) for e in report.of("not-in-mask")} == set(entries)
    with pytest.raises(pydantic.ValidationError):
        JsonSchema(Picky).parse('{"name":"no","when":"2024-01-01","codes":{}}')
    assert unseen_checks(Person) == ()


def test_what_has_no_schema_is_refused() -> None:
    with pytest.raises(TypeError, match="int 5"):
        adapter(5)
    with pytest.raises((TypeError, SchemaError)):
        schema_text(pydantic.Json | memoryview)
    with pytest.raises(SchemaError, match="no JSON Schema"):
        schema_text(Callable[[], int])


def test_bounds_of_decimals_stay_inside() -> None:
    bound = decimal.Decimal("0.10000000000000000000001")
    schema = json.loads(schema_text(Annotated[decimal.Decimal, Field(gt=bound, lt=3)]))
    assert decimal.Decimal(repr(schema["exclusiveMinimum"])) >= bound and schema["exclusiveMaximum"] == 3


def test_sets_have_no_item_twice() -> None:
    sets = machine(set[int])
    assert sets.accepts("[1,2]") and not sets.accepts("[1,1]")


ENDING = frozenset({*b'"]},:', 256})


def walk(compiled: mw.CompiledGrammar, draw: random.Random, longest: int = 400) -> str:
    """A random valid text over single bytes; towards the end the masks only let through what still fits."""
    matcher, row, out = compiled.matcher(), np.zeros(9, dtype=np.uint32), bytearray()
    for left in range(longest, 0, -1):
        matcher.fill_mask(row, max_tokens=left)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        ending = [b for b in allowed if b in ENDING]
        token = draw.choice(ending if ending and draw.random() < 0.4 else allowed)
        assert matcher.accept(token)
        if token == 256:
            return out.decode()
        out.append(token)
    raise AssertionError(f"not finished: {bytes(out)!r}")


@pytest.mark.parametrize("target", [Person, Circle | Square, Point, *(row[0] for row in ROWS[3:])])
@pytest.mark.parametrize("numbers", ["plain", "full"])
def test_whatever_the_masks_let_through_parses(target: Any, numbers: Any) -> None:
    vocabulary = mw.Vocabulary([*(bytes([b]) for b in range(256)), b"<eos>"], eos_ids=[256], special_ids=[256])
    constraint = JsonSchema(target, numbers=numbers, escapes="any")
    compiled = mw.compile(constraint, vocabulary)
    for seed in range(12):
        text = walk(compiled, random.Random(seed))
        constraint.parse(text)


@pytest.mark.parametrize("name", ["HttpUrl", "AnyUrl", "FileUrl", "WebsocketUrl"])
def test_urls_that_are_generated_parse(name: str) -> None:
    import pydantic

    import maskwright as mw

    target = getattr(pydantic, name)
    for text in mw.sample(mw.JsonSchema(target), 60, seed=1):
        pydantic.TypeAdapter(target).validate_json(text)
