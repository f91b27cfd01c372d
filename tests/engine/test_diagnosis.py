"""Where a constraint fights a model: sums by field, places, the page."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser

import pytest
from tests.engine.models import ToyModel

import maskwright as mw
from maskwright.cli.command import main

MODEL = ToyModel(seed=1)
SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["box", "tin"]},
        "sizes": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "maxItems": 2},
    },
    "required": ["kind", "sizes"],
    "additionalProperties": False,
}


def drawn(constraint, n=6, model=MODEL, **options):
    results = mw.generate(model, ["x"], constraint, n=n, seed=3, max_tokens=80, logprobs=20, **options)
    return results[0] if n > 1 else results


@pytest.fixture(scope="module")
def results():
    return drawn(mw.JsonSchema(SCHEMA, whitespace="compact"))


@pytest.fixture(scope="module")
def diagnosis(results):
    return mw.diagnose(results, MODEL.vocabulary)


def test_every_token_counts_once(results, diagnosis):
    for result, output in zip(results, diagnosis.outputs, strict=True):
        assert output.text == result.text
        assert len(output.steps) == len(result.trace[0])
        assert output.log_weight == pytest.approx(result.log_weight)
        assert math.fsum(step.kept for step in output.steps) == pytest.approx(result.log_weight)
    total = math.fsum(each.log_kept * each.outputs for each in diagnosis.fields)
    assert total == pytest.approx(math.fsum(r.log_weight for r in results))


def test_tokens_belong_to_the_innermost_value(results, diagnosis):
    for output in diagnosis.outputs:
        value = json.loads(output.text)
        owners = {}
        for step in output.steps:
            owners[step.field] = owners.get(step.field, "") + step.text
        assert value["kind"] in owners["/kind"]
        for at, size in enumerate(value["sizes"]):
            assert str(size) in owners[f"/sizes/{at}"]
        assert "sizes" in owners[""]
        assert "kind" not in owners["/kind"]


def test_the_estimate_is_the_mean_weight(results, diagnosis):
    weights = [math.exp(r.log_weight) for r in results]
    assert math.exp(diagnosis.log_Z) == pytest.approx(sum(weights) / len(weights))
    assert diagnosis.ess == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))


def test_fields_and_places_that_lost_most_come_first(diagnosis):
    lost = [each.log_kept for each in diagnosis.fields]
    assert lost == sorted(lost)
    kept = [step.kept for step, _ in diagnosis.places]
    assert kept == sorted(kept)
    assert max(kept) < math.log(0.9)
    every = [step.kept for output in diagnosis.outputs for step in output.steps]
    assert kept[0] == min(every)


def test_what_the_model_wanted_is_what_the_mask_forbade():
    model = ToyModel(seed=1)
    model.bias[ord("z")] = 30.0
    (result,) = drawn(mw.Regex("[ab]{3}"), 1, model)
    found = mw.diagnose(result, model.vocabulary)
    for step in found.outputs[0].steps[:3]:
        assert step.wanted[0][0] == "z"
        assert step.wanted[0][1] == pytest.approx(1, abs=1e-6)
        assert all(text not in ("a", "b", "ab") for text, _ in step.wanted)
    assert "wanted 'z' 1.00" in str(found)


def test_nothing_is_lost_where_masks_removed_nothing():
    model = ToyModel(seed=1)
    model.bias[ord("a")] = 60.0
    (result,) = drawn(mw.Regex("a{4}[ab]*"), 1, model, stop="aaaa")
    found = mw.diagnose(result, model.vocabulary)
    assert found.places == ()
    assert found.log_Z == pytest.approx(0, abs=1e-6)
    assert "Nowhere" in found.html()


def test_captures_are_fields_too():
    first, second = mw.Capture("first", mw.Regex("[xy]{2}")), mw.Capture("second", mw.Choice(["q"]))
    constraint = mw.Seq("a: ", first, "; b: ", second)
    found = mw.diagnose(drawn(constraint, 1), MODEL.vocabulary)
    assert {each.field for each in found.fields} == {"", "first", "second"}


def test_one_output_that_dominates_is_said(diagnosis):
    assert ("one output dominates" in str(diagnosis)) == (diagnosis.ess < 2)
    text = str(diagnosis)
    assert "/kind" in text
    assert "(keys, punctuation, all else)" in text
    assert "of 6 outputs" in text


def test_refusals():
    with pytest.raises(ValueError, match="at least one"):
        mw.diagnose([], MODEL.vocabulary)
    lazy = mw.generate(MODEL, "x", mw.Regex("[ab]{3}"), sampling=mw.Sampling(lazy_mask=True), seed=0, max_tokens=9)
    with pytest.raises(ValueError, match="without lazy_mask"):
        mw.diagnose(lazy, MODEL.vocabulary)


# --- the page

TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "svg", "g", "rect", "text", "table"}
TAGS |= {"tr", "th", "td", "code", "div", "span"}


class Page(HTMLParser):
    """What a browser would see: tags, attributes, text; unbalanced tags are errors."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], set(), "", []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag != "meta" and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.get_starttag_text().endswith("/>") or tag == self.open[-1]:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


NASTY = "</span><script>alert(\"1\")</script>&amp;' onload='x"


def test_the_page_escapes_what_outputs_hold():
    result = drawn(mw.Choice([NASTY, NASTY + "<b>"]), 3)
    found = mw.diagnose(result, MODEL.vocabulary)
    text = found.html(title="<i>" + NASTY)
    page = Page(text)
    assert page.tags <= TAGS
    assert not any(name.startswith("on") or name in ("href", "src") for name, _ in page.attributes)
    assert "<script" not in text
    assert NASTY in page.text
    assert "default-src 'none'" in text


def test_a_page_that_does_not_escape_is_noticed(monkeypatch):
    from maskwright.engine import diagnosis_page

    monkeypatch.setattr(diagnosis_page, "_shown", lambda text: text)
    found = mw.diagnose(drawn(mw.Choice([NASTY]), 1), MODEL.vocabulary)
    assert "<script" in found.html()
    with pytest.raises(AssertionError):
        assert Page(found.html()).tags <= TAGS


def test_the_page_has_a_bar_for_every_field_and_step(diagnosis):
    page = Page(diagnosis.html())
    steps = sum(len(output.steps) for output in diagnosis.outputs)
    lengths = [float(value) for name, value in page.attributes if name == "width" and "." in value]
    assert len(lengths) == len(diagnosis.fields)
    assert all(0 <= each <= 360 for each in lengths)
    heights = [float(value) for name, value in page.attributes if name == "height" and "." in value]
    assert len(heights) == steps
    for each in diagnosis.fields:
        assert each.field in page.text


def test_characters_that_do_not_show_are_written_as_escapes():
    found = mw.diagnose(drawn(mw.Choice(["a\n\t\x07b"]), 1), MODEL.vocabulary)
    assert "\\x07" in found.html()
    assert "\x07" not in found.html()


# --- the command


def test_the_command_prints_and_writes_the_page(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(mw, "load_model", lambda name: MODEL, raising=False)
    page = tmp_path / "page.html"
    choices = ["--choice", "yes", "--choice", "no"]
    command = ["explain", "--distribution", *choices, "--html", str(page), "-n", "3", "well?"]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "3 outputs drawn by masking" in told
    assert str(page) in told
    Page(page.read_text(encoding="utf-8"))


def test_the_command_refuses_what_does_not_go_together(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["explain", "--choice", "yes", "--html", "page.html", "yes"])
    assert caught.value.code == 2
    assert "--html goes with --distribution" in capsys.readouterr().err
    assert main(["explain", "--distribution", "--choice", "yes", "--temperature", "0", "well?"]) == 1
    assert "--temperature" in capsys.readouterr().err
