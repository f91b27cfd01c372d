"""The command line: ``maskwright generate``, ``maskwright sample``, ``maskwright check``, ``maskwright demo``."""

from maskwright.cli.command import main

__all__ = ["main"]
