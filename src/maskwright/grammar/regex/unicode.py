r"""Sets of code points, as the running Python's `re` and `unicodedata` define them.

Python's ``\d \w \s`` and its case folding are taken from `re` itself, by scanning all code points once (about 30 ms on
first use, then cached): exact for whatever Unicode version and whatever special equivalences the interpreter has.
General categories come from `unicodedata` (UAX #44, table 12).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import groupby

from maskwright.grammar.ir import Ranges, intersect_ranges, merge_ranges, negate_ranges

# Planes 4 to 13 and the rest of 14 are unassigned, 15 and 16 private: none of them is a word, digit, space or cased
# character. Leaving them out makes a scan four times quicker (a test holds it against all of Unicode).
_SCANNED = ((0, 0x40000), (0xE0000, 0xE1000))
_GENERAL_CATEGORIES = (
    "C=Other Cc=Control,cntrl Cf=Format Cn=Unassigned Co=Private_Use Cs=Surrogate L=Letter LC=Cased_Letter "
    "Ll=Lowercase_Letter Lm=Modifier_Letter Lo=Other_Letter Lt=Titlecase_Letter Lu=Uppercase_Letter "
    "M=Mark,Combining_Mark Mc=Spacing_Mark Me=Enclosing_Mark Mn=Nonspacing_Mark N=Number Nd=Decimal_Number,digit "
    "Nl=Letter_Number No=Other_Number P=Punctuation,punct Pc=Connector_Punctuation Pd=Dash_Punctuation "
    "Pe=Close_Punctuation Pf=Final_Punctuation Pi=Initial_Punctuation Po=Other_Punctuation Ps=Open_Punctuation "
    "S=Symbol Sc=Currency_Symbol Sk=Modifier_Symbol Sm=Math_Symbol So=Other_Symbol Z=Separator Zl=Line_Separator "
    "Zp=Paragraph_Separator Zs=Space_Separator"
)
ASCII_CLASSES: dict[str, Ranges] = {
    "d": ((0x30, 0x39),),
    "s": ((0x09, 0x0D), (0x20, 0x20)),
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
}


@lru_cache(maxsize=1)
def _code_points() -> tuple[tuple[int, str], ...]:
    return tuple((lo, "".join(map(chr, range(lo, hi)))) for lo, hi in _SCANNED)


def _scan(pattern: str) -> Ranges:
    found: list[tuple[int, int]] = []
    compiled = re.compile(pattern)
    for base, text in _code_points():
        found.extend((base + m.start(), base + m.end() - 1) for m in compiled.finditer(text))
    return merge_ranges(found)


@lru_cache(maxsize=16)
def python_class(letter: str, ascii_only: bool) -> Ranges:
    r"""The code points of ``\d \w \s \D \W \S`` in Python's dialect (`letter` without the backslash)."""
    if letter.isupper():
        return negate_ranges(python_class(letter.lower(), ascii_only))
    return ASCII_CLASSES[letter] if ascii_only else _scan(rf"\{letter}+")


@lru_cache(maxsize=1)
def _case_sensitive() -> tuple[Ranges, str]:
    """Code points that IGNORECASE can treat unlike themselves: those with another lower or upper case."""
    found: list[str] = []
    for _, text in _code_points():
        for at in range(0, len(text), 256):
            block = text[at : at + 256]
            if block.lower() != block or block.upper() != block:
                found.extend(c for c in block if c.lower() != c or c.upper() != c)
    return merge_ranges((ord(c), ord(c)) for c in found), "".join(found)


@lru_cache(maxsize=8192)
def python_set(ranges: Ranges, categories: str, negated: bool, ignore_case: bool, ascii_only: bool) -> Ranges:
    r"""What a character class of Python's dialect matches.

    Args:
        ranges: its single characters and ranges, merged.
        categories: the letters of its escapes, "wD" for ``[\w\D]``.
        negated: it starts with ``^``.
        ignore_case: the flag ``i`` is set.
        ascii_only: the flag ``a`` is set.

    Under ``i``, code points without case keep their membership; for each of the others `re` itself is asked.
    """
    plain = merge_ranges([*ranges, *(r for c in categories for r in python_class(c, ascii_only))])
    plain = negate_ranges(plain) if negated else plain
    if not ignore_case:
        return plain
    cased, text = _case_sensitive()
    body = "".join(rf"\U{lo:08x}-\U{hi:08x}" for lo, hi in intersect_ranges(ranges, cased))
    body += "".join("\\" + c for c in categories)
    if not body:
        return plain
    flags = re.IGNORECASE | (re.ASCII if ascii_only else 0)
    hits = ((ord(c), ord(c)) for c in re.findall(f"[{'^' * negated}{body}]", text, flags))
    return merge_ranges([*intersect_ranges(plain, negate_ranges(cased)), *hits])


@lru_cache(maxsize=1)
def _lower_cases() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for c in _case_sensitive()[1]:
        found.setdefault(c.lower()[0], []).append(c)  # simple case mapping: U+0130 goes to i
    return found


def same_lower_case(letter: str, ascii_only: bool) -> Ranges:
    """What a back-reference to a letter matches under the flag ``i``: those with the same simple lower case.

    That is narrower than what the letter itself matches there: the long s is no s.
    """
    if ascii_only:
        same = [letter.lower(), letter.upper()] if letter.isascii() else [letter]
    else:
        same = [letter, letter.lower()[0], *_lower_cases().get(letter.lower()[0], ())]
    return merge_ranges((ord(c), ord(c)) for c in same)


@lru_cache(maxsize=1)
def _category_names() -> dict[str, str]:
    names = {}
    for entry in _GENERAL_CATEGORIES.split(" "):
        short, _, aliases = entry.partition("=")
        names.update(dict.fromkeys((short, *aliases.split(",")), short))
    return names


@lru_cache(maxsize=1)
def _categories() -> dict[str, Ranges]:
    found: dict[str, list[tuple[int, int]]] = {
        "Cn": [(0x40000, 0xDFFFF), (0xE1000, 0xEFFFF), (0xFFFFE, 0xFFFFF), (0x10FFFE, 0x10FFFF)],
        "Co": [(0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)],
        "Cs": [],
    }
    for base, text in _code_points():
        at = base
        for name, run in groupby(map(unicodedata.category, text)):
            size = sum(1 for _ in run)
            found.setdefault(name, []).append((at, at + size - 1))
            at += size
    return {name: merge_ranges(ranges) for name, ranges in found.items()}


@lru_cache(maxsize=64)
def general_category(name: str) -> Ranges | None:
    """The code points of a general category by its short or long name; None for a name that is none."""
    short = _category_names().get(name)
    if short is None:
        return None
    members = ("Lu", "Ll", "Lt") if short == "LC" else [n for n in _categories() if n.startswith(short)]
    return merge_ranges(r for n in members for r in _categories()[n])
