"""From what a caller writes (prompts, rules, seeds) to the rows of a decoder."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from maskwright._arguments import flag, whole
from maskwright.engine.beam import Beam, Contrastive, Search, check_search
from maskwright.engine.lookahead.judge import JudgedGrammar
from maskwright.engine.lookahead.settings import Lookahead, as_lookahead
from maskwright.engine.model import check_model
from maskwright.engine.request import Grammar, Processor, Request
from maskwright.engine.result import Result
from maskwright.engine.rng import Stream, derive, fresh_seed
from maskwright.engine.sampling import Sampling
from maskwright.engine.speculation.options import Speculative
from maskwright.engine.stages import StagedGrammar, token_id
from maskwright.errors import GenerationError
from maskwright.grammar.predicate import Predicate
from maskwright.grammar.regions import Special, Thinking, is_of_tokens

if TYPE_CHECKING:
    import torch

    from maskwright.compiler import CompiledGrammar
    from maskwright.engine.model import LanguageModel
    from maskwright.grammar.plan import Cancel, Constraint

__all__ = ["Prefix", "Prompt", "Rules", "Seed", "Stop", "build_requests", "compile_for", "encode_prompt"]
__all__ += ["is_one_prompt", "rules"]

Chat: TypeAlias = Sequence[Mapping[str, str]]
Prompt: TypeAlias = "str | Chat"
Stop: TypeAlias = "str | int | Special | Sequence[str | int | Special]"
Seed: TypeAlias = "int | Sequence[int] | torch.Generator"
Prefix: TypeAlias = "str | Result | Sequence[str | Result]"

# Without max_tokens: enough for a page of text, little enough that a model which rambles comes back.
_DEFAULT_MAX_TOKENS = 512


@dataclass(frozen=True)
class Rules:
    """How a call generates, checked.

    Attributes:
        sampling: temperature 0 for greedy.
        n: samples per prompt.
        max_tokens: None for 512, or what the context leaves where that is less.
        stops: stop strings.
        include_stop: whether texts keep theirs.
        seeds: one per prompt, or one for all.
        batch_size: the most rows that share a forward.
        cancelled: asked before every step.
        stop_ids: stop tokens.
        min_tokens: before so many, outputs do not end where they can go on.
        prefix: beginnings of outputs, one for all or one per prompt.
        processor: changes logits before anything else.
        logprobs: how many alternatives results list for each token; None for no details.
        drafts: whether text that the constraint determines, or nearly, takes no decode steps of its own.
        thinking: reasoning that comes before each output.
        strategy: how tokens are found, where it is another way than one by one: a search, or drafts.
        lookahead: how outputs are drawn from the model conditioned on the constraint; None for step by step.
    """

    sampling: Sampling
    n: int
    max_tokens: int | None
    stops: tuple[str, ...]
    include_stop: bool
    seeds: int | tuple[int, ...]
    batch_size: int
    cancelled: Callable[[], bool]
    stop_ids: tuple[int | Special, ...] = ()
    min_tokens: int = 0
    prefix: Prefix = ""
    processor: Processor | None = None
    logprobs: int | None = None
    drafts: bool = True
    thinking: Thinking | None = None
    strategy: Search | Speculative | None = None
    lookahead: Lookahead | None = None


def rules(
    *,
    sampling: Sampling | None = None,
    strategy: Literal["sample", "greedy"] | Search | Speculative | None = None,
    n: int = 1,
    max_tokens: int | None = None,
    stop: Stop = (),
    include_stop: bool = False,
    seed: Seed | None = None,
    batch_size: int = 32,
    cancel: Cancel | None = None,
    min_tokens: int = 0,
    prefix: Prefix = "",
    processor: Processor | None = None,
    logprobs: int | None = None,
    drafts: bool = True,
    thinking: Thinking | None = None,
    lookahead: Lookahead | str | None = None,
) -> Rules:
    """Checks the arguments that all generating functions share.

    Raises:
        ValueError: a value out of range; n greedy outputs, which would all be the same; what does not go with a search.
        TypeError: a value of a wrong type.
    """
    search = strategy if isinstance(strategy, Beam | Contrastive) else None
    own = strategy if isinstance(strategy, Speculative) else search
    if own is None and strategy not in (None, "sample", "greedy"):
        raise ValueError(
            f"strategy is {strategy!r}; it must be 'sample', 'greedy', Beam(...), Contrastive(...) or Speculative(...)"
        )
    if sampling is not None and not isinstance(sampling, Sampling):
        raise TypeError(f"sampling must be a Sampling, not {type(sampling).__name__}")
    chosen = sampling or Sampling()
    ahead = as_lookahead(lookahead)
    if ahead is not None and own is not None:
        kind = type(own).__name__
        raise ValueError(f"lookahead and strategy={kind}(...) are two ways to find outputs; pass one of them")
    drawn = strategy == "sample" or sampling is not None or seed is not None or ahead is not None
    if search is not None or strategy == "greedy" or not drawn:
        chosen = replace(chosen, temperature=0.0)
    whole("n", n, 1)
    flag("include_stop", include_stop)
    flag("drafts", drafts)
    if n > 1 and chosen.greedy and search is None:
        raise ValueError(f"n is {n}, but greedy outputs of one prompt are all the same; pass sampling= or seed=")
    if processor is not None and not callable(processor):
        raise TypeError(f"processor is {processor!r}; it must be a function of tokens and logits")
    if thinking is not None and not isinstance(thinking, Thinking):
        raise TypeError(f"thinking is {thinking!r}; pass maskwright.Thinking(end=...)")
    if cancel is not None and not callable(getattr(cancel, "is_set", None)):
        raise TypeError(f"cancel is {cancel!r}; it must have is_set(), as a threading.Event has")
    stops, stop_ids = _stops(stop)
    if search is not None:
        named = {"seed": seed, "processor": processor, "logprobs": logprobs}
        check_search(search, sampling=sampling, n=n, **named, stop=stops if isinstance(search, Beam) else ())
    return Rules(
        sampling=chosen,
        n=n,
        max_tokens=None if max_tokens is None else whole("max_tokens", max_tokens, 0),
        stops=stops,
        include_stop=include_stop,
        seeds=_seeds(seed),
        batch_size=whole("batch_size", batch_size, 1),
        cancelled=cancel.is_set if cancel is not None else lambda: False,
        stop_ids=stop_ids,
        min_tokens=whole("min_tokens", min_tokens, 0),
        prefix=prefix,
        processor=processor,
        logprobs=None if logprobs is None else whole("logprobs", logprobs, 0),
        drafts=drafts,
        thinking=thinking,
        strategy=own,
        lookahead=ahead,
    )


def _stops(stop: Stop) -> tuple[tuple[str, ...], tuple[int | Special, ...]]:
    """Stop strings and stop tokens."""
    stops = tuple(stop) if isinstance(stop, list | tuple | set | frozenset) else (stop,)
    for each in stops:
        if isinstance(each, bool) or not isinstance(each, str | int | Special):
            raise TypeError(f"a stop is {each!r}; it must be a str, the int id of a token, or a Special")
        if each == "":
            raise ValueError("a stop string is empty; every text would end at once")
    return tuple(s for s in stops if isinstance(s, str)), tuple(s for s in stops if not isinstance(s, str))


def _seeds(seed: Seed | None) -> int | tuple[int, ...]:
    if seed is None:
        return fresh_seed()
    if type(seed).__name__ == "Generator" and type(seed).__module__.startswith("torch"):
        return _seed_of(cast("torch.Generator", seed))
    if isinstance(seed, Sequence) and not isinstance(seed, str):
        return tuple(_seed("a seed", each) for each in seed)
    return _seed("seed", seed)


def _seed(name: str, value: object) -> int:
    """Any whole number, of which 64 bits count."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be an int, one per prompt, or a torch.Generator") from None


def _seed_of(generator: torch.Generator) -> int:
    """63 bits of a generator, which it advances: calls that follow each other have different seeds."""
    import torch

    return int(torch.randint(0, 2**63 - 1, (), generator=generator, device=generator.device).item())


def is_one_prompt(prompt: object) -> bool:
    """Whether this is a text or a chat; False for a list of such.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(prompt, str):
        return True
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes):
        raise TypeError(f"a prompt is a str or a list of messages, not {type(prompt).__name__}")
    messages = [isinstance(item, Mapping) for item in prompt]
    if any(messages) and not all(messages):
        raise TypeError("a chat is a list of messages (dicts) and nothing else")
    return bool(messages) and all(messages)


def encode_prompt(model: LanguageModel, prompt: Prompt) -> tuple[int, ...]:
    """Token ids of a text as it stands, or of a chat through the model's template.

    Raises:
        TypeError: it is neither.
        GenerationError: the template refuses the chat.
    """
    if isinstance(prompt, str):
        return tuple(model.encode(prompt))
    if not is_one_prompt(prompt):
        raise TypeError("a list of prompts holds texts and chats, not further lists")
    return tuple(model.apply_chat_template(prompt))


def compile_for(
    model: LanguageModel,
    constraint: Constraint | CompiledGrammar | StagedGrammar | None,
    thinking: Thinking | None = None,
    judged: bool = False,
) -> Grammar | None:
    """The constraint compiled for the model's vocabulary (from the cache where it was before).

    Args:
        model: whose vocabulary it is.
        constraint: described or compiled.
        thinking: reasoning that comes before.
        judged: whether functions can be asked beside the masks, so that a Predicate will do.

    Raises:
        ConstraintError: it cannot be enforced.
        GenerationError: it was compiled for another vocabulary.
        TypeError: it is no constraint, or the model is no model.
    """
    from maskwright.compiler import CompiledGrammar, compile
    from maskwright.grammar.plan import Constraint

    check_model(model)
    if isinstance(constraint, StagedGrammar):
        constraint = constraint.constraint
    if judged and thinking is None and isinstance(constraint, Predicate):
        return JudgedGrammar(constraint, cast("Grammar", compile_for(model, constraint.masked)))
    if isinstance(constraint, CompiledGrammar):
        _check_vocabulary(model, constraint)
        if thinking is None:
            return constraint
        if constraint.banned_ids:
            raise GenerationError(
                "a grammar that was compiled with banned ids has no thinking= before it",
                hint="Use logit_bias for the ids",
            )
        constraint = constraint.constraint
    if constraint is not None and not isinstance(constraint, Constraint):
        raise TypeError(
            f"constraint is {type(constraint).__name__}; pass JsonSchema(...), Regex(...), Choice(...), a compiled one "
            "or None"
        )
    if thinking is not None:
        constraint = thinking.around(constraint)
    if constraint is None:
        return None
    return StagedGrammar(constraint, model) if is_of_tokens(constraint) else compile(constraint, model.vocabulary)


def _check_vocabulary(model: LanguageModel, grammar: CompiledGrammar) -> None:
    eos = frozenset(model.eos_ids)
    # compile(..., banned_ids=...) has the same tokens and fewer of them that match text.
    if grammar.vocabulary.tokens != model.vocabulary.tokens or not eos.issuperset(grammar.vocabulary.eos_ids):
        raise GenerationError(
            f"the constraint was compiled for another vocabulary than that of {model.name}",
            hint="Compile it with model.vocabulary, or pass the constraint itself",
        )


def build_requests(
    model: LanguageModel,
    prompts: Sequence[Prompt],
    constraints: Sequence[Grammar | None],
    how: Rules,
) -> list[Request]:
    """One request per prompt and sample, the samples of a prompt next to each other; for a search one per prompt.

    Raises:
        ValueError: as many seeds as prompts were not given.
    """
    if isinstance(how.seeds, tuple) and len(how.seeds) != len(prompts):
        raise ValueError(f"got {len(how.seeds)} seeds for {len(prompts)} prompts; pass one int, or one per prompt")
    prefixes = _prefixes(model, how.prefix, len(prompts))
    stop_ids = tuple(token_id(model, stop) if isinstance(stop, Special) else stop for stop in how.stop_ids)
    unknown = [token for token in how.sampling.logit_bias if token >= model.vocabulary.size]
    if unknown:
        raise ValueError(f"logit_bias names token {unknown[0]}; the vocabulary has {model.vocabulary.size}")
    wrong = [token for token in stop_ids if not 0 <= token < model.vocabulary.size]
    if wrong:
        raise ValueError(f"stop token {wrong[0]} is not in the vocabulary of {model.vocabulary.size}")
    if how.stops and any(isinstance(constraint, StagedGrammar) for constraint in constraints):
        raise GenerationError(
            "stop strings do not go with regions of tokens",
            location="stop",
            hint="Write the end into the constraint, as Seq(..., Free(until=...))",
        )
    requests = []
    for at, (prompt, constraint) in enumerate(zip(prompts, constraints, strict=True)):
        tokens = encode_prompt(model, prompt)
        room = max(1, model.context_length - len(tokens) - len(prefixes[at]))
        budget = min(_DEFAULT_MAX_TOKENS, room) if how.max_tokens is None else how.max_tokens
        seed, index = (how.seeds[at], 0) if isinstance(how.seeds, tuple) else (how.seeds, at)
        one = Request(
            tokens,
            constraint,
            Stream(seed, index),
            budget,
            how.stops,
            how.include_stop,
            forced_runs=how.drafts,
            stop_ids=stop_ids,
            prefix=prefixes[at],
            min_tokens=how.min_tokens,
            processor=how.processor,
        )
        samples = 1 if isinstance(how.strategy, Beam | Contrastive) else how.n
        requests += [replace(one, stream=Stream(derive(seed, sample), index)) for sample in range(samples)]
    return requests


def _prefixes(model: LanguageModel, prefix: Prefix, count: int) -> list[tuple[int, ...]]:
    """The tokens of the prefix of each prompt."""
    if isinstance(prefix, str | Result):
        return [_prefix_tokens(model, prefix)] * count
    if len(prefix) != count:
        raise ValueError(f"got {len(prefix)} prefixes for {count} prompts; pass one, or one per prompt")
    return [_prefix_tokens(model, each) for each in prefix]


def _prefix_tokens(model: LanguageModel, prefix: str | Result) -> tuple[int, ...]:
    if isinstance(prefix, str):
        return tuple(model.encode(prefix, add_special=False)) if prefix else ()
    if not isinstance(prefix, Result):
        raise TypeError(f"a prefix is a str or a Result, not {type(prefix).__name__}")
    ended = prefix.finish_reason not in ("length", "cancelled")
    if ended or (prefix.tokens and prefix.tokens[-1] in model.eos_ids):
        raise GenerationError(
            f"the result to be continued has ended (finish_reason {prefix.finish_reason!r})",
            location="prefix",
            hint="Continue results that max_tokens or cancelling cut; pass prefix=result.text to go on from a text",
        )
    return (*prefix.manifest.get("prefix", ()), *prefix.tokens)
