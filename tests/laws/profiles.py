"""How many examples the laws are tried on, and which.

By default the examples are always the same, so that a failure can be repeated, and few enough for a minute and a half
on two cores. The environment variable MASKWRIGHT_LAWS multiplies their number and draws new ones in every run: 1 is the
default, 50 is for a night. MASKWRIGHT_LAWS_QUICK stops at the first failure without looking for a smaller one.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

FACTOR = float(os.environ.get("MASKWRIGHT_LAWS", "1"))
QUICK = "MASKWRIGHT_LAWS_QUICK" in os.environ


def laws(count: int) -> settings:
    """The settings of a law that is tried on `count` examples, times the factor."""
    phases = [Phase.explicit, Phase.generate]
    return settings(
        max_examples=max(1, int(count * FACTOR)),
        derandomize=FACTOR <= 1,
        database=None,
        deadline=None,
        phases=phases if QUICK else [*phases, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
