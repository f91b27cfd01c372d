"""Outputs of several parts: texts compiled as one, regions of tokens, captures, thinking, fields."""

import itertools
import json
import math
import random
import re
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch

import maskwright as mw
from engine.hf_models import byte_tokenizer, tiny
from engine.models import ToyModel, byte_vocabulary
from engine.statistics import p_value

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "ok": {"enum": ["yes", "no"]}},
    "required": ["name", "ok"],
    "additionalProperties": False,
}

# Composite, and a regular expression of the same language.
TEXTS = [
    (mw.Seq(mw.Regex("a+"), "b", mw.Choice(["x", "yz"])), r"a+b(x|yz)"),
    (mw.Seq(), r""),
    (mw.Seq(mw.Regex("a*"), mw.Regex("(ab)*"), mw.Regex("b?")), r"a*(ab)*b?"),
    (mw.Alt("the ", mw.Seq("the", mw.Regex(r"\d{2,3}")), mw.Regex("[ab]{3}")), r"the |the\d{2,3}|[ab]{3}"),
    (mw.Seq("x", mw.Capture("n", mw.Alt("", mw.Regex(r"\d+"))), "\n\n"), r"x\d*\n\n"),
    (mw.Seq(mw.Free(until="ab"), mw.Regex("[12]+")), r"(b|[^ab]|a+[^ab])*a+b[12]+"),
    (mw.Free(until="\n\n"), r"([^\n]|\n[^\n])*\n\n"),
    (mw.Seq(mw.Free(), "12"), r"[\s\S]*12"),
    (mw.Seq(mw.Seq("é", mw.Seq("€")), mw.Regex("[é€]?")), r"é€[é€]?"),
]


@pytest.mark.parametrize(("composite", "pattern"), TEXTS)
def test_parts_that_are_texts_have_the_masks_of_the_whole(composite: mw.Seq, pattern: str) -> None:
    vocabulary = byte_vocabulary()
    one, other = mw.compile(composite, vocabulary), mw.compile(mw.Regex(pattern), vocabulary)
    random_ = random.Random(0)
    for _ in range(30):
        a, b = one.matcher(), other.matcher()
        for _ in range(12):
            # Closing costs are bounds that depend on how a text is cut into machines; without a budget masks are equal.
            allowed = a.allowed_tokens()
            assert allowed == b.allowed_tokens()
            assert a.is_accepting == b.is_accepting
            assert a.min_tokens_to_accept() >= b.min_tokens_to_accept() or a.is_accepting == b.is_accepting
            budget = a.min_tokens_to_accept() + 1
            assert a.is_accepting or a.allowed_tokens(max_tokens=budget)
            texts = [t for t in allowed if t not in vocabulary.eos_ids]
            if not texts:
                break
            longest = sorted(texts, key=lambda t: -len(vocabulary.tokens[t]))[:3]
            token = random_.choice(texts if random_.random() < 0.5 else longest)
            assert a.accept(token)
            assert b.accept(token)


def test_a_token_may_span_the_borders_of_texts() -> None:
    vocabulary = mw.Vocabulary([b"a", b"b", b"c", b"ab", b"abc", b"bc", b"<eos>"], eos_ids=[6])
    matcher = mw.compile(mw.Seq("a", mw.Regex("b"), mw.Choice(["c"])), vocabulary).matcher()
    assert matcher.allowed_tokens() == [0, 3, 4]
    assert matcher.accept(4)
    assert matcher.is_accepting


def test_json_among_other_parts_keeps_its_white_space() -> None:
    model = ToyModel()
    fenced = mw.Seq("```json\n", mw.Capture("data", mw.JsonSchema(PERSON, whitespace="compact")), "\n```")
    for seed in range(10):
        result = mw.generate(model, "p", fenced, seed=seed)
        found = re.fullmatch(r"```json\n(.*)\n```", result.text, re.S)
        assert found
        assert json.dumps(json.loads(found[1]), separators=(",", ":"), ensure_ascii=False) == found[1]
        jsonschema.validate(result.value["data"], PERSON)
        region = result.regions["data"]
        assert (region.text, region.value) == (found[1], result.value["data"])
        first, end = region.tokens
        spelled = model.vocabulary.decode(result.tokens[first:end]).decode()
        assert found[1] in spelled
        assert region.logprob == pytest.approx(sum(d.logprob for d in result.trace[0][first:end]))
    with pytest.raises(mw.ConstraintError, match="different white space"):
        mixed = mw.Seq(mw.JsonSchema({}, whitespace="compact"), mw.JsonSchema({}, whitespace="any"))
        mw.compile(mixed, model.vocabulary)


def test_errors_inside_parts_are_raised_at_compile_time() -> None:
    with pytest.raises(mw.RegexError):
        mw.compile(mw.Seq("a", mw.Regex("(")), byte_vocabulary())
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile(mw.Seq("a", mw.JsonSchema(False)), byte_vocabulary())
    with pytest.raises(mw.ConstraintError, match=r"regions of tokens.*generate"):
        mw.compile(mw.Seq("a", mw.Special("<|user|>")), byte_vocabulary())
    with pytest.raises(TypeError, match="a part is"):
        mw.Seq(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: mw.Free(until=""), "until is empty"),
        (lambda: mw.Free(max_tokens=0), "max_tokens is 0"),
        (lambda: mw.Special(""), "has a name"),
        (lambda: mw.Capture("", "a"), "has a name"),
        (lambda: mw.Alt(), "a part at least"),
        (lambda: mw.Thinking(end="", max_tokens=3), "until is empty"),
    ],
)
def test_parts_that_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_composites_are_values() -> None:
    import pickle

    one = mw.Seq("a", mw.Capture("x", mw.Alt(mw.Regex("b"), mw.Special("<s>"))), mw.Free(until="!"))
    same = mw.Seq("a", mw.Capture("x", mw.Alt(mw.Regex("b"), mw.Special("<s>"))), mw.Free(until="!"))
    assert one == same == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(same)
    assert one != mw.Seq("a", mw.Capture("y", mw.Alt(mw.Regex("b"), mw.Special("<s>"))), mw.Free(until="!"))
    assert mw.Seq("ab") != mw.Seq("a", "b")
    names = ("Seq", "Capture", "Alt", "Regex", "Special", "Free")
    assert eval(repr(one), {name: getattr(mw, name) for name in names}) == one


def test_captures_of_a_text_are_as_long_as_they_can_be_from_the_left() -> None:
    model = ToyModel()
    named = {"a": mw.Regex("x*"), "b": mw.Regex("x*y?"), "c": mw.Alt("z", "yz")}
    parts = mw.Seq(*(mw.Capture(name, part) for name, part in named.items()))
    for text, cut in {"xxxyz": ("xxx", "y", "z"), "z": ("", "", "z"), "xz": ("x", "", "z")}.items():
        result = mw.generate(model, "p", parts, prefix=text)
        assert (result.text, result.finish_reason) == (text, "constraint")
        assert tuple(result.regions[name].text for name in "abc") == cut


@pytest.fixture(scope="module")
def special() -> mw.TransformersModel:
    return mw.TransformersModel(tiny("llama"), byte_tokenizer(), context_length=96)


END, USER, ASSISTANT, DOCUMENT = (261, 262, 263, 264)  # 261 and 264 are EOS tokens


@pytest.mark.parametrize("end", [mw.Special("<|user|>"), "END", "\n"])
@pytest.mark.parametrize("limit", [None, 9])
def test_thinking_ends_and_an_answer_follows(special: Any, end: Any, limit: int | None) -> None:
    thinking, answer = mw.Thinking(end=end, max_tokens=limit), mw.Regex(r"\d{1,3}(yes|no)")
    lengths = set()
    for seed in range(5):
        result = mw.generate(special, "p", answer, thinking=thinking, seed=seed, max_tokens=40)
        assert result.valid
        assert re.fullmatch(r"\d{1,3}(yes|no)", result.value)
        thought, told = result.regions["thinking"], result.regions["answer"]
        assert told.text == told.value == result.value
        assert thought.tokens[0] == 0
        assert thought.tokens[1] == told.tokens[0]
        if isinstance(end, str):
            assert result.text == thought.text + end + told.text
            assert end not in thought.text
        else:
            assert result.text == thought.text + told.text
            assert result.tokens.index(USER) == thought.tokens[1] - 1
        if limit is not None:
            assert thought.tokens[1] <= limit
        assert result.log_weight == pytest.approx(thought.log_weight + told.log_weight + trailing(result, told))
        lengths.add(thought.tokens[1])
    assert limit is not None or end != "\n" or len(lengths) > 1


def trailing(result: mw.Result, told: Any) -> float:
    """The weight of what comes after the answer: its EOS token, if it has one."""
    return sum(draw.kept for draw in result.trace[0][told.tokens[1] :])


def test_thinking_before_json_gives_the_typed_value(special: Any) -> None:
    first: list[int] = []
    for drafts in (True, False):
        result = mw.generate(
            special, "p", mw.JsonSchema(PERSON), thinking=mw.Thinking(end=mw.Special("<|user|>"), max_tokens=6),
            seed=4, max_tokens=70, drafts=drafts, logprobs=2,
        )  # fmt: skip
        jsonschema.validate(result.value, PERSON)
        assert result.fields["/ok"].value == result.value["ok"]
        first = first or result.tokens
        assert result.tokens == first
    value = mw.generate_json(special, "p", PERSON, thinking=mw.Thinking(end="!", max_tokens=6), seed=4, max_tokens=70)
    jsonschema.validate(value, PERSON)


def test_special_tokens_by_name_lead_through_alternatives(special: Any) -> None:
    call = mw.Seq(mw.Special("<|assistant|>"), mw.Capture("call", mw.JsonSchema(PERSON)), mw.Special("<|user|>"))
    constraint = mw.Alt(call, mw.Capture("reply", mw.Regex("[a-z ]{3,12}")))
    kinds = set()
    for seed in range(8):
        bias = {ASSISTANT: 9.0 * (seed % 2)}
        result = mw.generate(special, "p", constraint, seed=seed, max_tokens=80, sampling=mw.Sampling(logit_bias=bias))
        assert result.valid
        (kind,) = result.regions
        kinds.add(kind)
        if kind == "call":
            assert result.tokens[0] == ASSISTANT
            assert USER in result.tokens
            jsonschema.validate(result.value["call"], PERSON)
        else:
            assert ASSISTANT not in result.tokens
            assert re.fullmatch("[a-z ]{3,12}", result.text)
    assert kinds == {"call", "reply"}


def test_R23_special_tokens_come_only_where_they_are_asked_for(special: Any) -> None:
    text = mw.Free(until=mw.Special("<|user|>"), max_tokens=10)
    for seed in range(8):
        result = mw.generate(special, "p", mw.Seq(text, "done"), seed=seed, max_tokens=20)
        at = result.tokens.index(USER)
        assert at <= 9
        assert not {END, USER, ASSISTANT, DOCUMENT} & {*result.tokens[:at], *result.tokens[at + 1 : -1]}
        assert result.text.endswith("done")


def random_part(random_: random.Random, depth: int) -> Any:
    """Some composite; those of tokens among them."""
    kinds = ["text", "regex", "choice", "free", "special", *(["seq", "alt", "capture"] * (depth > 0))]
    kind = random_.choice(kinds)
    if kind == "free":
        return mw.Free(random_.choice(["!", "the", mw.Special("<|user|>")]), random_.choice([None, 4, 9]))
    if kind in ("seq", "alt"):
        parts = [random_part(random_, depth - 1) for _ in range(random_.randint(1, 3))]
        return mw.Seq(*parts) if kind == "seq" else mw.Alt(*parts)
    if kind == "capture":
        return mw.Capture(random_.choice("xyz"), random_part(random_, depth - 1))
    return {
        "text": random_.choice(["the ", "é", "12"]),
        "regex": mw.Regex(random_.choice(["[ab]{1,4}", "x*", r"\d+\.\d"])),
        "choice": mw.Choice(["yes", "no", "not"]),
        "special": mw.Special("<|assistant|>"),
    }[kind]


@pytest.mark.parametrize("seed", range(12))
def test_R20_R22_random_parts_end_complete_within_any_budget(special: Any, seed: int) -> None:
    from maskwright.engine.requests import compile_for

    random_ = random.Random(seed)
    for _ in range(5):
        constraint = mw.Seq(random_part(random_, 3), random_part(random_, 2))
        grammar: Any = compile_for(special, constraint)
        least = grammar.matcher().min_tokens_to_accept() + 1
        for budget in (least, least + 1, least + 12):
            result = mw.generate(special, "p", constraint, seed=seed, max_tokens=budget, logprobs=0)
            assert result.valid
            assert len(result.tokens) <= budget
            guide = grammar.matcher()
            for token in result.tokens:
                assert guide.accept(token)
            assert guide.is_accepting or guide.is_finished
            for region in result.regions.values():
                assert result.text[region.start :].startswith(region.text)


def test_stop_tokens_may_be_named(special: Any) -> None:
    bias = mw.Sampling(logit_bias={USER: 6.0})
    found = mw.generate(special, "p", seed=1, sampling=bias, stop=mw.Special("<|user|>"), max_tokens=60)
    assert (found.finish_reason, found.tokens[-1]) == ("stop", USER)
    assert USER not in found.tokens[:-1]
    with pytest.raises(mw.ConstraintError, match="has no token '<stop>'"):
        mw.generate(special, "p", stop=[mw.Special("<stop>")])


def test_a_region_that_is_too_short_is_refused(special: Any) -> None:
    with pytest.raises(mw.ConstraintError, match=r"takes 4.*max_tokens=4"):
        mw.generate(special, "p", mw.Seq(mw.Free(until="stop", max_tokens=3), "x"))
    with pytest.raises(mw.GenerationError, match="max_tokens=8 or more"):
        mw.generate(special, "p", mw.Seq(mw.Free(until="stop", max_tokens=30), "end"), max_tokens=7)
    with pytest.raises(mw.ConstraintError, match="has no token '<think>'"):
        mw.generate(special, "p", mw.Seq(mw.Special("<think>")))
    with pytest.raises(mw.ConstraintError, match="is an EOS token"):
        mw.generate(special, "p", mw.Seq(mw.Free(until=mw.Special("<|end|>")), "x"))
    with pytest.raises(mw.GenerationError, match="stop strings do not go with regions"):
        mw.generate(special, "p", mw.Seq(mw.Special("<|user|>"), "x"), stop="x")


def enumerate_texts(guide: Any, eos: tuple[int, ...], depth: int) -> set[tuple[int, ...]]:
    """All complete outputs of at most so many tokens, by the masks."""
    found = set()
    if guide.is_accepting:
        found.add(())
    if depth:
        for token in guide.allowed_tokens():
            if token not in eos:
                twin = guide.fork()
                assert twin.accept(token)
                found |= {(token, *rest) for rest in enumerate_texts(twin, eos, depth - 1)}
    return found


class Letters:
    """A vocabulary of four texts, two special tokens and EOS, for brute force."""

    name = "letters"
    vocabulary = mw.Vocabulary([b"a", b"b", b"ab", b"!", b"<s>", b"<t>", b"<eos>"], eos_ids=[6], special_ids=[4, 5])

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        return [0] * len(text)


@pytest.mark.parametrize(
    ("constraint", "accepts"),
    [
        (mw.Seq(mw.Free(until=mw.Special("<s>"), max_tokens=3), mw.Regex("b?")),
         lambda t: 4 in t and t.index(4) <= 2 and t[t.index(4) + 1 :] in ((), (1,)) and 5 not in t),
        (mw.Seq(mw.Free(max_tokens=2), "!"), lambda t: t[-1:] == (3,) and len(t) <= 3 and not {4, 5} & {*t}),
        (mw.Seq(mw.Free(until="b", max_tokens=2), "a"),
         lambda t: t[-1:] == (0,) and len(t) in (2, 3) and not {4, 5} & {*t}
         and text(t[:-1]).endswith("b") and text(t[:-1]).count("b") == 1),
        (mw.Alt(mw.Special("<t>"), mw.Seq("a", mw.Special("<s>")), "ab"), lambda t: t in ((5,), (0, 4), (2,), (0, 1))),
        (mw.Seq(mw.Capture("x", mw.Seq(mw.Special("<s>"), mw.Regex("a*"))), mw.Special("<s>")),
         lambda t: len(t) > 1 and t[0] == t[-1] == 4 and set(t[1:-1]) <= {0}),
    ],
)  # fmt: skip
def test_guides_equal_brute_force(constraint: Any, accepts: Any) -> None:
    from maskwright.engine.stages import StagedGrammar

    model: Any = Letters()
    depth = 4
    guide = StagedGrammar(constraint, model).matcher()
    expected = {t for n in range(depth + 1) for t in itertools.product(range(6), repeat=n) if accepts(t)}
    assert expected
    assert enumerate_texts(guide, (6,), depth) == expected
    # Under a budget: exactly the tokens from which an output of so many tokens and EOS is still reached.
    for budget in range(1, depth + 2):
        reachable = {t[0] for t in expected if 0 < len(t) <= budget - 1}
        reachable |= {6} if () in expected else set()
        assert set(guide.allowed_tokens(budget)) == reachable
    assert guide.min_tokens_to_accept() == min(map(len, expected))


def text(tokens: tuple[int, ...]) -> str:
    return Letters.vocabulary.decode(list(tokens)).decode()


def test_fields_tell_tokens_probability_and_kept_mass() -> None:
    model = ToyModel()
    schema = {
        "type": "object",
        "properties": {
            "a/b": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2},
            "k~": {"enum": ["yes", "no", 12]},
            "o": {"type": "object", "additionalProperties": False},
        },
        "required": ["a/b", "k~", "o"],
        "additionalProperties": False,
    }
    for seed in range(6):
        result = mw.generate(model, "p", mw.JsonSchema(schema), seed=seed, logprobs=3)
        fields = result.fields
        assert set(fields) == {"", "/a~1b", "/a~1b/0", "/a~1b/1", "/k~0", "/o"}
        for pointer, field in fields.items():
            spelled = model.vocabulary.decode(result.tokens[slice(*field.tokens)]).decode()
            assert isinstance(field.value, list | dict) or json.dumps(field.value) in spelled, pointer
            here = result.logprobs[slice(*field.tokens)]
            assert field.logprob == pytest.approx(sum(d.logprob for d in here))
            assert field.kept == pytest.approx(math.exp(sum(d.kept for d in here)))
            assert [len(each) for each in field.alternatives] == [3] * len(here)
        assert fields["/k~0"].value == result.value["k~"]
        assert fields[""].value == result.value
    with pytest.raises(ValueError, match="Expecting"):
        _ = mw.generate(model, "p", mw.Regex("[x-z]{3}")).fields


def test_the_law_of_alternatives_is_that_of_the_masks() -> None:
    """Alt of regions: one mask for all branches, so that the law is the local one over token sequences."""
    model: Any = ToyModel(scale=0.5)
    constraint = mw.Alt(mw.Seq(mw.Free(until="b", max_tokens=2), "a"), "ab12")
    from maskwright.engine.stages import StagedGrammar

    grammar = StagedGrammar(mw.Seq(mw.Alt("a", "ab"), mw.Free(until="12", max_tokens=1)), model)
    truth: dict[tuple[int, ...], float] = {}

    def visit(guide: Any, tokens: tuple[int, ...], p: float) -> None:
        if guide.is_accepting:
            truth[tokens] = p
            return
        allowed = guide.allowed_tokens()
        logits = model.forward([[*model.encode("p"), *tokens]], model.new_cache(1))[0]
        q = torch.softmax(logits[allowed].double(), -1).tolist()
        for token, share in zip(allowed, q, strict=True):
            twin = guide.fork()
            assert twin.accept(token)
            visit(twin, (*tokens, token), p * share)

    visit(grammar.matcher(), (), 1.0)
    assert len(truth) == 3
    n = 600
    results = mw.generate(model, ["p"] * n, grammar.constraint, seed=list(range(n)))
    ids = {tokens: at for at, tokens in enumerate(truth)}
    counts = np.bincount([ids[tuple(r.tokens)] for r in results], minlength=len(ids))
    assert p_value(counts, np.array(list(truth.values()))) > 1e-3
    assert constraint != grammar.constraint
