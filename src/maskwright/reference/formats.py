"""The formats date, time, date-time and uuid as regular terms, counted out from RFC 3339, 5.6 and 5.7, and RFC 4122."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from functools import cache

from maskwright.grammar.ir import EMPTY, Ir, concat, literal, one_of, optional, repeat, union

_DIGIT = one_of("0123456789")
_HEX = one_of("0123456789abcdefABCDEF")


def _two(values: range) -> Ir:
    return union(*(literal(f"{v:02}") for v in values))


@cache
def date() -> Ir:
    """Days of the Gregorian calendar, from year 0000 to 9999."""
    days = [(m, d) for m in range(1, 13) for d in range(1, calendar.monthrange(2001, m)[1] + 1)]
    every_year = union(*(literal(f"-{m:02}-{d:02}") for m, d in days))
    leap_years = [
        concat(literal(f"{c:02}"), union(*(literal(f"{y:02}") for y in range(100) if calendar.isleap(100 * c + y))))
        for c in range(100)
    ]
    return union(concat(repeat(_DIGIT, 4, 4), every_year), concat(union(*leap_years), literal("-02-29")))


@cache
def time() -> Ir:
    """Times of day with their offset; second 60 only where it is 23:59 in UTC."""
    fraction = optional(concat(literal("."), repeat(_DIGIT, 1, None)))
    offset = union(one_of("Zz"), concat(one_of("+-"), _two(range(24)), literal(":"), _two(range(60))))
    usual = concat(_two(range(24)), literal(":"), _two(range(60)), literal(":"), _two(range(60)), fraction, offset)
    leap = [concat(literal(f"{hour:02}:"), union(*_leap_minutes(hour, fraction))) for hour in range(24)]
    return union(usual, *leap)


def _leap_minutes(hour: int, fraction: Ir) -> list[Ir]:
    """After hour and colon: each minute with second 60 and the offsets for which it is 23:59 in UTC."""
    texts = []
    for minute in range(60):
        ahead = (hour * 60 + minute + 1) % (24 * 60)  # local time is so many minutes ahead of 23:59
        behind = (24 * 60 - ahead) % (24 * 60)
        offsets = [literal(f"{sign}{m // 60:02}:{m % 60:02}") for sign, m in (("+", ahead), ("-", behind))]
        zulu = one_of("Zz") if ahead == 0 else EMPTY
        texts.append(concat(literal(f"{minute:02}:60"), fraction, union(zulu, *offsets)))
    return texts


@cache
def date_time() -> Ir:
    """A date, the letter T in either case, a time."""
    return concat(date(), one_of("Tt"), time())


@cache
def uuid() -> Ir:
    """32 hexadecimal digits in groups of 8, 4, 4, 4 and 12."""
    groups = [repeat(_HEX, n, n) for n in (8, 4, 4, 4, 12)]
    return concat(*[part for group in groups for part in (literal("-"), group)][1:])


FORMATS: dict[str, Callable[[], Ir]] = {"date": date, "time": time, "date-time": date_time, "uuid": uuid}
