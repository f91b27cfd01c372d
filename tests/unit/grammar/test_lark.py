"""Lark grammars: what is refused and how it is told, what each lexer makes of hard terminals, files, trees."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.cli import main
from maskwright.grammar.descriptions import describe, restore
from maskwright.grammar.lark import stored

BYTES = [bytes([i]) for i in range(256)]
MERGES = [b"ab", b"if", b"1+", b") ", b"  "]
VOCABULARY = mw.Vocabulary([*BYTES, *MERGES, b"<eos>"], eos_ids=[261], special_ids=[261])
SUM = 'start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+/\n%ignore " "\n'


def compiled(text: str, **options: Any) -> mw.CompiledGrammar:
    return mw.compile(mw.Lark(text, **options), VOCABULARY)


def accepts(grammar: mw.CompiledGrammar, text: str) -> bool:
    matcher = grammar.matcher()
    return bool(matcher.accept_text(text) and matcher.is_accepting)


# Example table: grammar, options, prefix, the pieces that are allowed (letters and merges), whether the text may end.
TABLE = [
    (SUM, {}, "1", {"0", "+", " ", "1+", "  "}, True),
    (SUM, {}, "1+", {"0", " ", "  ", "1+"}, False),
    (SUM, {"parser": "lalr"}, "1 ", {"+", " ", "  "}, True),
    ("start: /a|ab/", {}, "a", set(), True),
    ("start: /ab|a/", {}, "a", {"b"}, True),
    ("start: /a+?/", {}, "a", set(), True),
    ('start: /a+/ "b"', {}, "a", {"a", "b", "ab"}, False),
    ('start: a "a"\na: /a+/ ', {"lexer": "dynamic_complete"}, "a", {"a"}, False),
    ('start: "if" NAME\nNAME: /[a-z]+/', {"lexer": "dynamic"}, "if", {"a", "b", "c", "f", "i", "x", "ab", "if"}, False),
    ('start: NAME | "if"\nNAME: /[a-z]/', {"parser": "lalr", "lexer": "basic"}, "i", {"f"}, True),
    ('start: "a" start "b" |', {}, "a", {"a", "b", "ab"}, False),
    # A loop back to where a token begins is not between tokens.
    ("start: /a*b/", {"parser": "lalr", "lexer": "basic"}, "ab", set(), True),
    ("start: /a*b/", {"lexer": "basic"}, "ab", set(), True),
    ("start: /a*b/ | start", {"parser": "lalr", "lexer": "basic"}, "b", set(), True),
    ("start: /a(?=b)/ /b/", {}, "a", {"b"}, False),
    ("start: /a(?!b)/ /b|c/", {"parser": "lalr"}, "a", {"c"}, False),
    # Of two claims about the text to come the one that implies the other stays.
    ("start: A B C\nA: /a(?!.*c)/\nB: /b(?!c)/\nC: /[xc]+/", {}, "ab", {"x"}, False),
    ("start: A B C\nA: /a(?!.*c)/\nB: /b(?!c)/\nC: /[xc]+/", {}, "abx", {"x"}, True),
    ("start: A B C\nA: /a(?!c)/\nB: /b(?!c)/\nC: /[xc]+/", {}, "abx", {"x", "c"}, True),
    # ^ and \\A hold at the start of the text alone, whatever was ignored or chosen there.
    ("start: A*\nA: /^a|b/", {}, "", {"a", "b", "ab"}, True),
    ("start: A*\nA: /^a|b/", {}, "b", {"b"}, True),
    ("start: A*\nA: /\\Aa|b/", {"lexer": "basic"}, "a", {"b"}, True),
    ("start: A*\nA: /a?^b|c/", {"parser": "lalr"}, "", {"b", "c"}, True),
    ('start: A*\nA: /^a|b/\n%ignore " "', {"parser": "lalr"}, "", {"a", "b", "ab", " ", "  "}, True),
    ('start: A*\nA: /^a|b/\n%ignore " "', {"parser": "lalr", "lexer": "basic"}, " ", {"b", " ", "  "}, True),
    ("start: A*\nA: /^(?:a|b)/", {"lexer": "dynamic_complete"}, "", {"a", "b"}, True),
    ("start: A*\nA: /^(?:a|b)/", {"lexer": "dynamic_complete"}, "a", set(), True),
]


@pytest.mark.parametrize(("text", "options", "prefix", "pieces", "may_end"), TABLE)
def test_example_table(text: str, options: dict[str, Any], prefix: str, pieces: set[str], may_end: bool) -> None:
    matcher = compiled(text, **options).matcher()
    assert matcher.accept_text(prefix)
    shown = set("abcfix0+ ") | {m.decode() for m in MERGES}
    tokens = VOCABULARY.tokens
    found = {tokens[t].decode("latin-1") for t in matcher.allowed_tokens() if t != 261}
    assert found & shown == pieces
    assert matcher.is_accepting == may_end


REFUSED = [
    ("start: a\n", {}, "line 1, column", "'a' used but not defined|Rule"),
    ("start: A\nA: /a/ ^", {}, "line 2, column 8", "Unexpected input"),
    ('start: A\nA: /(a)\\1/\n', {}, "line 2, column 1", "terminal A uses a back-reference"),
    ("start: A\nA: /(?>a|ab)c/\n", {}, "line 2, column 1", "atomic group"),
    ("start: A\nA: /a++/\n", {}, "line 2, column 1", "possessive"),
    ("start: A\nA: /a\\b/\n", {}, "line 2, column 1", r"\\b"),
    ("start: A\nA: /^a/m\n", {}, "line 2, column 1", "looks at text before it"),
    ("start: A\nA: /a(?=b|^)/\n", {}, "line 2, column 1", "looks at text before it"),
    ("start: A\nA: /^a|b/\n", {"lexer": "dynamic_complete"}, "line 2, column 1", "in some alternatives"),
    ("start: A B\nA: /a/\nB: /b/\n", {"special": {"B": "<b>"}}, "line 3, column 1", "not declared"),
    ("start: A B\nA: /a/\n%declare B\n", {"special": {"B": "<b>"}}, "option special", "no token"),
    ("start: A B\nA: /a/\n%declare B\n", {"special": {"B": "<eos>"}}, "option special", "EOS"),
    ("start: A\nA: /(?<=b)a/\n", {}, "line 2, column 1", "looks at text before it"),
    ("start: A\nA: /a(?=b)/\n", {"lexer": "dynamic_complete"}, "line 2, column 1", "slices"),
    ("start: A\nA: /a*/\n", {}, "line 2, column 1", "zero-width"),
    ("start: A\nA: /a*/\n", {"parser": "lalr"}, "line 2, column 1", "zero-width"),
    ("start: [A]\nA: /a/\n", {"parser": "cyk"}, "line 1, column 1", "may be empty"),
    ('start: start | "a"\n', {"parser": "cyk"}, "line 1, column 1", "derives itself"),
    ('start: a | b\na: "x"\nb: "x"\n', {"parser": "lalr"}, "line", "Reduce/Reduce"),
    ('start: "a" | "a "\n%ignore " "\n', {}, "line 1, column 1", "several alternatives"),
    ("start: A B\nA: /a/\n%declare B\n", {"parser": "lalr"}, "line 3, column 10", "declared"),
    ("start: /a/", {"transformer": object()}, "option transformer", "transformer"),
    ("start: /a/", {"lexer_callbacks": {"A": str}}, "option lexer_callbacks", "lexer_callbacks"),
    ("start: /a/", {"use_bytes": True}, "option use_bytes", "use_bytes"),
    ("start: /a/", {"postlex": object(), "parser": "lalr"}, "option postlex", "postlex"),
    ("start: /a/", {"parser": "lalr", "lexer": "dynamic"}, "option lexer", "no lexer"),
    ("start: /a/", {"parser": "ll"}, "option parser", "parser='ll'"),
]


@pytest.mark.parametrize(("text", "options", "location", "message"), REFUSED)
def test_refusals_name_the_construct_and_its_place(
    text: str, options: dict[str, Any], location: str, message: str
) -> None:
    with pytest.raises(mw.LarkError, match=message) as caught:
        compiled(text, **options)
    assert caught.value.location.startswith(location), caught.value.location
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('start: a "b"\na: /a+/ "a"\n', {}),
        ('start: /a+/ "a"\n', {"parser": "lalr"}),
        ("start: start /a/\n", {}),
        ("start: A\nA: /a/\nB.2: /a/\n_b: _c _b | B\n_c: _b\n", {"parser": "lalr", "lexer": "basic"}),
    ],
)
def test_no_text_at_all(text: str, options: dict[str, Any]) -> None:
    with pytest.raises(mw.UnsatisfiableError, match="start") as caught:
        compiled(text, **options)
    assert caught.value.location.startswith("line 1")


def test_the_same_text_under_dynamic_complete_generates() -> None:
    assert accepts(compiled('start: a "b"\na: /a+/ "a"\n', lexer="dynamic_complete"), "aab")


def test_unknown_options_are_type_errors() -> None:
    with pytest.raises(TypeError, match="no option 'colour'"):
        mw.Lark("start: /a/", colour="red")
    with pytest.raises(TypeError, match="open"):
        mw.Lark(Path("x"))  # type: ignore[arg-type]


def test_imports_templates_and_files(tmp_path: Path) -> None:
    (tmp_path / "words.lark").write_text("WORD: /[a-z]+/\n")
    main_file = tmp_path / "main.lark"
    main_file.write_text('%import .words.WORD\nstart: list{WORD}\nlist{x}: x ("," x)*\n')
    grammar = mw.compile(mw.Lark.open(main_file), VOCABULARY)
    assert accepts(grammar, "ab,c")
    assert not accepts(grammar, "ab,")
    text = "%import words.WORD\nstart: WORD ~ 1..2\n"
    assert accepts(compiled(text, import_paths=[tmp_path], parser="lalr", lexer="contextual"), "ab")
    with pytest.raises(mw.LarkError) as caught:
        mw.compile(mw.Lark.open(main_file, parser="lalr", start="missing"), VOCABULARY)
    assert caught.value.location


def test_unicode_classes_and_cases() -> None:
    assert accepts(compiled("start: /k/i"), "\u212a")
    assert accepts(compiled(r"start: /\d/"), "٣")


def test_several_starts_and_priorities() -> None:
    grammar = compiled('a: "x"\nb: "y"\n', start=["a", "b"], parser="lalr")
    assert accepts(grammar, "x")
    assert accepts(grammar, "y")
    assert not accepts(grammar, "xy")
    text = 'start: A B?\nA.{}: "a"\nB: "ab"\n'
    assert accepts(compiled(text.format(2), parser="lalr", lexer="basic"), "a")


def test_pickle_description_and_equality() -> None:
    one = mw.Lark(SUM, parser="lalr")
    assert pickle.loads(pickle.dumps(one)) == one
    assert restore(describe(one), "x") == one
    assert one != mw.Lark(SUM)
    with pytest.raises(mw.MaskwrightError, match="edit_terminals"):
        describe(mw.Lark(SUM, edit_terminals=lambda t: None))


def test_tree_of_a_text() -> None:
    assert mw.Lark(SUM).tree("1 + 2").data == "start"


def test_stored_forms_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))
    lowered = mw.Lark(SUM).lowered()
    place = tmp_path / "x.bin"
    stored.write_lowered(place, "key", lowered)
    assert stored.read_lowered(place, "key") == lowered
    assert stored.read_lowered(place, "other") is None
    data = place.read_bytes()
    for damaged in (data[:-4], data[:-1] + b"\x07", b"", data[50:]):
        place.write_bytes(damaged)
        assert stored.read_lowered(place, "key") is None


def test_explain_names_terminals() -> None:
    told = mw.explain(mw.Lark(SUM, parser="lalr"), "1 + +")
    assert (told.line, told.column) == (1, 5)
    assert told.expected == ("NUMBER",)
    assert '"+"' in mw.explain(mw.Lark(SUM), "1 2").expected


def test_lint_and_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.lark"
    path.write_text("start: A B\nA: /a|b/\nB: /b|c/\nlost: found lost | A\nfound: lost\n")
    assert main(["check", str(path), "--parser", "lalr"]) == 0
    shown = capsys.readouterr().out
    assert "terminals A and B both match 'b'" in shown or "terminals B and A both match 'b'" in shown
    assert "rule lost is not reached" in shown
    path.write_text("start: missing\n")
    assert main(["check", str(path)]) == 1


def test_min_tokens_tell_a_way_to_the_end() -> None:
    matcher = compiled(SUM).matcher()
    matcher.accept_text("1+")
    assert matcher.min_tokens_to_accept() >= 1
    assert matcher.allowed_tokens(max_tokens=2)
    assert not matcher.allowed_tokens(max_tokens=1)
