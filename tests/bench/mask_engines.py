"""The engines of bench_masks.py, each in a process of its own: `python mask_engines.py ENGINE FOLDER` serves cases.

A case comes as a line of JSON: schema, token lists. What comes back: microseconds of CPU time to the first mask
(process clock), of each advance-and-mask (thread clock, cold), and the wall clock of a second instance per token.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EOS = {"llama3": "<|eot_id|>", "gpt2": "<|endoftext|>"}
Matcher = tuple[Callable[[], object], Callable[[int], bool]]  # mask, accept


def maskwright_engine(
    folder: Path, eos: int, words: int, budget: int | None = None
) -> Callable[[str], Callable[[], Matcher]]:
    """Any white space, escapes and exponents, as the others allow.

    Args:
        folder: of the tokenizer.
        eos: id of the token that ends.
        words: of a mask.
        budget: tokens of an output, as `generate` asks with ``max_tokens``; None for masks without a budget.
    """
    import maskwright as mw

    vocabulary = mw.Vocabulary.from_tokenizer(folder / "tokenizer.json", eos_ids=[eos])
    row = np.zeros(words, dtype=np.uint32)

    def compile_(schema: str) -> Callable[[], Matcher]:
        constraint = mw.JsonSchema(schema, whitespace="any", numbers="full", escapes="any")
        compiled = mw.compile(constraint, vocabulary)

        def start() -> Matcher:
            matcher = compiled.matcher()
            if budget is None:
                return (lambda: matcher.fill_mask(row)), matcher.accept
            left = iter(range(budget, 0, -1))
            return (lambda: matcher.fill_mask(row, next(left, 0))), matcher.accept

        return start

    return compile_


def llguidance_engine(folder: Path, eos: int, words: int) -> Callable[[str], Callable[[], Matcher]]:
    """llguidance, its default slices."""
    import llguidance.hf
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    table = llguidance.hf.from_tokenizer(tokenizer, n_vocab=words * 32, eos_token=eos)
    row = np.zeros(words, dtype=np.uint32)

    def compile_(schema: str) -> Callable[[], Matcher]:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
        first = llguidance.LLMatcher(table, grammar, log_level=0)
        if first.is_error():
            raise ValueError(first.get_error())

        def start() -> Matcher:
            matcher = first.deep_copy()
            return (lambda: matcher.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)), matcher.consume_token

        return start

    return compile_


def xgrammar_engine(folder: Path, eos: int, words: int) -> Callable[[str], Callable[[], Matcher]]:
    """xgrammar, masks made on first use, one thread."""
    import xgrammar as xgr
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    info = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=words * 32, stop_token_ids=[eos])
    compiler = xgr.GrammarCompiler(info, max_threads=1, enable_dynamic_compilation=True)
    row = xgr.allocate_token_bitmask(1, words * 32)

    def compile_(schema: str) -> Callable[[], Matcher]:
        grammar = compiler.compile_json_schema(schema, strict_mode=False)

        def start() -> Matcher:
            matcher = xgr.GrammarMatcher(grammar)
            return (lambda: matcher.fill_next_token_bitmask(row, 0)), matcher.accept_token

        return start

    return compile_


def budgeted_engine(folder: Path, eos: int, words: int) -> Callable[[str], Callable[[], Matcher]]:
    """The masks of outputs of at most 4,096 tokens."""
    return maskwright_engine(folder, eos, words, 4096)


ENGINES = {
    "maskwright": maskwright_engine,
    "maskwright-budget": budgeted_engine,
    "llguidance": llguidance_engine,
    "xgrammar": xgrammar_engine,
}


def measure(compile_: Callable[[str], Callable[[], Matcher]], case: dict[str, Any]) -> dict[str, Any]:
    """One case, cold and then warm."""
    gc.collect()
    gc.disable()
    began = time.process_time_ns()
    start = compile_(case["schema"])
    mask, accept = start()
    mask()
    out: dict[str, Any] = {"ttfm": (time.process_time_ns() - began) / 1e3, "tbm": [], "warm": [], "rejected": 0}
    for tokens in case["tokens"]:
        mask, accept = start()
        mask()
        for token in tokens:
            before = time.thread_time_ns()
            if not accept(token):
                out["rejected"] += 1
                break
            mask()
            out["tbm"].append((time.thread_time_ns() - before) / 1e3)
        mask, accept = start()
        mask()
        began = time.perf_counter_ns()
        taken = sum(1 for token in tokens if accept(token) and (mask() or True))
        out["warm"].append((time.perf_counter_ns() - began) / 1e3 / max(1, taken))
    gc.enable()
    return out


def serve(name: str, folder: Path) -> None:
    """Answers cases until the input ends."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints goes to stderr
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
    eos = next(i for i in map(tokenizer.token_to_id, EOS.values()) if i is not None)
    compile_ = ENGINES[name](folder, eos, (size + 31) // 32)
    gc.collect()
    gc.freeze()
    print("{}", file=replies)
    for line in sys.stdin:
        try:
            reply = measure(compile_, json.loads(line))
        except Exception as error:  # whatever an engine raises is its refusal
            gc.enable()
            reply = {"refused": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(reply), file=replies)


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
