"""The formats of JSON Schema that are regular languages, exactly as their RFCs define them.

Each is written in the Python dialect of our own regex front end, after the grammar (ABNF) of its RFC. Not here, because
no automaton is exact for them: `idn-hostname` (its rules look at whole labels and their Punycode), `regex` (it nests).
Of `hostname`, the labels that are Punycode (`xn--`) are left out: they would have to be decoded and checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from maskwright.grammar.ir import ALL, ANY, Ir, chars, complement, concat, intersect, literal, repeat, union
from maskwright.grammar.regex import pattern_ir

# RFC 3339, 5.6. Leap years: divisible by 4, and by 400 where they end in 00.
_LEAP_YEAR = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    rf"|{_LEAP_YEAR}-02-29)"
)
_HOUR, _SIXTY, _FRACTION = r"(?:[01][0-9]|2[0-3])", r"[0-5][0-9]", r"(?:\.[0-9]+)?"
_TIME = rf"{_HOUR}:{_SIXTY}:{_SIXTY}{_FRACTION}(?:[Zz]|[+-]{_HOUR}:{_SIXTY})"
# RFC 3339, appendix A. Designators are capitals, as in ISO 8601.
_DAYS, _SECONDS = r"[0-9]+D", r"[0-9]+S"
_MONTHS, _MINUTES = rf"[0-9]+M(?:{_DAYS})?", rf"[0-9]+M(?:{_SECONDS})?"
_CLOCK = rf"T(?:[0-9]+H(?:{_MINUTES})?|{_MINUTES}|{_SECONDS})"
_DURATION = rf"P(?:(?:{_DAYS}|{_MONTHS}|[0-9]+Y(?:{_MONTHS})?)(?:{_CLOCK})?|{_CLOCK}|[0-9]+W)"
# RFC 4122, section 3: hexadecimal digits in either case.
_UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
# RFC 3986, 3.2.2: the dotted quad without leading zeros; groups of 16 bits; the last two of them.
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H16 = r"[0-9A-Fa-f]{1,4}"
_LS32 = rf"(?:{_H16}:{_H16}|{_IPV4})"
# RFC 6901, section 3: anything but / and ~, which is written ~0 or ~1.
_JSON_POINTER = r"(?:/(?:[^/~]|~[01])*)*"
# RFC 3987, 2.2.
_UCSCHAR = r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    rf"\U{plane:04x}{'1000' if plane == 14 else '0000'}-\U{plane:04x}fffd" for plane in range(1, 15)
)
_IPRIVATE = r"\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_PERCENT = r"%[0-9A-Fa-f]{2}"


def _ipv6() -> str:
    """RFC 3986, appendix A: eight groups, or a `::` in place of one or more."""
    forms = [rf"(?:{_H16}:){{6}}{_LS32}"]
    ends = [*(rf"(?:{_H16}:){{{n}}}{_LS32}" for n in range(5, -1, -1)), _H16, ""]
    for before, end in enumerate(ends):  # at most so many groups before the `::`
        head = rf"(?:(?:{_H16}:){{0,{before - 1}}}{_H16})?" if before else ""
        forms.append(f"{head}::{end}")
    return f"(?:{'|'.join(forms)})"


def _email(extra: str = "") -> str:
    """RFC 5321, 4.1.2 and 4.1.3: a Mailbox. Of the address literals, those with a registered tag: none but IPv6.

    RFC 6531, 3.3, where `extra` adds the characters beyond ASCII, in labels too, without IDNA's rules for them.
    """
    atom = rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{extra}-]+"
    quoted = rf'"(?:[ !#-\[\]-~{extra}]|\\[ -~])*"'
    label = rf"[A-Za-z0-9{extra}](?:[A-Za-z0-9{extra}-]*[A-Za-z0-9{extra}])?"
    snum = r"(?:0{0,2}[0-9]|0?[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
    ipv4 = rf"{snum}(?:\.{snum}){{3}}"
    groups = [rf"(?:{_H16}(?::{_H16}){{0,{n - 1}}})?" if n else "" for n in range(7)]
    forms = [rf"{_H16}(?::{_H16}){{7}}", rf"{_H16}(?::{_H16}){{5}}:{ipv4}"]
    exactly = ["", *(rf"{_H16}(?::{_H16}){{{n - 1}}}" for n in range(1, 7))]
    # The `::` stands for at least two groups.
    forms += [f"{exactly[n]}::{groups[6 - n]}" for n in range(7)]
    forms += [f"{exactly[n]}::(?:{_H16}:){{0,{4 - n}}}{ipv4}" for n in range(5)]
    literal = rf"\[(?:{ipv4}|[Ii][Pp][Vv]6:(?:{'|'.join(forms)}))\]"
    return rf"(?:{atom}(?:\.{atom})*|{quoted})@(?:{label}(?:\.{label})*|{literal})"


def _hostname() -> Ir:
    """RFC 1123, 2.1, after RFC 952: labels of 1 to 63 letters, digits and inner hyphens, 253 characters in all."""
    encoded = _regex(r"(?:[\s\S]*\.)?[Xx][Nn]--[\s\S]*")
    return intersect(possible_ir("hostname") or ALL, complement(encoded))


def _uri(reference: bool, extra: str = "", private: str = "") -> str:
    """RFC 3986, appendix A; RFC 3987, 2.2 where `extra` and `private` add its characters."""
    plain = rf"\-A-Za-z0-9._~!$&'()*+,;={extra}"
    pchar, name = (rf"(?:[{plain}{more}]|{_PERCENT})" for more in (":@", ""))
    query, fragment = (rf"(?:[{plain}:@/?{more}]|{_PERCENT})*" for more in (private, ""))
    literal = rf"\[(?:{_ipv6()}|[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\]"
    authority = rf"(?:(?:[{plain}:]|{_PERCENT})*@)?(?:{literal}|{name}*)(?::[0-9]*)?"
    rooted = rf"//{authority}(?:/{pchar}*)*|/(?:{pchar}+(?:/{pchar}*)*)?"
    end = rf"(?:\?{query})?(?:\#{fragment})?"
    absolute = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{rooted}|{pchar}+(?:/{pchar}*)*|){end}"
    if not reference:
        return absolute
    first = rf"(?:[{plain}@]|{_PERCENT})+"
    return rf"(?:{absolute}|(?:{rooted}|{first}(?:/{pchar}*)*|){end})"


def _uri_template() -> str:
    """RFC 6570, section 2, with erratum 6937 (the apostrophe is a literal)."""
    literal = rf"(?:[!#$&'()*+,./0-9:;=?@A-Z\[\]_a-z~{_UCSCHAR}{_IPRIVATE}-]|{_PERCENT})"
    letter = rf"(?:[A-Za-z0-9_]|{_PERCENT})"
    variable = rf"{letter}(?:\.?{letter})*(?::[1-9][0-9]{{0,3}}|\*)?"
    return rf"(?:{literal}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*"


def _digits(place: int, sign: str, pairs: Iterable[tuple[int, int]]) -> Ir:
    """Times with an offset of a sign whose digits at a place (of HH:MM) are one of the pairs: local time, offset."""
    gap = repeat(chars([(0, 42), (44, 44), (46, 0x10FFFF)]))  # neither + nor -

    def one(local: int, offset: int) -> Ir:
        before, after = repeat(ANY, place, place), repeat(ANY, 4 - place, 4 - place)
        return concat(before, literal(str(local)), gap, literal(sign), before, literal(str(offset)), after)

    return union(*(one(local, offset) for local, offset in pairs))


def _leap_seconds(sign: str) -> Ir:
    """Second 60 where it is 23:59 in UTC: the local time is 23:59 plus or minus the offset, digit by digit."""
    shape = _regex(rf"{_HOUR}:{_SIXTY}:60{_FRACTION}[{sign}]{_HOUR}:{_SIXTY}")
    same = [(d, d) for d in range(10)]
    if sign == "-":  # hour = 23 - hours, minute = 59 - minutes
        plain = intersect(
            _digits(0, sign, [(2 - d, d) for d in range(3)]), _digits(1, sign, [(3 - d, d) for d in range(4)])
        )
        borrow = intersect(
            _digits(0, sign, [(1 - d, d) for d in range(2)]), _digits(1, sign, [(13 - d, d) for d in range(4, 10)])
        )
        minutes = _digits(3, sign, [(5 - d, d) for d in range(6)]), _digits(4, sign, [(9 - d, d) for d in range(10)])
        return intersect(shape, union(plain, borrow), *minutes)
    # hour = hours and minute = minutes - 1; for whole hours, hour = hours - 1 and minute = 59
    up = [(d, d + 1) for d in range(9)]
    minutes = (
        intersect(_digits(3, sign, same[:6]), _digits(4, sign, up)),
        intersect(_digits(3, sign, up[:5]), _digits(4, sign, [(9, 0)])),
    )
    whole = _regex(rf"{_HOUR}:59:60{_FRACTION}[+]{_HOUR}:00")
    hours = (
        intersect(_digits(0, sign, same[:3]), _digits(1, sign, up)),
        intersect(_digits(0, sign, up[:2]), _digits(1, sign, [(9, 0)])),
    )
    part = intersect(shape, _digits(0, sign, same[:3]), _digits(1, sign, same), union(*minutes))
    return union(part, intersect(whole, union(*hours)))


def _time() -> Ir:
    """RFC 3339, 5.6 and 5.7."""
    utc = _regex(rf"23:59:60{_FRACTION}(?:[Zz]|[+]00:00)")
    return union(_regex(_TIME), utc, _leap_seconds("+"), _leap_seconds("-"))


def _regex(pattern: str) -> Ir:
    return pattern_ir(pattern)


_FORMATS: dict[str, Callable[[], Ir]] = {
    "date": lambda: _regex(_DATE),
    "time": _time,
    "date-time": lambda: concat(_regex(_DATE + "[Tt]"), _time()),
    "duration": lambda: _regex(_DURATION),
    "email": lambda: _regex(_email()),
    "idn-email": lambda: _regex(_email(r"\u0080-\U0010ffff")),
    "hostname": _hostname,
    "ipv4": lambda: _regex(_IPV4),
    "ipv6": lambda: _regex(_ipv6()),
    "uri": lambda: _regex(_uri(reference=False)),
    "uri-reference": lambda: _regex(_uri(reference=True)),
    "iri": lambda: _regex(_uri(False, _UCSCHAR, _IPRIVATE)),
    "iri-reference": lambda: _regex(_uri(True, _UCSCHAR, _IPRIVATE)),
    "uri-template": lambda: _regex(_uri_template()),
    "uuid": lambda: _regex(_UUID),
    "json-pointer": lambda: _regex(_JSON_POINTER),
    # draft-bhutton-relative-json-pointer-00, section 3.
    "relative-json-pointer": lambda: _regex(rf"(?:0|[1-9][0-9]*)(?:\#|{_JSON_POINTER})"),
}
KNOWN_FORMATS = frozenset(_FORMATS)


@lru_cache(maxsize=1)
def _hostname_shape() -> Ir:
    label = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    return intersect(_regex(rf"{label}(?:\.{label})*"), repeat(ANY, 1, 253))


def possible_ir(name: str) -> Ir | None:
    """The strings of a format, and those that may belong to it or not; what is outside is no string of it for sure."""
    return _hostname_shape() if name == "hostname" else format_ir(name)


def doubtful_ir(name: str) -> Ir | None:
    """The strings that may belong to a format or not; None where there are none."""
    return intersect(_hostname_shape(), complement(_hostname())) if name == "hostname" else None


@lru_cache(maxsize=len(_FORMATS))
def format_ir(name: str) -> Ir | None:
    """The strings of a format; None where it is not known here."""
    make = _FORMATS.get(name)
    return None if make is None else make()
