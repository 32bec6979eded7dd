"""How well the annotators classify: every head on its own corpora, over one seed or several.

Metrics are means over the classifiers (one a seed), spreads their standard deviations. Probabilities are
calibrated; the calibration error without calibration is measured too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from listenwell import metrics
from listenwell.annotators.calibration import choose, fit_share, log_frequencies
from listenwell.annotators.config import KIND as CLASSIFIER
from listenwell.annotators.config import probabilities as head_probabilities
from listenwell.annotators.fasttext import KIND as FASTTEXT
from listenwell.annotators.fasttext import FastTextClassifier
from listenwell.annotators.heads import GIVEN_FROM, HEADS
from listenwell.annotators.inference import ClassifierOutput, classify
from listenwell.annotators.model import MultiTaskClassifier, load_classifier
from listenwell.annotators.rationales import marked_pieces
from listenwell.annotators.sources import QUESTIONS, SOURCES, Labelled, Question, questions_of
from listenwell.annotators.views import encode_views
from listenwell.checkpoint import MANIFEST, open_checkpoint
from listenwell.corpora.sampling import Sampling
from listenwell.errors import InputError, unknown_name
from listenwell.files import hash_files
from listenwell.labels import EMOTION_GROUPS, EMOTIONS, GROUP_OF_EMOTION, LEVELS
from listenwell.progress import progress
from listenwell.recipe import read_recipe
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment
from listenwell.runtime.text import Vocabulary
from listenwell.training.recipe import TrainRecipe
from listenwell.training.task_configs import ClassifierTaskConfig

TASK = "understanding"


@dataclass(frozen=True)
class Answers:
    """One head's predictions for some texts."""

    head: str
    logits: np.ndarray  # (n, labels)
    truth: np.ndarray  # (n, labels), 1 at the true ones
    temperature: float

    @property
    def probabilities(self) -> np.ndarray:
        """Calibrated probabilities: (n, labels)."""
        return head_probabilities(self.logits, self.head, self.temperature)


@dataclass(frozen=True)
class Scope:
    """Which part of the data is measured."""

    split: str
    """Of every source; "test" includes the acts that were labelled by hand."""
    sampling: Sampling = field(default_factory=Sampling)
    """Which texts of each source: all, or a sample."""
    heads: tuple[str, ...] = ()
    """Only these heads; all of them where none is named."""

    def questions(self, heads: Sequence[str]) -> tuple[Question, ...]:
        """The questions of a classifier's heads; on test also the acts labelled by hand."""
        by_hand = (BY_HAND,) if self.split == "test" and BY_HAND.head in heads else ()
        questions = (*questions_of(heads), *by_hand)
        return tuple(question for question in questions if not self.heads or question.head in self.heads)


def evaluate_classifiers(folders: Sequence[Path], scope: Scope, system: str) -> list[Result]:
    """A result for each question that the classifiers (one a seed) have a head for; `system` names rows."""
    if unknown := [name for name in scope.heads if name not in HEADS]:
        raise unknown_name("head", unknown[0], HEADS)
    if not folders:
        raise InputError("No annotators were named.", "Name a folder that `listenwell train` made.")
    by_question: dict[str, list[Measured]] = {}
    recipe_conditions: dict[str, str] = {}
    seeds = []
    for folder in folders:
        is_fasttext = open_checkpoint(folder).kind == FASTTEXT
        saved = open_checkpoint(folder, FASTTEXT if is_fasttext else CLASSIFIER)
        recipe = read_recipe(TrainRecipe, saved.path("recipe.yaml"))
        seeds.append(str(recipe.seed))
        conditions, measured = (_of_fasttext if is_fasttext else _of_classifier)(folder, scope, recipe)
        if recipe_conditions and conditions != recipe_conditions:
            raise InputError(
                f"{folder} has another recipe than those before it.", "Name seeds of one recipe."
            )
        recipe_conditions = conditions
        for question, of_question in measured:
            by_question.setdefault(question.name, []).append(of_question)
    if not by_question:
        raise InputError(f"No text of {scope.split} has a label that these heads know.", "Raise the limit.")
    sums = hash_files(path / name for path in folders for name in [MANIFEST, *open_checkpoint(path).sums])
    about: dict[str, Any] = {"task": TASK, "checkpoint": sums, **environment()}
    results = []
    for name, over_seeds in by_question.items():
        conditions = {"count": "texts", "seeds": ", ".join(seeds), **over_seeds[0].conditions}
        row = {"system": f"{name}: {system}", "conditions": tuple((conditions | recipe_conditions).items())}
        results.append(_result(QUESTIONS_AND_HAND[name], over_seeds, scope.split, about | row))
    return results


@dataclass(frozen=True)
class Measured:
    """What one classifier scores on one question."""

    metrics: dict[str, float]
    count: int
    """How many texts were classified."""
    conditions: dict[str, str]
    """The sample, where the labels come from, the commonest mistakes."""


MeasuredQuestions = Iterator[tuple[Question, Measured]]


def _of_classifier(
    folder: Path, scope: Scope, recipe: TrainRecipe
) -> tuple[dict[str, str], MeasuredQuestions]:
    classifier, vocabulary = load_classifier(folder)
    settings = recipe.settings(ClassifierTaskConfig).classifier
    share = f"{len(settings.teachers)}, {settings.teacher_share:g} of the target"
    conditions = {
        "probabilities": "one temperature a head, fitted on valid",
        "several labels": f"given from a probability of {GIVEN_FROM:g} on",
        "base": classifier.config.base,
        "heads on this adapter": ", ".join(classifier.config.heads),
        "tuning": f"LoRA of rank {recipe.lora.rank}" if recipe.lora else "full fine-tuning",
        "teachers": share if settings.teachers else "none",
        "learning rate": f"{recipe.optimizer.learning_rate:g}",
    }
    return conditions, _answers(classifier, vocabulary, scope)


def _of_fasttext(folder: Path, scope: Scope, recipe: TrainRecipe) -> tuple[dict[str, str], MeasuredQuestions]:
    """A fastText-style classifier has one question, and only where it was trained on the emotions."""
    classifier = FastTextClassifier.load(folder)
    config = classifier.config
    if config.labels != EMOTIONS.labels:
        raise InputError(f"{folder} was not trained on the 32 emotions.", "Name one trained on situations.")
    question = QUESTIONS["situation emotion"]
    labelled, sample = _drawn(question.source, scope)
    probabilities = classifier.probabilities([classifier.features.of(item.view[0][0]) for item in labelled])
    truth = np.stack([item.target("emotion") for item in labelled])
    answers = Answers("emotion", np.log(np.maximum(probabilities, 1e-12)), truth, 1.0)
    measured = Measured(measure(answers), len(labelled), _conditions(question, answers, sample))
    conditions = {
        "probabilities": "as they are",
        "model": f"mean of word vectors, {len(config.words):,} words, {config.dimensions} dimensions",
        "learning rate": f"{recipe.optimizer.learning_rate:g}",
    }
    return conditions, iter([(question, measured)])


BY_HAND = Question("dialogue act, by hand", "act", "hand")
"""The utterances that the EmpatheticIntents authors labelled themselves, of 15 intents; 8 of them are acts,
the others count as "others"."""
QUESTIONS_AND_HAND = {**QUESTIONS, BY_HAND.name: BY_HAND}


def _answers(classifier: MultiTaskClassifier, vocabulary: Vocabulary, scope: Scope) -> MeasuredQuestions:
    questions = scope.questions(classifier.config.heads)
    for source in dict.fromkeys(question.source for question in questions):
        of_source = [question for question in questions if question.source == source]
        labelled, sample = _drawn(source, scope)
        inputs = encode_views(vocabulary, [item.view for item in labelled], classifier.config.limit)
        marked = range(len(inputs)) if any(q.head in classifier.config.marked for q in of_source) else ()
        with progress(f"reading {source}", total=len(inputs), unit="texts") as advance:
            outputs = classify(classifier, inputs, marked, advance)
        for question in of_source:
            known = [index for index, item in enumerate(labelled) if question.head in item.labels]
            if not known:
                continue  # a small sample may hold no label of it
            answers = _of_head(classifier, question.head, outputs, labelled, known)
            scores = measure(answers)
            if question.head in classifier.config.marked:
                scores["rationale_f1"] = _rationales(question.head, labelled, outputs, classifier, vocabulary)
            if question.head == "act":
                scores |= _unseen(answers, [labelled[index] for index in known])
            if question.head == "response" and scope.split != "valid":
                scores |= _adjusted(answers, classifier, vocabulary, scope.sampling)
            yield question, Measured(scores, len(known), _conditions(question, answers, sample))


def _of_head(
    classifier: MultiTaskClassifier,
    head: str,
    outputs: ClassifierOutput,
    labelled: Sequence[Labelled],
    known: Sequence[int],
) -> Answers:
    truth = np.stack([labelled[index].target(head) for index in known])
    return Answers(head, outputs.logits(head, known), truth, classifier.config.temperature(head))


def _adjusted(
    answers: Answers, classifier: MultiTaskClassifier, vocabulary: Vocabulary, sampling: Sampling
) -> dict[str, float]:
    """Metrics of labels decided against their frequency, by a share fitted on validation (`decision`)."""
    head, source = HEADS[answers.head], SOURCES[QUESTIONS["response intent"].source]
    seen = (item.labels[head.name][0] for item in source.read("train") if head.name in item.labels)
    frequencies = log_frequencies(head.labels, seen)
    known = [item for item in source.read("valid") if head.name in item.labels]
    if not known:
        return {}
    labelled = [item for _, item in sampling.draw(known)]
    outputs = classify(
        classifier, encode_views(vocabulary, [item.view for item in labelled], classifier.config.limit)
    )
    valid = _of_head(classifier, head.name, outputs, labelled, range(len(labelled)))
    share = fit_share(valid.probabilities, valid.truth.argmax(axis=1), frequencies, head.labels)
    predicted = choose(answers.probabilities, frequencies, share)
    scores = metrics.classification_metrics(
        [head.labels[int(label)] for label in answers.truth.argmax(axis=1)],
        [head.labels[int(label)] for label in predicted],
        head.labels.labels,
    )
    names = ("accuracy", "weighted_precision", "weighted_recall", "weighted_f1")
    return {"adjusted_share": share, **{f"adjusted_{name}": scores[name] for name in names}}


def _drawn(source: str, scope: Scope) -> tuple[list[Labelled], str]:
    """The sampled texts of a source, and the sampling rule in words."""
    if source == BY_HAND.source:
        acts = SOURCES["acts"]
        texts = [labelled for item in acts.reader().read("manual") for labelled in acts.views(item)]
    else:
        texts = list(SOURCES[source].read(scope.split))
    drawn = [item for _, item in scope.sampling.draw(texts)]
    return drawn, scope.sampling.describe(len(texts), len(drawn))


def _conditions(question: Question, answers: Answers, sample: str) -> dict[str, str]:
    labels = "by hand; 8 of 15 intents are acts" if question == BY_HAND else SOURCES[question.source].labels
    conditions = {"sample": sample, "labels": labels}
    if confused := most_confused(answers):
        conditions["most confused by the first seed"] = confused
    return conditions


def _rationales(
    head: str,
    labelled: Sequence[Labelled],
    outputs: ClassifierOutput,
    classifier: MultiTaskClassifier,
    vocabulary: Vocabulary,
) -> float:
    """F1 of word pieces in rationales, over the replies that have one (EPITOME §6's token F1), in percent."""
    both = predicted = true = 0
    column = classifier.config.marked.index(head)
    for index, item in enumerate(labelled):
        if parts := item.words.get(head):
            marked = outputs.words[index][:, column] > 0.5
            truth = marked_pieces(item.view[-1][0], vocabulary, parts)[: len(marked)]
            both += int((marked & truth).sum())
            predicted, true = predicted + int(marked.sum()), true + int(truth.sum())
    return 200 * both / max(1, predicted + true)


def _unseen(answers: Answers, labelled: Sequence[Labelled]) -> dict[str, float]:
    """Accuracy without the texts that stand in the training data, and among the 8 acts proper."""
    acts = SOURCES["acts"]
    training = acts.reader().read(f"{acts.prefix}train")  # also those that are no longer trained on
    seen = {_plain(view.view[0][0]) for item in training for view in acts.views(item)}
    right = answers.probabilities.argmax(axis=1) == answers.truth.argmax(axis=1)
    unseen = np.array([_plain(item.view[0][0]) not in seen for item in labelled])
    proper = answers.truth[:, HEADS["act"].labels.index("others")] == 0
    parts = {"unseen_accuracy": unseen, "proper_act_accuracy": proper}
    counts = {"unseen": float(unseen.sum()), "proper_acts": float(proper.sum())}
    return counts | {name: 100 * float(right[part].mean()) for name, part in parts.items() if part.any()}


def _plain(text: str) -> str:
    return " ".join(metrics.words(text))


def _result(question: Question, seeds: Sequence[Measured], split: str, about: Mapping[str, Any]) -> Result:
    """The question's metrics over the seeds; `about` holds what all questions share."""
    over = {name: metrics.over_seeds([seed.metrics[name] for seed in seeds]) for name in seeds[0].metrics}
    by_hand = question == BY_HAND
    source = SOURCES["acts" if by_hand else question.source]
    return Result(
        metrics=tuple((name, round(spread.mean, 4)) for name, spread in over.items()),
        spreads=tuple((name, round(spread.spread, 4)) for name, spread in over.items() if len(seeds) > 1),
        corpus=source.corpus,
        split="manual" if by_hand else f"{source.prefix}{split}",
        count=seeds[0].count,
        data=hash_files(source.reader().files("manual") if by_hand else source.files(split)),
        units=units(tuple(over)),
        **about,
    )


def most_confused(answers: Answers, count: int = 8) -> str:
    """The pairs of true and predicted label that are confused most often, each with its number of texts."""
    head = HEADS[answers.head]
    if head.several or head.labels is LEVELS:
        return ""
    true, predicted = answers.truth.argmax(axis=1), answers.probabilities.argmax(axis=1)
    pairs = Counter((int(a), int(b)) for a, b in zip(true, predicted, strict=True) if a != b)
    ranked = sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))[:count]
    return ", ".join(f"{head.labels[a]} as {head.labels[b]} {times}" for (a, b), times in ranked)


def measure(answers: Answers) -> dict[str, float]:
    """The metrics of one question, by the names of the metric registry."""
    head, probabilities, truth = HEADS[answers.head], answers.probabilities, answers.truth
    uncalibrated = head_probabilities(answers.logits, answers.head, 1.0)
    right = truth if head.several else truth.argmax(axis=1)
    calibration = {
        name: metrics.expected_calibration_error(rows, right, several=head.several)
        for name, rows in (("ece", probabilities), ("ece_uncalibrated", uncalibrated))
    }
    if head.several:
        predicted = probabilities > GIVEN_FROM
        exact = 100 * float((predicted == (truth > 0)).all(axis=1).mean())
        return {"exact_match": exact, **metrics.label_set_metrics(truth > 0, predicted), **calibration}
    names = head.labels.labels
    scores = metrics.classification_metrics(
        [names[i] for i in right], [names[i] for i in probabilities.argmax(axis=1)], names
    )
    if head.labels is LEVELS:  # weak and strong merged (CoMAE §4.2)
        merged = metrics.classification_metrics(
            ["no" if level == 0 else "yes" for level in right],
            ["no" if probability >= 0.5 else "yes" for probability in probabilities[:, 0]],
            ("no", "yes"),
        )
        names = ("accuracy", "macro_f1")
        levels = {f"level_{name}": scores[name] for name in names}
        return {name: merged[name] for name in names} | levels | calibration
    if len(names) > 10:
        scores["top_5_accuracy"] = metrics.top_k_accuracy(right, probabilities, 5)
    if head.labels is EMOTIONS:
        scores["group_accuracy"] = _group_accuracy(probabilities, right)
    return scores | calibration


def _group_accuracy(probabilities: np.ndarray, right: np.ndarray) -> float:
    """Accuracy over the 16 groups; the probability of a group is the sum over its members."""
    group = np.array([EMOTION_GROUPS.index(GROUP_OF_EMOTION[name]) for name in EMOTIONS])
    predicted = (probabilities @ np.eye(len(EMOTION_GROUPS))[group]).argmax(axis=1)
    return 100 * float((predicted == group[right]).mean())
