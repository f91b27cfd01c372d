"""The error classes: tree, text, and pickling with every detail."""

from __future__ import annotations

import copy
import pickle

import pytest

from maskwright import errors
from maskwright.errors import ConstraintError, GenerationError, MaskwrightError, SchemaError, VocabularyError

CLASSES = [getattr(errors, name) for name in errors.__all__]
CONSTRAINT_ERRORS = ["SchemaError", "RegexError", "LarkError", "UnsatisfiableError", "LimitError"]


def test_tree() -> None:
    assert all(issubclass(kind, MaskwrightError) for kind in CLASSES)
    below = {kind.__name__ for kind in CLASSES if issubclass(kind, ConstraintError)}
    assert below == {"ConstraintError", *CONSTRAINT_ERRORS}


@pytest.mark.parametrize(
    ("location", "hint", "text"),
    [
        (None, None, "unknown keyword"),
        ("/items/0", None, "unknown keyword at /items/0"),
        ("", None, "unknown keyword at #"),
        (None, "Leave it out", "unknown keyword. Leave it out"),
        ("offset 7", "Escape it", "unknown keyword at offset 7. Escape it"),
    ],
)
def test_text(location: str | None, hint: str | None, text: str) -> None:
    assert str(MaskwrightError("unknown keyword", location=location, hint=hint)) == text


def test_location_of_a_constraint_error_is_never_none() -> None:
    assert ConstraintError("wrong").location == ""
    assert str(SchemaError("wrong")) == "wrong at #"


def test_location_of_other_errors_may_be_none() -> None:
    assert VocabularyError("wrong").location is None


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("clone", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_pickle_and_copy_keep_everything(kind, clone) -> None:
    error = kind("wrong", location="/a", hint="Write b")
    error.add_note("seen") if hasattr(error, "add_note") else None
    again = clone(error)
    assert type(again) is kind
    assert again.args == error.args
    assert again.__dict__ == error.__dict__
    assert str(again) == "wrong at /a. Write b"


def test_generation_error_carries_its_result() -> None:
    error = pickle.loads(pickle.dumps(GenerationError("out of tokens", result={"text": "{"})))
    assert error.result == {"text": "{"}
    assert GenerationError("nothing yet").result is None


def test_pickle_of_a_subclass_with_its_own_constructor() -> None:
    again = pickle.loads(pickle.dumps(_Odd(7)))
    assert (str(again), again.number) == ("odd at /x", 7)


class _Odd(SchemaError):
    def __init__(self, number: int) -> None:
        super().__init__("odd", location="/x")
        self.number = number
