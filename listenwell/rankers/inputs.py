"""How contexts, personas and replies become a ranker's tokens: the same way in training and after.

A context is its newest turns, a persona its sentences, a reply one turn; segment ids tell the words of who
replies (1) from the others' (0) (PEC §4.2).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.annotators.fasttext import FastTextClassifier
from listenwell.annotators.views import View, context_view, encode_views, marks
from listenwell.dialogue import Dialogue
from listenwell.rankers.config import RankerConfig
from listenwell.runtime.text import Vocabulary

SHIPPED = "shipped"


@dataclass(frozen=True)
class Text:
    """One context, persona or reply as tokens."""

    tokens: np.ndarray  # (length,) int32
    types: np.ndarray  # (length,) int8: 1 where the words of who replies are
    parts: np.ndarray  # (length,) int16: the turn's or sentence's number, from 1

    def __len__(self) -> int:
        return len(self.tokens)


NOTHING = Text(np.zeros(0, np.int32), np.zeros(0, np.int8), np.zeros(0, np.int16))
"""A persona without a sentence."""


class Inputs:
    """Makes texts for one ranker, with its base model's vocabulary."""

    def __init__(self, vocabulary: Vocabulary, config: RankerConfig) -> None:
        self._vocabulary, self._config = vocabulary, config
        self._end = marks(vocabulary)[1]
        label_folder = None if config.prepend == SHIPPED else Path(config.prepend)
        self._classifier = FastTextClassifier.load(label_folder) if config.prepend else None
        labels = vocabulary.encode_many(self._classifier.config.labels) if self._classifier else []
        # Room for the longest of all labels: what is cut off a text must not hang on its neighbours'.
        self._label_room = max(map(len, labels), default=0)

    def contexts(self, dialogues: Sequence[Dialogue]) -> list[Text]:
        """The newest turns of each dialogue."""
        views = [context_view(dialogue)[-self._config.turns :] for dialogue in dialogues]
        return self._texts(views, self._config.context_tokens, labelled=True)

    def personas(self, dialogues: Sequence[Dialogue]) -> list[Text]:
        """The sentences about who replies; where there are too many, a fixed random choice of them."""
        views = [_sentences(dialogue, self._config.persona) for dialogue in dialogues]
        known = [view for view in views if view]
        texts = iter(self._texts(known, self._config.persona_tokens, labelled=False))
        return [next(texts) if view else NOTHING for view in views]

    def replies(self, replies: Sequence[str]) -> list[Text]:
        """Each reply."""
        views: list[View] = [((reply, True),) for reply in replies]
        return self._texts(views, self._config.reply_tokens, labelled=True)

    def _texts(self, views: Sequence[View], limit: int, labelled: bool) -> list[Text]:
        labels = self._labels(views) if labelled else [[]] * len(views)
        room = limit - (self._label_room if labelled else 0)
        texts = []
        for view, label in zip(encode_views(self._vocabulary, views, room), labels, strict=True):
            ends = view.tokens == self._end  # text never holds one
            parts = 1 + np.cumsum(ends) - ends
            # A label stands after the first mark, as a part of the first turn.
            order = [0] * len(label)
            tokens = np.concatenate((view.tokens[:1], label, view.tokens[1:]))
            types = np.concatenate((view.types[:1], view.types[order], view.types[1:]))
            parts = np.concatenate((parts[:1], parts[order], parts[1:]))
            texts.append(Text(tokens.astype(np.int32), types, parts.astype(np.int16)))
        return texts

    def _labels(self, views: Sequence[View]) -> list[list[int]]:
        """The tokens of each text's likeliest label, where labels are put before texts."""
        if self._classifier is None:
            return [[]] * len(views)
        scores = self._classifier.scores([" ".join(text for text, _ in view) for view in views])
        return self._vocabulary.encode_many([row[0].label for row in scores])


def stacked(texts: Sequence[Text]) -> dict[str, np.ndarray]:
    """Texts as the rows of three arrays (rows, length) int64, by the names of `base.Words`."""
    lengths = np.array([len(text) for text in texts], np.int64)
    longest = max(1, int(lengths.max(initial=1)))  # an encoder reads at least one place
    there = np.arange(longest) < lengths[:, None]
    arrays = {name: np.zeros(there.shape, np.int64) for name in ("tokens", "types", "parts")}
    for name, array in arrays.items():
        if texts:
            array[there] = np.concatenate([getattr(text, name) for text in texts])
    return arrays


def distinct_texts(texts: Sequence[Text]) -> tuple[list[Text], list[int]]:
    """The different texts, and for each text the index of its equal among them."""
    distinct: dict[bytes, Text] = {}
    keys = [text.tokens.tobytes() + text.types.tobytes() for text in texts]
    for key, text in zip(keys, texts, strict=True):
        distinct.setdefault(key, text)
    index_of = {key: index for index, key in enumerate(distinct)}
    return list(distinct.values()), [index_of[key] for key in keys]


def _sentences(dialogue: Dialogue, count: int) -> View:
    persona = dialogue.persona_of(dialogue.listener)
    lines = persona.lines if persona else ()
    if len(lines) > count:
        # Random, so that no place is favoured (PEC §5.2); fixed, so that a score can be had again.
        key = hashlib.sha256("\n".join((dialogue.id, *lines)).encode("utf-8", "surrogatepass")).digest()
        chosen = np.random.default_rng(list(key)).permutation(len(lines))[:count]
        lines = tuple(lines[index] for index in chosen)
    return tuple((line, True) for line in lines)
