"""The options of lark.Lark: which are taken, which are refused, which mean nothing here."""

from __future__ import annotations

from typing import Any

from maskwright.errors import LarkError

# Refused with the reason; the value is what means "not given".
_REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "lexer_callbacks": (({}, None), "They may change tokens while parsing: match what they accept in terminals"),
    "transformer": ((None,), "It may change tokens while parsing: apply it to the tree, after the generation"),
    "_plugins": (({}, None), "Plug-ins may change tokens while parsing"),
    "use_bytes": ((False,), "Constraints are on text: write the grammar for str"),
}
_MEANINGLESS = (
    "debug", "keep_all_tokens", "tree_class", "cache", "cache_grammar", "ambiguity", "propagate_positions",
    "maybe_placeholders", "ordered_sets",
)  # fmt: skip
PARSERS = {"earley": ("dynamic", "dynamic_complete", "basic"), "lalr": ("contextual", "basic"), "cyk": ("basic",)}


def checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options that matter, with the lexer settled.

    Raises:
        LarkError: for options that are refused, or combinations that lark does not have.
        TypeError: for names that lark.Lark does not know.
    """
    options = dict(options)
    for name, (absent, hint) in _REFUSED.items():
        value = options.pop(name, absent[0])
        if value not in absent:
            raise LarkError(f"{name} is not supported", location=f"option {name}", hint=hint)
    for name in _MEANINGLESS:
        options.pop(name, None)
    parser = options.setdefault("parser", "earley")
    lexer = options.setdefault("lexer", "auto")
    if parser not in PARSERS:
        hint = "Use 'earley', 'lalr' or 'cyk'"
        raise LarkError(f"parser={parser!r} is not supported", location="option parser", hint=hint)
    if isinstance(lexer, type):
        hint = "A lexer of your own may do anything: write terminals"
        raise LarkError(f"lexer={lexer.__name__} is not supported", location="option lexer", hint=hint)
    if lexer == "auto":
        lexer = options["lexer"] = PARSERS[parser][0]
    if lexer not in PARSERS[parser]:
        hint = f"Use one of {', '.join(map(repr, PARSERS[parser]))}"
        raise LarkError(f"parser={parser!r} has no lexer={lexer!r}", location="option lexer", hint=hint)
    if not options.setdefault("regex", False):
        options.pop("regex")
    return options
