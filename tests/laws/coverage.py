"""How often each construct occurred in the examples that the laws were tried on.

A law that never meets a construct says nothing about it. Every generated case carries the set of its constructs; the
laws note it here, the numbers are printed at the end of the session, and test_zz_coverage.py fails where one stays
below two per cent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

LEAST_SHARE = 0.02

examples: Counter[str] = Counter()
occurrences: dict[str, Counter[str]] = {}
expected: dict[str, frozenset[str]] = {}


def expect(group: str, constructs: Iterable[str]) -> None:
    """Declare the constructs that the generators of a group must produce."""
    expected[group] = frozenset(constructs)


def note(group: str, constructs: Iterable[str]) -> None:
    """Count one example of a group."""
    examples[group] += 1
    found = occurrences.setdefault(group, Counter())
    found.update(set(constructs))


def rare(group: str) -> list[str]:
    """The declared constructs of a group that less than two per cent of its examples have."""
    found = occurrences.get(group, Counter())
    return sorted(name for name in expected[group] if found[name] < LEAST_SHARE * examples[group])


def line(group: str) -> str:
    """What occurred in a group, for people."""
    total, found = examples[group], occurrences.get(group, Counter())
    cells = [f"{name} {100 * found[name] / total:.0f} %" for name in sorted(expected[group] | set(found))]
    return f"{group}, {total} examples: " + ", ".join(cells)
