"""A generator that plans and annotators that label, without a model: quick, exact, picklable for workers."""

from collections import Counter
from dataclasses import replace

import numpy as np

from listenwell.dialogue import Candidate, Factors, Turn
from listenwell.evaluation.systems import System
from listenwell.generators.base import Generator
from listenwell.labels import ACTS, EMOTIONS, EXPRESSED_EMOTIONS
from listenwell.metrics import Perplexity
from listenwell.pipeline import GeneratorOutput, Plan

PLAN = Factors(emotion="sad", mechanisms=("exploration",), act="questioning", expressed_emotion="caring")
"""What every human reply of the annotated sample does."""


def one_hot(labels, best, second=None):
    """The best label has .6, the second .3, the others share the rest."""
    probabilities = np.full(len(labels), 0.1 / (len(labels) - 2))
    probabilities[labels.index(best)] = 0.6
    probabilities[labels.index(second or labels[0 if labels[0] != best else 1])] = 0.3
    return probabilities


class FakeGenerator(Generator, Plan):
    """Predicts EX, then "sympathizing" before "questioning", then "caring"."""

    name = "fake"

    def __init__(self):
        self.calls = Counter()

    def factor_probabilities(self, dialogue, given):
        self.calls["factor_probabilities"] += 1
        probabilities = {
            "emotion": one_hot(EMOTIONS, "lonely", "sad"),
            "mechanisms": np.array([0.2, 0.4, 0.9]),
            "act": one_hot(ACTS, "sympathizing", "questioning"),
            "expressed_emotion": one_hot(EXPRESSED_EMOTIONS, "caring"),
        }
        return {level: row for level, row in probabilities.items() if getattr(given, level) is None}

    def plan(self, dialogue, emotion, target, seed):
        return (replace(PLAN, act="sympathizing"),)

    def generate(self, dialogue, plans, seed, on_text=None):
        self.calls["generate"] += 1
        chosen = plans[0] if plans else None
        if chosen is None:
            return GeneratorOutput((Candidate(f"nothing planned {seed}"),))
        return GeneratorOutput((Candidate(f"{chosen.act} {seed}", chosen), Candidate("second", chosen)))

    def perplexity(self, examples, factors="gold", seeds=None):
        count = len(examples)
        nats = {"gold": 10.0, "predicted": 20.0, "none": 30.0, "marginal": 15.0}[factors]
        return Perplexity(nats * count, 10 * count, 5 * count, 20 * count, "letters")


class FakeSystem(System):
    """A system without weights; a class of its own, so that spawned workers find it."""

    def generator(self):
        return FakeGenerator()


class FakeAnnotator:
    """Labels a reply as a table says; everything else is a plain "others" without a mechanism."""

    key = "0123456789abcdef"

    def __init__(self, table=()):
        self.table = dict(table)
        self.seen = []

    def annotate_all(self, dialogues, top=5):
        for dialogue in dialogues:
            *before, last = dialogue.turns
            self.seen.append(tuple(turn.text for turn in dialogue.turns))
            label = self.table.get(
                last.text, Factors(levels=(0, 0, 0), act="others", expressed_emotion="neutral")
            )
            yield replace(dialogue, turns=(*before, Turn(last.speaker, last.text, label)))


def annotate(reader, split, folder, plan=PLAN):
    """Write a sample corpus as `listenwell annotate` would, every listener's turn with one plan."""
    folder.mkdir(parents=True)
    with (folder / f"{split}.jsonl").open("w") as out:
        for dialogue in reader.read(split):
            turns = [
                replace(turn, factors=plan) if turn.speaker == dialogue.listener else turn
                for turn in dialogue.turns
            ]
            out.write(replace(dialogue, turns=tuple(turns), emotion="sad").to_json() + "\n")
