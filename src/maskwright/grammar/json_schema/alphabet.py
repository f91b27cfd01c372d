"""Whether a schema misses the characters that a vocabulary lacks.

The patterns of a schema tell some sets of characters apart, and none of what is built from them (conjunctions,
complements, lengths) tells more. Where each class of characters that they do not tell apart has one that tokens spell,
or none that no token spells, any text with lacking characters can be replaced by one without. Where texts have to
differ (keys, unique items) a class has to have as many as anybody writes. Then nothing gets empty by the lack, and
nothing needs to be explored to know it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from maskwright.grammar.ir import Chars, Ir, Ranges

if TYPE_CHECKING:
    from .scan import Scan

__all__ = ["spares"]

_MANY = 1 << 16  # as the core has it: nobody writes as many keys or items
_CACHE_SIZE = 4096
_sets: dict[str, frozenset[Ranges]] = {}


def spares(scan: Scan, lacking: Ranges) -> bool:
    """Whether every part of a schema that has a value has one without the lacking characters.

    Args:
        scan: of the whole schema.
        lacking: code points, ascending; control characters do not count, since JSON escapes them.

    Returns:
        False also where that is not plain.
    """
    lacking = tuple((first, last) for first, last in lacking if last >= 0x20)
    if not lacking or scan.options.escapes == "any":
        return True
    if any(_mentions(text, lacking) for text in scan.texts):
        return False
    regexes = [(name, ir) for found in scan.regexes.values() for name, ir in found]
    regexes += [(name, ir) for found in scan.patterns.values() for name, ir, _ in found]
    counted = scan.unique or scan.patterns or any("propertyNames" in schema for schema in scan.schemas)
    sets = frozenset[Ranges]().union(*(_sets_of(name, ir) for name, ir in regexes))
    return _are_spared(sets, lacking, _MANY if counted else 1)


def _mentions(text: str, lacking: Ranges) -> bool:
    """Whether a JSON text has one of some characters, raw or escaped."""
    if "\\u" in text:
        text = json.dumps(json.loads(text), ensure_ascii=False)
    return not text.isascii() and _one_of(lacking).search(text) is not None


@lru_cache(maxsize=16)
def _one_of(ranges: Ranges) -> re.Pattern[str]:
    return re.compile("[" + "".join(f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in ranges) + "]")


def _sets_of(name: str, ir: Ir) -> frozenset[Ranges]:
    """The sets of characters of a term, which has a name."""
    found = _sets.get(name)
    if found is None:
        if len(_sets) >= _CACHE_SIZE:
            _sets.clear()
        found = _sets[name] = frozenset(_chars(ir))
    return found


def _chars(ir: Ir) -> set[Ranges]:
    found, seen, stack = set[Ranges](), set[int](), [ir]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Chars):
            found.add(node.ranges)
        stack.extend(node.children)
    return found


@lru_cache(maxsize=256)
def _are_spared(sets: frozenset[Ranges], lacking: Ranges, enough: int) -> bool:
    """Whether each class of characters that some sets do not tell apart lacks none, or has enough that are spelled."""
    lacks, surrogate = 1 << len(sets), 2 << len(sets)
    marks = [*((1 << at, ranges) for at, ranges in enumerate(sets)), (lacks, lacking), (surrogate, ((0xD800, 0xDFFF),))]
    changes: Counter[int] = Counter()
    for mark, ranges in marks:
        for first, last in ranges:
            changes[first] ^= mark
            changes[last + 1] ^= mark
    changes[0x110000] ^= 0
    spelled, missed, inside, start = Counter[int](), set[int](), 0, 0
    for point in sorted(changes):
        if inside & lacks and point > start:
            missed.add(inside ^ lacks)
        elif not inside & surrogate:
            spelled[inside] += point - start
        inside, start = inside ^ changes[point], point
    return all(spelled[each] >= enough for each in missed)
