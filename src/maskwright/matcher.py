"""The matcher: one position in one generation under a compiled constraint."""

from __future__ import annotations

from maskwright._core import Matcher

__all__ = ["Matcher"]
