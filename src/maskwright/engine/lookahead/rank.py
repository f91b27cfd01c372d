"""The probabilities of labels, and the outputs that are most probable or come first in a race."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from maskwright._arguments import whole
from maskwright.engine.lookahead.base import Base, check_request
from maskwright.engine.lookahead.certified import tighten
from maskwright.engine.lookahead.exact import read_finite
from maskwright.engine.lookahead.guesses import Guesses
from maskwright.engine.lookahead.results import finished
from maskwright.engine.lookahead.search import ByMass, Leaf, OutOfBudget, Race, Search
from maskwright.engine.lookahead.session import Session, budget_error, check_base, draws_of, no_output
from maskwright.engine.lookahead.settings import Lookahead, as_lookahead
from maskwright.engine.lookahead.store import put
from maskwright.engine.requests import build_requests, compile_for, is_one_prompt, rules
from maskwright.errors import GenerationError
from maskwright.grammar.choice import Choice

if TYPE_CHECKING:
    from maskwright.compiler import CompiledGrammar
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.requests import Prompt, Rules
    from maskwright.engine.result import Result
    from maskwright.engine.sampling import Sampling
    from maskwright.grammar.plan import Constraint

__all__ = ["Classification", "classify", "topk"]


@dataclass(frozen=True)
class Classification:
    """What a model says of labels.

    Attributes:
        best: the most probable label's item.
        probabilities: of each label, by its text and in the order given; they sum to 1.
        log_Z: log of the probability that the model, unmasked, writes one of the labels and ends; of the part that was
            read. Where it is low, the model is asked for something that it would not write, and the probabilities say
            less.
        calls: forwards, of all prompts that were read together.
        nodes: prefixes read for this prompt.
        tv_bound: bound on the total variation distance to the exact probabilities; 0 unless ``"certified"``.
    """

    best: Any
    probabilities: dict[str, float]
    log_Z: float
    calls: int
    nodes: int
    tv_bound: float = 0.0


def classify(
    model: LanguageModel,
    prompt: Prompt | Sequence[Prompt],
    labels: Any,
    *,
    sampling: Sampling | None = None,
    lookahead: Literal["exact", "certified"] | Lookahead | None = None,
    max_tokens: int | None = None,
    batch_size: int = 32,
) -> Any:
    """The exact probability of each label, given that the model answers with one of them and ends.

    All spellings of the labels in tokens are read in a few forwards and summed. Nothing is drawn. There are many of
    them, and nearly all are improbable: ``Lookahead(method="certified", epsilon=...)`` leaves out those that together
    change the probabilities by at most ``epsilon``, ``tokenization="canonical"`` all but the tokenizer's own.

    Args:
        model: the language model.
        prompt: a text, a chat, or a list of such.
        labels: as `Choice` takes them: a list of texts, an ``Enum``, a ``Literal``, a dict of label to item.
        sampling: rules that are part of the distribution (temperature, logit bias, penalties).
        lookahead: of the methods, ``"exact"`` and ``"certified"``.
        max_tokens: the most tokens of a label, EOS included.
        batch_size: the most prompts that share a forward.

    Returns:
        A :class:`Classification`; a list for a list of prompts.

    Raises:
        ConstraintError: labels that cannot be told apart or written.
        UnsatisfiableError: the model gives probability 0 to all of them.
        ValueError: another method.
        BudgetError: ``"certified"`` did not come to ``epsilon`` in ``budget_calls`` forwards.
        GenerationError: the labels have more than `enumerate_nodes` prefixes in tokens; prompt and labels exceed the
            context.
    """
    settings = as_lookahead(lookahead) or Lookahead()
    if settings.method not in ("exact", "certified"):
        raise ValueError(f"method is {settings.method!r}; classify computes, by 'exact' or 'certified'")
    how = rules(sampling=sampling, lookahead=settings, max_tokens=max_tokens, batch_size=batch_size)
    choice = labels if isinstance(labels, Choice) else Choice(labels)
    one = is_one_prompt(prompt)
    sessions = _sessions(model, prompt, choice, how)
    try:
        if settings.method == "exact":
            read_finite(sessions)
        found = [_classified(session, choice) for session in sessions]
    finally:
        _put(sessions)
    return found[0] if one else found


def _classified(session: Session, choice: Choice) -> Classification:
    bound = 0.0
    if session.settings.method == "certified":
        bound = _tightened(session)
    elif not session.trie.finite:
        raise GenerationError(
            f"the labels have more than {session.settings.enumerate_nodes} prefixes in tokens",
            location="labels",
            hint='Pass Lookahead(method="certified"), tokenization="canonical", or a greater enumerate_nodes',
        )
    low, _ = session.log_bounds
    if low == -math.inf:
        raise no_output()
    found = dict(zip(session.texts.texts, session.texts.logprobs, strict=True))
    probabilities = {text: math.exp(found.get(text.encode(), -math.inf) - low) for text in choice.texts}
    best = max(probabilities, key=lambda text: probabilities[text])
    calls, nodes = session.ahead
    calls, nodes = calls + session.reader.calls, nodes + session.reader.nodes
    return Classification(choice.parse(best), probabilities, low, calls, nodes, bound)


def _tightened(session: Session) -> float:
    try:
        return tighten(session)
    except OutOfBudget:
        raise budget_error(session, "did not come to epsilon", []) from None


def topk(
    model: LanguageModel,
    prompt: Prompt | Sequence[Prompt],
    constraint: Constraint | CompiledGrammar,
    k: int,
    *,
    seed: int | None = None,
    sampling: Sampling | None = None,
    lookahead: Lookahead | None = None,
    max_tokens: int | None = None,
) -> Any:
    """The ``k`` most probable outputs, or, with a seed, ``k`` different samples.

    Outputs are told apart by their text. Where the language is computed as a whole, ``logprob`` of a result is that of
    the text, all tokenisations summed, and the order is by it. Else outputs are found as sequences of tokens, in the
    order of their probability, each text at its most probable one; with ``Lookahead(tokenization="canonical")`` texts
    have only one.

    Args:
        model: the language model.
        prompt: a text, a chat, or a list of such.
        constraint: what the outputs must be.
        k: how many, at least 1.
        seed: draw without replacement from the model conditioned on the constraint, in the order of drawing; the first
            is an exact sample, the second one from what is left, and so on.
        sampling: rules that are part of the distribution (temperature, logit bias, penalties).
        lookahead: `budget_calls` counts for all outputs of a prompt together.
        max_tokens: the most tokens of an output, EOS included.

    Returns:
        A list of :class:`Result`, shorter where there are fewer outputs; a list of lists for a list of prompts.

    Raises:
        BudgetError: ``budget_calls`` forwards did not find as many; ``.best`` has those found.
        ConstraintError, GenerationError: as `maskwright.generate`.
        ValueError: k is less than 1.
        TypeError: an argument of a wrong type.
    """
    whole("k", k, 1)
    settings = replace(as_lookahead(lookahead) or Lookahead(), method="exact")
    how = rules(sampling=sampling, lookahead=settings, max_tokens=max_tokens, seed=seed)
    one = is_one_prompt(prompt)
    sessions = _sessions(model, prompt, constraint, how)
    try:
        read_finite(sessions)
        found = [_ranked(session, k, drawn=seed is not None) for session in sessions]
    finally:
        _put(sessions)
    return found[0] if one else found


def _sessions(model: LanguageModel, prompt: Any, constraint: Any, how: Rules) -> list[Session]:
    prompts = cast("Sequence[Prompt]", [prompt] if is_one_prompt(prompt) else prompt)
    requests = build_requests(model, prompts, [compile_for(model, constraint)] * len(prompts), how)
    assert how.lookahead is not None
    bases = [Base(model, request, how.sampling, how.lookahead) for request in requests]
    for base in bases:
        check_request(base.request, how.sampling, how.lookahead)
        check_base(base)
    return [Session(base, how) for base in bases]


def _put(sessions: Sequence[Session]) -> None:
    for session in sessions:
        put(session.base, session.trie)


def _ranked(session: Session, k: int, drawn: bool) -> list[Result]:
    started, found, seen = time.perf_counter(), list[tuple[Leaf, float]](), set[bytes]()
    session.trie.draws += 1
    try:
        for leaf, logprob in _ordered(session, drawn):
            text = session.base.text_of(leaf.node.output())
            if text not in seen:
                seen.add(text)
                found.append((leaf, logprob))
            if len(found) == k:
                break
    except OutOfBudget:
        results = _results(session, found, started)
        raise budget_error(session, f"found {len(found)} of {k} outputs", results) from None
    if not found:
        raise no_output()
    return _results(session, found, started)


def _ordered(session: Session, drawn: bool) -> Iterator[tuple[Leaf, float]]:
    """Outputs in their order, with the log of their probability."""
    whole = session.trie.finite
    if whole and not drawn:
        yield from zip(session.texts.leaves, session.texts.logprobs, strict=True)
        return
    summed = dict(zip(session.texts.texts, session.texts.logprobs, strict=True)) if whole else {}
    stream = session.base.request.stream
    search = Search(
        session.base,
        session.trie,
        session.reader,
        (lambda node, time: Race(node, time, stream)) if drawn else ByMass,
        session.settings.frontier,
        Guesses(session.base, session.trie),
    )
    while (leaf := search.next(session.may_read)) is not None:
        yield leaf, summed.get(session.base.text_of(leaf.node.output()), leaf.logprob)


def _results(session: Session, found: Sequence[tuple[Leaf, float]], started: float) -> list[Result]:
    stats = session.stats("topk", True, 1)
    results = []
    for leaf, logprob in found:
        out = finished(session.base, draws_of(leaf), session.how, stats, started)
        results.append(replace(out.result, logprob=logprob))
        stats = replace(stats, calls=0, nodes=0)
    return results
