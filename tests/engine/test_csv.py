"""An output for every row of a CSV file: resumed, atomic, errors row by row."""

from __future__ import annotations

import csv
import json
import pathlib
import re
from typing import Any, ClassVar

import pytest

import maskwright as mw
from engine.models import ToyModel
from maskwright.cli import main

ROWS = [["1", "one, and"], ["2", 'a "quote"'], ["3", "two\nlines"], ["4", ""], ["5", "é😀"], ["6", "last"]]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ToyModel:
    made = ToyModel(context_length=200)
    monkeypatch.setattr(mw, "load_model", lambda name: made)
    return made


def write(path: pathlib.Path, rows: list[list[str]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return str(path)


def read(path: pathlib.Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.fixture
def prompts(tmp_path: pathlib.Path) -> str:
    return write(tmp_path / "in.csv", [["id", "prompt"], *ROWS])


@pytest.fixture
def out(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "out.csv"


def generate(source: str, target: pathlib.Path, *more: str) -> int:
    return main(["generate", "--input", source, "--output", str(target), *more])


REGEX = ["--regex", "[a-f]{3,8}"]


def test_every_row_gets_an_output(model: ToyModel, prompts: str, out: pathlib.Path) -> None:
    assert generate(prompts, out, *REGEX) == 0
    header, *rows = read(out)
    assert header == ["id", "prompt", "output", "error"]
    assert [row[:2] for row in rows] == ROWS
    for _, prompt, output, error in rows:
        chat = [{"role": "user", "content": prompt}]
        assert (output, error) == (mw.generate(model, chat, mw.Regex("[a-f]{3,8}")).text, "")


def test_schemas_choices_and_free_text(model: ToyModel, prompts: str, tmp_path: pathlib.Path) -> None:
    schema = tmp_path / "s.json"
    schema.write_text('{"type": "object", "properties": {"n": {"type": "boolean"}}, "required": ["n"]}')
    assert generate(prompts, tmp_path / "a.csv", "--schema", str(schema), "--max-tokens", "40") == 0
    assert all(json.loads(row[2])["n"] in (True, False) for row in read(tmp_path / "a.csv")[1:])
    assert generate(prompts, tmp_path / "b.csv", "--choice", "yes", "--choice", "no") == 0
    assert {row[2] for row in read(tmp_path / "b.csv")[1:]} <= {"yes", "no"}
    assert generate(prompts, tmp_path / "c.csv", "--max-tokens", "4") == 0
    # As it stands, an empty prompt is nothing to continue.
    assert generate(prompts, tmp_path / "d.csv", "--raw", *REGEX) == 1
    assert [bool(row[3]) for row in read(tmp_path / "d.csv")[1:]] == [not prompt for _, prompt in ROWS]


def test_a_template_and_a_column(model: ToyModel, prompts: str, out: pathlib.Path, tmp_path: pathlib.Path) -> None:
    seen: list[str] = []
    encode = model.encode
    model.encode = lambda text, **options: seen.append(text) or encode(text, **options)  # type: ignore[method-assign]
    assert main(["generate", "{{{id}}}: {prompt}!", "--raw", "--input", prompts, "--output", str(out), *REGEX]) == 0
    assert seen == [f"{{{number}}}: {text}!" for number, text in ROWS]
    seen.clear()
    assert generate(prompts, tmp_path / "b.csv", "--raw", "--prompt-column", "id", *REGEX) == 0
    assert seen == [number for number, _ in ROWS]


@pytest.mark.parametrize("batch", ["1", "2", "100"])
def test_neither_batches_nor_stops_change_a_text(
    model: ToyModel, prompts: str, out: pathlib.Path, tmp_path: pathlib.Path, batch: str
) -> None:
    whole = tmp_path / "whole.csv"
    assert generate(prompts, whole, *REGEX, "--seed", "0") == 0
    data = whole.read_bytes()
    assert len({row[2] for row in read(whole)}) > 3
    # Wherever the file was cut: between rows, within one, between the quotes of a field.
    for cut in [0, *range(data.index(b"\n") + 1, len(data), 17)]:
        out.write_bytes(data[:cut])
        model.calls.clear()
        assert generate(prompts, out, *REGEX, "--seed", "0", "--batch-size", batch) == 0
        assert out.read_bytes() == data
    model.calls.clear()
    assert generate(prompts, out, *REGEX, "--seed", "0") == 0
    assert not model.calls


def test_an_interrupted_run_keeps_its_rows(
    model: ToyModel, prompts: str, out: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = mw.generate, []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(mw, "generate", interrupted)
    assert generate(prompts, out, *REGEX, "--batch-size", "2") == 130
    assert [row[:2] for row in read(out)[1:]] == ROWS[:4]
    assert generate(prompts, out, *REGEX, "--batch-size", "2") == 0
    assert len(calls) == 4
    assert [row[:2] for row in read(out)[1:]] == ROWS


def test_a_row_that_fails_is_alone(
    model: ToyModel, out: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["a"], ["x" * 500], ["b"]]
    source = write(tmp_path / "in.csv", [["prompt"], *rows])
    assert generate(source, out, *REGEX, "--max-tokens", "20") == 1
    assert "1 of 3 rows failed" in capsys.readouterr().err
    _, first, second, third = read(out)
    assert [bool(row[1]) for row in (first, second, third)] == [True, False, True]
    assert [bool(row[2]) for row in (first, second, third)] == [False, True, False]
    assert "context" in second[2]
    assert generate(source, out, *REGEX) == 0  # nothing is left to do


def test_the_bar_counts_what_was_done_before(
    model: ToyModel, prompts: str, out: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tqdm

    class Bar:
        made: ClassVar[list[dict[str, Any]]] = []
        steps: ClassVar[list[int]] = []

        def __init__(self, **options: Any) -> None:
            self.made.append(options)

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def update(self, n: int) -> None:
            self.steps.append(n)

    write(out, [["id", "prompt", "output", "error"], [*ROWS[0], "abc", ""], [*ROWS[1], "abc", ""]])
    monkeypatch.setattr(tqdm, "tqdm", Bar)
    assert generate(prompts, out, *REGEX, "--batch-size", "3") == 0
    assert (Bar.made[0]["total"], Bar.made[0]["initial"], Bar.steps) == (6, 2, [3, 1])
    assert read(out)[1][2] == "abc"


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        (b"", [], "is empty"),
        (b"id,text\n1,a\n", [], "no column 'prompt' in .*; it has id, text"),
        (b"prompt\na\n", ["{id}"], "no column 'id'"),
        (b"prompt,a\nx\n", [], "line 2: 1 fields for 2 columns"),
        (b"prompt,prompt\nx,y\n", [], "a column twice"),
        (b"prompt,output\nx,y\n", [], "column 'output' already"),
        (b"prompt\n\xff\n", [], "not UTF-8: .* at byte 7"),
        (b'prompt\n"a"b\n', [], "line 2"),
        (b"prompt\na\n", ["--regex", "a(b"], "offset"),
    ],
)
def test_wrong_tables(
    model: ToyModel,
    tmp_path: pathlib.Path,
    out: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
    more: list[str],
    said: str,
) -> None:
    (tmp_path / "in.csv").write_bytes(content)
    assert generate(str(tmp_path / "in.csv"), out, *more) == 1
    assert re.search(said, capsys.readouterr().err)
    assert not out.exists()


def test_other_files_are_left_alone(
    model: ToyModel, prompts: str, out: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = pathlib.Path(prompts).read_bytes()
    assert generate(prompts, pathlib.Path(prompts)) == 1
    assert pathlib.Path(prompts).read_bytes() == before
    for content in (b"something else", b"a,b\n1,2\n", b"id,prompt,output,error\r\n9,other,x,\r\n"):
        out.write_bytes(content)
        assert generate(prompts, out) == 1
        assert "name another file" in capsys.readouterr().err
        assert out.read_bytes() == content


def test_wrong_usage(prompts: str, out: pathlib.Path) -> None:
    for arguments in (
        ["--input", prompts],
        ["p", "--output", str(out)],
        ["--input", prompts, "--output", str(out), "-n", "2"],
        ["--input", prompts, "--output", str(out), "--batch-size", "0"],
    ):
        with pytest.raises(SystemExit) as caught:
            main(["generate", *arguments])
        assert caught.value.code == 2
