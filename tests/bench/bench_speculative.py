"""Prompt lookup on SmolLM2, beside decoding without drafts.

    OMP_NUM_THREADS=1 python tests/bench/bench_speculative.py --repeats 3

The two run by turns over the same prompts, greedy, and their outputs are compared token by token. Times are of
decoding, in CPU seconds of one thread, without the reading of the prompt; per prompt the least of the repeats counts,
since what else the machine does only ever adds. Reported: the ratio of the sums, the median over prompts, and tokens
per forward.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch

import maskwright as mw

TEXTS = [
    "The harbour was quiet when Ada Lindqvist came down the stone steps with a lantern. Eleven boats lay against the "
    "wall, and in the twelfth somebody was mending a net by the light of a stump of candle.",
    "def area(width, height):\n    if width < 0 or height < 0:\n        raise ValueError('sizes are not negative')\n"
    "    return width * height\n\nprint(area(3, 4), area(5, 12), area(7, 24))",
    "Order 4471: two boxes of A4 paper at 12.90 each, one stapler at 8.50, delivered on 14 March 2024 to Mr Okonkwo, "
    "17 Mill Lane, Norwich. Order 4472: nine pencils at 0.40 each, delivered to the same address.",
    "Water boils at 100 degrees at sea level and at about 90 degrees at 3,000 metres, because the air above presses "
    "less. A pressure cooker does the opposite: at twice the pressure water boils at about 120 degrees.",
]
COPY = ["Repeat this text word by word, and nothing else:\n\n" + text for text in TEXTS]
ORDINARY = [
    "Tell me about rain.", "Write one sentence about chess.", "What is a good breakfast?", "Tell me about bridges.",
    "Write a short poem about owls.", "How does a violin make sound?",
]  # fmt: skip


def run(model: Any, question: str, tokens: int, strategy: mw.Speculative | None) -> tuple[mw.Result, float]:
    """The result, and CPU seconds of decoding."""
    chunks = mw.stream(model, [{"role": "user", "content": question}], strategy=strategy, max_tokens=tokens)
    last = next(chunks)  # the prompt is read now
    begin = time.process_time()
    for chunk in chunks:
        last = chunk
    seconds = time.process_time() - begin
    assert last.result is not None
    return last.result, seconds


def compare(model: Any, name: str, questions: list[str], options: argparse.Namespace) -> None:
    ways = {"plain": None, "lookup": mw.Speculative(gamma=options.gamma)}
    ratios, sums, calls, tokens, same = [], dict.fromkeys(ways, 0.0), 0, 0, 0
    for question in questions:
        least, results = dict.fromkeys(ways, float("inf")), {}
        for _ in range(options.repeats):
            for way, strategy in ways.items():
                results[way], seconds = run(model, question, options.tokens, strategy)
                least[way] = min(least[way], seconds)
        same += results["plain"].tokens == results["lookup"].tokens
        ratios.append(least["plain"] / least["lookup"])
        sums = {way: sums[way] + least[way] for way in ways}
        calls += results["lookup"].stats.model_calls
        tokens += len(results["lookup"].tokens)
        told = results["lookup"].stats.speculation
        count, rate = len(results["lookup"].tokens), told.acceptance or 0.0
        print(f"  {ratios[-1]:5.2f}x  {count} tokens, acceptance {rate:.2f}, windows {dict(told.lengths)}")
    print(
        f"{name}: {sums['plain'] / sums['lookup']:.2f}x in all, {statistics.median(ratios):.2f}x median, least "
        f"{min(ratios):.2f}x, {tokens / calls:.2f} tokens per forward, {same} of {len(questions)} outputs the same"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--gamma", type=lambda text: text if text == "auto" else int(text), default="auto")
    parser.add_argument("--only", choices=["copy", "ordinary"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = mw.load_model("smollm2-135m", dtype=options.dtype)
    if options.only != "ordinary":
        compare(model, "copy", COPY, options)
    if options.only != "copy":
        compare(model, "ordinary", ORDINARY, options)


if __name__ == "__main__":
    main()
