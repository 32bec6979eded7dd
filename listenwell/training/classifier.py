"""Training a multi-task classifier: an encoder's adapter (or all of it) and the heads on it.

Every labelled text counts once, whatever its length; the losses of its heads add up. Where the recipe names
teachers, their probabilities are mixed into the targets (Hinton et al. 2015).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from listenwell.annotators.annotator import SHIPPED
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
from listenwell.rankers.inference import moved
from listenwell.runtime.encoder import load_encoder
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import HUB_FILES
from listenwell.training.adapters import add_lora, start_from, take_weights
from listenwell.training.classifier_batch import ClassifierBatch, ClassifierExample, collate
from listenwell.training.distillation import is_left_out, with_teachers
from listenwell.training.recipe import TrainRecipe
from listenwell.training.task_configs import ClassifierRecipe, ClassifierTaskConfig


class ClassifierTask:
    """A multi-task classifier and the labelled texts it learns from."""

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
        self._settings = recipe.settings(ClassifierTaskConfig).classifier
        self._learning = set(self._settings.only or self._settings.heads)
        self._sources = _sources_of(self._learning)
        self.corpus = " + ".join(dict.fromkeys(source.corpus for source in self._sources))
        self._weights, self._paths = dict(self._settings.weights), dict(self._settings.paths)
        self._known: dict[str, dict[str, tuple[list[Labelled], list[ClassifierExample]]]] = {}
        self._train: list[ClassifierExample] | None = None

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "ClassifierTask":
        """Load the encoder, with adapters where the recipe asks for them, and make the heads."""
        settings = recipe.settings(ClassifierTaskConfig).classifier
        config = ClassifierConfig(
            recipe.base, settings.heads, settings.pooling, settings.limit, marks_words=settings.words > 0
        )
        _check_names(settings)
        paths = dict(settings.paths)
        for source in _sources_of(settings.only or settings.heads):
            for split in recipe.data.used():
                source.files(split, paths.get(source.name))  # before minutes are spent on the others
        start = SHIPPED if settings.start == Path("shipped") else settings.start
        # A teacher that is missing or damaged is named at once.
        before = [open_checkpoint(path, KIND) for path in (*settings.teachers, start) if path]
        encoder, folder = load_encoder(recipe.base, recipe.weights, recipe.dropout)
        if recipe.lora:
            encoder = add_lora(encoder, recipe.lora, recipe.base, "FEATURE_EXTRACTION")
        classifier = MultiTaskClassifier(encoder, config, settings.dropout)
        if start:
            saved = start_from(classifier, classifier.encoder, before[-1], ("base", "pooling"))
            known = {name: value for name, value in saved.temperatures if name in config.heads}
            with_temperatures(classifier, known)
        for name, parameter in classifier.named_parameters():
            if settings.only and not any(name.startswith(f"heads.{head}.") for head in settings.only):
                parameter.requires_grad_(False)
        task = cls(classifier, Vocabulary.from_folder(folder), recipe, device)
        task.base_files = (
            *(folder / name for name in HUB_FILES),
            *(checkpoint.folder / MANIFEST for checkpoint in before),  # their content, whatever their path
        )
        return task

    def examples(self) -> Sequence[ClassifierExample]:
        """The training texts, read at the first call."""
        if self._train is None:
            self._train = self._training_examples()
        return self._train

    def loss_sum(self, batch: ClassifierBatch) -> torch.Tensor:
        """The summed cross-entropy against the target probabilities, over texts and heads."""
        if batch.pooled is not None:
            return self._head_losses(batch, self._to_device(batch.pooled))
        states, pooled = self._run(batch)
        total = self._head_losses(batch, pooled)
        if batch.marks is not None and self.model.words is not None:
            positions, marks = map(self._to_device, batch.marks)
            logits = self.model.word_logits(states.flatten(0, 1)[positions])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logits, marks.float(), reduction="none"
            )
            # The mean over the batch's words and heads, as much as one head over all its texts.
            total = total + self._settings.words * loss.mean() * batch.weight
        return total

    def _head_losses(self, batch: ClassifierBatch, pooled: torch.Tensor) -> torch.Tensor:
        total = pooled.new_zeros(())
        for head, (numbers, target_array) in batch.targets.items():
            logits = self.model.logits(pooled[self._to_device(numbers)], head).float()
            targets = self._to_device(target_array)
            if HEADS[head].several:
                loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
            else:
                loss = -(targets * logits.log_softmax(dim=1)).sum()
            total = total + self._weights.get(head, 1.0) * loss
        return total

    def measure(self, split: str) -> dict[str, float]:
        """Each question's accuracy, the mean error over questions, and the mean log-likelihood.

        On the validation split the heads' temperatures are fitted too; they are saved with it.
        """
        logits_by_source = {source.name: self._logits(source, split) for source in self._sources}
        if split == self.recipe.data.valid:
            kept = dict(self.model.config.temperatures)  # of heads that do not learn
            with_temperatures(self.model, kept | self._temperatures(logits_by_source))
        figures: dict[str, float] = {}
        nll = []
        for question in questions_of(self._learning):
            if question.head not in logits_by_source[question.source]:
                continue  # a small split may hold no label of it
            logits, targets = logits_by_source[question.source][question.head]
            temperature = self.model.config.temperature(question.head)
            nll.append(negative_log_likelihood(logits, targets, question.head, temperature))
            share = right_share(probabilities(logits, question.head, temperature), targets, question.head)
            figures[f"{question.name}, accuracy"] = share
        figures["error"] = 100 - float(np.mean(list(figures.values())))
        figures["mean_nll"] = float(np.mean(nll))
        figures["texts"] = float(sum(len(examples) for _, examples in self._known[split].values()))
        return figures

    def save(self, folder: Path) -> None:
        """config.json and the weights in fp16."""
        save_classifier(self.model, folder)

    def load(self, folder: Path) -> None:
        """Take the weights of a checkpoint that `save` wrote."""
        saved = open_checkpoint(folder, KIND)
        take_weights(self.model, self.model.encoder, saved)
        with_temperatures(self.model, dict(ClassifierConfig.from_dict(saved.config()).temperatures))

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The corpora's files of the splits in use; `shaping`: without the test split's."""
        for source in self._sources:
            for split in self.recipe.data.used(shaping):
                yield from source.files(split, self._paths.get(source.name))

    def conditions(self) -> dict[str, str]:
        """Heads, pooling and teachers."""
        settings = self._settings
        return {
            "heads": ", ".join(settings.heads),
            "pooling": settings.pooling,
            "teachers": f"{len(settings.teachers)}, {settings.teacher_share:g} of the target"
            if settings.teachers
            else "none",
        }

    def _training_examples(self) -> list[ClassifierExample]:
        settings, repeat = self._settings, dict(self._settings.repeat)
        chosen: list[tuple[Labelled, ClassifierExample, int]] = []
        for source in self._sources:
            labelled, examples = self._read(source, self.recipe.data.train)
            for item, example in zip(labelled, examples, strict=True):
                if settings.leave_out is None or not is_left_out(item.group, settings.leave_out):
                    chosen.append((item, example, repeat.get(source.name, 1)))
        if settings.teachers:
            views = [(item, example) for item, example, _ in chosen]
            taught = with_teachers(views, self.recipe, self._learning, self.device)
        else:
            taught = [example for _, example, _ in chosen]
        if settings.only:  # the encoder stays: it is run once, not in every epoch
            vectors = classify(self.model.eval(), taught).pooled
            self.model.train()
            taught = [replace(example, pooled=row) for example, row in zip(taught, vectors, strict=True)]
        return [example for example, (_, _, times) in zip(taught, chosen, strict=True) for _ in range(times)]

    def _read(self, source: Source, split: str) -> tuple[list[Labelled], list[ClassifierExample]]:
        """A source's texts with a label for our heads, and the same as examples; read once."""
        if source.name not in self._known.setdefault(split, {}):
            heads = self._learning
            every = (
                item for item in source.read(split, self._paths.get(source.name)) if heads & set(item.labels)
            )
            labelled = list(islice(every, self.recipe.data.limit))
            limit = self.model.config.limit
            inputs = encode_views(self.vocabulary, [item.view for item in labelled], limit)
            marked = self.model.config.marked
            examples = [
                ClassifierExample(
                    encoded.tokens,
                    encoded.types,
                    encoded.last,
                    {name: item.target(name) for name in item.labels if name in heads},
                    self._marks(item, encoded, marked) if marked and item.words else None,
                )
                for item, encoded in zip(labelled, inputs, strict=True)
            ]
            if not examples:
                raise RecipeError(f"{source.corpus} {split} holds no labelled text.", "Raise data.limit.")
            self._known[split][source.name] = (labelled, examples)
        return self._known[split][source.name]

    def _marks(self, item: Labelled, encoded: Input, heads: tuple[str, ...]) -> np.ndarray:
        """Which tokens of the last turn show which level."""
        marks = np.full((len(encoded), len(heads)), -1, np.int8)
        first, end = encoded.last
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
        _, examples = self._read(source, split)
        outputs = classify(self.model.eval(), examples)
        by_head = {}
        for head in source.heads:
            labelled = [index for index, example in enumerate(examples) if head in example.targets]
            if labelled:
                targets = np.stack([examples[index].targets[head] for index in labelled])
                by_head[head] = (outputs.logits(head, labelled), targets)
        self.model.train()  # after the heads have run: they have dropout too
        return by_head

    def _temperatures(
        self, logits_by_source: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]]
    ) -> dict[str, float]:
        fitted = {}
        for head in sorted(self._learning):
            if not (parts := [known[head] for known in logits_by_source.values() if head in known]):
                continue
            logits, targets = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            fitted[head] = fit_temperature(logits, targets, head)
        return fitted

    def _to_device(self, array: np.ndarray) -> torch.Tensor:
        return moved(array, self.device)


def _sources_of(heads: Iterable[str]) -> list[Source]:
    return [source for source in SOURCES.values() if set(source.heads) & set(heads)]


def _check_names(settings: ClassifierRecipe) -> None:
    """Raise an error for a head or source that does not exist."""
    for name, _ in settings.weights:
        if name not in HEADS:
            raise unknown_name("head", name, HEADS)
    for name, _ in (*settings.paths, *settings.repeat):
        if name not in SOURCES:
            raise unknown_name("source", name, SOURCES)


def right_share(predicted: np.ndarray, targets: np.ndarray, head: str) -> float:
    """The share of right answers, in percent: levels count as yes or no, sets of labels as a whole."""
    if HEADS[head].several:
        return 100 * float(((predicted > GIVEN_FROM) == (targets > 0.5)).all(axis=1).mean())
    if HEADS[head].labels is LEVELS:
        return 100 * float(((predicted[:, 0] < 0.5) == (targets[:, 0] < 0.5)).mean())
    return 100 * float((predicted.argmax(axis=1) == targets.argmax(axis=1)).mean())
