"""Labels and short JSON by the lookahead sampler, on SmolLM2-135M-Instruct.

    OMP_NUM_THREADS=2 python tests/bench/bench_classify.py labels
    OMP_NUM_THREADS=2 python tests/bench/bench_classify.py json
    OMP_NUM_THREADS=1 python tests/bench/bench_classify.py overhead

`labels`: 40 sentences, the sentiment of each known. Probabilities of the two labels by `classify`, beside greedy
masking and beside the law that masking step by step draws from. `json`: three short fields from 20 messages, by
`"exact"` and by `"certified"`, within the default budget of 256 forwards. `overhead`: what a node costs beside the
model, with 30,000 of 65,536 tokens allowed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from functools import partial
from typing import Any

import torch

import maskwright as mw
from maskwright.engine.lookahead.base import Base
from maskwright.engine.lookahead.search import Race, Search
from maskwright.engine.lookahead.session import Session
from maskwright.engine.requests import build_requests, compile_for, rules
from maskwright.engine.rng import Stream

POSITIVE = [
    "I loved every minute of it.", "A warm, funny and clever film.", "The best meal I have had in years.",
    "The staff were kind and quick.", "It works perfectly and looks great.", "What a wonderful surprise!",
    "I would buy this again at once.", "The room was spotless and quiet.", "An excellent book, hard to put down.",
    "Great sound for such a small price.", "The children laughed all the way through.",
    "Fast delivery, and well packed.",
    "The view from the terrace is stunning.", "She plays the part brilliantly.", "My new favourite place in town.",
    "Easy to set up, and it never fails.", "A delicious cake, light and fresh.",
    "The teacher explains everything clearly.",
    "It made my day.", "Comfortable shoes, I wear them daily.",
]  # fmt: skip
NEGATIVE = [
    "A dull and lifeless mess.", "It broke after two days.", "The soup was cold and far too salty.",
    "Nobody answered my letters.", "I want my money back.", "The plot makes no sense at all.",
    "The worst hotel I have ever stayed in.", "Terrible sound and a cheap case.", "We waited an hour for the bill.",
    "The battery dies before noon.", "I fell asleep halfway through.", "Rude waiters and dirty tables.",
    "The instructions are useless.", "It arrived late and damaged.", "A waste of time and paper.",
    "The seats are hard and too narrow.", "It smells awful.", "The app crashes every time I open it.",
    "Overpriced and disappointing.", "The singer was out of tune all evening.",
]  # fmt: skip
LABELS = ["positive", "negative"]
QUESTION = (
    "Is the sentiment of this review positive or negative? Answer with one word, positive or negative.\n\nReview: {}"
)

ITEMS = ["apples", "bread", "cheese", "coffee", "eggs", "milk", "rice", "tea"]
SCHEMA = {
    "type": "object",
    "properties": {
        "item": {"enum": ITEMS},
        "count": {"type": "integer", "minimum": 1, "maximum": 20},
        "urgent": {"type": "boolean"},
    },
    "required": ["item", "count", "urgent"],
    "additionalProperties": False,
}
FORM = (
    "Write this order as JSON with the keys item, count and urgent, like "
    '{{"item": "salt", "count": 4, "urgent": true}}, and nothing else.\n\nOrder: {}'
)
ORDERS = [
    ("Please bring 3 bags of rice, no hurry.", "rice", 3, False),
    ("We need 12 eggs right now!", "eggs", 12, True),
    ("Two pounds of coffee, whenever you can.", "coffee", 2, False),
    ("Send 5 apples as fast as possible.", "apples", 5, True),
    ("One loaf of bread, it is urgent.", "bread", 1, True),
    ("10 bottles of milk for next week.", "milk", 10, False),
    ("4 packs of tea, there is no rush.", "tea", 4, False),
    ("Urgent: 6 pieces of cheese.", "cheese", 6, True),
    ("I would like 7 apples some time this month.", "apples", 7, False),
    ("Quick, 2 loaves of bread!", "bread", 2, True),
    ("8 packs of coffee, immediately.", "coffee", 8, True),
    ("Please add 20 eggs to the next delivery.", "eggs", 20, False),
    ("3 bottles of milk, today, it cannot wait.", "milk", 3, True),
    ("Half a dozen, so 6, packs of tea, no hurry.", "tea", 6, False),
    ("9 bags of rice as soon as you can.", "rice", 9, True),
    ("1 piece of cheese, take your time.", "cheese", 1, False),
    ("15 apples, we are out of them, hurry.", "apples", 15, True),
    ("5 packs of tea at some point.", "tea", 5, False),
    ("2 bags of rice, this is an emergency.", "rice", 2, True),
    ("11 eggs whenever it suits you.", "eggs", 11, False),
]


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def masked(model: Any, prompt: Any) -> dict[str, float]:
    """The law of masking step by step over the two labels, in their canonical spellings."""
    ahead = mw.Lookahead(tokenization="canonical")
    found = mw.topk(model, prompt, mw.Choice(LABELS), 2, lookahead=ahead)
    # log P(x) minus the log of the mass that the masks left is the probability by masking.
    return {result.text: math.exp(result.logprob - result.log_weight) for result in found}


def log_loss(probabilities: list[dict[str, float]], truth: list[str]) -> float:
    return -statistics.fmean(math.log(max(p[label], 1e-12)) for p, label in zip(probabilities, truth, strict=True))


def labels(model: Any, epsilon: float) -> None:
    sentences, truth = POSITIVE + NEGATIVE, ["positive"] * len(POSITIVE) + ["negative"] * len(NEGATIVE)
    prompts = [chat(QUESTION.format(sentence)) for sentence in sentences]
    begin = time.process_time()
    ahead = mw.Lookahead(method="certified", epsilon=epsilon, frontier=8)
    found = mw.classify(model, prompts, LABELS, lookahead=ahead)
    print(f"classify, all spellings: {time.process_time() - begin:.1f} s of CPU, "
          f"{statistics.fmean(f.calls for f in found):.1f} forwards and {statistics.fmean(f.nodes for f in found):.1f} "
          f"nodes per sentence, bound at most {max(f.tv_bound for f in found):.2g}")  # fmt: skip
    begin = time.process_time()
    canonical = mw.classify(model, prompts, LABELS, lookahead=mw.Lookahead(tokenization="canonical"))
    print(f"classify, canonical: {time.process_time() - begin:.1f} s of CPU, {canonical[0].calls} forwards for a batch")
    pairs = zip(found, canonical, strict=True)
    away = max(abs(a.probabilities["positive"] - b.probabilities["positive"]) for a, b in pairs)
    print(f"greatest difference of the two in a probability: {away:.2g}")
    print(f"Z: median {math.exp(statistics.median(f.log_Z for f in found)):.2g}, "
          f"least {math.exp(min(f.log_Z for f in found)):.2g}")  # fmt: skip
    greedy = mw.generate_choice(model, prompts, LABELS)
    stepwise = [masked(model, prompt) for prompt in prompts]
    report("classify", [max(f.probabilities, key=f.probabilities.__getitem__) for f in found], truth)
    report("greedy masking", greedy, truth)
    print(f"log loss: classify {log_loss([f.probabilities for f in found], truth):.3f}, "
          f"law of masking {log_loss(stepwise, truth):.3f}, a coin {math.log(2):.3f}")  # fmt: skip
    laws = zip(found, stepwise, strict=True)
    shift = statistics.fmean(abs(f.probabilities["positive"] - s["positive"]) for f, s in laws)
    print(f"mean difference of the two laws in P(positive): {shift:.3f}")


def report(name: str, answers: list[str], truth: list[str]) -> None:
    right = sum(a == b for a, b in zip(answers, truth, strict=True))
    print(f"{name}: {right} of {len(truth)} right, says positive {answers.count('positive')} times")


def extraction(model: Any, method: str, epsilon: float, prompts: int) -> None:
    constraint = mw.JsonSchema(SCHEMA, whitespace="bounded")
    ahead = mw.Lookahead(method=method, epsilon=epsilon)  # type: ignore[arg-type]
    right, rows = 0, []
    for order, item, count, urgent in ORDERS[:prompts]:
        begin = time.process_time()
        try:
            result = mw.generate(model, chat(FORM.format(order)), constraint, max_tokens=40, seed=1, lookahead=ahead)
        except mw.BudgetError as error:
            low, high = error.log_Z
            rows.append(("ended", 256, 0, low, high, 1.0, time.process_time() - begin))
            best = error.best[0].text if error.best else "nothing"
            print(f" 256      Z {math.exp(low):.2g}..{math.exp(high):.2g} ended; best: {best}", flush=True)
            continue
        stats = result.lookahead
        low, high = stats.log_Z if isinstance(stats.log_Z, tuple) else (stats.log_Z, stats.log_Z)
        right += result.value == {"item": item, "count": count, "urgent": urgent}
        rows.append((result.text, stats.calls, stats.nodes, low, high, stats.tv_bound, time.process_time() - begin))
        print(f"{stats.calls:4d} {stats.nodes:4d} Z {math.exp(low):.2g}..{math.exp(high):.2g} "
              f"bound {stats.tv_bound:.2g} {result.text}", flush=True)  # fmt: skip
    ended = sum(row[0] == "ended" for row in rows)
    print(f"{method}: {len(rows) - ended} of {len(rows)} within the budget, {right} right; forwards: median "
          f"{statistics.median(r[1] for r in rows):.0f}, most {max(r[1] for r in rows)}; nodes: median "
          f"{statistics.median(r[2] for r in rows):.0f}; CPU seconds: median "
          f"{statistics.median(r[6] for r in rows):.1f}")  # fmt: skip


class Flat:
    """A model that costs nothing: the same logits everywhere."""

    name, context_length, device = "flat", 4096, torch.device("cpu")

    def __init__(self) -> None:
        tokens = [bytes([i]) for i in range(256)] + [b"a%d" % i for i in range(30_000)]
        tokens += [b"!%d" % i for i in range(35_279)]
        self.vocabulary = mw.Vocabulary([*tokens, b"<eos>"], eos_ids=[65_535])
        self.eos_ids = (65_535,)
        self._row = torch.randn(1, 65_536, generator=torch.Generator().manual_seed(0))
        self._row[0, 65_535] = -20.0

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        return [0]

    def apply_chat_template(self, messages: Any) -> list[int]:
        return [0]

    def new_cache(self, batch: int) -> Any:
        return _Lengths([0] * batch)

    def forward(self, tokens: Any, cache: Any) -> torch.Tensor:
        return self.forward_all(tokens, cache)[0][-1:]

    def forward_all(self, tokens: Any, cache: Any) -> list[torch.Tensor]:
        cache.lengths = [held + len(new) for held, new in zip(cache.lengths, tokens, strict=True)]
        return [self._row.expand(len(new), -1) for new in tokens]


class _Lengths:
    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths

    def fork(self, rows: Any) -> _Lengths:
        return _Lengths([self.lengths[row] for row in rows])

    def select(self, rows: Any) -> None:
        self.lengths = [self.lengths[row] for row in rows]

    def truncate(self, lengths: Any) -> None:
        self.lengths = list(lengths)


def overhead() -> None:
    """Steps of the search, each with one new node, timed one by one."""
    model, times = Flat(), []
    how = rules(lookahead=mw.Lookahead(reuse=False), max_tokens=400, seed=0)
    (request,) = build_requests(model, ["a"], [compile_for(model, mw.Regex("(a[0-9]+)+"))], how)
    for seed in range(10):
        current, stream = Session(Base(model, request, how.sampling, mw.Lookahead(reuse=False)), how), Stream(seed)
        search = Search(current.base, current.trie, current.reader, partial(Race, stream=stream))
        for step in range(50):
            begin = time.process_time()
            search.step(lambda: True)
            times += [time.process_time() - begin] if step else []
    nodes = len(current.trie.root.ids)
    print(f"CPU per node, {nodes:,} of {model.vocabulary.size:,} tokens allowed: best {1e3 * min(times):.2f} ms, "
          f"median {1e3 * statistics.median(times):.2f} ms")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="labels", choices=["labels", "json", "overhead"])
    parser.add_argument("--epsilon", type=float, help="of certified; 1e-3 for labels and 0.1 for json by default")
    parser.add_argument("--methods", nargs="+", default=["exact", "certified"], help="of json")
    parser.add_argument("--prompts", type=int, default=len(ORDERS), help="of json: how many of them")
    options = parser.parse_args()
    if options.what == "overhead":
        overhead()
        return
    model = mw.load_model("smollm2-135m")
    if options.what == "labels":
        labels(model, options.epsilon or 1e-3)
    else:
        for method in options.methods:
            extraction(model, method, options.epsilon or 0.1, options.prompts)


if __name__ == "__main__":
    main()
