"""Chat templates: Jinja text from the model's file, run in Jinja's sandbox."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from maskwright.errors import GenerationError

__all__ = ["check_messages", "render_chat"]


def check_messages(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The messages as plain dicts.

    Raises:
        TypeError: not a sequence of mappings with the strings ``role`` and ``content``.
        GenerationError: there is no message.
    """
    if isinstance(messages, str) or not isinstance(messages, Sequence):
        raise TypeError(f"a chat is a list of messages, not {type(messages).__name__}")
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise TypeError(f"message {index} is a {type(message).__name__}, not a dict")
        for key in ("role", "content"):
            if not isinstance(message.get(key), str):
                raise TypeError(f"message {index} has no string {key!r}: {dict(message)!r}")
    if not messages:
        raise GenerationError("the chat has no messages", location="messages")
    return [dict(message) for message in messages]


def render_chat(template: str, messages: Sequence[Mapping[str, str]], names: Mapping[str, str]) -> str:
    """The text of a conversation, up to where the assistant's answer begins.

    The environment is the one that chat templates are written for (Hugging Face's
    ``apply_chat_template``): trimmed blocks, ``raise_exception``, ``tojson`` without
    HTML escapes, ``strftime_now``. The sandbox keeps a template, which is part of a
    downloaded model, away from everything but its variables.

    Args:
        template: Jinja source.
        messages: see :func:`check_messages`.
        names: further variables, usually ``bos_token`` and ``eos_token``.

    Raises:
        GenerationError: the template is malformed or refuses the messages.
    """
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    try:
        compiled = environment.from_string(template)
        return compiled.render(messages=check_messages(messages), add_generation_prompt=True, **names)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = "the chat template" if line is None else f"line {line} of the chat template"
        raise GenerationError(f"the chat template refuses the messages: {error.message}", location=where) from error


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _raise_exception(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)
