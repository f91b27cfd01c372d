"""Inside ``generate`` of transformers: every mode of it gives valid outputs, greedy the same tokens as our engine."""

import re
from typing import Any

import pytest
import torch

import maskwright as mw
from engine.models import tiny_llama

PATTERNS = [r"\{\"n\": \d{1,3}\}", r"(yes|yes, yes|no){1,2}", r"[a-f]{3,7}"]
MAX_TOKENS = 24


@pytest.fixture(scope="module")
def llama() -> Any:
    return tiny_llama()


@pytest.fixture(scope="module")
def model(llama: Any) -> mw.TransformersModel:
    return mw.TransformersModel(*llama, name="tiny")


@pytest.fixture(scope="module")
def grammars(model: mw.TransformersModel) -> list[mw.CompiledGrammar]:
    return [mw.compile(mw.Regex(pattern), model.vocabulary) for pattern in PATTERNS]


def processor(compiled: Any, **more: Any) -> mw.LogitsProcessor:
    return mw.LogitsProcessor(compiled, pad_id=more.pop("pad_id", None), max_tokens=MAX_TOKENS, **more)


def generate(llama: Any, prompts: list[str], compiled: Any, **options: Any) -> list[list[int]]:
    """New tokens of each row, up to and with its EOS."""
    network, tokenizer = llama
    inputs = tokenizer(prompts, return_tensors="pt", padding=True)
    made = options.pop("processor", None) or processor(compiled, pad_id=tokenizer.pad_token_id)
    output = network.generate(
        input_ids=inputs["input_ids"],
        attention_mask=inputs["attention_mask"],
        logits_processor=[made],
        max_new_tokens=MAX_TOKENS,
        **options,
    )
    rows = []
    for row in output[:, inputs["input_ids"].shape[1] :].tolist():
        end = row.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in row else len(row)
        assert set(row[end:]) <= {tokenizer.pad_token_id}
        rows.append(row[:end])
    return rows


def text(model: mw.TransformersModel, tokens: list[int]) -> str:
    return model.vocabulary.decode(tokens).decode()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_greedy_is_token_identical_to_our_engine(llama: Any, model: mw.TransformersModel, pattern: str) -> None:
    compiled = mw.compile(mw.Regex(pattern), model.vocabulary)
    for prompt in ["a", "What now?", "The answer is: "]:
        ours = mw.generate(model, prompt, compiled, max_tokens=MAX_TOKENS)
        (theirs,) = generate(llama, [prompt], compiled, do_sample=False)
        # Where nothing can follow our engine stops; theirs has to write the EOS.
        assert theirs[: len(ours.tokens)] == ours.tokens
        assert set(theirs[len(ours.tokens) :]) <= set(model.eos_ids)
        assert re.fullmatch(pattern, text(model, theirs))


def test_a_padded_batch_with_a_constraint_for_each_prompt(
    llama: Any, model: mw.TransformersModel, grammars: Any
) -> None:
    prompts = ["a", "a longer prompt", "mid length"]
    rows = generate(llama, prompts, grammars, do_sample=False)
    for row, pattern, prompt, grammar in zip(rows, PATTERNS, prompts, grammars, strict=True):
        assert re.fullmatch(pattern, text(model, row))
        ours = mw.generate(model, prompt, grammar, max_tokens=MAX_TOKENS)
        assert row[: len(ours.tokens)] == ours.tokens


@pytest.mark.parametrize("returned", [1, 3])
def test_sampling(llama: Any, model: mw.TransformersModel, grammars: Any, returned: int) -> None:
    torch.manual_seed(0)
    seen = set()
    for _ in range(10):
        rows = generate(
            llama, ["p", "q q", "r"], grammars, do_sample=True, temperature=2.0, num_return_sequences=returned
        )
        assert len(rows) == 3 * returned
        for at, row in enumerate(rows):
            assert re.fullmatch(PATTERNS[at // returned], text(model, row))
            seen.add(text(model, row))
    assert len(seen) > 10


@pytest.mark.parametrize("more", [{}, {"do_sample": True, "temperature": 1.5}, {"num_return_sequences": 4}])
def test_four_beams(llama: Any, model: mw.TransformersModel, grammars: Any, more: dict[str, Any]) -> None:
    torch.manual_seed(0)
    returned = more.get("num_return_sequences", 1)
    rows = generate(llama, ["p", "q q", "a longer one"], grammars, num_beams=4, **more)
    assert len(rows) == 3 * returned
    for at, row in enumerate(rows):
        assert re.fullmatch(PATTERNS[at // returned], text(model, row))


def test_more_beams_than_outputs(llama: Any, model: mw.TransformersModel) -> None:
    compiled = mw.compile(mw.Regex("12"), model.vocabulary)
    (row,) = generate(llama, ["p"], compiled, num_beams=6)
    assert text(model, row) == "12"


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("sample", [False, True])
def test_assisted_decoding(llama: Any, model: mw.TransformersModel, pattern: str, sample: bool) -> None:
    torch.manual_seed(0)
    compiled = mw.compile(mw.Regex(pattern), model.vocabulary)
    for seed in range(4):
        assistant = tiny_llama(seed=seed, layers=1)[0]
        more: dict[str, Any] = {"do_sample": True, "temperature": 1.5} if sample else {"do_sample": False}
        (row,) = generate(llama, ["a prompt"], compiled, assistant_model=assistant, **more)
        assert re.fullmatch(pattern, text(model, row))
        if not sample:
            assert row == generate(llama, ["a prompt"], compiled, do_sample=False)[0]


@pytest.mark.parametrize("pattern", [*PATTERNS, r"(ab){4,8}!"])
def test_prompt_lookup(llama: Any, model: mw.TransformersModel, pattern: str) -> None:
    compiled = mw.compile(mw.Regex(pattern), model.vocabulary)
    prompt = '{"n": 12} yes, yes abababab abcdef {"n": 999'
    (row,) = generate(llama, [prompt], compiled, do_sample=False, prompt_lookup_num_tokens=5)
    assert re.fullmatch(pattern, text(model, row))
    assert row == generate(llama, [prompt], compiled, do_sample=False)[0]


def scores(model: mw.TransformersModel, rows: int) -> torch.Tensor:
    return torch.zeros(rows, model.vocabulary.size + 6)


def allowed(out: torch.Tensor, row: int = 0) -> set[int]:
    return set(torch.nonzero(out[row] > -torch.inf).flatten().tolist())


def test_it_is_a_function_of_prefixes(model: mw.TransformersModel) -> None:
    compiled = mw.compile(mw.Regex("[abc]x[abc]y[abc]z"), model.vocabulary)
    steps = [model.encode("p" + "axbycz"[:i]) for i in range(7)]

    def ask(made: mw.LogitsProcessor, step: int) -> set[int]:
        return allowed(made(torch.tensor([steps[step]]), scores(model, 1)))

    ordered = mw.LogitsProcessor(compiled)
    expected = [ask(ordered, step) for step in range(7)]
    assert expected[0] == {model.encode(c)[0] for c in ("a", "b", "c")}
    assert expected[6] == set(model.eos_ids)
    again = mw.LogitsProcessor(compiled)
    for step in (0, 1, 2, 3, 1, 2, 0, 3, 4, 2, 5, 6, 4, 0):  # candidates come and go
        assert ask(again, step) == expected[step]
    told = mw.LogitsProcessor(compiled, prompt_lengths=1)
    for step in (6, 2, 4, 0):  # with the prompt's length known, any order will do
        assert ask(told, step) == expected[step]


def test_scores_are_not_changed_in_place_and_the_tail_is_masked(model: mw.TransformersModel) -> None:
    compiled = mw.compile(mw.Regex("a"), model.vocabulary)
    given = scores(model, 2)
    out = mw.LogitsProcessor([compiled, None])(torch.tensor([[5], [5]]), given)
    assert bool((given == 0).all())
    assert allowed(out, 0) == set(model.encode("a"))
    assert allowed(out, 1) == set(range(model.vocabulary.size))


def test_rows_that_ended_get_the_pad_or_stay_at_eos(model: mw.TransformersModel) -> None:
    compiled, (eos,), a = mw.compile(mw.Regex("a"), model.vocabulary), model.eos_ids, model.encode("a")[0]
    for pad, expected in ((None, {eos}), (3, {3})):
        made = mw.LogitsProcessor(compiled, pad_id=pad)
        row = [9]
        for token in (a, eos, 3, 3):
            made(torch.tensor([row]), scores(model, 1))
            row.append(token)
        assert allowed(made(torch.tensor([row]), scores(model, 1))) == expected


def test_a_refused_prefix_can_only_end(model: mw.TransformersModel) -> None:
    compiled, x = mw.compile(mw.Regex("ab"), model.vocabulary), model.encode("x")[0]
    made = mw.LogitsProcessor(compiled)
    for row in ([9], [9, x], [9, x, x]):
        out = made(torch.tensor([row]), scores(model, 1))
    assert allowed(out) == set(model.eos_ids)


def test_it_forgets_old_prefixes(model: mw.TransformersModel) -> None:
    compiled = mw.compile(mw.Regex("a*"), model.vocabulary)
    made, row = mw.LogitsProcessor(compiled), [9]
    for _ in range(1500):
        assert len(allowed(made(torch.tensor([row]), scores(model, 1)))) > 1
        row.append(model.encode("a")[0])
    assert len(made._states) <= 1100


def test_what_cannot_work_is_said(model: mw.TransformersModel) -> None:
    compiled = mw.compile(mw.Regex("abc"), model.vocabulary)
    other = mw.compile(mw.Regex("abc"), mw.Vocabulary([b"a", b"b", b"c", b"<eos>"], eos_ids=[3]))
    with pytest.raises(ValueError, match="3 rows are no multiple of the 2 constraints"):
        mw.LogitsProcessor([compiled, None])(torch.tensor([[1], [1], [1]]), scores(model, 3))
    with pytest.raises(ValueError, match="vocabularies differ"):
        mw.LogitsProcessor([compiled, other])
    with pytest.raises(ValueError, match="no constraint"):
        mw.LogitsProcessor([None])
    with pytest.raises(TypeError, match=r"mw\.compile"):
        mw.LogitsProcessor(mw.Regex("abc"))  # type: ignore[arg-type]
    with pytest.raises(mw.GenerationError, match="max_tokens=3"):
        mw.LogitsProcessor(compiled, max_tokens=2)
    with pytest.raises(mw.GenerationError, match="score of -inf already"):
        mw.LogitsProcessor(compiled)(torch.tensor([[1]]), torch.full((1, model.vocabulary.size), -torch.inf))
