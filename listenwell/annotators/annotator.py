"""The annotators as one object: emotions, dialogue acts, intents and communication mechanisms of every turn.

from listenwell import Annotator
Annotator.from_pretrained()("I finally got promoted today!")
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import overload

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
from listenwell.annotators.inference import ClassifierBackend, classify, load_onnx_classifier
from listenwell.annotators.rationales import shown_parts
from listenwell.annotators.turn_factors import with_factors
from listenwell.annotators.views import View, context_view, encode_views
from listenwell.checkpoint import MANIFEST, find_checkpoint, open_checkpoint
from listenwell.dialogue import SPEAKER, Dialogue, Reading, Scored, Turn
from listenwell.errors import CheckpointError, InputError, unknown_name
from listenwell.files import hash_files
from listenwell.labels import (
    ACTS,
    EMOTION_GROUPS,
    EMOTIONS,
    EXPRESSED_EMOTIONS,
    GROUP_OF_EMOTION,
    LEVELS,
    current_factor,
)
from listenwell.runtime.engines import AUTO, ONNX, TORCH, choose_engine
from listenwell.runtime.onnx.checkpoint_encoder import base_folder, runs_on_onnx
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import HUB_FILES, find_weights
from listenwell.serialization import build

SHIPPED = Path(__file__).parents[1] / "pretrained" / "annotators"


@dataclass(frozen=True)
class _ViewRequest:
    """A view of one turn, and the heads that read it."""

    dialogue: int
    turn: int
    view: View
    heads: tuple[str, ...]


class Annotator:
    """One or more classifiers with their vocabularies; each head is computed by the first that has it.

    `heads` limits the heads in use, `key` names the classifiers' weights.
    """

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
        """The heads in use, in the order of HEADS."""
        self.key = hashlib.sha256(f"{key} {' '.join(self.heads)}".encode()).hexdigest()
        """Names weights and heads: equal keys give equal annotations."""
        self._owner = {name: owner[name] for name in self.heads}

    @classmethod
    def from_pretrained(
        cls,
        name_or_folder: str | Path | None = None,
        heads: Sequence[str] | None = None,
        weights: Path | None = None,
        engine: str = AUTO,
        precision: str = "int8",
    ) -> "Annotator":
        """Load the shipped annotators, or those of a folder.

        Args:
            name_or_folder: a classifier's checkpoint, or a folder of several; the shipped ones if not given.
            heads: only these; names of `heads.HEADS`.
            weights: the encoder's own folder, where it is not the installed one.
            engine: "onnx", "torch", or "auto": onnxruntime where it is installed and supports the classifier.
            precision: of onnx, "int8" or "fp32"; torch always runs in float32.
        """
        heads = None if heads is None else tuple(map(current_factor, heads))
        for name in heads or ():
            if name not in HEADS:
                raise unknown_name("head", name, HEADS)
        folders = find_classifiers(SHIPPED if name_or_folder is None else Path(name_or_folder))
        loaded = [load_backend(folder, weights, engine, precision) for folder in folders]
        key = hash_files(folder / MANIFEST for folder in folders)
        if weights is not None:  # the checkpoints' own sums do not cover another encoder
            encoder = find_weights(loaded[0][0].config.base, weights)
            key += hash_files(encoder / name for name in HUB_FILES)
        engines = [engine_key for _, _, engine_key in loaded]
        if any(engines):  # engines round differently
            key += ", ".join(engines)
        return cls([(classifier, vocabulary) for classifier, vocabulary, _ in loaded], heads, key)

    load = from_pretrained
    """The former name of `from_pretrained`."""

    @overload
    def __call__(self, texts: str | Dialogue, top: int = 5) -> Turn: ...
    @overload
    def __call__(self, texts: list[str] | list[Dialogue], top: int = 5) -> list[Turn]: ...
    def __call__(self, texts: str | Dialogue | list[str] | list[Dialogue], top: int = 5) -> Turn | list[Turn]:
        """Annotate one text or several, as a pipeline of transformers does.

        Args:
            texts: a speaker's utterance or a dialogue, whose last turn is annotated; or a list of them.
            top: how many labels of each head to keep.

        Returns:
            The turn with its readings and factors; a list of turns for a list.
        """
        items = texts if isinstance(texts, list) else [texts]
        dialogues = [Dialogue((Turn(SPEAKER, item),)) if isinstance(item, str) else item for item in items]
        turns = [dialogue.turns[-1] for dialogue in self.annotate_all(dialogues, top, last=True)]
        return turns if isinstance(texts, list) else turns[0]

    def annotate(self, dialogue: Dialogue, top: int = 5) -> Dialogue:
        """The dialogue with readings on every turn, `top` labels of each head, and factors where unknown."""
        return next(iter(self.annotate_all([dialogue], top)))

    def annotate_all(
        self, dialogues: Iterable[Dialogue], top: int = 5, last: bool = False
    ) -> Iterator[Dialogue]:
        """Annotate many dialogues, in order, or only the last turn of each; equal texts are encoded once."""
        if top < 1:
            raise InputError(f"top is {top}.", "Keep one label or more.")
        source = iter(dialogues)
        while window := list(islice(source, WINDOW)):
            readings = self._readings(window, top, last)
            for dialogue, new_readings in zip(window, readings, strict=True):
                turns = [
                    replace(turn, readings=_joined(turn.readings, new))
                    for turn, new in zip(dialogue.turns, new_readings, strict=True)
                ]
                yield with_factors(replace(dialogue, turns=tuple(turns)))

    def read_replies(self, dialogue: Dialogue, replies: Sequence[str]) -> list[tuple[Reading, ...]]:
        """The readings of every head for each of several replies to one dialogue; all labels are kept.

        Mechanisms depend on the turn it answers, act and expressed emotion on the reply alone; equal texts
        are encoded once. There are no rationales and factors: candidates are compared by probability.
        """
        answered = next(
            (turn for turn in reversed(dialogue.turns) if turn.speaker != dialogue.listener), None
        )
        before = (Turn(answered.speaker, answered.text),) if answered else ()
        dialogues = [
            Dialogue((*before, Turn(dialogue.listener, reply)), listener=dialogue.listener)
            for reply in replies
        ]
        top = max(len(ACTS), len(EXPRESSED_EMOTIONS))
        return [tuple(turns[-1]) for turns in self._readings(dialogues, top, last=True, rationales=False)]

    def understand(self, dialogue: Dialogue) -> tuple[Scored, ...]:
        """The speaker's emotion, the most likely first; the listener's stage *understand*."""
        return self.understand_batch([dialogue])[0]

    def understand_batch(self, dialogues: Sequence[Dialogue]) -> list[tuple[Scored, ...]]:
        """The same for several dialogues, in shared batches."""
        if "emotion" not in self._owner:
            raise unknown_name("head", "emotion", self.heads)
        classifier, vocabulary = self._classifiers[self._owner["emotion"]]
        views = [context_view(dialogue) for dialogue in dialogues]
        output = classify(classifier, encode_views(vocabulary, views, classifier.config.limit))
        temperature = classifier.config.temperature("emotion")
        scores = probabilities(output.logits("emotion"), "emotion", temperature)
        return [_best(row, HEADS["emotion"], 5) for row in scores]

    def _readings(
        self, dialogues: Sequence[Dialogue], top: int, last: bool, rationales: bool = True
    ) -> list[list[list[Reading]]]:
        """For each dialogue and turn its readings, in the order of HEADS."""
        requests = [
            request
            for number, dialogue in enumerate(dialogues)
            for request in _view_requests(number, dialogue, self.heads)
            if not last or request.turn == len(dialogue.turns) - 1
        ]
        readings: list[list[dict[str, Reading]]] = [[{} for _ in dialogue.turns] for dialogue in dialogues]
        for number in range(len(self._classifiers)):
            heads = {name for name in self.heads if self._owner[name] == number}
            own = [request for request in requests if heads & set(request.heads)]
            for request, reading in self._read(number, own, heads, top, rationales):
                readings[request.dialogue][request.turn][reading.head] = reading
        return [[[turn[name] for name in ORDER if name in turn] for turn in turns] for turns in readings]

    def _read(
        self, number: int, requests: Sequence[_ViewRequest], heads: set[str], top: int, rationales: bool
    ) -> Iterator[tuple[_ViewRequest, Reading]]:
        """The readings of one classifier's heads; each different view is encoded once."""
        classifier, vocabulary = self._classifiers[number]
        config = classifier.config
        marked = config.marked if rationales else ()
        index_of = {view: index for index, view in enumerate(dict.fromkeys(item.view for item in requests))}
        inputs = encode_views(vocabulary, list(index_of), config.limit)
        output = classify(
            classifier, inputs, {index_of[item.view] for item in requests if set(marked) & set(item.heads)}
        )
        for head in sorted(heads):
            items = [item for item in requests if head in item.heads]
            if not items:
                continue
            logits = output.logits(head, [index_of[item.view] for item in items])
            for item, row in zip(items, probabilities(logits, head, config.temperature(head)), strict=True):
                words: tuple[str, ...] = ()
                if head in marked and row[0] < 0.5:
                    by_token = output.words[index_of[item.view]][:, marked.index(head)]
                    words = shown_parts(item.view[-1][0], vocabulary, by_token)
                yield item, Reading(head, _best(row, HEADS[head], top), words)
                if head == "emotion":
                    yield item, Reading(EMOTION_GROUP, _groups(row, top))


def load_backend(
    folder: Path, weights: Path | None, engine: str, precision: str
) -> tuple[ClassifierBackend, Vocabulary, str]:
    """A classifier, its vocabulary, and its engine's part of the key: none for torch."""
    config = build(ClassifierConfig, open_checkpoint(folder, KIND).config())
    fits = engine != TORCH and runs_on_onnx(base_folder(config.base, weights))
    if choose_engine(engine, f"The annotator on {config.base}", fits) == ONNX:
        return *load_onnx_classifier(folder, weights, precision), f"{ONNX} {precision}"
    from listenwell.annotators.model import load_classifier

    return *load_classifier(folder, weights), ""


def find_classifiers(folder: Path) -> list[Path]:
    """The checkpoint that a folder is, a training run's best one, or those inside it."""
    if ((checkpoint := find_checkpoint(folder)) / MANIFEST).is_file():
        return [checkpoint]
    if checkpoints := sorted(file.parent for file in folder.glob(f"*/{MANIFEST}")):
        return checkpoints
    raise CheckpointError(f"{folder} holds no annotators.", "Name a folder that `listenwell train` made.")


def _joined(before: Sequence[Reading], new: Sequence[Reading]) -> tuple[Reading, ...]:
    """New readings replace old ones of the same head; the others stay."""
    replaced = {reading.head for reading in new}
    return (*(reading for reading in before if reading.head not in replaced), *new)


def _view_requests(number: int, dialogue: Dialogue, heads: Sequence[str]) -> Iterator[_ViewRequest]:
    """The views of every turn that some head reads."""
    by_view = {
        view: tuple(name for name in heads if HEADS[name].view == view)
        for view in (CONTEXT, UTTERANCE, REPLY)
    }
    for index, turn in enumerate(dialogue.turns):
        if by_view[CONTEXT] and turn.speaker != dialogue.listener:
            yield _ViewRequest(number, index, context_view(dialogue, index + 1), by_view[CONTEXT])
        if by_view[UTTERANCE]:
            yield _ViewRequest(number, index, ((turn.text, False),), by_view[UTTERANCE])
        before = dialogue.turns[index - 1] if index else None
        replies = turn.speaker == dialogue.listener and before and before.speaker != turn.speaker
        if by_view[REPLY] and before and replies:
            view = ((before.text, False), (turn.text, True))
            yield _ViewRequest(number, index, view, by_view[REPLY])


def _best(row: np.ndarray, head: Head, top: int) -> tuple[Scored, ...]:
    """The most likely labels; all three levels, and every label above GIVEN_FROM of a multi-label head."""
    least = len(LEVELS) if head.labels is LEVELS else top
    order = np.argsort(-row, kind="stable").tolist()
    kept = [
        label
        for rank, label in enumerate(order)
        if rank < least or (head.several and row[label] > GIVEN_FROM)
    ]
    return tuple(Scored(head.labels[label], round(float(row[label]), 4)) for label in kept)


def _groups(row: np.ndarray, top: int) -> tuple[Scored, ...]:
    """The most likely of the 16 groups of emotions; a group's probability is the sum over its members."""
    sums = np.zeros(len(EMOTION_GROUPS))
    for emotion, probability in zip(EMOTIONS, row, strict=True):
        sums[EMOTION_GROUPS.index(GROUP_OF_EMOTION[emotion])] += probability
    order = np.argsort(-sums, kind="stable")[:top].tolist()
    return tuple(Scored(EMOTION_GROUPS[group], round(float(sums[group]), 4)) for group in order)
