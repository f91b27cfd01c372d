"""Formats inside schemas, where a complement of one is asked for."""

from __future__ import annotations

from unit.grammar.test_json_schema_dynamic import judge


def test_host_names_that_nobody_knows_are_neither_right_nor_wrong() -> None:
    """A label in Punycode may be one or none: neither the format nor its complement lets it through."""
    punycode = ["xn--9n2bp8q", "xn--X"]
    judge({"type": "string", "format": "hostname"}, ["a.b"], [*punycode, "a."])
    judge({"type": "string", "not": {"format": "hostname"}}, ["a.", "-"], [*punycode, "a.b"])
    # The same where schemas are evaluated side by side.
    beside = {"type": "array", "contains": {"not": {"format": "hostname"}}, "items": {"type": "string"}}
    judge(beside, [["a."], ["a", "-"]], [["a"], *([text] for text in punycode)])
    listed = {**beside, "items": {"enum": ["a", "a.", *punycode]}}
    judge(listed, [["a."], ["a", "a."]], [["a"], *([text] for text in punycode)])
