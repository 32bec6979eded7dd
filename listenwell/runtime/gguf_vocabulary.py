"""The vocabulary inside a GGUF file as a tokenizer.json."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from listenwell.errors import WeightsError

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
"""llama.cpp's token types: pieces of words, marks such as <|im_start|>, and others that are never split."""
_SPACE = "▁"
"""What SentencePiece writes for a space."""

_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""GPT-4's words, with so many digits in one."""


@dataclass(frozen=True)
class _Split:
    """How text is cut before byte pairs are merged."""

    words: str | None = None
    """A pattern; GPT-2's by default."""
    digits: bool = False
    """Each digit stands alone."""
    whole: bool = False
    """A word that is a token is not merged from parts."""
    composed: bool = False
    """Letters and their accents become one character (NFC)."""

    def pre_tokenizer(self) -> Any:  # noqa: ANN401
        first: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if self.digits else []
        if self.words is not None:
            first = [pre_tokenizers.Split(Regex(self.words), "isolated")]
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=self.words is None)
        return pre_tokenizers.Sequence([*first, byte_level]) if first else byte_level


_SPLITS = {
    "default": _Split(),
    "gpt-2": _Split(),
    "smollm": _Split(digits=True),
    "qwen2": _Split(_WORDS % "", composed=True),
    "llama-bpe": _Split(_WORDS % "{1,3}", whole=True),
}
"""By the name that a file has for its rule."""


def tokenizer_json(fields: Mapping[str, Any]) -> str:
    """A tokenizer.json from a file's key-value part: byte-level BPE, or SentencePiece's."""
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    kinds: list[int] = fields["tokenizer.ggml.token_type"]
    if (model := fields["tokenizer.ggml.model"]) == "gpt2":
        tokenizer = _byte_level(fields, tokens)
    elif model == "llama":
        tokenizer = _sentence_pieces(fields, tokens, kinds)
    else:
        raise WeightsError(
            f"The tokenizer {model!r} inside the GGUF file is neither a byte-level BPE nor SentencePiece's.",
            "Use a Hugging Face folder with a tokenizer.json.",
        )
    for kind in (CONTROL, USER_DEFINED):
        tokenizer.add_tokens(
            [
                AddedToken(token, normalized=_SPACE in token, special=kind == CONTROL)
                for token, own in zip(tokens, kinds, strict=True)
                if own == kind
            ]
        )
    return str(tokenizer.to_str())


def _byte_level(fields: Mapping[str, Any], tokens: Sequence[str]) -> Tokenizer:
    if (name := fields.get("tokenizer.ggml.pre") or "default") not in _SPLITS:
        raise WeightsError(
            f"The GGUF file splits text by the rule {name!r}, which is not known here.",
            "Use a Hugging Face folder with a tokenizer.json.",
        )
    split = _SPLITS[name]
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=split.whole))
    if split.composed:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = split.pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentence_pieces(fields: Mapping[str, Any], tokens: Sequence[str], kinds: Sequence[int]) -> Tokenizer:
    """SentencePiece's BPE: the pair is merged first whose union has the highest score."""
    pieces = {
        token: score
        for token, score, kind in zip(tokens, fields["tokenizer.ggml.scores"], kinds, strict=True)
        if kind == NORMAL
    }

    def merges() -> Iterator[tuple[str, str]]:
        for piece in sorted(pieces, key=lambda piece: -pieces[piece]):
            for end in range(1, len(piece)):
                if (left := piece[:end]) in pieces and (right := piece[end:]) in pieces:
                    yield left, right

    vocabulary = {token: number for number, token in enumerate(tokens)}
    unknown = tokens[fields.get("tokenizer.ggml.unknown_token_id") or 0]
    tokenizer = Tokenizer(
        models.BPE(vocabulary, list(merges()), unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    starts_with_space = fields.get("tokenizer.ggml.add_space_prefix", True)
    prefix: list[Any] = [normalizers.Prepend(_SPACE)] if starts_with_space else []
    tokenizer.normalizer = normalizers.Sequence([*prefix, normalizers.Replace(" ", _SPACE)])
    strip: list[Any] = [decoders.Strip(" ", 1, 0)] if starts_with_space else []
    whole = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    tokenizer.decoder = decoders.Sequence(whole)
    return tokenizer
