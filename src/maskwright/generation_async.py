"""Generating in servers: the same calls, made in threads, that end where their task is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from maskwright.engine.requests import Prompt
from maskwright.engine.result import Chunk
from maskwright.generation import Options, generate, stream

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from maskwright.compiler import CompiledGrammar
    from maskwright.engine.model import LanguageModel
    from maskwright.grammar.plan import Cancel, Constraint

__all__ = ["agenerate", "astream"]


async def agenerate(
    model: LanguageModel,
    prompt: Prompt | Sequence[Prompt],
    constraint: Constraint | CompiledGrammar | Sequence[Constraint | CompiledGrammar | None] | None = None,
    **options: Unpack[Options],
) -> Any:
    """:func:`generate` for servers: runs in a thread, and cancelling the task ends the generation within a step."""
    stopped = _Either(options.get("cancel"))
    options["cancel"] = stopped
    call: Callable[[], Any] = lambda: generate(model, prompt, constraint, **options)  # noqa: E731
    try:
        return await asyncio.to_thread(call)
    finally:
        stopped.set()


async def astream(
    model: LanguageModel,
    prompt: Prompt,
    constraint: Constraint | CompiledGrammar | None = None,
    *,
    partial_strings: bool = False,
    **options: Unpack[Options],
) -> AsyncIterator[Chunk]:
    """:func:`stream` for servers: steps run in a thread; closing the iterator or cancelling the task ends it."""
    stopped = _Either(options.get("cancel"))
    options["cancel"] = stopped
    try:
        chunks = await asyncio.to_thread(
            lambda: stream(model, prompt, constraint, partial_strings=partial_strings, **options)
        )
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            yield chunk
    finally:
        stopped.set()


class _Either(threading.Event):
    """An event that is also set where the caller's own signal is."""

    def __init__(self, other: Cancel | None) -> None:
        super().__init__()
        self._other = other

    def is_set(self) -> bool:
        """Whether either is set."""
        return super().is_set() or (self._other is not None and self._other.is_set())
