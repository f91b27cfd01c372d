"""Token bytes against the decoders of the `tokenizers` library."""

from __future__ import annotations

import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from maskwright import Vocabulary, VocabularyError
from maskwright.vocabulary.decoder import compile_decoder

PIECES = ["a", "▁", "▁▁", "▁b", "c▁", "xx", "x", "<0x41>", "<0xE2>", "<0x96>", "<0x81>", "<0x0a>", "<0xZZ>", "<0x4>"]
PIECES += [" ", "  d ", "Ġ", "Ċ", "Ġé", "â", "ĳ", "ļ", "日本", "😀", "▁日", "e▁f", "x▁x"]

SPM = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
CHAINS = {
    "llama": decoders.Sequence([*SPM, decoders.Strip(" ", 1, 0)]),
    "gemma": decoders.Sequence(SPM),
    "nested": decoders.Sequence([decoders.Sequence(SPM[:1]), decoders.Sequence(SPM[1:])]),
    "byte level": decoders.ByteLevel(),
    "byte level in a sequence": decoders.Sequence([decoders.ByteLevel()]),
    "byte level last": decoders.Sequence([decoders.Replace("xx", "Ġ"), decoders.ByteLevel(), decoders.Fuse()]),
    "metaspace": decoders.Metaspace(),
    "metaspace first": decoders.Metaspace(prepend_scheme="first"),
    "metaspace never": decoders.Metaspace(prepend_scheme="never"),
    "metaspace of x": decoders.Metaspace(replacement="x"),
    "metaspace, bytes": decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback()]),
    "fuse": decoders.Fuse(),
    "replace joined": decoders.Sequence([decoders.Fuse(), decoders.Replace("x", "yy")]),
    "replace words": decoders.Sequence([decoders.Replace("xx", "y"), decoders.Replace("▁", ""), decoders.Fuse()]),
    "replace nothing": decoders.Sequence([decoders.Replace("", "y"), decoders.Fuse()]),
    "strip each": decoders.Sequence([decoders.Strip("▁", 0, 1), decoders.Strip("x", 1, 0), decoders.Strip(" ", 2, 0)]),
}


def tokenizer(pieces: list[str], decoder: object = None) -> Tokenizer:
    made = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    if decoder is not None:
        made.decoder = decoder
    return made


@pytest.mark.parametrize("name", CHAINS)
def test_bytes_are_what_the_decoder_writes_in_the_middle(name: str) -> None:
    made = tokenizer(["anchor", *PIECES, "<eos>"], CHAINS[name])
    vocabulary = Vocabulary.from_tokenizer(made, eos_ids=[len(PIECES) + 1])
    anchor = made.decode([0])
    for first in range(1, len(PIECES) + 1):
        for second in (0, *range(1, len(PIECES) + 1)):
            written = made.decode([0, first, second])
            spelled = vocabulary.decode([first, second])
            assert agree(written.removeprefix(anchor), spelled, name), (made.id_to_token(first), second)


def agree(written: str, spelled: bytes, name: str) -> bool:
    """Whether a decoder wrote these bytes; ByteFallback spoils the valid neighbours of a wrong byte, too."""
    if "byte level" in name:
        return written == spelled.decode(errors="replace")
    try:
        return written == spelled.decode()
    except UnicodeDecodeError:
        return "\ufffd" in written


def test_split_utf8_is_kept_as_bytes() -> None:
    spm = tokenizer(["<0xE2>", "<0x96>", "<0x81>", "▁", "<eos>"], CHAINS["llama"])
    assert Vocabulary.from_tokenizer(spm, eos_ids=4).tokens[:4] == (b"\xe2", b"\x96", b"\x81", b" ")
    level = tokenizer(["â", "ĸ", "Ġ", "é", "日", "<eos>"], decoders.ByteLevel())
    found = Vocabulary.from_tokenizer(level, eos_ids=5)
    assert found.tokens[:5] == (b"\xe2", b"\x96", b" ", b"\xe9", "日".encode())


@pytest.mark.parametrize(
    ("decoder", "location", "said"),
    [
        (decoders.WordPiece(), "decoder", "'WordPiece'"),
        (decoders.BPEDecoder(), "decoder", "'BPEDecoder'"),
        (decoders.CTC(), "decoder", "'CTC'"),
        (decoders.Sequence([decoders.Fuse(), decoders.ByteFallback()]), "decoder/decoders/1", "ByteFallback"),
        (decoders.Sequence([decoders.Fuse(), decoders.ByteLevel()]), "decoder/decoders/1", "ByteLevel"),
        (decoders.Sequence([decoders.Fuse(), decoders.Metaspace()]), "decoder/decoders/1", "Metaspace"),
        (decoders.Sequence([decoders.Fuse(), decoders.Replace("ab", "c")]), "decoder/decoders/1", "Replace"),
        (decoders.Sequence([decoders.ByteFallback(), decoders.Replace("▁", " ")]), "decoder/decoders/1", "Replace"),
        (decoders.Sequence([decoders.ByteFallback(), decoders.Strip(" ", 1, 0)]), "decoder/decoders/1", "Strip"),
        (decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 0, 1)]), "decoder/decoders/1", "Strip"),
        (
            decoders.Sequence([decoders.Fuse(), decoders.Sequence([decoders.Fuse(), decoders.CTC()])]),
            "decoder/decoders/1/decoders/1",
            "'CTC'",
        ),
    ],
)
def test_context_is_refused(decoder: object, location: str, said: str) -> None:
    with pytest.raises(VocabularyError, match="depend on the tokens around") as caught:
        Vocabulary.from_tokenizer(tokenizer(["a", "b"], decoder), eos_ids=[1])
    assert caught.value.location == location
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "decoder",
    [
        7,
        [],
        {"type": 7},
        {"type": "Sequence"},
        {"type": "Sequence", "decoders": [None]},
        {"type": "Unheard"},
        {"type": "Replace"},
        {"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""},
        {"type": "Replace", "pattern": {"String": "a"}, "content": None},
        {"type": "Metaspace"},
        {"type": "Metaspace", "replacement": "ab"},
        {"type": "Strip", "content": " ", "start": -1, "stop": 0},
        {"type": "Strip", "content": " ", "start": True, "stop": 0},
    ],
)
def test_malformed_decoders(decoder: object) -> None:
    with pytest.raises(VocabularyError) as caught:
        compile_decoder(decoder)
    assert caught.value.location is not None and caught.value.location.startswith("decoder")


def test_deep_nesting() -> None:
    chain: object = {"type": "Fuse"}
    for depth in range(100_000):
        chain = {"type": "Sequence", "decoders": [chain]}
        if depth == 20:
            assert compile_decoder(chain)("▁a") == "▁a".encode()
    with pytest.raises(VocabularyError, match="nested more than 50 deep"):
        compile_decoder(chain)


def test_without_a_decoder_the_pre_tokenizer_tells() -> None:
    pieces = ["Ġa", "▁a", "<eos>"]
    for pre, wanted in (
        (pre_tokenizers.ByteLevel(), (b" a", "▁a".encode())),
        (pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.ByteLevel()]), (b" a", "▁a".encode())),
        (pre_tokenizers.Metaspace(), ("Ġa".encode(), b" a")),
    ):
        made = tokenizer(pieces)
        made.pre_tokenizer = pre
        assert Vocabulary.from_tokenizer(made, eos_ids=2).tokens[:2] == wanted
    for other in (None, pre_tokenizers.Whitespace()):
        made = tokenizer(pieces)
        if other:
            made.pre_tokenizer = other
        with pytest.raises(VocabularyError, match=r"no decoder.*decoders\.Fuse"):
            Vocabulary.from_tokenizer(made, eos_ids=2)


def test_models() -> None:
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "[UNK]": 2, "é": 3, "<eos>": 4}, unk_token="[UNK]"))
    words.decoder = decoders.Fuse()
    found = Vocabulary.from_tokenizer(words, eos_ids=[4])
    assert found.tokens == (b"a", b"b", b"[UNK]", "é".encode(), b"<eos>")
    assert found.special_ids == {2, 4}

    scores = [("<unk>", 0.0), ("▁", -1.0), ("▁a", -2.0), ("</s>", 0.0)]
    unigram = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=False))
    unigram.normalizer = normalizers.NFKC()
    unigram.decoder = decoders.Metaspace()
    found = Vocabulary.from_tokenizer(unigram, eos_ids=[3])
    assert found.tokens == (b"<unk>", b" ", b" a", b"</s>")
    assert found.special_ids == {0, 3}

    pieces = Tokenizer(models.WordPiece({"a": 0, "##b": 1}, unk_token="a"))
    pieces.decoder = decoders.WordPiece()
    with pytest.raises(VocabularyError, match="WordPiece tokenizers are refused"):
        Vocabulary.from_tokenizer(pieces, eos_ids=[1])
    for kind in ({"continuing_subword_prefix": "##"}, {"end_of_word_suffix": "</w>"}):
        affixed = Tokenizer(models.BPE({"a": 0, "b": 1}, [], **kind))
        affixed.decoder = decoders.Fuse()
        with pytest.raises(VocabularyError, match=next(iter(kind))):
            Vocabulary.from_tokenizer(affixed, eos_ids=[1])


def test_added_tokens() -> None:
    made = tokenizer(["a", "Ġa"], decoders.ByteLevel())
    plain = ["<think>", "  ", "\t\t", "<｜User｜>", "<unused7>", "é", "<0x41>"]
    made.add_tokens([AddedToken(text, special=False) for text in plain])
    made.add_special_tokens([AddedToken("<eos>"), AddedToken("<sep>")])
    found = Vocabulary.from_tokenizer(made, eos_ids=[9])
    assert found.tokens == (b"a", b" a", *(text.encode() for text in plain), b"<eos>", b"<sep>")
    # é is a letter to the encoder and the byte 0xE9 to the decoder: neither is safe.
    assert found.special_ids == {6, 7, 9, 10}
    over = Vocabulary.from_tokenizer(made, eos_ids=[9], special_ids=[0])
    assert over.special_ids == {0, 9}


RESERVED = """
<unused0> <unused99> [unused1] [UNUSED_TOKEN_141] <|reserved_special_token_247|> <reserved_106> <|extra_7|>
<|unused001|> <|placeholder1|> <|dummy_3|> <SPECIAL_20> <|reserved_200000|> <extra_id_0> [PAD151936]
>>UNUSED_219<< <｜place▁holder▁no▁0｜>
"""
ORDINARY = """
<think> <table> [1] <1> <unused> unused1 <unused0 <|fim_pad|> <h1> <special> [INST] <0x41> <pad>
"""


def test_reserved_tokens() -> None:
    made = tokenizer([*RESERVED.split(), *ORDINARY.split(), "<eos>"], decoders.Fuse())
    eos = made.get_vocab_size() - 1
    found = Vocabulary.from_tokenizer(made, eos_ids=[eos])
    assert found.special_ids == {*range(len(RESERVED.split())), eos}


def test_gaps_and_duplicates() -> None:
    made = json.loads(tokenizer(["a", "<0x61>", "▁"], CHAINS["llama"]).to_str())
    made["model"]["vocab"] = {"a": 0, "<0x61>": 5, "▁": 7}
    found = Vocabulary.from_tokenizer(Tokenizer.from_str(json.dumps(made)), eos_ids=[7])
    assert found.tokens == (b"a", b"", b"", b"", b"", b"a", b"", b" ")
    assert list(found.kinds) == [0, 1, 1, 1, 1, 0, 1, 1]
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_tokenizer(Tokenizer.from_str(json.dumps(made)), eos_ids=[3])
    assert caught.value.location == "token 3"
