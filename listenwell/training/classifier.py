"""Training an ear: an encoder's adapter (or all of it) with the heads that share its pass.

Every labelled text counts once, whatever its length; the losses of the heads that know it add up. Teachers,
where the recipe names them, add what they think of every text to what is known of it (Hinton et al. 2015).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from listenwell.annotators.calibration import fit_temperature, negative_log_likelihood
from listenwell.annotators.config import KIND, ClassifierConfig, probabilities
from listenwell.annotators.heads import GIVEN_FROM, HEADS
from listenwell.annotators.inference import classify
from listenwell.annotators.model import MultiTaskClassifier, save_classifier, with_temperatures
from listenwell.annotators.rationales import marked_pieces
from listenwell.annotators.sources import SOURCES, Labelled, Source, questions_of
from listenwell.annotators.views import Input, encode_views
from listenwell.checkpoint import MANIFEST, open_checkpoint
from listenwell.errors import RecipeError, unknown_name
from listenwell.labels import LEVELS
from listenwell.runtime.encoder import load_encoder
from listenwell.runtime.names import ADAPTER, HEAD_FILE, WHOLE
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import HUB_FILES
from listenwell.training.adapters import add_lora, load_lora
from listenwell.training.classifier_batch import ClassifierBatch, ClassifierExample, collate
from listenwell.training.classifier_start import begin_from, start_of
from listenwell.training.distillation import is_left_out, with_teachers
from listenwell.training.recipe import ClassifierRecipe, TrainRecipe, settings_of


class ClassifierTask:
    """An ear and the labelled texts it learns from."""

    kind = KIND
    metrics = ("error", "mean_nll")
    table, counted = "understanding", "texts"
    base_files: tuple[Path, ...] = ()
    collate = staticmethod(collate)

    def __init__(
        self,
        classifier: MultiTaskClassifier,
        vocabulary: Vocabulary,
        recipe: TrainRecipe,
        device: torch.device,
    ) -> None:
        self.model = classifier.to(device)
        self.vocabulary, self.recipe, self.device = vocabulary, recipe, device
        self._settings = settings_of(recipe)
        self._learning = set(self._settings.only or self._settings.heads)
        self._sources = _sources_of(self._learning)
        self.corpus = " + ".join(dict.fromkeys(source.corpus for source in self._sources))
        self._weights, self._paths = dict(self._settings.weights), dict(self._settings.paths)
        self._known: dict[str, dict[str, tuple[list[Labelled], list[ClassifierExample]]]] = {}
        self._train: list[ClassifierExample] | None = None

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "ClassifierTask":
        """Load the encoder, with adapters where the recipe asks for them, and make the heads."""
        settings = settings_of(recipe)
        config = ClassifierConfig(
            recipe.base,
            settings.heads,
            settings.pooling,
            settings.limit,
            marks_words=settings.words > 0,
        )
        _check_names(settings)
        paths = dict(settings.paths)
        for source in _sources_of(settings.only or settings.heads):
            for split in recipe.data.used():
                source.files(split, paths.get(source.name))  # before minutes are spent on the others
        start = start_of(settings)
        before = (*settings.teachers, *([start] if start else ()))
        for place in before:
            open_checkpoint(place, KIND)  # a teacher that is missing or damaged is named at once
        encoder, folder = load_encoder(recipe.base, recipe.weights, recipe.dropout)
        if recipe.lora:
            encoder = add_lora(encoder, recipe.lora, recipe.base, "FEATURE_EXTRACTION")
        classifier = MultiTaskClassifier(encoder, config, settings.dropout)
        if start:
            begin_from(classifier, start)
        for name, parameter in classifier.named_parameters():
            if settings.only and not any(name.startswith(f"heads.{head}.") for head in settings.only):
                parameter.requires_grad_(False)
        task = cls(classifier, Vocabulary.from_folder(folder), recipe, device)
        task.base_files = (
            *(folder / name for name in HUB_FILES),
            *(place / MANIFEST for place in before),  # what they hold, wherever they lie
        )
        return task

    def pieces(self) -> Sequence[ClassifierExample]:
        """The training texts, read when they are first asked for."""
        if self._train is None:
            self._train = self._training_pieces()
        return self._train

    def loss_sum(self, batch: ClassifierBatch) -> torch.Tensor:
        """The summed cross-entropy against the wanted probabilities, over texts and heads."""
        if batch.pooled is not None:
            return self._head_losses(batch, self._to_device(batch.pooled))
        states, pooled = self._run(batch)
        total = self._head_losses(batch, pooled)
        if batch.marks is not None and self.model.words is not None:
            places, marks = map(self._to_device, batch.marks)
            logits = self.model.word_logits(states.flatten(0, 1)[places])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logits, marks.float(), reduction="none"
            )
            # The mean over the batch's words and heads, as much as one head over all its texts.
            total = total + self._settings.words * loss.mean() * batch.weight
        return total

    def _head_losses(self, batch: ClassifierBatch, pooled: torch.Tensor) -> torch.Tensor:
        total = pooled.new_zeros(())
        for head, (numbers, wanted) in batch.targets.items():
            logits = self.model.logits(pooled[self._to_device(numbers)], head).float()
            targets = self._to_device(wanted)
            if HEADS[head].several:
                loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
            else:
                loss = -(targets * logits.log_softmax(dim=1)).sum()
            total = total + self._weights.get(head, 1.0) * loss
        return total

    def measure(self, split: str) -> dict[str, float]:
        """Each question's accuracy, the mean error over questions, and the mean log-likelihood.

        On the validation split the heads' temperatures are fitted too; they are saved with the ear.
        """
        found = {source.name: self._logits(source, split) for source in self._sources}
        if split == self.recipe.data.valid:
            kept = dict(self.model.config.temperatures)  # of heads that do not learn
            with_temperatures(self.model, kept | self._temperatures(found))
        figures: dict[str, float] = {}
        nll = []
        for question in questions_of(self._learning):
            if question.head not in found[question.source]:
                continue  # a small split may hold no label of it
            logits, targets = found[question.source][question.head]
            temperature = self.model.config.temperature(question.head)
            nll.append(negative_log_likelihood(logits, targets, question.head, temperature))
            share = right_share(probabilities(logits, question.head, temperature), targets, question.head)
            figures[f"{question.name}, accuracy"] = share
        figures["error"] = 100 - float(np.mean(list(figures.values())))
        figures["mean_nll"] = float(np.mean(nll))
        figures["texts"] = float(sum(len(pieces) for _, pieces in self._known[split].values()))
        return figures

    def save(self, folder: Path) -> None:
        """config.json and the weights in fp16."""
        save_classifier(self.model, folder)

    def load(self, folder: Path) -> None:
        """Take the weights of a checkpoint that `save` wrote."""
        from safetensors.torch import load_file

        if self.recipe.lora:
            load_lora(self.model.encoder, folder / ADAPTER)
            self.model.load_state_dict(load_file(folder / HEAD_FILE), strict=False)
        else:
            self.model.load_state_dict(load_file(folder / WHOLE))
        saved = ClassifierConfig.from_json((folder / "config.json").read_text(encoding="utf-8"))
        with_temperatures(self.model, dict(saved.temperatures))

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The corpora's files of the splits in use; `shaping`: without the test split's."""
        for source in self._sources:
            for split in self.recipe.data.used(shaping):
                yield from source.files(split, self._paths.get(source.name))

    def conditions(self) -> dict[str, str]:
        """How the ear was taught."""
        settings = self._settings
        return {
            "heads": ", ".join(settings.heads),
            "pooling": settings.pooling,
            "teachers": f"{len(settings.teachers)}, {settings.teacher_share:g} of the target"
            if settings.teachers
            else "none",
        }

    def _training_pieces(self) -> list[ClassifierExample]:
        settings, repeat = self._settings, dict(self._settings.repeat)
        chosen: list[tuple[Labelled, ClassifierExample, int]] = []
        for source in self._sources:
            labelled, pieces = self._read(source, self.recipe.data.train)
            for item, piece in zip(labelled, pieces, strict=True):
                if settings.leave_out is None or not is_left_out(item.group, settings.leave_out):
                    chosen.append((item, piece, repeat.get(source.name, 1)))
        if settings.teachers:
            views = [(item, piece) for item, piece, _ in chosen]
            taught = with_teachers(views, self.recipe, self._learning, self.device)
        else:
            taught = [piece for _, piece, _ in chosen]
        if settings.only:  # the encoder stays: it is run once, not in every epoch
            vectors = classify(self.model.eval(), taught).pooled
            self.model.train()
            taught = [replace(piece, pooled=row) for piece, row in zip(taught, vectors, strict=True)]
        return [piece for piece, (_, _, times) in zip(taught, chosen, strict=True) for _ in range(times)]

    def _read(self, source: Source, split: str) -> tuple[list[Labelled], list[ClassifierExample]]:
        """A source's labelled texts that our heads know, as pieces; read once."""
        if source.name not in self._known.setdefault(split, {}):
            heads = self._learning
            every = (
                item for item in source.read(split, self._paths.get(source.name)) if heads & set(item.labels)
            )
            labelled = list(islice(every, self.recipe.data.limit))
            limit = self.model.config.limit
            inputs = encode_views(self.vocabulary, [item.view for item in labelled], limit)
            marked = self.model.config.marked
            pieces = [
                ClassifierExample(
                    given.tokens,
                    given.types,
                    given.last,
                    {name: item.target(name) for name in item.labels if name in heads},
                    self._marks(item, given, marked) if marked and item.words else None,
                )
                for item, given in zip(labelled, inputs, strict=True)
            ]
            if not pieces:
                raise RecipeError(f"{source.corpus} {split} holds no labelled text.", "Raise data.limit.")
            self._known[split][source.name] = (labelled, pieces)
        return self._known[split][source.name]

    def _marks(self, item: Labelled, given: Input, heads: tuple[str, ...]) -> np.ndarray:
        """Which tokens of the last turn show which level."""
        marks = np.full((len(given), len(heads)), -1, np.int8)
        first, end = given.last
        for number, head in enumerate(heads):
            shown = marked_pieces(item.view[-1][0], self.vocabulary, item.words.get(head, ()))
            marks[first:end, number] = shown[: end - first]
        return marks

    def _run(self, batch: ClassifierBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """States (rows, length, width) and pooled vectors (texts, width) of a batch."""
        tokens, types, positions, segments, owners, starts = map(
            self._to_device,
            (batch.tokens, batch.types, batch.positions, batch.segments, batch.owners, batch.starts),
        )
        states = self.model.states(tokens, types, positions, segments)
        return states, self.model.pooled(states, owners, starts)

    def _logits(self, source: Source, split: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """By head: logits and targets of the texts that have its label."""
        _, pieces = self._read(source, split)
        heard = classify(self.model.eval(), pieces)
        found = {}
        for head in source.heads:
            known = [place for place, piece in enumerate(pieces) if head in piece.targets]
            if known:
                wanted = np.stack([pieces[place].targets[head] for place in known])
                found[head] = (heard.logits(head, known), wanted)
        self.model.train()  # after the heads were asked: they have dropout too
        return found

    def _temperatures(
        self, found: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]]
    ) -> dict[str, float]:
        fitted = {}
        for head in sorted(self._learning):
            if not (parts := [known[head] for known in found.values() if head in known]):
                continue
            logits, targets = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            fitted[head] = fit_temperature(logits, targets, head)
        return fitted

    def _to_device(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)


def _sources_of(heads: Iterable[str]) -> list[Source]:
    return [source for source in SOURCES.values() if set(source.heads) & set(heads)]


def _check_names(settings: ClassifierRecipe) -> None:
    """A mistyped name must not pass in silence."""
    for name, _ in settings.weights:
        if name not in HEADS:
            raise unknown_name("head", name, HEADS)
    for name, _ in (*settings.paths, *settings.repeat):
        if name not in SOURCES:
            raise unknown_name("source", name, SOURCES)


def right_share(found: np.ndarray, targets: np.ndarray, head: str) -> float:
    """The share of right answers, in percent: levels count as yes or no, sets of labels as a whole."""
    if HEADS[head].several:
        return 100 * float(((found > GIVEN_FROM) == (targets > 0.5)).all(axis=1).mean())
    if HEADS[head].labels is LEVELS:
        return 100 * float(((found[:, 0] < 0.5) == (targets[:, 0] < 0.5)).mean())
    return 100 * float((found.argmax(axis=1) == targets.argmax(axis=1)).mean())
