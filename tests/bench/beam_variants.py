"""What a beam that is scored in other ways finds, on made-up finite languages of a random model.

    python tests/bench/beam_variants.py

Every beam is as wide as its language has outputs, so that it cannot miss any: what differs is the score alone.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import pytest

import maskwright as mw
from engine import test_beam as tests
from maskwright.engine.beam import Beam


def best(language, beam):
    return mw.generate(
        language.model, language.prompt, mw.Choice(language.texts), strategy=beam, max_tokens=12
    )  # fmt: skip


def compared(change, make, count=200):
    """How often another output comes first once scores are changed."""
    random_, other = random.Random(0), 0
    for _ in range(count):
        language = tests.random_language(random_)
        beam = make(len(language.outputs()))
        right = best(language, beam)
        with pytest.MonkeyPatch.context() as patch:
            change(patch)
            other += best(language, beam).tokens != right.tokens
    return f"{other} of {count}"


def with_a_prompt_of(tokens):
    def change(patch):
        score = Beam.score
        patch.setattr(Beam, "score", lambda self, logprob, length: score(self, logprob, length + tokens))

    return change


def main():
    print("renormalised over the mask, another output is best:", compared(tests.renormalised, mw.Beam))
    for tokens in (10, 200):
        found = compared(with_a_prompt_of(tokens), lambda width: mw.Beam(width, "power", 1.0))
        print(f"length penalty (power, 1) over a prompt of {tokens} tokens too, another output is best:", found)


if __name__ == "__main__":
    main()
