"""What a model's token ids stand for: the bytes of every token, and which ids end a text."""

from maskwright.vocabulary.table import Vocabulary

__all__ = ["Vocabulary"]
