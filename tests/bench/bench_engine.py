"""The engine on SmolLM2: plain greedy beside transformers, JSON beside its own text unconstrained and beside others.

    OMP_NUM_THREADS=1 python tests/bench/bench_engine.py plain --prompts 50 --tokens 32
    OMP_NUM_THREADS=1 python tests/bench/bench_engine.py json --repeats 5

Times are of decoding, without the reading of the prompt; what is compared runs by turns, and medians are given. CPU
seconds are given beside wall time: on a busy machine they alone can be compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import maskwright as mw

SCHEMAS = json.loads(Path(__file__).with_name("engine_schemas.json").read_text())
TOPICS = [
    "rain", "the moon", "bread", "a fox", "glass", "the number seven", "sailing", "ants", "Paris", "salt",
    "a violin", "snow", "tea", "bridges", "maps", "chess", "owls", "clocks", "rivers", "paper",
    "wool", "stars", "coins", "gardens", "ice",
]  # fmt: skip
QUESTIONS = [form.format(topic) for form in ("Tell me about {}.", "Write one sentence about {}.") for topic in TOPICS]


class Clock:
    """Wall and CPU seconds of a stretch."""

    def __enter__(self) -> Clock:
        self.wall, self.cpu = -time.perf_counter(), -time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()


def timed(run: Callable[[], Any]) -> tuple[Any, Clock]:
    with Clock() as clock:
        out = run()
    return out, clock


def hf_greedy(model: Any, tokenizer: Any, prompt: list[int], tokens: int, processors: Any = None) -> list[int]:
    ids = torch.tensor([prompt])
    named = {} if processors is None else {"logits_processor": processors}
    out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=tokens, **named)
    found: list[int] = out[0, len(prompt) :].tolist()
    return found


def plain(options: argparse.Namespace) -> None:
    dtypes = ("float32", "bfloat16", "int8")
    ours = {dtype: mw.load_model("smollm2-135m", dtype=dtype, prefix_cache=0) for dtype in dtypes}
    theirs, tokenizer = load_transformers()
    same, agreed, total = 0, {"bfloat16": 0, "int8": 0}, 0
    spent: dict[str, list[float]] = {}
    for question in QUESTIONS[: options.prompts]:
        chat = [{"role": "user", "content": question}]
        prompt = ours["float32"].apply_chat_template(chat)
        expected, clock = timed(lambda prompt=prompt: hf_greedy(theirs, tokenizer, prompt, options.tokens))
        note(spent, "transformers", clock, len(expected))
        for dtype, model in ours.items():
            result, clock = timed(lambda model=model, chat=chat: mw.generate(model, chat, max_tokens=options.tokens))
            note(spent, dtype, clock, len(result.tokens))
            if dtype == "float32":
                same += result.tokens == expected
            else:  # each next token, given the text of the exact model
                (logits,) = model.forward_all([[*prompt, *expected[:-1]]], model.new_cache(1))
                next_tokens = logits[len(prompt) - 1 :].argmax(-1).tolist()
                agreed[dtype] += sum(a == b for a, b in zip(next_tokens, expected, strict=True))
        total += len(expected)
    print(f"{same} of {options.prompts} outputs of float32 are those of transformers, token by token")
    for dtype, count in agreed.items():
        print(f"{dtype}: {count} of {total} next tokens as float32 ({count / total:.1%})")
    base = sum(spent["transformers cpu"]) / sum(spent["transformers tokens"])
    for name in ("transformers", *ours):
        tokens = sum(spent[f"{name} tokens"])
        wall, cpu = (sum(spent[f"{name} {kind}"]) / tokens for kind in ("wall", "cpu"))
        print(f"{name:13s} {1000 * wall:6.1f} ms wall, {1000 * cpu:6.1f} ms CPU a token, {base / cpu:.2f}x")


def note(spent: dict[str, list[float]], name: str, clock: Clock, tokens: int) -> None:
    for kind, value in (("wall", clock.wall), ("cpu", clock.cpu), ("tokens", tokens)):
        spent.setdefault(f"{name} {kind}", []).append(value)


def load_transformers() -> tuple[Any, Any]:
    from maskwright.engine.load import load_transformers as load

    return load("smollm2-135m")


def teacher_forced(model: Any, prompt: list[int], tokens: list[int]) -> Clock:
    """Decodes a text that is given, one token at a time."""
    cache = model.new_cache(1)
    model.forward([prompt], cache).argmax()
    with Clock() as clock:
        for token in tokens[:-1]:
            model.forward([[token]], cache).argmax()
    return clock


def constrained(model: Any, chat: Any, constraint: Any, drafts: bool) -> tuple[mw.Result, Clock]:
    chunks = mw.stream(model, chat, constraint, max_tokens=200, drafts=drafts)
    first = next(chunks)  # the prompt is read now
    with Clock() as clock:
        last = first
        for chunk in chunks:
            last = chunk
    assert last.result is not None
    return last.result, clock


def structured(options: argparse.Namespace) -> None:
    model = mw.load_model("smollm2-135m", dtype=options.dtype, prefix_cache=0)
    theirs, tokenizer = load_transformers()
    print("| schema | tokens | calls | drafted / accepted | against its text | drafts off | llguidance | xgrammar |")
    print("|---|---|---|---|---|---|---|---|")
    for at, case in enumerate(SCHEMAS):
        chat = [{"role": "user", "content": case["ask"] + " Answer with JSON."}]
        constraint, prompt = mw.JsonSchema(case["schema"]), model.apply_chat_template(chat)
        times: dict[str, list[Clock]] = {}
        for _ in range(options.repeats):
            result, clock = constrained(model, chat, constraint, True)
            times.setdefault("ours", []).append(clock)
            other, clock = constrained(model, chat, constraint, False)
            assert other.tokens == result.tokens
            times.setdefault("off", []).append(clock)
            times.setdefault("forced", []).append(teacher_forced(model, prompt, result.tokens))
            if options.peers:
                for name, make in PEERS.items():
                    times.setdefault(name, []).append(peer(theirs, tokenizer, prompt, make(theirs, tokenizer, case)))
        ours, stats = median(times["ours"]), result.stats
        cells = [f"{median(times[n]) / ours:.2f}x" if n in times else "-" for n in ("forced", "off", *PEERS)]
        off = median(times["off"]) / median(times["forced"])
        counts = f"{len(result.tokens)} | {stats.model_calls} | {stats.drafted} / {stats.accepted}"
        peers = " | ".join(cells[2:])
        print(f"| {at} | {counts} | {cells[0]} | {cells[1]} ({off:.3f} of its text) | {peers} |", flush=True)


def median(clocks: list[Clock]) -> float:
    return statistics.median(clock.cpu for clock in clocks)


def peer(model: Any, tokenizer: Any, prompt: list[int], processor: Any) -> Clock:
    """The time of a whole call less that of reading the prompt."""
    with Clock() as prefill, torch.no_grad():
        model(torch.tensor([prompt]))
    with Clock() as clock:
        hf_greedy(model, tokenizer, prompt, 200, [processor])
    clock.wall -= prefill.wall
    clock.cpu -= prefill.cpu
    return clock


def llguidance_processor(model: Any, tokenizer: Any, case: Any) -> Any:
    import llguidance.hf
    import llguidance.torch
    from llguidance import LLMatcher
    from transformers import LogitsProcessor

    vocabulary = TOKENIZERS.setdefault("llguidance", None) or llguidance.hf.from_tokenizer(tokenizer)
    TOKENIZERS["llguidance"] = vocabulary
    matcher = LLMatcher(vocabulary, LLMatcher.grammar_from_json_schema(case["schema"]))
    mask = llguidance.torch.allocate_token_bitmask(1, vocabulary.vocab_size)

    class Processor(LogitsProcessor):  # type: ignore[misc]
        started = False

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            if self.started:
                matcher.consume_token(int(input_ids[0, -1]))
            self.started = True
            llguidance.torch.fill_next_token_bitmask(matcher, mask, 0)
            llguidance.torch.apply_token_bitmask_inplace(scores, mask.to(scores.device))
            return scores

    return Processor()


def xgrammar_processor(model: Any, tokenizer: Any, case: Any) -> Any:
    import xgrammar
    from xgrammar.contrib.hf import LogitsProcessor

    compiler = TOKENIZERS.get("xgrammar")
    if compiler is None:
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=model.config.vocab_size)
        compiler = TOKENIZERS["xgrammar"] = xgrammar.GrammarCompiler(info, max_threads=1)
    return LogitsProcessor(compiler.compile_json_schema(json.dumps(case["schema"])))


TOKENIZERS: dict[str, Any] = {}
PEERS = {"llguidance": llguidance_processor, "xgrammar": xgrammar_processor}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["plain", "json"], nargs="?", default="json")
    parser.add_argument("--prompts", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--peers", action="store_true", help="llguidance and xgrammar inside transformers, too")
    options = parser.parse_args()
    plain(options) if options.what == "plain" else structured(options)


if __name__ == "__main__":
    main()
