"""Language model output that obeys a format exactly.

Names are imported on first use: ``import maskwright`` itself loads neither numpy nor
PyTorch, so that a command line or a server pays only for what it calls.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from maskwright._forks import install as _install_fork_hook
from maskwright.errors import (
    BudgetError,
    ConstraintError,
    GenerationError,
    LarkError,
    LimitError,
    MaskwrightError,
    RegexError,
    SchemaError,
    UnsatisfiableError,
    VocabularyError,
)

if TYPE_CHECKING:
    from maskwright.compilation import acompile, compile_many
    from maskwright.compiler import CompiledGrammar, compile
    from maskwright.engine.beam import Beam, Contrastive
    from maskwright.engine.diagnosis import Diagnosis, diagnose
    from maskwright.engine.load import load_model
    from maskwright.engine.lookahead.rank import Classification, classify, topk
    from maskwright.engine.lookahead.settings import Lookahead, LookaheadStats
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.result import Chunk, Result
    from maskwright.engine.sampling import Sampling
    from maskwright.engine.serve import Engine
    from maskwright.engine.speculation.options import Heads, NGram, PromptLookup, Speculative
    from maskwright.engine.transformers_model import TransformersModel
    from maskwright.explanation import Explanation, explain
    from maskwright.generation import (
        generate,
        generate_choice,
        generate_json,
        generate_lark,
        generate_regex,
        stream,
    )
    from maskwright.generation_async import agenerate, astream
    from maskwright.grammar.choice import Choice
    from maskwright.grammar.json_schema import JsonSchema
    from maskwright.grammar.lark import Lark
    from maskwright.grammar.plan import CompileLimits
    from maskwright.grammar.predicate import Predicate
    from maskwright.grammar.regex import Regex
    from maskwright.grammar.regions import Alt, Capture, Free, Seq, Special, Thinking
    from maskwright.logits import LogitsProcessor
    from maskwright.masks import allocate_bitmask, apply_bitmask, apply_bitmask_, fill_bitmask
    from maskwright.matcher import Matcher
    from maskwright.texts import sample
    from maskwright.vocabulary import Vocabulary

__version__ = "0.1.0"

_install_fork_hook()

__all__ = [
    # generation
    "generate",
    "generate_json",
    "generate_regex",
    "generate_choice",
    "generate_lark",
    "stream",
    "agenerate",
    "astream",
    "Engine",
    "Result",
    "Chunk",
    "Sampling",
    "Beam",
    "Contrastive",
    # drafts
    "Speculative",
    "PromptLookup",
    "NGram",
    "Heads",
    # the model's own distribution, given that the output is valid
    "Lookahead",
    "LookaheadStats",
    "classify",
    "Classification",
    "topk",
    # models
    "load_model",
    "TransformersModel",
    "LanguageModel",
    # constraints
    "JsonSchema",
    "Regex",
    "Choice",
    "Lark",
    "Predicate",
    # outputs of several parts
    "Seq",
    "Alt",
    "Free",
    "Capture",
    "Special",
    "Thinking",
    # masks
    "Vocabulary",
    "compile",
    "compile_many",
    "acompile",
    "CompileLimits",
    "CompiledGrammar",
    "Matcher",
    "allocate_bitmask",
    "fill_bitmask",
    "apply_bitmask",
    "apply_bitmask_",
    "LogitsProcessor",
    # texts without a model
    "sample",
    # tools
    "explain",
    "Explanation",
    "diagnose",
    "Diagnosis",
    # errors
    "MaskwrightError",
    "ConstraintError",
    "SchemaError",
    "RegexError",
    "LarkError",
    "UnsatisfiableError",
    "LimitError",
    "VocabularyError",
    "GenerationError",
    "BudgetError",
]

# The module of every name that is imported on first use, below this package.
_LAZY = {
    "generate": "generation",
    "generate_json": "generation",
    "generate_regex": "generation",
    "generate_choice": "generation",
    "generate_lark": "generation",
    "stream": "generation",
    "agenerate": "generation_async",
    "astream": "generation_async",
    "Result": "engine.result",
    "Chunk": "engine.result",
    "Sampling": "engine.sampling",
    "Beam": "engine.beam",
    "Contrastive": "engine.beam",
    "Engine": "engine.serve",
    "Speculative": "engine.speculation.options",
    "PromptLookup": "engine.speculation.options",
    "NGram": "engine.speculation.options",
    "Heads": "engine.speculation.options",
    "classify": "engine.lookahead.rank",
    "Classification": "engine.lookahead.rank",
    "topk": "engine.lookahead.rank",
    "Lookahead": "engine.lookahead.settings",
    "LookaheadStats": "engine.lookahead.settings",
    "load_model": "engine.load",
    "TransformersModel": "engine.transformers_model",
    "LanguageModel": "engine.model",
    "JsonSchema": "grammar.json_schema",
    "Regex": "grammar.regex",
    "Choice": "grammar.choice",
    "Lark": "grammar.lark",
    "Predicate": "grammar.predicate",
    "Seq": "grammar.regions",
    "Alt": "grammar.regions",
    "Free": "grammar.regions",
    "Capture": "grammar.regions",
    "Special": "grammar.regions",
    "Thinking": "grammar.regions",
    "Vocabulary": "vocabulary",
    "compile": "compiler",
    "compile_many": "compilation",
    "acompile": "compilation",
    "CompiledGrammar": "compiler",
    "CompileLimits": "grammar.plan",
    "Matcher": "matcher",
    "allocate_bitmask": "masks",
    "fill_bitmask": "masks",
    "apply_bitmask": "masks",
    "apply_bitmask_": "masks",
    "LogitsProcessor": "logits",
    "diagnose": "engine.diagnosis",
    "Diagnosis": "engine.diagnosis",
    "explain": "explanation",
    "Explanation": "explanation",
    "sample": "texts",
}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
