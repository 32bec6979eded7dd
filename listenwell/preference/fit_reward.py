"""Fit a generator's reward model to ratings of its candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.checkpoint import find_checkpoint, open_checkpoint
from listenwell.conversation_state import with_state
from listenwell.dialogue import Factors
from listenwell.generators.planned import PlannedGenerator
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.reward_model import RIDGE, RewardModel, agreement, fit, weights_of
from listenwell.preference.ratings import RatedReply, rated_contexts
from listenwell.progress import progress


@dataclass(frozen=True)
class RatedStates:
    """The hidden states of rated replies."""

    states: np.ndarray  # (replies, width)
    ratings: np.ndarray  # (replies,)
    contexts: np.ndarray  # (replies,)


def rated_states(generator: Path, paths: Sequence[Path], split: str, limit: int | None = None) -> RatedStates:
    """A generator's hidden states of the rated replies that have plans, each after its context and plan.

    With a limit, of so many contexts, drawn at random.
    """
    model = PlannedGenerator.load(PlannedConfig(), generator)
    states, ratings, numbers = list[np.ndarray](), list[float](), list[int]()
    rated = rated_contexts(paths, split)
    order = np.random.default_rng(0).permutation(len(rated))[:limit]
    rated = [rated[index] for index in sorted(order.tolist())]
    with progress("reading rated replies", total=len(rated), unit="contexts") as advance:
        for number, (context, replies) in enumerate(rated):
            by_plan: dict[Factors, list[RatedReply]] = {}
            for reply in replies.replies:
                if reply.plan is not None and reply.text is not None:  # the person's has none
                    by_plan.setdefault(reply.plan, []).append(reply)
            stateful = with_state(context)
            for plan, some in by_plan.items():
                states += list(model.hidden_states_of(stateful, plan, [str(reply.text) for reply in some]))
                ratings += [reply.overall for reply in some]
                numbers += [number] * len(some)
            advance(1)
    return RatedStates(np.array(states), np.array(ratings), np.array(numbers))


def fit_reward(  # noqa: PLR0913, PLR0917 - one argument an option
    paths: Sequence[Path],
    generator: Path,
    out: Path,
    split: str = "train",
    ridge: float = RIDGE,
    held_out: Sequence[Path] = (),
    limit: int | None = None,
) -> dict[str, object]:
    """Fit a reward model by ridge regression and save it; returns how it was made.

    Args:
        paths: folders of sheets or compact files of ratings.
        generator: whose replies they are: a checkpoint, or a run's folder.
        out: the folder to write; RUN/reward_model is found by itself where RUN trained the generator.
        split: of the corpus that was replied to.
        ridge: strength of the regularization.
        held_out: ratings of valid, to measure the agreement on.
        limit: fit to so many contexts, drawn at random; a context takes about half a second.
    """
    fitted = rated_states(generator, paths, split, limit)
    weights = fit(fitted.states, fitted.ratings, fitted.contexts, ridge)
    about: dict[str, object] = {
        "ridge": ridge,
        "replies": len(fitted.ratings),
        "contexts": len(np.unique(fitted.contexts)),
        "split": split,
    }
    if held_out:
        other = rated_states(generator, held_out, "valid")
        about["agreement_held_out"] = agreement(other.states @ weights, other.ratings, other.contexts)
    RewardModel(weights, weights_of(open_checkpoint(find_checkpoint(generator)))).save(out, about)
    return about
