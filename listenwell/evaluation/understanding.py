"""How well the annotators hear: every question on a split, over one seed or several.

The figures of a question are means over the given ears (one a seed), the spreads their standard deviations.
Probabilities are calibrated; the calibration error without that is measured too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from listenwell import metrics
from listenwell.annotators.config import KIND as CLASSIFIER
from listenwell.annotators.decision import choose, fit_share, log_frequencies
from listenwell.annotators.fasttext import KIND as BAG
from listenwell.annotators.fasttext import FastTextClassifier
from listenwell.annotators.heads import GIVEN_FROM, HEADS
from listenwell.annotators.inference import ClassifierOutput, classify
from listenwell.annotators.model import MultiTaskClassifier, load_classifier
from listenwell.annotators.rationales import marked_pieces
from listenwell.annotators.sources import QUESTIONS, SOURCES, Labelled, Question, questions_of
from listenwell.annotators.views import encode_views
from listenwell.checkpoint import MANIFEST, open_checkpoint
from listenwell.errors import InputError, unknown_name
from listenwell.evaluation.answers import Answers, measure, most_confused
from listenwell.evaluation.sample import Sampling
from listenwell.files import hash_files
from listenwell.labels import EMOTIONS
from listenwell.progress import progress
from listenwell.recipe import read_recipe
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment
from listenwell.runtime.text import Vocabulary
from listenwell.training.recipe import TrainRecipe, settings_of

TASK = "understanding"


@dataclass(frozen=True)
class Scope:
    """What is asked of the ears."""

    split: str
    """Of every source; "test" asks the hand-labelled acts too."""
    sampling: Sampling = field(default_factory=Sampling)
    """Which texts of each source: all, or a sample."""
    heads: tuple[str, ...] = ()
    """Only these heads; all of them without a name."""

    def questions(self, heads: Sequence[str]) -> tuple[Question, ...]:
        """The questions of an ear's heads; on test also the acts labelled by hand."""
        by_hand = (BY_HAND,) if self.split == "test" and BY_HAND.head in heads else ()
        every = (*questions_of(heads), *by_hand)
        return tuple(question for question in every if not self.heads or question.head in self.heads)


def evaluate_classifiers(folders: Sequence[Path], scope: Scope, system: str) -> list[Result]:
    """A result for each question that the ears can answer.

    Args:
        folders: checkpoints of ears with the same heads, one a seed.
        scope: which split, texts and heads.
        system: what the rows are called.
    """
    for name in scope.heads:
        if name not in HEADS:
            raise unknown_name("head", name, HEADS)
    if not folders:
        raise InputError("No annotators were named.", "Name a folder that `listenwell train` made.")
    figures: dict[str, list[Given]] = {}
    made: dict[str, str] = {}
    seeds = []
    for folder in folders:
        is_fasttext = open_checkpoint(folder).kind == BAG
        saved = open_checkpoint(folder, BAG if is_fasttext else CLASSIFIER)
        recipe = read_recipe(TrainRecipe, saved.path("recipe.yaml"))
        seeds.append(str(recipe.seed))
        conditions, answers = (_of_fasttext if is_fasttext else _of_classifier)(folder, scope, recipe)
        if made and conditions != made:
            raise InputError(f"{folder} is made otherwise than those before it.", "Name seeds of one recipe.")
        made = conditions
        for question, given in answers:
            figures.setdefault(question.name, []).append(given)
    if not figures:
        raise InputError(f"No text of {scope.split} has a label that these heads know.", "Raise the limit.")
    sums = hash_files(place / name for place in folders for name in [MANIFEST, *open_checkpoint(place).sums])
    about: dict[str, Any] = {"task": TASK, "checkpoint": sums, **environment()}
    results = []
    for name, found in figures.items():
        said = {"count": "texts", "seeds": ", ".join(seeds), **found[0].said, **made}
        row = {"system": f"{name}: {system}", "conditions": tuple(said.items())}
        results.append(_result(QUESTIONS_AND_HAND[name], found, scope.split, about | row))
    return results


@dataclass(frozen=True)
class Given:
    """What one model answered to one question."""

    figures: dict[str, float]
    count: int
    """How many texts were asked."""
    said: dict[str, str]
    """What a reader must know: the sample, how the labels came about, the commonest mistakes."""


Answered = Iterator[tuple[Question, Given]]


def _of_classifier(folder: Path, scope: Scope, recipe: TrainRecipe) -> tuple[dict[str, str], Answered]:
    classifier, vocabulary = load_classifier(folder)
    taught = settings_of(recipe)
    share = f"{len(taught.teachers)}, {taught.teacher_share:g} of the target"
    conditions = {
        "probabilities": "one temperature a head, fitted on valid",
        "several labels": f"given from a probability of {GIVEN_FROM:g} on",
        "base": classifier.config.base,
        "heads on this adapter": ", ".join(classifier.config.heads),
        "tuning": f"LoRA of rank {recipe.lora.rank}" if recipe.lora else "full fine-tuning",
        "teachers": share if taught.teachers else "none",
        "learning rate": f"{recipe.optimizer.learning_rate:g}",
    }
    return conditions, _answers(classifier, vocabulary, scope)


def _of_fasttext(folder: Path, scope: Scope, recipe: TrainRecipe) -> tuple[dict[str, str], Answered]:
    """The light classifier answers one question, and only if it was taught emotions."""
    bag = FastTextClassifier.load(folder)
    if bag.config.labels != EMOTIONS.labels:
        raise InputError(f"{folder} was not taught the 32 emotions.", "Name one trained on situations.")
    question = QUESTIONS["situation emotion"]
    labelled, sample = _drawn(question.source, scope)
    found = bag.probabilities([bag.features.of(item.view[0][0]) for item in labelled])
    truth = np.stack([item.target("emotion") for item in labelled])
    answers = Answers("emotion", np.log(np.maximum(found, 1e-12)), truth, 1.0)
    said = _said(question, answers, sample)
    conditions = {
        "probabilities": "as they are",
        "model": f"mean of word vectors, {len(bag.config.words):,} words, {bag.config.dimensions} dimensions",
        "learning rate": f"{recipe.optimizer.learning_rate:g}",
    }
    return conditions, iter([(question, Given(measure(answers), len(labelled), said))])


BY_HAND = Question("dialogue act, by hand", "act", "hand")
"""The utterances that the EmpatheticIntents authors labelled themselves, of 15 intents; 8 of them are acts,
the others count as "others"."""
QUESTIONS_AND_HAND = {**QUESTIONS, BY_HAND.name: BY_HAND}


def _answers(classifier: MultiTaskClassifier, vocabulary: Vocabulary, scope: Scope) -> Answered:
    questions = scope.questions(classifier.config.heads)
    for source in dict.fromkeys(question.source for question in questions):
        wanted = [question for question in questions if question.source == source]
        labelled, sample = _drawn(source, scope)
        inputs = encode_views(vocabulary, [item.view for item in labelled], classifier.config.limit)
        marked = range(len(inputs)) if any(q.head in classifier.config.marked for q in wanted) else ()
        with progress(f"reading {source}", total=len(inputs), unit="texts") as advance:
            heard = classify(classifier, inputs, marked, advance)
        for question in wanted:
            known = [place for place, item in enumerate(labelled) if question.head in item.labels]
            if not known:
                continue  # a small sample may hold no label of it
            answers = _of_head(classifier, question.head, heard, labelled, known)
            figures = measure(answers)
            if question.head in classifier.config.marked:
                figures["rationale_f1"] = _rationales(question.head, labelled, heard, classifier, vocabulary)
            if question.head == "act":
                figures |= _unseen(answers, [labelled[place] for place in known])
            if question.head == "response" and scope.split != "valid":
                figures |= _adjusted(answers, classifier, vocabulary, scope.sampling)
            yield question, Given(figures, len(known), _said(question, answers, sample))


def _of_head(
    classifier: MultiTaskClassifier,
    head: str,
    heard: ClassifierOutput,
    labelled: Sequence[Labelled],
    known: Sequence[int],
) -> Answers:
    truth = np.stack([labelled[place].target(head) for place in known])
    return Answers(head, heard.logits(head, known), truth, classifier.config.temperature(head))


def _adjusted(
    answers: Answers, classifier: MultiTaskClassifier, vocabulary: Vocabulary, sampling: Sampling
) -> dict[str, float]:
    """Figures of labels chosen against their frequency, by a share fitted on validation (`decision`)."""
    head, source = HEADS[answers.head], SOURCES[QUESTIONS["response intent"].source]
    seen = (item.labels[head.name][0] for item in source.read("train") if head.name in item.labels)
    frequencies = log_frequencies(head.labels, seen)
    every = [item for item in source.read("valid") if head.name in item.labels]
    if not every:
        return {}
    labelled = [item for _, item in sampling.draw(every)]
    heard = classify(
        classifier, encode_views(vocabulary, [item.view for item in labelled], classifier.config.limit)
    )
    valid = _of_head(classifier, head.name, heard, labelled, range(len(labelled)))
    share = fit_share(valid.found, valid.truth.argmax(axis=1), frequencies, head.labels)
    chosen = choose(answers.found, frequencies, share)
    found = metrics.classification_metrics(
        [head.labels[int(place)] for place in answers.truth.argmax(axis=1)],
        [head.labels[int(place)] for place in chosen],
        head.labels.labels,
    )
    wanted = ("accuracy", "weighted_precision", "weighted_recall", "weighted_f1")
    return {"adjusted_share": share, **{f"adjusted_{name}": found[name] for name in wanted}}


def _drawn(source: str, scope: Scope) -> tuple[list[Labelled], str]:
    """The texts that are asked, and the rule in words."""
    every = _labelled(source, scope.split)
    drawn = [item for _, item in scope.sampling.draw(every)]
    return drawn, scope.sampling.wording(len(every), len(drawn))


def _said(question: Question, answers: Answers, sample: str) -> dict[str, str]:
    labels = "by hand; 8 of 15 intents are acts" if question == BY_HAND else SOURCES[question.source].labels
    said = {"sample": sample, "labels": labels}
    if confused := most_confused(answers):
        said["most confused by the first seed"] = confused
    return said


def _labelled(source: str, split: str) -> list[Labelled]:
    if source != BY_HAND.source:
        return list(SOURCES[source].read(split))
    acts = SOURCES["acts"]
    return [found for item in acts.reader().read("manual") for found in acts.views(item)]


def _rationales(
    head: str,
    labelled: Sequence[Labelled],
    heard: ClassifierOutput,
    classifier: MultiTaskClassifier,
    vocabulary: Vocabulary,
) -> float:
    """F1 of word pieces in rationales, over the replies that have one (EPITOME §6's token F1), in percent."""
    both = given = true = 0
    column = classifier.config.marked.index(head)
    for place, item in enumerate(labelled):
        if parts := item.words.get(head):
            marked = heard.words(place)[:, column] > 0.5
            shown = marked_pieces(item.view[-1][0], vocabulary, parts)[: len(marked)]
            both += int((marked & shown).sum())
            given, true = given + int(marked.sum()), true + int(shown.sum())
    return 200 * both / max(1, given + true)


def _unseen(answers: Answers, labelled: Sequence[Labelled]) -> dict[str, float]:
    """Accuracy without the texts that stand in the training data, and among the 8 acts proper."""
    acts = SOURCES["acts"]
    every = acts.reader().read(f"{acts.prefix}train")  # also those that are not learned any more
    learned = {_plain(view.view[0][0]) for item in every for view in acts.views(item)}
    right = answers.found.argmax(axis=1) == answers.truth.argmax(axis=1)
    unseen = np.array([_plain(item.view[0][0]) not in learned for item in labelled])
    proper = answers.truth[:, HEADS["act"].labels.index("others")] == 0
    parts = {"unseen_accuracy": unseen, "proper_act_accuracy": proper}
    counts = {"unseen": float(unseen.sum()), "proper_acts": float(proper.sum())}
    return counts | {name: 100 * float(right[part].mean()) for name, part in parts.items() if part.any()}


def _plain(text: str) -> str:
    return " ".join(metrics.words(text))


def _result(question: Question, seeds: Sequence[Given], split: str, about: Mapping[str, Any]) -> Result:
    """The question's figures over the seeds; `about` holds what all questions share."""
    over = {name: metrics.over_seeds([given.figures[name] for given in seeds]) for name in seeds[0].figures}
    by_hand = question == BY_HAND
    source = SOURCES["acts" if by_hand else question.source]
    return Result(
        metrics=tuple((name, round(found.mean, 4)) for name, found in over.items()),
        spreads=tuple((name, round(found.spread, 4)) for name, found in over.items() if len(seeds) > 1),
        corpus=source.corpus,
        split="manual" if by_hand else f"{source.prefix}{split}",
        count=seeds[0].count,
        data=hash_files(source.reader().files("manual") if by_hand else source.files(split)),
        units=units(tuple(over)),
        **about,
    )
