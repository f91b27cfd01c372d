"""How many examples the laws are tried on.

The environment variable MASKWRIGHT_LAWS multiplies them: 1 (the default) keeps the suite under a minute and a half on
two cores, 50 is for a night.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = float(os.environ.get("MASKWRIGHT_LAWS", "1"))


def laws(count: int) -> settings:
    """The settings of a law that is tried on `count` examples, times the factor."""
    return settings(
        max_examples=max(1, int(count * FACTOR)),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
