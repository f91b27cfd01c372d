"""Files of compiled grammars."""

from __future__ import annotations

import contextlib
import enum
import hashlib
import json
import os
import random
import re
import stat
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

import maskwright as mw
import process_workers as workers
from maskwright.grammar.plan import Constraint

BYTES = mw.Vocabulary([*(bytes([b]) for b in range(256)), b"<eos>"], eos_ids=[256])
PERSON = mw.JsonSchema(workers.Person)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"
    CYAN = "blue"


SAVED: list[Constraint] = [
    mw.Regex(r"[a-z]+\d", flags=int(re.I | re.S)),
    mw.Regex("^a", dialect="ecma", match="search"),
    mw.Choice(["b", "a", "é", "b"]),
    mw.Choice({"one": 1, "half": 0.5, "none": None, "exact": Decimal("1.50"), "yes": True, "word": "x"}),
    mw.Choice(Color),
    mw.JsonSchema({"type": "string", "$ref": "urn:x"}, registry={"urn:x": {"maxLength": 3}}),
    mw.JsonSchema(
        {"type": "array"}, key_order="any", whitespace="any", numbers="full", escapes="any", formats="annotate",
        default_draft="7",
    ),
    mw.JsonSchema(" true"),
    PERSON,
    mw.Seq("a: ", mw.Capture("n", mw.Alt(mw.Regex("[0-9]+"), "none", PERSON)), mw.Free(until="\n\n")),
    mw.Free(),
]


@pytest.mark.parametrize("constraint", SAVED, ids=repr)
def test_save_and_load(constraint: Constraint, tmp_path: Path) -> None:
    limits = mw.CompileLimits(seconds=9.5, states=4321)
    compiled = mw.compile(constraint, BYTES, limits, banned_ids=[7, 3])
    compiled.save(tmp_path / "c.mw")
    again = mw.CompiledGrammar.load(str(tmp_path / "c.mw"), mw.Vocabulary(BYTES.tokens, BYTES.eos_ids))
    assert again is compiled  # all that the compile cache goes by is the same
    assert (again.limits, again.banned_ids) == (limits, (3, 7))
    if isinstance(constraint, mw.Choice):
        assert isinstance(again.constraint, mw.Choice)
        assert again.constraint.items == constraint.items
        assert list(map(type, again.constraint.items)) == list(map(type, constraint.items))


def test_the_file_is_readable_json_without_code_or_tokens(tmp_path: Path) -> None:
    mw.compile(PERSON, BYTES).save(tmp_path / "c.mw")
    data = json.loads((tmp_path / "c.mw").read_text("utf-8"))
    assert data["format"] == "maskwright compiled grammar"
    assert data["version"] == 1
    assert data["constraint"]["type"] == "process_workers:Person"
    assert data["vocabulary"] == {"fingerprint": BYTES.fingerprint, "size": 257}
    assert (tmp_path / "c.mw").stat().st_size < 2000


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    mw.compile(mw.Regex("a"), BYTES).save(tmp_path / "c.mw")
    for other in (mw.Vocabulary(BYTES.tokens, [256], special_ids=[0]), mw.Vocabulary([b"a", b"<eos>"], [1])):
        words = f"another vocabulary, of 257 .* this one has {other.size}"
        with pytest.raises(mw.VocabularyError, match=words) as caught:
            mw.CompiledGrammar.load(tmp_path / "c.mw", other)
        assert caught.value.location == str(tmp_path / "c.mw")


def test_types_are_looked_up_but_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Local(BaseModel):
        name: str
        age: int

    path = tmp_path / "c.mw"
    mw.compile(mw.JsonSchema(Local), BYTES).save(path)
    with pytest.raises(mw.MaskwrightError, match=r"Local, which is not imported at .* Import it before, or pass it"):
        mw.CompiledGrammar.load(path, BYTES)
    assert mw.CompiledGrammar.load(path, BYTES, target=Local).constraint == mw.JsonSchema(Local)
    with pytest.raises(mw.MaskwrightError, match="another schema than when the file was saved"):
        mw.CompiledGrammar.load(path, BYTES, target=dict[str, int])
    adapter: TypeAdapter[Any] = TypeAdapter(list[int])
    mw.compile(mw.JsonSchema(adapter), BYTES).save(path)
    with pytest.raises(mw.MaskwrightError, match="not imported"):
        mw.CompiledGrammar.load(path, BYTES)
    assert mw.CompiledGrammar.load(path, BYTES, target=list[int]).constraint.parse("[1]") == [1]  # type: ignore[attr-defined]


def test_an_enum_that_has_changed_is_refused(tmp_path: Path) -> None:
    mw.compile(mw.Choice(Color), BYTES).save(tmp_path / "c.mw")
    fewer = enum.Enum("Color", {"RED": "red"})
    with pytest.raises(mw.MaskwrightError, match=r"no member 'BLUE' any more"):
        mw.CompiledGrammar.load(tmp_path / "c.mw", BYTES, target=fewer)
    with pytest.raises(mw.MaskwrightError, match=r"is no Enum"):
        mw.CompiledGrammar.load(tmp_path / "c.mw", BYTES, target=int)


def test_what_has_no_form_in_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mw.MaskwrightError, match=r"the item \(1, 2\) .* at choice 1"):
        mw.compile(mw.Choice({"a": 1, "b": (1, 2)}), BYTES).save(tmp_path / "c.mw")

    class Odd(mw.Regex):
        pass

    with pytest.raises(mw.MaskwrightError, match="a Odd has no form in a file"):
        mw.compile(Odd("a"), BYTES).save(tmp_path / "c.mw")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_written_over_is_the_old_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.mw"
    mw.compile(mw.Regex("a"), BYTES).save(path)
    monkeypatch.setattr(Path, "replace", _refuse)
    with pytest.raises(OSError, match="no room"):
        mw.compile(mw.Regex("b"), BYTES).save(path)
    monkeypatch.undo()
    assert mw.CompiledGrammar.load(path, BYTES).constraint == mw.Regex("a")
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.mw"]
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for pattern in ("a", "b" * 3000):
                mw.compile(mw.Regex(pattern), BYTES).save(path)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(100):
            mw.CompiledGrammar.load(path, BYTES)
    finally:
        stop.set()
        writer.join()


def _refuse(*_: object) -> None:
    raise OSError("no room")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_file_has_the_permissions_that_the_user_asked_for(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        mw.compile(mw.Regex("a"), BYTES).save(tmp_path / "c.mw")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "c.mw").stat().st_mode) == 0o640


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mw.CompiledGrammar.load(tmp_path / "none", BYTES)
    for content in (b"", b"{}", b"[]", b"PK\x03\x04", b"\xff\xfe", b"[" * 100_000, b'{"format": "x"}', b"1" * 5000):
        (tmp_path / "c.mw").write_bytes(content)
        with pytest.raises(mw.MaskwrightError, match=r"no JSON|holds no compiled grammar") as caught:
            mw.CompiledGrammar.load(tmp_path / "c.mw", BYTES)
        assert caught.value.location == str(tmp_path / "c.mw")


def test_another_version_is_refused_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "c.mw"
    mw.compile(mw.Regex("a"), BYTES).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2}))
    with pytest.raises(mw.MaskwrightError, match="of version 2; this maskwright reads version 1"):
        mw.CompiledGrammar.load(path, BYTES)


def _mutated(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out))
        kind = rng.randrange(4)
        if kind == 0:
            out[at] = rng.randrange(256)
        elif kind == 1:
            del out[at : at + rng.randint(1, 40)]
        elif kind == 2:
            out[at:at] = out[at : at + rng.randint(1, 40)]
        else:
            del out[at:]
        if not out:
            return b""
    return bytes(out)


@pytest.mark.timeout(60)
def test_damaged_files_are_refused(tmp_path: Path) -> None:
    rng = random.Random(1)
    for constraint in SAVED:
        compiled = mw.compile(constraint, BYTES)
        compiled.save(tmp_path / "good")
        good = (tmp_path / "good").read_bytes()
        for _ in range(150):
            (tmp_path / "bad").write_bytes(_mutated(good, rng))
            try:
                assert mw.CompiledGrammar.load(tmp_path / "bad", BYTES) is compiled
            except mw.MaskwrightError as error:
                assert error.location == str(tmp_path / "bad")


def _replaced(value: Any, rng: random.Random) -> Any:
    """A JSON value with something in it made to be something else."""
    odd = [None, True, -1, 2**70, 1e999, "", "x", "builtins:int", "os:system", [], {}, [[]], {"a": None}]
    if rng.random() < 0.25 or not isinstance(value, dict | list) or not value:
        return rng.choice(odd)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        return [*value[:at], _replaced(value[at], rng), *value[at + 1 :]]
    key = rng.choice(list(value))
    if rng.random() < 0.1:
        return {name: inner for name, inner in value.items() if name != key}
    return {**value, key: _replaced(value[key], rng)}


@pytest.mark.timeout(60)
def test_forged_files_are_refused_by_our_errors(tmp_path: Path) -> None:
    """Content of any shape, with the right digest."""
    rng = random.Random(2)
    for constraint in SAVED:
        mw.compile(constraint, BYTES).save(tmp_path / "good")
        data = json.loads((tmp_path / "good").read_text())
        head = {key: data.pop(key) for key in ("format", "version", "digest")}
        for _ in range(150):
            body = _replaced(data, rng)
            if not isinstance(body, dict):
                continue
            text = json.dumps(body, sort_keys=True, separators=(",", ":"))
            forged = {**head, **body, "digest": hashlib.sha256(text.encode()).hexdigest()}
            (tmp_path / "bad").write_text(json.dumps(forged))
            with contextlib.suppress(mw.MaskwrightError):
                mw.CompiledGrammar.load(tmp_path / "bad", BYTES)
