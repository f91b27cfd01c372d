"""Random schemas full of `uniqueItems`, mostly over items of few values, where positions compete for them."""

from __future__ import annotations

import random
from typing import Any

from laws.keyword_schemas import SCALARS, universe

MORE: list[Any] = [
    [True, False], [True, False, None], [0, 1, 2, 3], ["a", "b", "ab", ""], [[1], [1]], [[], [1]], [1, [1]],
    [{"a": 0}, {"a": 1}], [1, 1.0], [0, False], [1, True],
]  # fmt: skip


def values() -> list[Any]:
    """What the schemas are held against."""
    return universe() + MORE


class Maker:
    """Makes arrays.

    Args:
        rng: the choices.
        joint: with `contains`, which the joint evaluation takes.
    """

    def __init__(self, rng: random.Random, joint: bool) -> None:
        self.rng, self.joint = rng, joint

    def items(self, depth: int) -> dict[str, Any]:
        """A schema of items."""
        rng, kind = self.rng, self.rng.random()
        if depth <= 0 or kind < 0.45:
            simple: list[dict[str, Any]] = [
                {"type": "boolean"},
                {"type": "null"},
                {"enum": rng.sample([*SCALARS, [], [1], {"a": 0}, {}], 3)},
                {"type": "integer", "minimum": 0, "maximum": rng.randint(0, 3)},
                {"type": "string", "maxLength": 1},
                {"type": "string", "pattern": "^(a|b|ab)$"},
                {"type": "string", "pattern": "^a*b?$"},
                {"type": "string"},
                {"type": "integer"},
                {},
                {"const": 1},
                {"type": ["boolean", "null"]},
            ]
            return rng.choice(simple)
        if kind < 0.75:
            return self.array(depth - 1)
        names = rng.sample(["a", "b", "c"], 2)
        members = {name: self.items(depth - 1) for name in names}
        required = rng.sample(names, rng.randint(0, 2))
        made: dict[str, Any] = {"type": "object", "properties": members, "required": required}
        if rng.random() < 0.7:
            made["additionalProperties"] = False
        return made

    def array(self, depth: int) -> dict[str, Any]:
        """A schema of arrays, most of which have items that differ."""
        rng = self.rng
        made: dict[str, Any] = {"type": "array"}
        chances: dict[str, tuple[float, Any]] = {
            "uniqueItems": (0.85, lambda: True),
            "items": (0.85, lambda: self.items(depth)),
            "prefixItems": (0.35, lambda: [self.items(depth) for _ in range(rng.randint(1, 3))]),
            "minItems": (0.5, lambda: rng.randint(0, 4)),
            "maxItems": (0.3, lambda: rng.randint(0, 4)),
        }
        if self.joint:
            chances["contains"] = (0.4, lambda: self.items(0))
        for keyword, (chance, make) in chances.items():
            if rng.random() < chance:
                made[keyword] = make()
        if "contains" in made:
            for keyword in ("minContains", "maxContains"):
                if rng.random() < 0.35:
                    made[keyword] = rng.randint(0, 2)
        return {"anyOf": [made, self.array(depth)]} if rng.random() < 0.1 else made
