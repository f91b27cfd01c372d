"""The executable specification: a slow, obvious recogniser that the compiled core has to agree with.

Languages are expressions over bytes, recognised by derivatives (language.py); regular terms (regex.py), JSON texts and
schemas (json_text.py, schema.py) are turned into such expressions by code that shares nothing with the front ends but
the regular terms. `Oracle` (oracle.py) answers for a language and a vocabulary what a matcher has to answer.
"""

from maskwright.reference.json_text import Style
from maskwright.reference.oracle import Oracle
from maskwright.reference.regex import choice, regex
from maskwright.reference.schema import SchemaLanguage
from maskwright.reference.spelling import Undecided

__all__ = ["Oracle", "SchemaLanguage", "Style", "Undecided", "choice", "regex"]
