from __future__ import annotations

import pickle
import re
import time
from typing import Any

import pytest

from maskwright.errors import ConstraintError, LimitError, RegexError, UnsatisfiableError
from maskwright.grammar.automata import automaton
from maskwright.grammar.ir import ALL, Repeat, literal
from maskwright.grammar.plan import CompileLimits
from maskwright.grammar.regex import Regex, pattern_ir
from unit.grammar.naive import matches

LIMITS = CompileLimits()


def accepts(constraint: Regex, text: str) -> bool:
    constraint.plan(LIMITS)
    return automaton(constraint.language()).matches(text)


def test_full_by_default_and_search() -> None:
    assert accepts(Regex("b+"), "bb") and not accepts(Regex("b+"), "abb")
    assert accepts(Regex("b+", match="search"), "abba") and not accepts(Regex("^b", match="search"), "ab")
    assert accepts(Regex("b+", dialect="ecma"), "b") and not accepts(Regex("b+", dialect="ecma"), "ab")


def test_compiled_patterns_bring_their_flags() -> None:
    assert accepts(Regex(re.compile("a.b", re.I | re.S)), "A\nB")
    assert Regex(re.compile("a")) == Regex("a") and Regex(re.compile("a", re.I)) == Regex("a", flags=re.I)
    assert not accepts(Regex(re.compile(r"\d", re.A)), "٣") and accepts(Regex(r"\d"), "٣")


@pytest.mark.parametrize(
    "arguments",
    [(b"a",), (re.compile(b"a"),), (3,), (None,), (re.compile("a"), "ecma"), (re.compile("a"), "python", "full", re.I)],
)
def test_wrong_types(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Regex(*arguments)


def test_wrong_values() -> None:
    with pytest.raises(ValueError, match="dialect"):
        Regex("a", dialect="perl")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="match"):
        Regex("a", match="prefix")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="flags"):
        Regex("a", flags="i")  # type: ignore[arg-type]


@pytest.mark.parametrize("flags", [re.L, re.A | re.U, 1 << 20])
def test_flags_without_meaning(flags: int) -> None:
    with pytest.raises(RegexError, match="flags"):
        Regex("a", flags=flags).plan(LIMITS)
    with pytest.raises(RegexError, match="flags"):
        Regex("a", dialect="ecma", flags=int(re.I)).plan(LIMITS)


def test_errors_are_for_compile_time() -> None:
    broken = Regex("a(b")
    with pytest.raises(RegexError) as caught:
        broken.plan(LIMITS)
    assert caught.value.location == "offset 1" and "offset 1" in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "offset", "said"),
    [
        (r"(a+)\1", 4, r"\1"),
        ("(?P<n>a*)(?P=n)", 9, "(?P="),
        ("(?:(?(1)b|c)(a))*", 3, "(?("),
        ("a(?>b|bc)d", 1, "(?>"),
        ("a*+a", 1, "*+"),
        ("a{2,3}+a", 1, "{2,3}+"),
        (r"(?i)\pL", 4, r"\p"),
        (r"(?i)\p{L}", 4, "flag i"),
    ],
)
def test_refusals_name_the_construct_and_its_place(pattern: str, offset: int, said: str) -> None:
    with pytest.raises(RegexError) as caught:
        Regex(pattern).plan(LIMITS)
    error = caught.value
    assert (error.location, said in error.message, bool(error.hint)) == (f"offset {offset}", True, True), str(error)


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ("a)", 1),
        ("(", 0),
        ("[a", 0),
        ("[]", 0),
        ("*a", 0),
        ("a**", 2),
        ("^*", 1),
        ("a{2,1}", 1),
        ("[b-a]", 1),
        (r"[a-\w]", 1),
        ("\\", 0),
        (r"\q", 0),
        (r"\x1", 0),
        (r"\u12", 0),
        (r"\U00110000", 0),
        (r"\N{no such}", 0),
        (r"\400", 0),
        (r"[\8]", 1),
        ("(?P<1>a)", 0),
        ("(?P<a>a)(?P<a>a)", 8),
        ("a(?i)", 1),
        ("(?z)", 0),
        ("(?i", 0),
        ("(?-u:a)", 0),
        ("(?i-i:a)", 0),
        ("(?L)a", 0),
        ("(?au:a)", 0),
        ("(?<n>a)", 0),
        ("(?#a", 0),
        (r"\p{Greek}", 0),
        ("(?x) # \\", 7),
    ],
)
def test_syntax_errors_say_where(pattern: str, offset: int) -> None:
    with pytest.raises(RegexError) as caught:
        Regex(pattern).plan(LIMITS)
    assert caught.value.location == f"offset {offset}" and caught.value.hint, str(caught.value)


def test_multiline_without_anchors_is_no_matter() -> None:
    assert accepts(Regex("a.c", flags=re.M), "abc")


@pytest.mark.parametrize("pattern", ["a^b", "[^\x00-\U0010ffff]", r"\ud800", "$a", r"a\A"])
def test_no_text_at_all(pattern: str) -> None:
    with pytest.raises(UnsatisfiableError) as caught:
        Regex(pattern).plan(LIMITS)
    assert caught.value.location == "offset 0"


def test_general_categories_are_an_extension() -> None:
    assert accepts(Regex(r"\p{Lu}\P{Lu}[\p{Nd}_]"), "Éé٣") and not accepts(Regex(r"\p{L}"), "1")


def test_counts_are_not_unrolled() -> None:
    term = pattern_ir("a{99999999}")
    assert term == Repeat(literal("a"), 99_999_999, 99_999_999)
    with pytest.raises(LimitError):
        pattern_ir("a{99999999999}")
    with pytest.raises(LimitError):
        pattern_ir("a{4294967295}", "ecma")


@pytest.mark.parametrize("dialect", ["python", "ecma"])
@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 50_000 + "a" + ")" * 50_000,
        "(?:a|" * 30_000 + "b" + ")*" * 30_000,
        "(" * 50_000,
        ")" * 50_000,
        "(^a|" * 10_000 + "b" + ")*" * 10_000,
        "a" * 1_000_000,
        "[" + "a-z" * 300_000 + "]",
        "(?:" * 30_000 + ")" * 30_000,
        "a{99999999}" * 1000,
        "a|" * 200_000,
        "[" * 100_000,
        "\\" * 100_001,
        "(?=" * 50_000,
        "(a{9}){9}" * 20_000,
    ],
    ids=lambda p: p[:9],
)
def test_hostile_patterns_end_quickly_and_cleanly(dialect: Any, pattern: str) -> None:
    start = time.process_time()
    try:
        term = pattern_ir(pattern, dialect, "search")
    except ConstraintError as error:
        assert error.location.startswith("offset ")
    else:
        assert term.size <= LIMITS.nodes
    assert time.process_time() - start < 10


def test_nested_groups_compile() -> None:
    deep = Regex("(" * 50_000 + "a" + ")" * 50_000)
    assert accepts(deep, "a") and not accepts(deep, "aa")


def test_anchored_repeats_stay_small() -> None:
    pattern = "a"
    for _ in range(12):
        pattern = f"(?:^{pattern}|b$)*"
    assert pattern_ir(pattern).size < 5000


def test_constraint_is_a_value() -> None:
    regex = Regex("a+", match="search", flags=re.I)
    assert pickle.loads(pickle.dumps(regex)) == regex and hash(regex) == hash(Regex("a+", "python", "search", re.I))
    assert repr(regex) == "Regex('a+', match='search', flags=2)" and repr(Regex("a")) == "Regex('a')"
    with pytest.raises(AttributeError):
        regex.pattern = "b"
    assert len({Regex("a"), Regex("a"), Regex("a", dialect="ecma"), Regex("a", match="search"), Regex("b")}) == 4
    assert len(Regex("x" * 100_000).fingerprint()) < 200
    assert Regex("x" * 300) == Regex("x" * 300) != Regex("x" * 301)


def test_plan_defines_the_root_once() -> None:
    calls: list[tuple[int, bool]] = []

    class Program:
        def new_node(self) -> int:
            return 0

        def define_regex(self, node: int, regex: Any) -> None:
            calls.append((node, regex.matches("a")))

    plan = Regex("a").plan(LIMITS)
    plan.start(Program())  # type: ignore[arg-type]
    assert calls == [(0, True)] and plan.whitespace == 0
    assert [(e.keyword, e.status) for e in plan.report] == [("regex", "enforced")]


def test_automata_are_shared() -> None:
    assert automaton(pattern_ir("ab|c")) is automaton(pattern_ir("(?:ab)|c"))


def test_search_of_everything() -> None:
    assert (
        matches(pattern_ir("", match="search"), "anything\n")
        and pattern_ir("", match="search").size <= 2 * ALL.size + 1
    )
