r"""Writes the table of scripts and binary properties that ``\p{..}`` knows, by asking the `regex` package.

    pip install regex==2025.11.3
    python tools/unicode_properties.py 17.0 > src/maskwright/grammar/regex/properties.txt

The argument is the Unicode version of the installed `regex` (2025.11.3 has 17.0). Names are those of
UAX #44 (PropertyAliases.txt and PropertyValueAliases.txt), which ECMA-262 takes letter by letter; `regex` knows them
without their case and underscores.
"""

from __future__ import annotations

import re
import sys
from itertools import pairwise

import regex
from regex import _regex

# Names of several words; the others are one word with a capital.
SCRIPTS = """
Anatolian_Hieroglyphs Bassa_Vah Beria_Erfe Canadian_Aboriginal Caucasian_Albanian Cypro_Minoan Dives_Akuru
Egyptian_Hieroglyphs Gunjala_Gondi Gurung_Khema Hanifi_Rohingya Imperial_Aramaic Inscriptional_Pahlavi
Inscriptional_Parthian Kayah_Li Khitan_Small_Script Kirat_Rai Linear_A Linear_B Masaram_Gondi Medefaidrin Meetei_Mayek
Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Nag_Mundari New_Tai_Lue Nyiakeng_Puachue_Hmong Ol_Chiki Ol_Onal
Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur
Pahawh_Hmong Pau_Cin_Hau Phags_Pa Psalter_Pahlavi SignWriting Sora_Sompeng Syloti_Nagri Tai_Le Tai_Tham Tai_Viet Tai_Yo
Tolong_Siki Tulu_Tigalari Warang_Citi Zanabazar_Square
"""
# The binary properties of ECMA-262, table 68, but ASCII, Any, Assigned and those about case mappings.
BINARY = """
ASCII_Hex_Digit=AHex Alphabetic=Alpha Bidi_Control=Bidi_C Bidi_Mirrored=Bidi_M Case_Ignorable=CI Cased Dash
Default_Ignorable_Code_Point=DI Deprecated=Dep Diacritic=Dia Emoji Emoji_Component=EComp Emoji_Modifier=EMod
Emoji_Modifier_Base=EBase Emoji_Presentation=EPres Extended_Pictographic=ExtPict Extender=Ext Grapheme_Base=Gr_Base
Grapheme_Extend=Gr_Ext Hex_Digit=Hex IDS_Binary_Operator=IDSB IDS_Trinary_Operator=IDST ID_Continue=IDC ID_Start=IDS
Ideographic=Ideo Join_Control=Join_C Logical_Order_Exception=LOE Lowercase=Lower Math Noncharacter_Code_Point=NChar
Pattern_Syntax=Pat_Syn Pattern_White_Space=Pat_WS Quotation_Mark=QMark Radical Regional_Indicator=RI
Sentence_Terminal=STerm Soft_Dotted=SD Terminal_Punctuation=Term Unified_Ideograph=UIdeo Uppercase=Upper
Variation_Selector=VS White_Space=space XID_Continue=XIDC XID_Start=XIDS
"""
EVERYTHING = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))


def ranges(prop: str) -> str:
    """The code points of a property: of each range the distance from the one before and, over one, its length."""
    found: list[list[int]] = []
    for match in regex.finditer(rf"\p{{{prop}}}+", EVERYTHING):
        lo, hi = ord(match[0][0]), ord(match[0][-1])
        pieces = [(lo, 0xD7FF), (0xE000, hi)] if lo < 0xD800 and hi > 0xDFFF else [(lo, hi)]
        found.extend([list(piece) for piece in pieces])
    flat = [[0, -1], *found]
    return " ".join(
        f"{lo - before - 1:x}" + (f"-{hi - lo + 1:x}" if hi > lo else "") for (_, before), (lo, hi) in pairwise(flat)
    )


def script_names() -> dict[str, list[str]]:
    """The aliases of each script, by its long name."""
    spelled = {name.replace("_", "").upper(): name for name in SCRIPTS.split()}
    _, values = _regex.get_properties()["SCRIPT"]
    groups: dict[int, list[str]] = {}
    for name, value in values.items():
        groups.setdefault(value, []).append(name)
    out: dict[str, list[str]] = {}
    for names in groups.values():
        long = [n for n in names if n in spelled] or [n for n in names if len(n) != 4] or names[:1]
        short = [n.capitalize() for n in names if len(n) == 4 and n != long[0]]
        out[spelled.get(long[0], long[0].capitalize())] = short
    return out


def main() -> None:
    """Prints the table."""
    print(f"# Unicode {sys.argv[1]}. Written by tools/unicode_properties.py: kind, names, ranges as gap-length in hex.")
    for name, aliases in sorted(script_names().items()):
        own, extended = ranges(f"Script={name}"), ranges(f"Script_Extensions={name}")
        if not own and not extended:
            continue
        print(f"sc {'='.join([name, *aliases])} {own}")
        if extended != own:
            print(f"scx {'='.join([name, *aliases])} {extended}")
    for names in BINARY.split():
        print(f"b {names} {ranges(re.sub('=.*', '', names))}")


if __name__ == "__main__":
    main()
