"""Patterns that flag u forbids, but whose meaning is plain."""

from __future__ import annotations

import pytest

from maskwright.errors import SchemaError
from maskwright.grammar.json_schema import JsonSchema
from maskwright.grammar.plan import CompileLimits
from unit.grammar.recorder import record

LOOSE = [
    (r"^4\-.*$", "4-2", "4/2"),
    (r"^\{\{.+}}$", "{{a}}", "{a}"),
    (r"^[\w\-\_]+\:$", "a-b_:", "a.b:"),
    (r"^a]$", "a]", "a"),
    (r"^\@\,$", "@,", "@"),
]


@pytest.mark.parametrize(("pattern", "right", "wrong"), LOOSE)
def test_needless_escapes_stand_for_the_character(pattern: str, right: str, wrong: str) -> None:
    schema = {"type": "string", "pattern": pattern}
    recorder = record(schema)
    assert recorder.accepts(f'"{right}"')
    assert not recorder.accepts(f'"{wrong}"')
    (entry,) = [e for e in JsonSchema(schema).plan(CompileLimits()).report if e.keyword == "pattern"]
    assert entry.status == "enforced"
    assert "flag u" in entry.detail


@pytest.mark.parametrize("pattern", [r"\a", r"\Z", r"(?P<n>a)", "[z-a]", "a{2,1}", "(", r"\8", "{,2}"])
def test_what_has_no_plain_meaning_is_refused(pattern: str) -> None:
    with pytest.raises(SchemaError) as caught:
        record({"pattern": pattern})
    assert caught.value.location == "/pattern"
