r"""`regex=True`: lark matches with the `regex` package, whose properties and classes the terminals then have."""

from __future__ import annotations

import pytest

import maskwright as mw

regex = pytest.importorskip("regex")
VOCABULARY = mw.Vocabulary([*(bytes([i]) for i in range(256)), b"<eos>"], eos_ids=[256], special_ids=[256])
SOME = [*"aZ09_ \t\n-é", "ß", "ſ", "K", "²", "ª", "\u0301", "文", "🎉", "\u0660", "\u00a0", "\U0001d7ce"]
CLASSES = [
    r"\p{L}", r"\P{L}", r"\p{Lu}", r"\p{^Lu}", r"\p{Script=Greek}", r"[\p{L}\d-]", r"[^\p{L}]", r"\w", r"\W", r"\d",
    r"\s",    r"[^\W\d]", r"[a-z]", r".", r"\pL", r"[k-l]",
]  # fmt: skip


@pytest.mark.parametrize("flags", ["", "i"])
@pytest.mark.parametrize("pattern", CLASSES)
def test_classes_are_the_packages(pattern: str, flags: str) -> None:
    grammar = mw.Lark(f"start: A\nA: /{pattern}/{flags}\n", parser="lalr", regex=True)
    compiled = mw.compile(grammar, VOCABULARY)
    found = regex.compile(pattern, regex.I if flags else 0)
    for character in SOME:
        matcher = compiled.matcher()
        allowed = matcher.accept_text(character) and matcher.is_accepting
        assert allowed == (found.fullmatch(character) is not None), character
        parses = True
        try:
            grammar.tree(character)
        except Exception:
            parses = False
        assert allowed == parses, character


@pytest.mark.parametrize("parser", ["lalr", "earley"])
def test_words(parser: str) -> None:
    text = 'start: "if" WORD+\nWORD: /\\p{L}[\\p{L}\\p{M}]*/\n%ignore " "\n'
    compiled = mw.compile(mw.Lark(text, parser=parser, regex=True), VOCABULARY)
    for sample, expected in (("if été", True), ("if a1", False), ("if ", False), ("if if", True)):
        matcher = compiled.matcher()
        assert (matcher.accept_text(sample) and matcher.is_accepting) == expected, sample


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"a{e}", "fuzzy"),
        (r"[[a]b]", "nested"),
        (r"[[:alpha:]]", "nested"),
        (r"\p{Nonsense}", "regex refuses|refuses the grammar"),
        (r"[a-\p{L}]", "bad character range"),
        (r"(?|a|b)", "not a regular expression"),
    ],
)
def test_what_the_packages_read_differently_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(mw.LarkError, match=message):
        mw.compile(mw.Lark(f"start: A\nA: /{pattern}/\n", parser="lalr", regex=True), VOCABULARY)
