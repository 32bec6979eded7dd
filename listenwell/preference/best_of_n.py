"""Best-of-n: samples scored by a reward model, and what a generator learns from them.

The best reply to each context is a target of fine-tuning (rejection sampling, Touvron et al. 2023, §3.2.3),
the best and the worst are a pair for DPO, and the scores of all teach the reward probe.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from listenwell.checkpoint import find_checkpoint, open_checkpoint
from listenwell.dialogue import Dialogue, Turn
from listenwell.files import written_whole
from listenwell.preference.reward_training import KIND, RewardTask
from listenwell.preference.sampling import SampledReply, read_samples
from listenwell.progress import progress
from listenwell.recipe import read_recipe
from listenwell.training.preference_pairs import Pair
from listenwell.training.recipe import TrainRecipe

BEST_OF_N = "best of n"
"""The source of such pairs."""
SIZES = (1, 2, 4, 8, 16)
CONTEXTS = 256
"""Scored at once."""


@dataclass(frozen=True)
class Scored:
    """A context, the person's reply to it, and samples with their rewards, the best first."""

    context: Dialogue
    human: str
    replies: tuple[SampledReply, ...]


class RewardModel:
    """A trained reward model that scores replies to contexts."""

    def __init__(self, task: RewardTask) -> None:
        self._task = task

    @classmethod
    def load(cls, run: Path) -> "RewardModel":
        """The best checkpoint of a run of `recipes/generator/reward.yaml`, on a GPU where there is one."""
        saved = open_checkpoint(find_checkpoint(run), KIND)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        task = RewardTask.untrained(read_recipe(TrainRecipe, run / "recipe.yaml"), device)
        task.load(saved.folder)
        return cls(task)

    def scores(self, items: Sequence[tuple[Dialogue, Sequence[str]]]) -> list[np.ndarray]:
        """Predicted empathy and relevance, 1 to 5, of the replies to each context: (replies, 2)."""
        encoded = [self._task.inputs.encode(dialogue, replies) for dialogue, replies in items]
        predicted = self._task.predict([sequence for own in encoded for sequence in own])
        return np.split(predicted, np.cumsum([len(own) for own in encoded])[:-1])


def score_samples(model: RewardModel, samples: Path, out: Path) -> int:
    """Write samples with their rewards, the mean of empathy and relevance; returns how many."""
    records = list(read_samples(samples))
    count = 0
    with written_whole(out) as file, progress("scoring", total=len(records), unit="contexts") as advance:
        for start in range(0, len(records), CONTEXTS):
            part = [(record, replies) for record, replies in records[start : start + CONTEXTS] if replies]
            items = [
                (Dialogue.from_dict(record["context"]), [reply.text for reply in replies])
                for record, replies in part
            ]
            for (record, replies), scores in zip(part, model.scores(items), strict=True):
                scored = [
                    replace(reply, reward=round(float(score), 3)).to_dict()
                    for reply, score in zip(replies, scores.mean(1), strict=True)
                ]
                file.write(json.dumps({**record, "replies": scored}).encode() + b"\n")
                count += len(scored)
            advance(CONTEXTS)
    return count


def read_scored(file: Path) -> Iterator[Scored]:
    """What `score_samples` wrote."""
    for record, replies in read_samples(file):
        ordered = sorted(replies, key=lambda reply: -(reply.reward or 0))
        yield Scored(Dialogue.from_dict(record["context"]), record["human"], tuple(ordered))


def best_replies(scored: Iterable[Scored], least: float = 0.0) -> Iterator[Dialogue]:
    """Each context with its best reply and that reply's plan; those below a reward are left out."""
    for item in scored:
        best = item.replies[0]
        if (best.reward or 0) >= least:
            turn = Turn(item.context.listener, best.text, best.plan)
            yield replace(item.context, turns=(*item.context.turns, turn), emotion=best.plan.emotion)


def best_and_worst(scored: Iterable[Scored], gap: float = 0.3) -> Iterator[Pair]:
    """The best against the worst reply to each context, if their rewards are so far apart."""
    for item in scored:
        best, worst = item.replies[0], item.replies[-1]
        if (best.reward or 0) - (worst.reward or 0) >= gap:
            yield Pair(item.context, best.plan, best.text, worst.text, BEST_OF_N, worst.plan)


def gains(scored: Sequence[Scored]) -> dict[str, float]:
    """The mean reward of the best of the first n samples, by n, in the order they were drawn."""
    means = {}
    for size in SIZES:
        known = [item.replies for item in scored if len(item.replies) >= size]
        if known:
            random = np.random.default_rng(size)
            best = [
                max(float(replies[index].reward or 0) for index in random.permutation(len(replies))[:size])
                for replies in known
            ]
            means[f"best of {size}"] = round(float(np.mean(best)), 4)
    return means
