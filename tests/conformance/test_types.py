"""Random texts of thirty types, each of which pydantic's own parser must take."""

# ruff: noqa: UP007, UP045 -- the older spelling of unions is one that users write too
import datetime
import decimal
import enum
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union

import annotated_types
import pydantic
import pytest
from typing_extensions import NotRequired, TypedDict

import maskwright as mw


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    label: Optional[str] = None


class Options(TypedDict):
    ratio: float
    strict: NotRequired[bool]


class Pair(NamedTuple):
    first: int
    second: str


class Tree(pydantic.BaseModel):
    value: int = pydantic.Field(ge=0, le=10)
    names: list[str] = []
    child: Optional["Tree"] = None


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str


class Owner(pydantic.BaseModel):
    pet: Union[Cat, Dog] = pydantic.Field(discriminator="kind")


T = TypeVar("T")


class Box(pydantic.BaseModel, Generic[T]):
    content: T
    renamed: int = pydantic.Field(alias="outside-name")


TYPES: list[Any] = [
    bool,
    int,
    float,
    str,
    bytes,
    None,
    decimal.Decimal,
    uuid.UUID,
    datetime.date,
    datetime.time,
    datetime.datetime,
    datetime.timedelta,
    pydantic.HttpUrl,
    pydantic.AnyUrl,
    pydantic.PositiveInt,
    Annotated[str, annotated_types.Len(2, 5), pydantic.StringConstraints(pattern="^[a-z]+$")],
    Annotated[float, annotated_types.Interval(gt=-1, le=2.5)],
    Annotated[list[int], annotated_types.Len(1, 3)],
    Colour,
    Level,
    Literal["a", 1, None],
    Point,
    Options,
    Pair,
    Tree,
    Owner,
    Box[int],
    Box[list[datetime.date]],
    tuple[int, str],
    tuple[float, ...],
    dict[str, float],
    Optional[datetime.time],
    Union[int, str, list[bool]],
]


@pytest.mark.parametrize("walks", [30, pytest.param(2000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
@pytest.mark.parametrize("target", TYPES, ids=str)
def test_what_the_masks_let_through_is_parsed(target: Any, walks: int) -> None:
    parser = pydantic.TypeAdapter(target)
    for text in mw.sample(mw.JsonSchema(target), walks, seed=7):
        parser.validate_json(text)
