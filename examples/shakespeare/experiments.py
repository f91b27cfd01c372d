"""What sampling rules do to a model's texts, measured with the engine."""

import math
import random
from collections import Counter
from dataclasses import dataclass

import network
import torch

import maskwright as mw
from maskwright.engine.truncation import entropy, truncate

LENGTH, PROMPT, BATCH = 200, 56, 16  # together what the model was trained on

RULES = {
    "greedy": mw.Sampling(0.0),
    "temperature 0.5": mw.Sampling(0.5),
    "temperature 0.8": mw.Sampling(0.8),
    "temperature 1": mw.Sampling(),
    "temperature 1.3": mw.Sampling(1.3),
    "top-k 5": mw.Sampling(top_k=5),
    "top-k 20": mw.Sampling(top_k=20),
    "top-p 0.8": mw.Sampling(top_p=0.8),
    "top-p 0.95": mw.Sampling(top_p=0.95),
    "min-p 0.1": mw.Sampling(min_p=0.1),
    "min-p 0.05": mw.Sampling(min_p=0.05),
    "typical 0.9": mw.Sampling(typical_p=0.9),
    "eta 0.01": mw.Sampling(eta=0.01),
}
PENALTIES = {
    "greedy": mw.Sampling(0.0),
    "repetition 1.2": mw.Sampling(0.0, repetition_penalty=1.2),
    "repetition 1.2, log-probabilities": mw.Sampling(0.0, repetition_penalty=1.2, penalty_space="logprob"),
    "frequency 0.1": mw.Sampling(0.0, frequency_penalty=0.1),
    "presence 0.5": mw.Sampling(0.0, presence_penalty=0.5),
}
SEARCHES = {
    "greedy": "greedy",
    "beam of 2": mw.Beam(2),
    "beam of 5": mw.Beam(5),
    "beam of 20": mw.Beam(20),
    "5 groups of 1, diversity 1": mw.Beam(5, groups=5, diversity=1.0),
    "contrastive, k 5, alpha 0.3": mw.Contrastive(5, 0.3),
    "contrastive, k 5, alpha 0.6": mw.Contrastive(5, 0.6),
}


@dataclass
class Measured:
    """Of some texts of one source.

    Attributes:
        nats: mean negative log-probability of a character under the model itself.
        real_words: share of their words that the training text has.
        repeated: share of word trigrams that came before in the same text.
        probabilities: of every character, under the model itself.
        sample: one of the texts.
    """

    nats: float
    real_words: float
    repeated: float
    probabilities: list[float]
    sample: str


def places(held_out: str, count: int, seed: int) -> dict[str, list[str]]:
    """Contexts that end where a word begins, and inside a word."""
    draws, found = random.Random(seed), {"word start": [], "inside a word": []}
    while min(map(len, found.values())) < count:
        at = draws.randrange(PROMPT, len(held_out))
        before = held_out[at - PROMPT : at]
        if before[-1] == " " and held_out[at].isalpha():
            found["word start"].append(before)
        elif before[-2:].isalpha() and held_out[at].isalpha():
            found["inside a word"].append(before)
    return {kind: contexts[:count] for kind, contexts in found.items()}


def kept_sets(model: network.Characters, held_out: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Rule -> place -> mean size of what stays, and its mean entropy in nats."""
    table: dict[str, dict[str, tuple[float, float]]] = {}
    for kind, contexts in places(held_out, 200, seed=0).items():
        logits = model.forward([model.encode(text) for text in contexts], model.new_cache(len(contexts)))[:, :-1]
        for name, rule in RULES.items():
            if rule.greedy:
                continue
            final = truncate(logits, rule, tuple(rule.order[3:]))
            size = float((final > -math.inf).sum(-1).double().mean())
            table.setdefault(name, {})[kind] = size, float(entropy(final).mean())
    return table


def prompts(held_out: str, count: int) -> list[str]:
    draws = random.Random(1)
    return [held_out[at : at + PROMPT] for at in draws.sample(range(len(held_out) - PROMPT - LENGTH), count)]


def human(model: network.Characters, held_out: str, words: set[str], count: int) -> Measured:
    """The texts that really follow the prompts."""
    begins = [(prompt, held_out.index(prompt) + PROMPT) for prompt in prompts(held_out, count)]
    return measured(model, [(prompt, held_out[at : at + LENGTH]) for prompt, at in begins], words)


def written(model: network.Characters, held_out: str, words: set[str], rule: mw.Sampling, count: int) -> Measured:
    """What the model writes after the same prompts."""
    asked = prompts(held_out, count)
    results = mw.generate(model, asked, sampling=rule, seed=0, max_tokens=LENGTH, batch_size=BATCH)
    return measured(model, [(prompt, result.text) for prompt, result in zip(asked, results, strict=True)], words)


def searched(
    model: network.Characters, held_out: str, words: set[str], strategy: object, count: int
) -> tuple[Measured, list[float]]:
    """What a search writes after the same prompts, and the log-probability of each text."""
    asked = prompts(held_out, count)
    results = mw.generate(model, asked, strategy=strategy, max_tokens=LENGTH, batch_size=BATCH)
    texts = [(prompt, result.text) for prompt, result in zip(asked, results, strict=True)]
    return measured(model, texts, words), [result.logprob for result in results]


def measured(model: network.Characters, texts: list[tuple[str, str]], words: set[str]) -> Measured:
    probabilities: list[float] = []
    for prompt, text in texts:
        tokens = model.encode(prompt + text)
        (logits,) = model.forward_all([tokens[:-1]], model.new_cache(1))
        p = torch.softmax(logits[len(prompt) - 1 :].double(), -1)
        probabilities += p.gather(-1, torch.tensor(tokens[len(prompt) :]).unsqueeze(-1)).squeeze(-1).tolist()
    # The first and the last word may be cut.
    split = [spelled(text)[1:-1] for _, text in texts]
    all_words = [word for each in split for word in each]
    repeated = [trigram_repeats(each) for each in split]
    return Measured(
        nats=-sum(math.log(p) for p in probabilities) / len(probabilities),
        real_words=sum(word in words for word in all_words) / max(1, len(all_words)),
        repeated=sum(repeated) / len(repeated),
        probabilities=probabilities,
        sample=texts[0][1],
    )


def spelled(text: str) -> list[str]:
    return "".join(c.lower() if c.isalpha() else " " for c in text).split()


def trigram_repeats(words: list[str]) -> float:
    counts = Counter(zip(words, words[1:], words[2:], strict=False))
    return 1 - len(counts) / max(1, sum(counts.values())) if counts else 0.0


def decimals(model: network.Characters) -> list[mw.Result]:
    """A number where the model would write words: a regular expression decides which, the model how."""
    number = mw.Regex(r"-?(0|[1-9]\d{0,3})(\.\d{1,3})?")
    return mw.generate(model, "KING HENRY.\nThe sum of all our reckoning is ", number, n=8, seed=0)
