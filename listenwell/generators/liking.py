"""How well a reply would be liked, by a straight line through what the speaker itself makes of its words.

A speaker knows more of whether its words fit than it shows when it chooses the next one: the states of its
middle layers tell replies that raters like from those they do not (a linear probe; Alain and Bengio 2017).
score = w · m with m the mean over the reply's tokens of `Runtime.middles`. w is found by ridge regression:
raters' scores less the mean of those of the same context, on the states less their mean there, so that it
tells replies to one person apart and not easy talks from hard ones. It costs no time: the states are there.

`python -m listenwell.generators.liking RATINGS… --split train --out FOLDER` learns it from what raters said
of candidates (`evaluation.ratings`). It belongs to one speaker: another's states mean something else.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from listenwell.checkpoint import Checkpoint, find_checkpoint, open_checkpoint, writing
from listenwell.dialogue import Dialogue, Factors
from listenwell.errors import CheckpointError, InputError, ListenwellError
from listenwell.progress import progress
from listenwell.records import dumps
from listenwell.runtime.names import ADAPTER, WHOLE

if TYPE_CHECKING:
    from listenwell.evaluation.rating_sheets import Shown

KIND = "liking"
SHIPPED = Path(__file__).parents[1] / "pretrained" / "liking"
MODEL, CONFIG = "model.safetensors", "config.json"
RIDGE = 3000.0
"""How strongly weights are held near 0, for states of deviation 1."""


@dataclass(frozen=True)
class Liking:
    """The line, and whose states it is about."""

    weights: np.ndarray  # (width,) float32
    speaker: str
    """The sha256 of the speaker's weights; see `weights_of`."""

    def score(self, middle: np.ndarray) -> float:
        """How well a reply would be liked, beside others to the same person."""
        return float(self.weights @ middle)

    @classmethod
    def load(cls, folder: Path) -> "Liking":
        """A folder that `save` wrote."""
        saved = open_checkpoint(folder, KIND)
        try:
            weights = load_file(saved.path(MODEL))["weights"].astype(np.float32)
            return cls(weights, str(saved.config()["speaker"]))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise CheckpointError(f"{folder} is damaged: {error}.", "Put it there again.") from error

    @classmethod
    def of(cls, speaker: Checkpoint) -> "Liking | None":
        """The shipped one, if it is about this speaker."""
        found = cls.load(SHIPPED) if SHIPPED.is_dir() else None
        return found if found and found.speaker == weights_of(speaker) else None

    def save(self, folder: Path, about: Mapping[str, object]) -> None:
        """Write it, whole or not at all; `about` says how it was made."""
        with writing(folder, KIND) as aside:
            save_file({"weights": self.weights.astype(np.float32)}, aside / MODEL)
            config = {"speaker": self.speaker, **about}
            (aside / CONFIG).write_text(dumps(config) + "\n", encoding="utf-8")


def weights_of(speaker: Checkpoint) -> str:
    """The sha256 of what a speaker learned: its adapter, or the whole model."""
    return next(speaker.sums[name] for name in (ADAPTER, WHOLE) if name in speaker.sums)


def fit(states: np.ndarray, ratings: np.ndarray, contexts: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
    """Weights that tell well-liked replies from others to the same context: (width,) float32.

    Args:
        states: (replies, width).
        ratings: (replies,)
        contexts: (replies,), the number of each one's context.
        ridge: see RIDGE.
    """
    apart, wanted = (centred(values.astype(np.float64), contexts) for values in (states, ratings))
    scale = max(float(apart.std()), 1e-12)
    apart /= scale
    gram = apart.T @ apart + ridge * np.eye(apart.shape[1])
    found: np.ndarray = np.linalg.solve(gram, apart.T @ wanted) / scale
    return found.astype(np.float32)


def agreement(scores: np.ndarray, ratings: np.ndarray, contexts: np.ndarray) -> float:
    """The correlation of scores and ratings within contexts."""
    mine, theirs = (centred(values.astype(np.float64), contexts) for values in (scores, ratings))
    size = float(np.sqrt((mine**2).sum() * (theirs**2).sum()))
    return float((mine * theirs).sum() / size) if size else 0.0


def centred(values: np.ndarray, contexts: np.ndarray) -> np.ndarray:
    """The values less the mean of those of the same context."""
    _, place, count = np.unique(contexts, return_inverse=True, return_counts=True)
    sums = np.zeros((len(count), *values.shape[1:]))
    np.add.at(sums, place, values)
    found: np.ndarray = values - (sums / count.reshape(-1, *[1] * (values.ndim - 1)))[place]
    return found


@dataclass(frozen=True)
class Ratings:
    """Rated replies of one speaker, with what it makes of them."""

    states: np.ndarray  # (replies, width)
    ratings: np.ndarray  # (replies,)
    contexts: np.ndarray  # (replies,)


def rated_states(speaker: Path, folders: Sequence[Path], split: str) -> Ratings:
    """What a speaker makes of the rated replies that have plans, each read after its context and plan.

    Args:
        speaker: its checkpoint.
        folders: of `evaluation.ratings`, all of one split.
        split: which.
    """
    from listenwell.evaluation.ratings import read_ratings
    from listenwell.generators.planned import PlannedConfig, Speaker

    reads = Speaker.load(PlannedConfig(), speaker)
    states, ratings, contexts = list[np.ndarray](), list[float](), list[int]()
    known = [(folder, *read_ratings(folder)) for folder in folders]
    if wrong := next((key.split for _, key, _ in known if key.split != split), None):
        raise InputError(f"There are ratings of the split {wrong}.", f"Name folders of {split} alone.")
    examples = _contexts({key.corpus for _, key, _ in known}, split)
    total = sum(len(rated) for _, _, rated in known)
    with progress("reading rated replies", total=total, unit="contexts") as advance:
        for number, (key, one) in enumerate((key, one) for _, key, some in known for one in some):
            by_plan: dict[Factors, list[Shown]] = {}
            for shown in one.entry.replies:
                if shown.plan is not None:  # the person's has none
                    by_plan.setdefault(shown.plan, []).append(shown)
            for plan, some in by_plan.items():
                context = examples[key.corpus, one.entry.id]
                states += list(reads.middles_of(context, plan, [shown.text for shown in some]))
                ratings += [float(one.mean(shown)[-1]) for shown in some]
                contexts += [number] * len(some)
            advance(1)
    return Ratings(np.array(states), np.array(ratings), np.array(contexts))


def _contexts(corpora: set[str], split: str) -> Mapping[tuple[str, str], Dialogue]:
    """Every context of some corpora, by corpus and id."""
    from listenwell.corpora.sources import Source
    from listenwell.evaluation.rating_sheets import examples_by_id

    def pairs() -> Iterator[tuple[tuple[str, str], Dialogue]]:
        for corpus in corpora:
            for name, example in examples_by_id(list(Source(corpus).examples(split))):
                yield (corpus, name), example.context

    return dict(pairs())


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn from ratings as the command line says; gives the exit status."""
    from listenwell.generators.planned import SHIPPED as SPEAKER

    parser = argparse.ArgumentParser(prog="python -m listenwell.generators.liking", description=__doc__)
    parser.add_argument("ratings", nargs="+", type=Path, help="folders of listenwell.evaluation.ratings")
    parser.add_argument("--speaker", type=Path, default=SPEAKER, help="whose replies they are")
    parser.add_argument("--split", default="train", help="which part of the corpus they answer")
    parser.add_argument("--ridge", type=float, default=RIDGE)
    parser.add_argument(
        "--held-out", nargs="*", type=Path, default=[], help="folders of valid, to measure on"
    )
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    try:
        checkpoint = open_checkpoint(find_checkpoint(asked.speaker))
        learned = rated_states(asked.speaker, asked.ratings, asked.split)
        weights = fit(learned.states, learned.ratings, learned.contexts, asked.ridge)
        about: dict[str, object] = {
            "ridge": asked.ridge,
            "replies": len(learned.ratings),
            "contexts": len(np.unique(learned.contexts)),
            "split": asked.split,
        }
        if asked.held_out:
            other = rated_states(asked.speaker, asked.held_out, "valid")
            about["agreement_held_out"] = agreement(other.states @ weights, other.ratings, other.contexts)
        Liking(weights, weights_of(checkpoint)).save(asked.out, about)
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    print(json.dumps(about))
    return 0


if __name__ == "__main__":
    sys.exit(main())
