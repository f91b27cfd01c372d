"""The command line: outputs, errors and exit codes."""

import io
import json
import pathlib
import subprocess
import sys

import pytest

import maskwright as mw
from engine.models import ToyModel
from maskwright.cli import main

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"]}


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mw, "load_model", lambda name: ToyModel())


@pytest.fixture
def schema(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({**SCHEMA, "title": "A number", "additionalProperties": False}))
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_generate_json(capsys: pytest.CaptureFixture[str], schema: str) -> None:
    code, out, err = run(capsys, "generate", "hello", "--schema", schema)
    assert (code, err) == (0, "")
    assert 0 <= json.loads(out)["n"] <= 9


def test_generate_regex_choice_and_free_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "generate", "p", "--regex", "[ab]{3}")[1].strip("ab") == "\n"
    assert run(capsys, "generate", "p", "--choice", "yes", "--choice", "no")[1] in ("yes\n", "no\n")
    assert run(capsys, "generate", "p", "--raw", "--max-tokens", "5")[0] == 0


def test_several_drawn_outputs_in_detail(capsys: pytest.CaptureFixture[str], schema: str) -> None:
    arguments = ["generate", "p", "--schema", schema, "-n", "3", "--seed", "7", "--top-p", "0.9", "--details"]
    code, out, _ = run(capsys, *arguments)
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, len(lines)) == (0, 3)
    assert {"text", "value", "tokens", "finish_reason", "valid", "logprob", "log_weight", "stats"} <= set(lines[0])
    assert lines[0]["manifest"]["sampling"]["top_p"] == 0.9
    again = run(capsys, *arguments)[1].splitlines()
    assert [json.loads(line)["text"] for line in again] == [line["text"] for line in lines]


def test_stream(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "generate", "p", "--regex", "[a-f]{6}", "--stream")
    assert (code, len(out.strip())) == (0, 6)
    assert run(capsys, "generate", "p", "--stream", "-n", "2", "--seed", "1")[0] == 1


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(SCHEMA)))
    assert run(capsys, "check", "-")[0] == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("the prompt"))
    assert run(capsys, "generate", "-", "--choice", "x")[1] == "x\n"


def test_check_prints_a_table(capsys: pytest.CaptureFixture[str], schema: str) -> None:
    code, out, err = run(capsys, "check", schema)
    assert (code, err) == (0, "")
    header, *rows = out.splitlines()
    assert header.split() == ["where", "keyword", "status", "cost", "how"]
    cells = [row.split()[:3] for row in rows]
    assert ["/properties/n", "minimum", "enforced"] in cells
    assert ["#", "title", "annotation"] in cells
    assert "enforced" in rows[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "--regex", "a(b"], "offset"),
        (["generate", "p", "--regex", "a(b"], "offset"),
        (["check", "nowhere.json"], "nowhere.json: No such file"),
        (["check"], "schema file or --regex"),
        (["generate", "p", "--temperature", "-1"], "temperature is -1"),
        (["generate", "p", "--regex", "x{9}", "--max-tokens", "3"], "max_tokens=10"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("maskwright: ")
    assert said in err
    assert err.count("\n") == 1


def test_errors_of_a_schema_name_the_place(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"properties": {"a": {"type": "strang"}}}')
    code, _, err = run(capsys, "check", str(path))
    assert code == 1
    assert "/properties/a/type" in err
    path.write_text('{"type": ')
    assert run(capsys, "check", str(path))[0] == 1


def test_wrong_usage_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["unknown"], ["generate"], ["generate", "p", "--regex", "a", "--choice", "b"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert mw.__version__ in capsys.readouterr().out


def test_demo(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "demo")
    assert (code, err) == (0, "")
    assert "Person(name=" in out
    assert "datetime.date(" in out
    assert "<Sentiment." in out
    assert "tokens/s" in out


def test_an_interrupt_is_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mw, "load_model", interrupted)
    assert main(["generate", "p"]) == 130


@pytest.mark.parametrize("command", ["check", "sample"])
def test_what_needs_no_model_loads_no_torch(schema: str, command: str) -> None:
    program = "import sys; from maskwright.cli import main; main(sys.argv[1:]); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program, command, schema], capture_output=True).returncode == 0


def test_sample(capsys: pytest.CaptureFixture[str], schema: str) -> None:
    code, out, err = run(capsys, "sample", schema, "-n", "5", "--seed", "3")
    assert (code, err) == (0, "")
    assert all(0 <= json.loads(line)["n"] <= 9 for line in out.splitlines())
    assert len(out.splitlines()) == 5
    assert run(capsys, "sample", schema, "-n", "5", "--seed", "3")[1] == out
    texts = run(capsys, "sample", "--regex", "a\n[bc]", "-n", "3", "-z")[1].split("\0")
    assert {text.replace("c", "b") for text in texts} == {"a\nb", ""}
    assert run(capsys, "sample", "--choice", "yes, it is", "--choice", "no")[1] in ("yes, it is\n", "no\n")
    assert run(capsys, "sample", "--regex", "a(b")[0] == 1
    assert run(capsys, "sample", "--regex", "a", "-n", "-1")[0] == 1
    for arguments in (["sample"], ["sample", schema, "--regex", "a"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
