"""Functions of texts as constraints: what they accept, the law they give, and where they are refused."""

from __future__ import annotations

import math
import pickle
import re
import traceback

import numpy as np
import pytest
from tests.engine.lookahead.random_tables import TableModel, conditional, language
from tests.engine.lookahead.test_smc import base_of, is_unbiased
from tests.engine.statistics import p_value

import maskwright as mw
from maskwright.engine.lookahead.judge import Judge
from maskwright.engine.lookahead.particles import Particles

PATTERN, LONGEST = r"(?!.*bb)[abc]{0,3}a", 5
MODEL = TableModel(3, scale=1.0)
LAW = language(MODEL, PATTERN, LONGEST)
WORDS = ["".join(MODEL.vocabulary.tokens[i].decode() for i in x[:-1]) for x in LAW]


def complete(text):
    return re.fullmatch(PATTERN, text) is not None


def prefix(text):
    return any(word.startswith(text) for word in WORDS)


WAYS = {
    "complete": mw.Predicate(complete),
    "both": mw.Predicate(complete, prefix=prefix),
    "within": mw.Predicate(lambda text: "bb" not in text, within=mw.Regex("[abc]{0,3}a")),
    "both-within": mw.Predicate(lambda t: True, prefix=lambda t: "bb" not in t, within=mw.Regex("[abc]{0,3}a")),
}


def drawn(predicate, n, particles, **settings):
    ahead = mw.Lookahead(method="smc", particles=particles, **settings)
    return mw.generate(MODEL, "x", predicate, lookahead=ahead, n=n, max_tokens=LONGEST, seed=2)


@pytest.mark.parametrize("way", WAYS)
def test_outputs_are_accepted_and_follow_the_law(way):
    results = drawn(WAYS[way], 40, particles=60)
    law = conditional(LAW)
    counts = np.array([sum(tuple(r.tokens) == x for r in results) for x in law])
    assert counts.sum() == len(results)
    assert all(r.valid and complete(r.text) for r in results)
    assert p_value(counts, np.array(list(law.values()))) > 1e-3


def estimates(predicate, runs=80, **settings):
    found = []
    for seed in range(runs):
        base = base_of(MODEL, "[abc]*", seed, LONGEST, particles=8, **settings)
        made = Particles(base, Judge(predicate))
        made.run()
        found.append(math.exp(made.log_Z))
    return np.array(found)


@pytest.mark.parametrize("checks", [1, 3])
def test_T5_weights_of_predicates_are_unbiased(checks):
    truth = sum(LAW.values())
    assert is_unbiased(estimates(WAYS["both"], checks=checks), truth)
    assert is_unbiased(estimates(WAYS["complete"]), truth)


def test_weights_that_ignore_what_was_refused_are_noticed(monkeypatch):
    from maskwright.engine.lookahead import moves

    true = moves.weighted_rejection
    monkeypatch.setattr(moves, "weighted_rejection", lambda *args: (drawn := true(*args)) and (drawn[0], 1.0))
    assert not is_unbiased(estimates(WAYS["both"]), sum(LAW.values()))


def test_with_a_prefix_alone_all_texts_that_pass_may_end():
    ahead = mw.Lookahead(method="smc", particles=50)
    predicate = mw.Predicate(prefix=lambda text: re.fullmatch("[ab]*", text) is not None)
    results = mw.generate(MODEL, "x", predicate, lookahead=ahead, n=30, max_tokens=4, seed=0)
    law = language(MODEL, "[ab]*", 4)
    assert {tuple(r.tokens) for r in results} <= set(law)
    assert len({r.text for r in results}) > 3


def test_values_are_those_of_within():
    predicate = mw.Predicate(lambda text: True, within=mw.Choice({"ab": 1, "c": 2}))
    assert drawn(predicate, 1, particles=4).value in (1, 2)
    assert drawn(WAYS["both"], 1, particles=50).value in WORDS


# --- the functions


def test_texts_are_asked_about_once():
    asked = []

    def once(text):
        asked.append(text)
        return prefix(text)

    drawn(mw.Predicate(complete, prefix=once), 1, particles=40)
    assert len(asked) == len(set(asked)) > 3


def test_beginnings_end_on_whole_characters():
    asked = []
    judge = Judge(mw.Predicate(lambda text: asked.append(text) or True, prefix=lambda text: asked.append(text) or True))
    euro = "€".encode()
    assert judge.may_begin(b"a" + euro[:2])
    assert judge.may_end(b"a" + euro)
    assert asked == ["a", "a€"]
    assert judge.questions == 2


@pytest.mark.parametrize("name", ["complete", "prefix"])
def test_R45_what_a_function_raises_ends_its_request_alone_with_the_traceback(name):
    def faulty(text):
        if "c" in text:
            raise ZeroDivisionError("in the predicate")
        return True

    predicate = mw.Predicate(**{name: faulty}, within=mw.Choice(["ccc"]))
    with pytest.raises(mw.GenerationError, match="raised ZeroDivisionError: in the predicate") as caught:
        mw.generate(MODEL, ["x", "x"], [predicate, mw.Regex("a")], lookahead="smc", max_tokens=5)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "faulty" in "".join(traceback.format_exception(caught.value.__cause__))
    failed, fine = caught.value.results
    assert fine.valid
    assert fine.text == "a"
    assert not failed.valid


def test_no_accepted_output_is_an_error_that_says_what_to_do():
    with pytest.raises(mw.GenerationError, match=r"no particle .* prefix function"):
        drawn(mw.Predicate(lambda text: False), 1, particles=4)


# --- where they are refused


@pytest.mark.parametrize(
    "use",
    [
        lambda p: mw.compile(p, MODEL.vocabulary),
        lambda p: mw.generate(MODEL, "x", p),
        lambda p: mw.generate(MODEL, "x", p, seed=1),
        lambda p: list(mw.stream(MODEL, "x", p)),
        lambda p: mw.generate(MODEL, "x", p, lookahead="exact"),
        lambda p: mw.generate(MODEL, "x", p, lookahead="smc", thinking=mw.Thinking(end="a")),
        lambda p: mw.generate(MODEL, "x", mw.Seq("a", p), lookahead="smc"),
        lambda p: mw.topk(MODEL, "x", p, 2),
        lambda p: mw.sample(p, 1, seed=0),
        lambda p: mw.explain(p, "a"),
    ],
    ids=["compile", "greedy", "sample", "stream", "exact", "thinking", "seq", "topk", "texts", "explain"],
)
def test_elsewhere_they_are_refused_by_name(use):
    with pytest.raises(mw.ConstraintError, match=r"Predicate has no mask.*lookahead='smc'.*within="):
        use(WAYS["both"])


@pytest.mark.parametrize(
    ("arguments", "options"),
    [((), {}), (("a",), {}), ((complete,), {"prefix": 3}), ((complete,), {"within": "a"})],
)
def test_what_is_no_predicate(arguments, options):
    with pytest.raises(TypeError):
        mw.Predicate(*arguments, **options)


def test_a_predicate_within_another_is_refused():
    with pytest.raises(TypeError, match="one function"):
        mw.Predicate(complete, within=WAYS["both"])


def test_equal_by_functions_and_pickled_by_name():
    assert mw.Predicate(complete) == mw.Predicate(complete)
    assert mw.Predicate(complete) != mw.Predicate(prefix)
    assert mw.Predicate(complete) != mw.Predicate(prefix=complete)
    assert mw.Predicate(complete, within=mw.Regex("a")) != mw.Predicate(complete)
    assert pickle.loads(pickle.dumps(WAYS["both"])) == WAYS["both"]
    assert "prefix" in repr(WAYS["both"])
