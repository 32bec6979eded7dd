import json

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from listenwell.errors import WeightsError
from listenwell.runtime.gguf_vocabulary import CONTROL, NORMAL, USER_DEFINED, tokenizer_json
from listenwell.runtime.text import Vocabulary
from tests.tiny import SENTENCES, tiny_tokenizer

BYTE = 6  # llama.cpp's type of tokens such as <0x0A>
TEXTS = (
    "I am so happy for you! How did it go?",
    "In 2026, 12:30 — naïve 😀\nYes.\n\n\nNo   way",
    "  two  spaces\n\ttab",
    "<bos> <start_of_turn> <0x0A>",
    "",
)


def byte_level(pre):
    tokenizer = tiny_tokenizer()
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.token_to_id)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [CONTROL if token.startswith("<|") else NORMAL for token in tokens],
        "tokenizer.ggml.merges": [
            " ".join(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]
        ],
    }


def words_of(fields, text):
    tokenizer = Tokenizer.from_str(tokenizer_json(fields))
    if tokenizer.normalizer:
        text = tokenizer.normalizer.normalize_str(text)
    pieces = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    return [text[start:end] for _, (start, end) in pieces]


@pytest.mark.parametrize(
    ("pre", "words"),
    [
        ("gpt-2", ["I", "'ll", " pay", " 1234", "!", "\n", "\n", "Cafe", "\u0301"]),
        ("smollm", ["I", "'ll", " pay", " ", "1", "2", "3", "4", "!", "\n", "\n", "Cafe", "\u0301"]),
        ("qwen2", ["I", "'ll", " pay", " ", "1", "2", "3", "4", "!\n\n", "Café"]),
        ("llama-bpe", ["I", "'ll", " pay", " ", "123", "4", "!\n\n", "Cafe", "\u0301"]),
    ],
)
def test_text_is_cut_as_each_rule_says(pre, words):
    assert words_of(byte_level(pre), "I'll pay 1234!\n\nCafe\u0301") == words


def test_rules_and_models_that_are_not_known_are_named():
    with pytest.raises(WeightsError, match=r"by the rule 'tekken'.*Use a Hugging Face folder"):
        tokenizer_json(byte_level("tekken"))
    with pytest.raises(
        WeightsError, match=r"tokenizer 'bert' inside .* neither .* Use a Hugging Face folder"
    ):
        tokenizer_json(byte_level("gpt-2") | {"tokenizer.ggml.model": "bert"})


def trained_pieces(prefix):
    """A BPE that falls back to bytes, as SentencePiece's converted to a tokenizer.json."""
    bytes_ = [f"<0x{number:02X}>" for number in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    space = [normalizers.Prepend("▁")] if prefix else []
    tokenizer.normalizer = normalizers.Sequence([*space, normalizers.Replace(" ", "▁")])
    # Pieces do not cross words in training; a tokenizer.json has no such rule.
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("▁"), "merged_with_next")
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    marks = ["<unk>", "<bos>", "<start_of_turn>"]
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=[*marks, *bytes_], show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if token["content"] in marks]
    data["pre_tokenizer"] = None
    return Tokenizer.from_str(json.dumps(data)), marks


@pytest.mark.parametrize("prefix", [False, True])
def test_sentence_pieces_are_merged_by_their_scores(prefix):
    original, marks = trained_pieces(prefix)
    tokens = sorted(original.get_vocab(), key=original.token_to_id)
    kinds = [CONTROL if token in marks else BYTE if token.startswith("<0x") else NORMAL for token in tokens]
    fields = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [*tokens, "▁▁"],
        "tokenizer.ggml.token_type": [*kinds, USER_DEFINED],
        "tokenizer.ggml.scores": [-float(number) for number in range(len(tokens) + 1)],
        "tokenizer.ggml.add_space_prefix": prefix,
    }
    ours, theirs = Vocabulary(Tokenizer.from_str(tokenizer_json(fields))), Vocabulary(original)
    for text in TEXTS:
        assert not set(ours.encode(text)) & ours.special_ids
        assert ours.decode(ours.encode(text)) == text
        if "  " not in text:
            assert ours.encode(text) == theirs.encode(text), text
    if not prefix:
        assert len(tokens) in ours.encode("a  b")  # two spaces are a piece of their own
    assert ours.special_ids == {0, 1, 2}
