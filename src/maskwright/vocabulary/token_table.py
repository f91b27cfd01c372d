"""The tokens of a vocabulary as a reader found them, whatever it read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from maskwright.errors import VocabularyError

__all__ = ["MAX_ID", "OWN_TOKENS", "TokenTable", "check_id", "is_reserved", "make_table"]

MAX_ID = (1 << 22) - 1  # real vocabularies end below 300,000; a forged id must not eat the memory

OWN_TOKENS = "Pass the bytes of each token instead: Vocabulary(tokens, eos_ids=...)"

# Placeholders that training never saw: <unused7>, [unused7], [UNUSED_TOKEN_7], <|reserved_special_token_7|>,
# <reserved_7>, <|extra_7|>, <SPECIAL_7>, <|dummy_7|>, <|placeholder7|>, <｜place▁holder▁no▁7｜>, >>UNUSED_7<<, [PAD7].
_RESERVED = re.compile(
    r"(?:<|\[|>>)[|｜]?(?:unused|reserved|extra|special|dummy|place[_▁]?holder|pad)"
    r"(?:[_▁-]?(?:special|token|id|no))*[_▁-]?\d+[|｜]?(?:>|\]|<<)",
    re.IGNORECASE,
)


@dataclass
class TokenTable:
    """Tokens by id.

    Attributes:
        tokens: bytes by id; empty where no token has the id.
        special: ids that never match text.
        ids: text -> id, for tokens given by their name.
        present: whether the id has a token, by id.
    """

    tokens: list[bytes]
    special: set[int]
    ids: dict[str, int]
    present: bytearray

    def put(self, number: int, data: bytes, text: str) -> None:
        """Set the token with this id, whether there was one or not.

        Raises:
            VocabularyError: the id is negative or absurdly large.
        """
        check_id(number)
        missing = max(number + 1 - len(self.tokens), 0)
        self.tokens.extend([b""] * missing)
        self.present.extend(bytes(missing))
        self.tokens[number], self.present[number], self.ids[text] = data, 1, number


def is_reserved(text: str) -> bool:
    """Whether a token with this text is a placeholder (``<unused7>``) that stands for no text."""
    return text[:1] in ("<", "[", ">") and _RESERVED.fullmatch(text) is not None


def check_id(number: int) -> None:
    """Refuse an id that no vocabulary has.

    Raises:
        VocabularyError: it is negative or absurdly large; the location names it.
    """
    if not 0 <= number <= MAX_ID:
        raise VocabularyError(f"token ids go from 0 to {MAX_ID}", location=f"token {number}")


def make_table(tokens: Mapping[int, bytes], special: Iterable[int], ids: dict[str, int]) -> TokenTable:
    """Lay out tokens by id.

    Args:
        tokens: id -> bytes.
        special: ids that never match text.
        ids: text -> id, for tokens that may be asked for by their name.

    Raises:
        VocabularyError: an id is negative or absurdly large.
    """
    for number in (min(tokens, default=0), max(tokens, default=0)):
        check_id(number)
    size = max(tokens, default=-1) + 1
    table = TokenTable([b""] * size, set(special), ids, bytearray(size))
    for number, data in tokens.items():
        table.tokens[number] = data
        table.present[number] = 1
    return table
