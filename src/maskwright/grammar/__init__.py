"""Constraints and what they lower to."""
