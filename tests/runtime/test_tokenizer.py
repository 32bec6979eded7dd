"""Our tokens are transformers' tokens: 10,000 strings of every kind, for each way a vocabulary comes."""

import random
from itertools import chain
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers

from listenwell.generators.plans import TOKENS
from listenwell.runtime.gguf import unpack_gguf
from listenwell.runtime.text import Vocabulary
from tests.tiny import BERT_MARKS, MARKS

DATA = Path(__file__).parents[1] / "data"
COUNT = 10_000
SCRIPTS = """
Latin 0041-024F, phonetic 0250-02FF, combining 0300-036F, Greek 0370-03FF, Cyrillic 0400-052F,
Armenian 0531-058F, Hebrew 0591-05F4, Arabic 0600-06FF, Syriac 0700-074F, Devanagari 0900-097F,
Bengali 0980-09FE, Tamil 0B82-0BFA, Thai 0E01-0E5B, Tibetan 0F00-0FDA, Myanmar 1000-109F, Georgian 10A0-10FF,
Ethiopic 1200-137C, Cherokee 13A0-13FD, Khmer 1780-17F9, Mongolian 1800-18AA, Vietnamese 1EA0-1EF9,
polytonic 1F00-1FFE, currency 20A0-20C0, letterlike 2100-214F, numbers 2150-218B, arrows 2190-21FF,
boxes 2500-257F, Kana 3041-30FF, Chinese 4E00-9FFF, Hangul AC00-D7A3, private E000-E0FF, ligatures FB00-FB4F,
fullwidth FF01-FFEE, Gothic 10330-1034A, mathematics 1D400-1D7FF, SignWriting 1D800-1DAAF, emoji 1F300-1FAFF,
rare 20000-2A6DF, tags E0001-E007F
"""
RANGES = [tuple(int(end, 16) for end in entry.split()[1].split("-")) for entry in SCRIPTS.split(",")]
SPACES = "   \t\n\r\v\f\x85\xa0\u2003\u2028\u2029\u3000\ufeff"
JOINED = "👩👨🏳❤🦰💻🏽🏿🇩🇪\u200d\u200d\u200d\ufe0f\u20e31#"
UNSEEN = "\0\x07\x1b\x7f\x9f\xad\u200b\u200e\u202e\u2066\ufffd\ufffe"
DIGITS = [*"7٣४½²Ⅷ１𝟗", "42", "1234567890", "3.14", "1,000", "-5", "0x1F", "1e-9", " ", "  "]
LIKE_MARKS = [*MARKS, *BERT_MARKS, *TOKENS, "[MASK]", "<|im_", "start|>", "<|", "|>", "<s>", "<<|im_end|>>"]
ODD = ["I'm", "I’M", "we'LL", "e.g.", "...", "?!", "--", "naïve", "ﬁn", "straße", "İstanbul", "ǅ", "Σςσ", "Ġ"]


def strings():
    """Different strings of ten kinds, in turn; the same ones every time."""
    draw = random.Random(7)
    files = sorted(chain.from_iterable(DATA.rglob(f"*.{kind}") for kind in ("csv", "txt", "jsonl")))
    lines = [line for file in files for line in file.read_text("utf-8", "replace").splitlines()]

    def some(choices, most):
        return "".join(draw.choices(choices, k=draw.randint(1, most)))

    def script():
        first, last = draw.choice(RANGES)
        return "".join(chr(draw.randint(first, last)) for _ in range(draw.randint(1, 20)))

    def anything():  # but surrogates, which are no characters
        return "".join(
            chr(number + 0x800 * (number >= 0xD800)) for number in draw.choices(range(0x10F800), k=12)
        )

    def sentence():
        return " ".join(draw.sample(lines, draw.randint(1, 3)))

    kinds = [
        script,
        anything,
        sentence,
        lambda: some(JOINED, 12),
        lambda: some(UNSEEN, 4) + sentence()[:30] + some(UNSEEN, 4),
        lambda: some(SPACES, 9) + draw.choice(ODD) + some(SPACES, 9) + draw.choice(DIGITS) + some(SPACES, 4),
        lambda: some([*DIGITS, "a"], 10),
        lambda: some([*LIKE_MARKS, " ", "a", "\n"], 6),
        lambda: some([draw.choice(ODD), script(), "ab"], 10) * draw.choice((1, 1, 1, 50)),  # long words
        lambda: " ".join((sentence()[:40], script(), some(JOINED, 4), draw.choice(ODD), some(LIKE_MARKS, 2))),
    ]
    made: dict[str, None] = {}
    while len(made) < COUNT:
        made.update(dict.fromkeys(kind() for kind in kinds))
    return list(made)[:COUNT]


@pytest.fixture(scope="module")
def texts():
    made = strings()
    assert len(made) == COUNT and max(map(len, made)) > 5000
    assert sum("<|im_start|>" in text for text in made) > 50
    return made


def check(ours, theirs, texts):
    """No string has other tokens; transformers, too, is told that marks in a text are text."""
    wanted = theirs(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    found = ours.encode_many(texts)
    assert [text for text, one, other in zip(texts, found, wanted, strict=True) if one != other] == []
    assert [ours.encode(text) for text in texts[::50]] == found[::50]
    assert len(set(chain.from_iterable(found))) > 100


@pytest.mark.parametrize("kind", ["tiny_llama", "tiny_generator", "tiny_encoder"])
def test_a_folders_tokens_are_those_of_transformers(kind, request, texts):
    from transformers import AutoTokenizer

    folder = request.getfixturevalue(kind)
    check(Vocabulary.from_folder(folder), AutoTokenizer.from_pretrained(folder), texts)


def test_a_gguf_files_tokens_are_those_of_transformers(tiny_gguf, tmp_path, texts):
    from transformers import AutoTokenizer

    unpack_gguf(tiny_gguf, tmp_path)
    theirs = AutoTokenizer.from_pretrained(tiny_gguf.parent, gguf_file=tiny_gguf.name)
    # It passes over the file's rule for splitting ("smollm": every digit alone, before anything else).
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend = theirs.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])
    check(Vocabulary.from_folder(tmp_path), theirs, texts)


@pytest.mark.weights
def test_the_base_models_tokens_are_those_of_transformers(real_weights, texts):
    from transformers import AutoTokenizer

    from listenwell.runtime.weights import find_weights

    for folder in (real_weights, find_weights("all-minilm-l6-v2")):
        check(Vocabulary.from_folder(folder), AutoTokenizer.from_pretrained(folder), texts)
