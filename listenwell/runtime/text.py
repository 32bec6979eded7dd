"""Text to tokens and back, with the line between text and special tokens kept; batches of tokenized texts.

A special token can only come from `Vocabulary.special`, never from text: a user who types `<|im_end|>`
has typed ten characters.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from listenwell.errors import WeightsError

REPLACEMENT = "\ufffd"
_SURROGATE = re.compile("[\ud800-\udfff]")
_MARK = re.compile(r"<[^<>\s]+>")
"""What a special token looks like: some vocabularies list a few of theirs as ordinary ones."""
CPU_TOKENS, GPU_TOKENS = 512, 65_536
"""Tokens in a batch, padding included. Small batches stay in a CPU's caches: 512 was the fastest."""


class Vocabulary:
    """The tokenizer of a model folder."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.encode_special_tokens = True  # in text, special tokens are spelled out
        tokenizer.no_padding()
        tokenizer.no_truncation()
        added = tokenizer.get_added_tokens_decoder()
        marks = [
            token.content for token in added.values() if not token.special and _MARK.fullmatch(token.content)
        ]
        tokenizer.add_special_tokens(marks)  # they keep their numbers
        self._tokenizer = tokenizer
        self.special_ids = frozenset(
            number for number, token in added.items() if token.special or token.content in marks
        )
        self._size = max((int(tokenizer.get_vocab_size()), *(number + 1 for number in added)))

    @classmethod
    def from_folder(cls, folder: Path) -> "Vocabulary":
        """Read tokenizer.json."""
        try:
            return cls(Tokenizer.from_file(str(folder / "tokenizer.json")))
        except Exception as error:  # the library raises plain Exception
            raise WeightsError(
                f"{folder / 'tokenizer.json'} cannot be read: {error}.", "Copy the model folder again."
            ) from None

    def extended(self, tokens: Sequence[str]) -> "Vocabulary":
        """The same with more special tokens, numbered on from the last; those it has already stay."""
        tokenizer = Tokenizer.from_str(self.to_json())
        tokenizer.add_special_tokens(list(tokens))
        return Vocabulary(tokenizer)

    def __len__(self) -> int:
        """One more than the largest number of a token."""
        return self._size

    @cached_property
    def blank_ids(self) -> frozenset[int]:
        """Tokens that spell nothing visible: white space, and special tokens."""
        texts = self._tokenizer.decode_batch([[number] for number in range(len(self))])
        return frozenset(number for number, text in enumerate(texts) if not text.strip())

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; never a special one."""
        return list(self._tokenizer.encode(_clean(text), add_special_tokens=False).ids)

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of many texts, worked on in parallel; never a special one."""
        encodings = self._tokenizer.encode_batch_fast(
            [_clean(text) for text in texts], add_special_tokens=False
        )
        return [list(encoding.ids) for encoding in encodings]

    def encode_words(self, texts: Sequence[Sequence[str]]) -> list[tuple[list[int], list[int]]]:
        """The tokens of texts that are split into words, and for each token the index of its word."""
        cleaned = [[_clean(word) for word in words] for words in texts]
        encodings = self._tokenizer.encode_batch(cleaned, is_pretokenized=True, add_special_tokens=False)
        # Only special tokens belong to no word, and there are none.
        words_of = ([word for word in encoding.word_ids if word is not None] for encoding in encodings)
        return [(list(encoding.ids), words) for encoding, words in zip(encodings, words_of, strict=True)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The place of each token of `encode` in the text: its first letter and the one after its last."""
        return list(self._tokenizer.encode(_clean(text), add_special_tokens=False).offsets)

    def has_special(self, *tokens: str) -> bool:
        """Whether all of these are special tokens."""
        return all(self._tokenizer.token_to_id(token) in self.special_ids for token in tokens)

    def special(self, token: str) -> int:
        """The number of a special token such as `<|im_end|>`."""
        number = self._tokenizer.token_to_id(token)
        if number is None or number not in self.special_ids:
            raise WeightsError(
                f"The model's vocabulary has no special token {token!r}.",
                "Use a model with a ChatML vocabulary, such as SmolLM2-Instruct or Qwen.",
            )
        return int(number)

    def to_json(self) -> str:
        """The contents of a tokenizer.json."""
        return str(self._tokenizer.to_str())

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones left out."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))


def _clean(text: str) -> str:
    """UTF-8 has no lone surrogates: each becomes one replacement character, so places stay true."""
    return text if text.isascii() else _SURROGATE.sub(REPLACEMENT, text)


class TextStream:
    """Text as its tokens come in; a character whose bytes are not all there yet is held back."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tokens: list[int] = []
        self._shown = 0

    def push(self, token: int) -> str:
        """Add a token and return what can now be shown."""
        self._tokens.append(token)
        text = self._vocabulary.decode(self._tokens)
        ready = len(text.rstrip(REPLACEMENT))  # the bytes of an unfinished character decode to these
        piece = text[self._shown : ready]
        self._shown = max(self._shown, ready)
        return piece

    def finish(self) -> str:
        """What was held back, at the end."""
        text = self._vocabulary.decode(self._tokens)
        piece, self._shown = text[self._shown :], len(text)
        return piece


class TokenizedText(Protocol):
    """A text as tokens."""

    @property
    def tokens(self) -> np.ndarray:
        """(length,) integers."""

    @property
    def types(self) -> np.ndarray:
        """(length,) integers: 1 for tokens of the listener, 0 otherwise."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class TokenBatch:
    """The inputs of a BERT encoder, all (rows, length) int64."""

    tokens: np.ndarray
    types: np.ndarray
    positions: np.ndarray  # inside the text
    segments: np.ndarray  # the text's number in the batch, from 1; 0 is padding

    @classmethod
    def padded(cls, texts: Sequence[TokenizedText]) -> "TokenBatch":
        """One row per text, padded to the longest."""
        shape = len(texts), max(map(len, texts))
        tokens, types, segments = (np.zeros(shape, np.int64) for _ in range(3))
        for row, text in enumerate(texts):
            tokens[row, : len(text)], types[row, : len(text)] = text.tokens, text.types
            segments[row, : len(text)] = row + 1
        return cls(tokens, types, np.broadcast_to(np.arange(shape[1]), shape).copy(), segments)

    @property
    def mask(self) -> np.ndarray:
        """(rows, length) bool: False in padding."""
        return np.asarray(self.segments > 0)

    def packed(self) -> "TokenBatch":
        """The same texts in a single row without padding."""
        mask = self.mask
        arrays = (self.tokens, self.types, self.positions, self.segments)
        return TokenBatch(*(array[mask][None] for array in arrays))


def like_lengths(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices of texts of similar length, in batches of at most `tokens` tokens, padding included.

    The longest texts come first, so that insufficient memory shows at once; one that exceeds the budget is a
    batch of its own.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
