"""The tasks of the lookahead benchmark, their languages as lists of texts, and their exact laws.

The laws come from the texts alone: all prefixes of all spellings are read by the Hugging Face model itself, level by
level. Neither masks nor any sampler takes part.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import maskwright as mw


@dataclass(frozen=True)
class Task:
    """A language, how it is asked for, and what is counted.

    Attributes:
        name: of the table.
        prompt: what comes before.
        constraint: ours.
        peer: (kind, source) for other libraries: a regex, or a grammar in Lark.
        texts: the language.
        max_tokens: EOS included.
        temperature: of the model.
        cell: of a text, what is counted.
    """

    name: str
    prompt: str
    constraint: Any
    peer: tuple[str, str]
    texts: list[str]
    max_tokens: int
    temperature: float
    cell: Callable[[str], str]


BINARY = ["1" + "".join(bits) for bits in itertools.product("01", repeat=4)] + ["00000"]
LABELS = [
    a + b
    for a in ("card", "cash", "credit", "change", "cheque", "loan", "lost", "limit")
    for b in ("_open", "_close", "_fee", "_help", "_late")
]
DATE = r"(199[0-9]|20[0-2][0-9]|2030)-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
DATES = [f"{y}-{m:02}-{d:02}" for y in range(1990, 2031) for m in range(1, 13) for d in range(1, 32)]
SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["box", "bag", "tin"]},
        "n": {"type": "integer", "minimum": 0, "maximum": 99},
        "ok": {"type": "boolean"},
    },
    "required": ["kind", "n", "ok"],
    "additionalProperties": False,
}
OBJECT = r'\{"kind":"(box|bag|tin)","n":([0-9]|[1-9][0-9]),"ok":(true|false)\}'
OBJECTS = [
    f'{{"kind":"{k}","n":{n},"ok":{ok}}}' for k in ("box", "bag", "tin") for n in range(100) for ok in ("true", "false")
]
# Two small languages in the manner of SyGuS problems: bit vectors, and functions of strings.
GRAMMAR = 'start: e\ne: "x" | "y" | "0" | "(" op e e ")"\nop: "&" | "|" | "+"\n'
CALL = r"(up|low|trim)\((a|b)\)|cat\((a|b|up\(a\)),(a|b|low\(b\))\)"


def _expressions(longest: int) -> list[str]:
    """Of GRAMMAR, by length in bytes."""
    by_length: dict[int, list[str]] = {1: ["x", "y", "0"]}
    for size in range(5, longest + 1):
        by_length[size] = [
            f"({op}{left}{right})"
            for op in "&|+"
            for n in range(1, size - 3)
            for left in by_length.get(n, [])
            for right in by_length.get(size - 3 - n, [])
        ]
    return [text for texts in by_length.values() for text in texts]


def _calls() -> list[str]:
    return [f"{f}({x})" for f in ("up", "low", "trim") for x in "ab"] + [
        f"cat({x},{y})" for x in ("a", "b", "up(a)") for y in ("a", "b", "low(b)")
    ]


def all_tasks() -> list[Task]:
    """In the order of the table."""
    # Lengths are 1, 5, 9, 13, ...; nine tokens spell no text of 13 bytes, as the only merge that fits in is "00".
    expressions, compact = _expressions(11), mw.JsonSchema(SCHEMA, whitespace="compact")
    return [
        Task("binary", "bits ", mw.Choice(BINARY), ("regex", "1[01]{4}|00000"), BINARY, 8, 1.0, str),
        Task("labels", "label ", mw.Choice(LABELS), ("regex", "|".join(LABELS)), LABELS, 14, 1.2, str),
        Task("dates", "date ", mw.Regex(DATE), ("regex", DATE), DATES, 11, 1.0, lambda t: t[:4]),
        Task("json", "json ", compact, ("regex", OBJECT), OBJECTS, 36, 1.0, _object),
        Task("bv", "bv ", mw.Lark(GRAMMAR), ("lark", GRAMMAR), expressions, 10, 1.0, lambda t: t[:4]),
        Task("slia", "str ", mw.Regex(CALL), ("regex", CALL), _calls(), 16, 1.5, str),
    ]


def _object(text: str) -> str:
    number = text.split('"n":')[1].split(",")[0]
    return text.split('","')[0] + number.zfill(2)[0] + text[-5:]


def exact_law(task: Task, model: Any, tokenizer: Any, tokens: list[bytes], eos: int) -> dict[str, float]:
    """P of each text, summed over its spellings of at most ``max_tokens`` tokens, EOS included."""
    import torch

    prompt = tokenizer(task.prompt).input_ids
    texts = sorted(text.encode() for text in task.texts)
    whole = set(texts)
    law: dict[str, float] = {}
    level: list[tuple[tuple[int, ...], bytes, float]] = [((), b"", 0.0)]
    for used in range(task.max_tokens):
        below = []
        for at in range(0, len(level), 1024):
            part = level[at : at + 1024]
            ids = torch.tensor([[*prompt, *out] for out, _, _ in part])
            with torch.no_grad():
                logits = model(ids).logits[:, -1].double() / task.temperature
            steps = torch.log_softmax(logits, -1).numpy()
            for (out, text, log_p), row in zip(part, steps, strict=True):
                if text in whole:
                    law[text.decode()] = law.get(text.decode(), 0.0) + float(np.exp(log_p + row[eos]))
                if used + 2 <= task.max_tokens:
                    below += [
                        ((*out, t), text + tokens[t], log_p + float(row[t])) for t in _next(text, texts, tokens)
                    ]
        level = below
    return law


_MEMO: dict[tuple[int, bytes], list[int]] = {}


def _next(text: bytes, texts: list[bytes], tokens: list[bytes]) -> list[int]:
    """The tokens after which a text is still the beginning of one in the sorted list."""
    found = _MEMO.get((id(texts), text))
    if found is None:
        found = []
        for token, piece in enumerate(tokens):
            at = bisect_left(texts, text + piece)
            if piece and at < len(texts) and texts[at].startswith(text + piece):
                found.append(token)
        _MEMO[id(texts), text] = found
    return found
