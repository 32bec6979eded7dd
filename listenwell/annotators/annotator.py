"""The annotators as one object: what every turn of a dialogue feels and does.

from listenwell import Annotator, Dialogue, Turn
Annotator.load().annotate(Dialogue((Turn("speaker", "I finally got promoted today!"),)))
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from listenwell.annotators import WINDOW
from listenwell.annotators.config import KIND, ClassifierConfig, probabilities
from listenwell.annotators.heads import (
    CONTEXT,
    EMOTION_GROUP,
    GIVEN_FROM,
    HEADS,
    ORDER,
    REPLY,
    UTTERANCE,
    Head,
)
from listenwell.annotators.inference import ClassifierBackend, ClassifierOutput, hear
from listenwell.annotators.onnx_classifier import load_onnx_classifier
from listenwell.annotators.rationales import shown_parts
from listenwell.annotators.turn_factors import with_factors
from listenwell.annotators.views import View, context_view, encode_views
from listenwell.checkpoint import MANIFEST, find_checkpoint, open_checkpoint
from listenwell.dialogue import Dialogue, Reading, Scored
from listenwell.errors import CheckpointError, InputError, unknown_name
from listenwell.files import hash_files
from listenwell.labels import EMOTION_GROUPS, EMOTIONS, GROUP_OF_EMOTION, LEVELS
from listenwell.runtime.engines import AUTO, ONNX, TORCH, choose_engine
from listenwell.runtime.onnx.checkpoint_encoder import base_folder, runs_on_onnx
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import HUB_FILES, find_weights
from listenwell.serialization import build

SHIPPED = Path(__file__).parents[1] / "pretrained" / "annotators"


@dataclass(frozen=True)
class _Asked:
    """A view of one turn, and what is asked of it."""

    dialogue: int
    turn: int
    view: View
    heads: tuple[str, ...]


class Annotator:
    """One or more ears; each head is asked of the first that has it."""

    def __init__(
        self,
        classifiers: Sequence[tuple[ClassifierBackend, Vocabulary]],
        heads: Sequence[str] | None,
        key: str,
    ) -> None:
        self._classifiers = tuple(classifiers)
        owner: dict[str, int] = {}
        for number, (classifier, _) in enumerate(self._classifiers):
            for name in classifier.config.heads:
                owner.setdefault(name, number)
        for name in heads or ():
            if name not in owner:
                raise unknown_name("head", name, tuple(owner))
        self.heads = tuple(name for name in HEADS if name in owner and (heads is None or name in heads))
        """The heads that are asked, in the order of HEADS."""
        self.key = hashlib.sha256(f"{key} {' '.join(self.heads)}".encode()).hexdigest()
        """Names weights and heads: equal keys give equal annotations."""
        self._owner = {name: owner[name] for name in self.heads}

    @classmethod
    def load(
        cls,
        folder: Path | None = None,
        heads: Sequence[str] | None = None,
        weights: Path | None = None,
        engine: str = AUTO,
        precision: str = "int8",
    ) -> "Annotator":
        """The shipped annotators, or those of a folder.

        Args:
            folder: a checkpoint of an ear, or a folder of several.
            heads: only these; names of `heads.HEADS`.
            weights: the encoder's own folder, where it is not the installed one.
            engine: "onnx", "torch", or "auto": onnxruntime where it is installed and can run the ear.
            precision: of onnx, "int8" or "fp32"; torch is always exact.
        """
        for name in heads or ():
            if name not in HEADS:
                raise unknown_name("head", name, HEADS)
        folders = find_classifiers(folder or SHIPPED)
        classifiers, engines = [], []
        for place in folders:
            classifier, vocabulary, runs_on = _load_classifier(place, weights, engine, precision)
            classifiers.append((classifier, vocabulary))
            engines.append(runs_on)
        key = hash_files(place / MANIFEST for place in folders)
        if weights is not None:  # the checkpoints' own sums say nothing of another encoder
            encoder = find_weights(classifiers[0][0].config.base, weights)
            key += hash_files(encoder / name for name in HUB_FILES)
        if any(engines):  # another engine rounds otherwise
            key += ", ".join(engines)
        return cls(classifiers, heads, key)

    def annotate(self, dialogue: Dialogue, top: int = 5) -> Dialogue:
        """The dialogue with readings on every turn, and factors where they were not known.

        Args:
            dialogue: any dialogue.
            top: how many labels of each head to keep.
        """
        return next(iter(self.annotate_all([dialogue], top)))

    def annotate_all(
        self, dialogues: Iterable[Dialogue], top: int = 5, last: bool = False
    ) -> Iterator[Dialogue]:
        """The same for many, in order; texts of like length share a batch, equal ones are read once.

        Args:
            dialogues: any dialogues.
            top: how many labels of each head to keep.
            last: read the last turn of each alone, and leave those before it as they are.
        """
        if top < 1:
            raise InputError(f"top is {top}.", "Keep one label or more.")
        source = iter(dialogues)
        while window := list(islice(source, WINDOW)):
            readings = self._readings(window, top, last)
            for dialogue, found in zip(window, readings, strict=True):
                turns = [
                    replace(turn, readings=_joined(turn.readings, read))
                    for turn, read in zip(dialogue.turns, found, strict=True)
                ]
                yield with_factors(replace(dialogue, turns=tuple(turns)))

    def understand(self, dialogue: Dialogue) -> tuple[Scored, ...]:
        """What the other person feels, the most likely first; fills the listener's place of that name."""
        return self.understand_batch([dialogue])[0]

    def understand_batch(self, dialogues: Sequence[Dialogue]) -> list[tuple[Scored, ...]]:
        """The same for several dialogues, read together."""
        heard = self._hear("emotion", [context_view(dialogue) for dialogue in dialogues])
        classifier = self._classifiers[self._owner["emotion"]][0]
        found = probabilities(heard.logits("emotion"), "emotion", classifier.config.temperature("emotion"))
        return [_best(row, HEADS["emotion"], 5) for row in found]

    def _hear(self, head: str, views: Sequence[View]) -> ClassifierOutput:
        if head not in self._owner:
            raise unknown_name("head", head, self.heads)
        classifier, vocabulary = self._classifiers[self._owner[head]]
        return hear(classifier, encode_views(vocabulary, views, classifier.config.limit))

    def _readings(self, dialogues: Sequence[Dialogue], top: int, last: bool) -> list[list[list[Reading]]]:
        """For each dialogue and turn its readings, in the order of HEADS."""
        asked = [
            item
            for number, dialogue in enumerate(dialogues)
            for item in _asked(number, dialogue, self.heads)
            if not last or item.turn == len(dialogue.turns) - 1
        ]
        found: list[list[dict[str, Reading]]] = [[{} for _ in dialogue.turns] for dialogue in dialogues]
        for number, (classifier, vocabulary) in enumerate(self._classifiers):
            own = {name for name in self.heads if self._owner[name] == number}
            mine = [item for item in asked if own & set(item.heads)]
            views = {view: place for place, view in enumerate(dict.fromkeys(item.view for item in mine))}
            inputs = encode_views(vocabulary, list(views), classifier.config.limit)
            marked = {views[item.view] for item in mine if set(classifier.config.marked) & set(item.heads)}
            heard = hear(classifier, inputs, marked)
            for head in sorted(own):
                items = [item for item in mine if head in item.heads]
                if not items:
                    continue
                logits = heard.logits(head, [views[item.view] for item in items])
                scores = probabilities(logits, head, classifier.config.temperature(head))
                for item, row in zip(items, scores, strict=True):
                    place = views[item.view]
                    words: tuple[str, ...] = ()
                    if head in classifier.config.marked and row[0] < 0.5:
                        word_probabilities = heard.words(place)[:, classifier.config.marked.index(head)]
                        words = shown_parts(item.view[-1][0], vocabulary, word_probabilities)
                    turn = found[item.dialogue][item.turn]
                    turn[head] = Reading(head, _best(row, HEADS[head], top), words)
                    if head == "emotion":
                        turn[EMOTION_GROUP] = Reading(EMOTION_GROUP, _groups(row, top))
        return [[[turn[name] for name in ORDER if name in turn] for turn in turns] for turns in found]


def _load_classifier(
    folder: Path, weights: Path | None, engine: str, precision: str
) -> tuple[ClassifierBackend, Vocabulary, str]:
    """An ear, its vocabulary, and for keys what runs it; nothing where torch does."""
    config = build(ClassifierConfig, open_checkpoint(folder, KIND).config())
    fits = engine != TORCH and runs_on_onnx(base_folder(config.base, weights))
    if choose_engine(engine, f"The annotator on {config.base}", fits) == ONNX:
        return *load_onnx_classifier(folder, weights, precision), f"{ONNX} {precision}"
    from listenwell.annotators.model import load_classifier

    return *load_classifier(folder, weights), ""


def find_classifiers(folder: Path) -> list[Path]:
    """The checkpoint that a folder is, a training run's best one, or those that lie in it."""
    if ((one := find_checkpoint(folder)) / MANIFEST).is_file():
        return [one]
    if found := sorted(file.parent for file in folder.glob(f"*/{MANIFEST}")):
        return found
    raise CheckpointError(f"{folder} holds no annotators.", "Name a folder that `listenwell train` made.")


def _joined(before: Sequence[Reading], now: Sequence[Reading]) -> tuple[Reading, ...]:
    """New readings in the place of old ones of the same head; what was not asked now stays."""
    asked = {reading.head for reading in now}
    return (*(reading for reading in before if reading.head not in asked), *now)


def _asked(number: int, dialogue: Dialogue, heads: Sequence[str]) -> Iterator[_Asked]:
    """The views of every turn that some head reads."""
    by_view = {
        view: tuple(name for name in heads if HEADS[name].view == view)
        for view in (CONTEXT, UTTERANCE, REPLY)
    }
    for place, turn in enumerate(dialogue.turns):
        if by_view[CONTEXT] and turn.speaker != dialogue.listener:
            yield _Asked(number, place, context_view(dialogue, place + 1), by_view[CONTEXT])
        if by_view[UTTERANCE]:
            yield _Asked(number, place, ((turn.text, False),), by_view[UTTERANCE])
        before = dialogue.turns[place - 1] if place else None
        replies = turn.speaker == dialogue.listener and before and before.speaker != turn.speaker
        if by_view[REPLY] and before and replies:
            yield _Asked(number, place, ((before.text, False), (turn.text, True)), by_view[REPLY])


def _best(row: np.ndarray, head: Head, top: int) -> tuple[Scored, ...]:
    """The likeliest labels; all three levels, and where a text can have several, every one that is given."""
    least = len(LEVELS) if head.labels is LEVELS else top
    order = np.argsort(-row, kind="stable")
    kept = [
        place
        for rank, place in enumerate(order)
        if rank < least or (head.several and row[place] > GIVEN_FROM)
    ]
    return tuple(Scored(head.labels[int(place)], round(float(row[place]), 4)) for place in kept)


def _groups(row: np.ndarray, top: int) -> tuple[Scored, ...]:
    """The likeliest of the 16 groups of emotions; a group is as likely as its members together."""
    group_probabilities = np.zeros(len(EMOTION_GROUPS))
    for emotion, probability in zip(EMOTIONS, row, strict=True):
        group_probabilities[EMOTION_GROUPS.index(GROUP_OF_EMOTION[emotion])] += probability
    order = np.argsort(-group_probabilities, kind="stable")[:top]
    return tuple(
        Scored(EMOTION_GROUPS[int(place)], round(float(group_probabilities[place]), 4)) for place in order
    )
