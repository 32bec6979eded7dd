"""Dialogues as CoMAE reads them (§5.1): tokens, who said them, and the context's acts and expressed emotions.

u₁ END u₂ END … u_N END, then START and the reply's words; the reply's END is predicted, never read. START
carries the reply's factors, so that its first word knows them too. In a batch several replies share a row and
none sees another, or each has a row of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.errors import WeightsError
from listenwell.generators.prompt_template import END, START
from listenwell.labels import ACTS, EXPRESSED_EMOTIONS, MECHANISMS
from listenwell.papers.comae.config import SLOT_COUNT, SLOTS, ComaeConfig
from listenwell.runtime.text import Vocabulary
from listenwell.training.batching import PackedRows, pack_rows

NOTHING = -1
"""Instead of a label's number: it is not known, or of no use here."""
OTHER, SELF = 0, 1
"""The two speakers: everybody else, and who replies."""
COLUMNS = 4
"""Of a token: its number, its speaker, and its turn's act and expressed emotion."""


@dataclass(frozen=True)
class Context:
    """What stands before a reply."""

    columns: np.ndarray  # (length, COLUMNS) int32
    notices: tuple[str, ...] = ()
    """What the user should know, such as that a long text was cut."""


@dataclass(frozen=True)
class TrainingExample:
    """One reply with its context, to be learned or measured."""

    columns: np.ndarray  # (length, COLUMNS) int32: context, START, the reply's words
    context: int
    """How many of them are the context's."""
    factors: np.ndarray  # (SLOT_COUNT,) int64: the reply's own; NOTHING where not in use or not known
    labels: np.ndarray  # (length - context,) int64: the reply's words and END
    words: int
    bytes: int

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def tokens(self) -> np.ndarray:
        """(length,) int32."""
        return self.columns[:, 0]

    @property
    def weight(self) -> int:
        """How many tokens are predicted."""
        return len(self.labels)


class Inputs:
    """Makes a model's inputs."""

    def __init__(self, vocabulary: Vocabulary, config: ComaeConfig) -> None:
        self.vocabulary, self.config = vocabulary, config
        try:
            self.start, self.end = vocabulary.special(START), vocabulary.special(END)
        except WeightsError:
            # GPT-2's vocabulary has this one mark, which is the paper's [EOS].
            self.start = self.end = vocabulary.special("<|endoftext|>")

    def context(self, dialogue: Dialogue, limit: int) -> Context:
        """The context within a number of tokens: the oldest turns go, then the newest one's first words."""
        turns = [self._turn(turn, dialogue) for turn in dialogue.turns]
        kept = turns[self._dropped(turns, limit) :]
        notices = []
        if dropped := len(turns) - len(kept):
            notices.append(f"The talk is long: the {dropped} oldest turns were left out.")
        if (left_out := len(kept[0]) - limit) > 0:
            kept[0] = kept[0][left_out:]
            notices.append(f"The text was too long: its first {left_out} tokens were left out.")
        return Context(np.concatenate(kept), tuple(notices))

    def encode(self, example: Example, limit: int) -> TrainingExample | None:
        """A reply with its context within a number of tokens; None if not even the last turn has room."""
        words = self.vocabulary.encode(example.reply.text)
        reply = self.reply(words)
        turns = [self._turn(turn, example.context) for turn in example.context.turns]
        kept = turns[self._dropped(turns, limit - len(reply)) :]
        context = np.concatenate(kept)
        if len(context) + len(reply) > limit:
            return None
        return TrainingExample(
            np.concatenate((context, reply)),
            len(context),
            self.numbers(example.reply.factors),
            np.array([*words, self.end], np.int64),
            len(example.reply.text.split()),
            len(example.reply.text.encode("utf-8", "replace")),
        )

    def reply(self, words: Sequence[int]) -> np.ndarray:
        """START and the reply's words: (1 + words, COLUMNS) int32."""
        columns = np.full((1 + len(words), COLUMNS), NOTHING, np.int32)
        columns[:, 0], columns[:, 1] = [self.start, *words], SELF
        return columns

    def numbers(self, factors: Factors | None) -> np.ndarray:
        """A plan or a reply's labels as numbers: (SLOT_COUNT,) int64; NOTHING where there is none."""
        numbers = np.full(SLOT_COUNT, NOTHING, np.int64)
        known = factors or Factors()
        if known.mechanisms is not None:
            numbers[list(SLOTS["mechanisms"])] = [name in known.mechanisms for name in MECHANISMS]
        if known.act is not None:
            numbers[SLOTS["act"]] = ACTS.index(known.act)
        if known.expressed_emotion is not None:
            numbers[SLOTS["expressed_emotion"]] = EXPRESSED_EMOTIONS.index(known.expressed_emotion)
        unused = sorted(set(range(SLOT_COUNT)) - set(self.config.slots))
        numbers[unused] = NOTHING
        return numbers

    def is_known(self, numbers: np.ndarray) -> bool:
        """Whether every factor that is in use has its number."""
        return all(numbers[slot] != NOTHING for slot in self.config.slots)

    def plan(self, numbers: Sequence[int], emotion: str | None = None) -> Factors:
        """The plan that numbers stand for; the user's emotion is only carried along."""
        used = self.config.factors
        chosen = tuple(name for name, number in zip(MECHANISMS, numbers, strict=False) if number == 1)
        return Factors(
            emotion=emotion,
            mechanisms=chosen if "mechanisms" in used else None,
            act=ACTS[numbers[SLOTS["act"][0]]] if "act" in used else None,
            expressed_emotion=EXPRESSED_EMOTIONS[numbers[SLOTS["expressed_emotion"][0]]]
            if "expressed_emotion" in used
            else None,
        )

    def _turn(self, turn: Turn, dialogue: Dialogue) -> np.ndarray:
        """A context turn's columns, its end mark's too."""
        words = self.vocabulary.encode(turn.text)
        columns = np.empty((len(words) + 1, COLUMNS), np.int32)
        columns[:, 0] = [*words, self.end]
        columns[:, 1] = SELF if turn.speaker == dialogue.listener else OTHER
        columns[:, 2:] = self.numbers(turn.factors)[[SLOTS["act"][0], SLOTS["expressed_emotion"][0]]]
        return columns

    @staticmethod
    def _dropped(turns: Sequence[np.ndarray], room: int) -> int:
        """How many of the oldest turns do not fit; the newest always stays."""
        length, dropped = sum(map(len, turns)), 0
        while length > room and dropped < len(turns) - 1:
            length -= len(turns[dropped])
            dropped += 1
        return dropped


@dataclass(frozen=True)
class ComaeBatch(PackedRows):
    """Arrays of a batch; a flat index counts tokens row after row."""

    columns: np.ndarray  # (rows, length, COLUMNS) int64
    owners: np.ndarray  # (rows, length) int64: of a reply's token its example's number; else 0
    ends: np.ndarray  # (examples,) int64: flat index of each context's last token
    factors: np.ndarray  # (examples, SLOT_COUNT) int64
    sources: np.ndarray  # (targets,) int64: flat index of the token that predicts each target
    labels: np.ndarray  # (targets,) int64: the target tokens

    @property
    def weight(self) -> int:
        """How many tokens are predicted."""
        return len(self.labels)


def collate(
    examples: Sequence[TrainingExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> ComaeBatch:
    """Rows of example numbers as one batch; rows of padding fill up to `height`."""
    packed = pack_rows(examples, rows, width, height)
    chosen = [examples[index] for row in rows for index in row]
    columns = np.full((packed.tokens.size, COLUMNS), NOTHING, np.int64)
    columns[:, 0] = packed.tokens.flatten()
    owners = np.zeros(packed.tokens.size, np.int64)
    for number, (start, example) in enumerate(zip(packed.starts, chosen, strict=True), start=1):
        columns[start : start + len(example)] = example.columns
        owners[start + example.context : start + len(example)] = number
    return ComaeBatch(
        **vars(packed),
        columns=columns.reshape(*packed.tokens.shape, COLUMNS),
        owners=owners.reshape(packed.tokens.shape),
        ends=packed.starts + [example.context - 1 for example in chosen],
        factors=np.stack([example.factors for example in chosen]),
        sources=np.flatnonzero(owners),  # each token of the reply predicts the next one, START the first
        labels=np.concatenate([example.labels for example in chosen]),
    )
