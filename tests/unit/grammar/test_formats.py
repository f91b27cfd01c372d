"""The formats against the JSON Schema test suite where it is at hand, the calendar, and other parsers."""

from __future__ import annotations

import calendar
import gzip
import ipaddress
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.grammar.automata import automaton
from maskwright.grammar.formats import KNOWN_FORMATS, format_ir, possible_ir
from unit.grammar.naive import runs

ROOT = Path(__file__).parents[3]
SUITE = next((p for p in (ROOT / "shared/data/jsts", ROOT.parent / "shared/data/jsts") if p.is_dir()), None)


def accepts(name: str, text: str) -> bool:
    term = format_ir(name)
    assert term is not None
    return automaton(term).matches(text)


def suite_cases() -> list[tuple[str, str, bool]]:
    cases: dict[tuple[str, str], bool] = {}
    for path in sorted((SUITE or ROOT).glob("*.format.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for group in map(json.loads, lines):
                name = group["schema"].get("format") if isinstance(group["schema"], dict) else None
                if name in KNOWN_FORMATS:
                    cases.update({(name, t["data"]): t["valid"] for t in group["tests"] if isinstance(t["data"], str)})
    return [(*key, valid) for key, valid in cases.items()]


@pytest.mark.skipif(SUITE is None, reason="the test suite's data is not here")
def test_test_suite() -> None:
    cases = suite_cases()
    assert len(cases) > 300
    wrong = [(name, text) for name, text, valid in cases if accepts(name, text) != valid]
    # Of host names with Punycode, which we leave out, the right ones alone.
    assert [case for case in wrong if case[0] != "hostname" or "xn--" not in case[1]] == []
    assert all((name, text, True) in cases for name, text in wrong)


def test_every_day_of_four_centuries_and_no_other() -> None:
    for year in [*range(0, 30), 96, 100, 104, *range(1890, 2030), 2100, 2400, 9900, 9996, 9999]:
        for month in range(14):
            days = calendar.monthrange(year or 4, month)[1] if 1 <= month <= 12 else 0
            if month == 2:
                days = 29 if calendar.isleap(year) else 28
            for day in (0, 1, 9, 10, 28, 29, 30, 31, 32):
                assert accepts("date", f"{year:04}-{month:02}-{day:02}") == (1 <= day <= days)


def test_leap_years_of_all_four_digits() -> None:
    for year in range(10_000):
        assert accepts("date", f"{year:04}-02-29") == calendar.isleap(year)


def test_leap_seconds_are_at_2359_utc() -> None:
    for local in range(0, 1440, 7):
        for offset in {(local - 1439) % 1440, (local - 1438) % 1440, 0, 59, 60, 1439, local}:
            for sign in (1, -1):
                away = f"{'+' if sign > 0 else '-'}{offset // 60:02}:{offset % 60:02}"
                text = f"{local // 60:02}:{local % 60:02}:60{away}"
                assert accepts("time", text) == ((local - sign * offset) % 1440 == 1439), text
    for minute in range(60):
        assert accepts("time", f"23:{minute:02}:60.5z") == (minute == 59)


@settings(max_examples=300, deadline=None)
@given(st.times(), st.integers(-1439, 1439), st.sampled_from(["", ".0", ".123456789"]))
def test_usual_times(time: object, offset: int, fraction: str) -> None:
    away = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    text = str(time)[:8] + fraction + away
    assert accepts("time", text) and accepts("date-time", "2000-02-29t" + text)
    assert not accepts("time", text[1:]) and not accepts("time", text + "Z") and not accepts("time", text[:-6])


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet="0123456789.", max_size=15) | st.ip_addresses(v=4).map(str))
def test_ipv4(text: str) -> None:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        assert not accepts("ipv4", text)
    else:
        assert accepts("ipv4", text)


@st.composite
def near_ipv6(draw: st.DrawFn) -> str:
    group = st.sampled_from(["0", "1", "fe80", "FFFF", "", "12345", "1.2.3.4", "g"])
    groups = draw(st.lists(group, min_size=1, max_size=9))
    return draw(st.sampled_from(["", "::", ":"])) + ":".join(groups) + draw(st.sampled_from(["", "::", ":"]))


@settings(max_examples=600, deadline=None)
@given(near_ipv6() | st.ip_addresses(v=6).map(str))
def test_ipv6(text: str) -> None:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        assert not accepts("ipv6", text)
    else:
        assert accepts("ipv6", text)


@settings(max_examples=200, deadline=None)
@given(st.uuids())
def test_uuid(value: object) -> None:
    assert accepts("uuid", str(value)) and accepts("uuid", str(value).upper())
    assert not accepts("uuid", str(value)[1:]) and not accepts("uuid", str(value).replace("-", ""))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "email",
            ["a@b", r'"\""@b.c', "a@[IPv6:1::2]", "a@[001.2.3.4]", "a@[IPv6:1:2:3:4:5:6:7:8]"],
            ["a@b-", 'a"b"@c', '"a"b@c', "a@[IPv6:1:2:3:4:5:6:7::]", "a@[1.2.3]", "a@b..c", "ä@b", "a@[x:y]"],
        ),
        (
            "uri",
            ["a:", "a:b", "A+1:/", "http://[v1.x]:80", "x://a@b:1/c//d?e?#f/?"],
            ["", ":", "a", "http://[::1", "a:b c", "x://a b", "a:#b#c", "a://b@c@d"],
        ),
        ("iri", ["http://é.org/ä?\ue000"], ["http://é.org/\ue000", "é:b", "a:\ufffe"]),
        ("iri-reference", ["é", "//é?\ue000", ""], ["\ue000", "é:b"]),
        ("idn-email", ["ä@b", '"é"@ü.é', "a@b", "\x85@a"], ["a@-é", "a@é-", "a", "é @b", "a＠b"]),
        (
            "hostname",
            ["a", "A.b-c.9", "a--b", "xn.a", "a" * 63, ".".join(["a" * 63] * 3 + ["b" * 61])],
            ["", ".", "a.", "-a", "a-", "a_b", "é", "a" * 64, "a." * 126 + "ab", "xn--a", "a.Xn--b"],
        ),
        ("relative-json-pointer", ["0", "10#", "0/", "1/a~0"], ["", "#", "01", "0##", "0#/a", "/a", "-1", "0/~"]),
        ("json-pointer", ["", "/", "/~0~1", "/\n"], ["a", "/~", "~0"]),
        ("duration", ["P1W", "PT1M", "P1Y2M3DT4H5M6S"], ["P", "P1", "p1d", "P1YT", "PT"]),
        ("uri-template", ["{a}", "{?a,b*}", "x{%41.b:3}"], ["{", "}", "{a", "{a:0}", '"', "%4", "{?}"]),
    ],
)
def test_some_by_hand(name: str, good: list[str], bad: list[str]) -> None:
    assert [t for t in good if not accepts(name, t)] == []
    assert [t for t in bad if accepts(name, t)] == []


@pytest.mark.parametrize("text", ["1963-06-19T08:30:06.283Z", "1998-12-31T15:59:60-08:00", "1990-12-31T22:59:60Z"])
def test_the_core_agrees_with_derivatives(text: str) -> None:
    term = format_ir("date-time")
    assert term is not None and automaton(term).matches(text) == runs(term, text)


def test_what_may_be_a_host_name_is_not_taken_for_none() -> None:
    shape = possible_ir("hostname")
    assert shape is not None and automaton(shape).matches("xn--a.b") and not automaton(shape).matches("xn--a-.b")


def test_unknown_formats() -> None:
    assert format_ir("idn-hostname") is None and format_ir("") is None
