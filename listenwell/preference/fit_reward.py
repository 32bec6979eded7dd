"""Learning how well a speaker's replies are liked, from what raters said of them.

`python -m listenwell.preference.fit_reward RATINGS… --split train --out FOLDER` reads folders of
`preference.ratings` with a listener's candidates, and writes a `generators.reward_model.RewardModel`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.checkpoint import find_checkpoint, open_checkpoint
from listenwell.dialogue import Factors
from listenwell.errors import ListenwellError
from listenwell.generators.planned import SHIPPED, PlannedConfig, PlannedGenerator
from listenwell.generators.reward_model import RIDGE, RewardModel, agreement, fit, weights_of
from listenwell.preference.rating_sheets import Shown
from listenwell.preference.ratings import rated_contexts
from listenwell.progress import progress


@dataclass(frozen=True)
class Ratings:
    """Rated replies of one generator, with what it makes of them."""

    states: np.ndarray  # (replies, width)
    ratings: np.ndarray  # (replies,)
    contexts: np.ndarray  # (replies,)


def rated_states(generator: Path, folders: Sequence[Path], split: str) -> Ratings:
    """What a generator makes of the rated replies that have plans, each read after its context and plan.

    Args:
        generator: its checkpoint.
        folders: of `preference.ratings`, all of one split.
        split: which.
    """
    reads = PlannedGenerator.load(PlannedConfig(), generator)
    states, ratings, contexts = list[np.ndarray](), list[float](), list[int]()
    known = rated_contexts(folders, split)
    with progress("reading rated replies", total=len(known), unit="contexts") as advance:
        for number, (context, one) in enumerate(known):
            by_plan: dict[Factors, list[Shown]] = {}
            for shown in one.entry.replies:
                if shown.plan is not None:  # the person's has none
                    by_plan.setdefault(shown.plan, []).append(shown)
            for plan, some in by_plan.items():
                states += list(reads.hidden_states_of(context, plan, [shown.text for shown in some]))
                ratings += [float(one.mean(shown)[-1]) for shown in some]
                contexts += [number] * len(some)
            advance(1)
    return Ratings(np.array(states), np.array(ratings), np.array(contexts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn from ratings as the command line says; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m listenwell.preference.fit_reward", description=__doc__)
    parser.add_argument("ratings", nargs="+", type=Path, help="folders of listenwell.preference.ratings")
    parser.add_argument("--speaker", type=Path, default=SHIPPED, help="whose replies they are")
    parser.add_argument("--split", default="train", help="which part of the corpus they answer")
    parser.add_argument("--ridge", type=float, default=RIDGE)
    parser.add_argument(
        "--held-out", nargs="*", type=Path, default=[], help="folders of valid, to measure on"
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="RUN/liking is found by itself where RUN trained the speaker",
    )
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
        RewardModel(weights, weights_of(checkpoint)).save(asked.out, about)
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    print(json.dumps(about))
    return 0


if __name__ == "__main__":
    sys.exit(main())
