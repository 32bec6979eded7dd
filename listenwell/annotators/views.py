"""How turns become the encoder's tokens: the same way for every head, in training and after.

[CLS] turn [SEP] turn [SEP] …; segment ids tell the listener's own turns (1) from the others' (0), as in
CoBERT's input (PEC §4.1). One utterance alone is a dialogue of one turn, a reply and its post one of two.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import WeightsError
from listenwell.runtime.text import Vocabulary

View = tuple[tuple[str, bool], ...]
"""What a head reads, oldest first: each turn's text, and whether it is the listener's."""


@dataclass(frozen=True)
class Input:
    """A view as tokens."""

    tokens: np.ndarray  # (length,) int32
    types: np.ndarray  # (length,) int8: 1 where the listener's words are
    last: tuple[int, int]
    """Where the words of the last turn begin and end; tokens of it that were cut off are not counted."""

    def __len__(self) -> int:
        return len(self.tokens)


def marks(vocabulary: Vocabulary) -> tuple[int, int]:
    """The tokens before a dialogue and after each of its turns: BERT's, or ChatML's for a causal model."""
    for begin, end in (("[CLS]", "[SEP]"), ("<|im_start|>", "<|im_end|>")):
        with suppress(WeightsError):
            return vocabulary.special(begin), vocabulary.special(end)
    raise WeightsError(
        "The encoder's vocabulary has neither [CLS] and [SEP] nor ChatML's marks.",
        "Use an encoder of the BERT family, such as all-MiniLM-L6-v2.",
    )


def context_view(dialogue: Dialogue, turns: int | None = None) -> View:
    """The dialogue's first `turns` turns; all of them without a number."""
    return tuple((turn.text, turn.speaker == dialogue.listener) for turn in dialogue.turns[:turns])


RECENT_TURNS = 6
"""How many turns a recent view has."""
OWN_CHARACTERS = 100
"""How much a recent view keeps of each of the listener's turns: enough to see what was asked."""


def recent_view(turns: Sequence[Turn], listener: str) -> View:
    """The last turns; of the listener's only the beginnings, so that fixed answers leave room.

    Crisis detection reads what the person wrote, and what it was an answer to.
    """
    return tuple(
        (turn.text[:OWN_CHARACTERS] if turn.speaker == listener else turn.text, turn.speaker == listener)
        for turn in turns[-RECENT_TURNS:]
    )


def encode_views(vocabulary: Vocabulary, views: Sequence[View], limit: int) -> list[Input]:
    """Many views as tokens; equal texts are encoded once.

    The newest words are kept where a view is longer than `limit` tokens: the last turn loses its end beyond
    half of the room if those before it need the rest, then the oldest words go.
    """
    texts = list(dict.fromkeys(text for view in views for text, _ in view))
    known = dict(zip(texts, vocabulary.encode_many(texts), strict=True))
    begin, end = marks(vocabulary)
    return [_joined([(known[text], own) for text, own in view], begin, end, limit) for view in views]


def _joined(turns: list[tuple[list[int], bool]], begin: int, end: int, limit: int) -> Input:
    *earlier, (latest, own) = turns
    before = [turn for turn in earlier if turn[0]]  # a text such as a zero-width space has no tokens
    room = limit - 2  # the first mark, and the one after the last turn
    latest = latest[: max(room // 2, room - sum(len(words) + 1 for words, _ in before))]
    tokens, types = [*latest, end], [own] * (len(latest) + 1)
    room -= len(latest)
    for words, theirs in reversed(before):
        if room < 2:  # a word and its mark
            break
        kept = words[max(0, len(words) - room + 1) :]
        tokens, types = [*kept, end, *tokens], [theirs] * (len(kept) + 1) + types
        room -= len(kept) + 1
    tokens, types = [begin, *tokens], [types[0], *types]
    last = len(tokens) - 1
    return Input(np.array(tokens, np.int32), np.array(types, np.int8), (last - len(latest), last))
