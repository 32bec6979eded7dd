"""How well a reply would be liked, by a straight line through what the generator itself makes of its words.

A generator knows more of whether its words fit than it shows when it chooses the next one: the states of its
middle layers tell replies that raters like from those they do not (a linear probe; Alain and Bengio 2017).
score = w · m with m the mean over the reply's tokens of `Runtime.hidden_states`. w is found by ridge regression:
raters' scores less the mean of those of the same context, on the states less their mean there, so that it
tells replies to one person apart and not easy talks from hard ones. It costs no time: the states are there.

`preference.fit_reward` learns it from what raters said of candidates. It belongs to one generator: another's states
mean something else. Where a run has a folder `liking`, the generator trained there is judged by that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from listenwell.checkpoint import Checkpoint, open_checkpoint, writing
from listenwell.errors import CheckpointError
from listenwell.runtime.names import ADAPTER, SOFT_PROMPT, WHOLE
from listenwell.serialization import dumps

KIND = "reward_model"
SHIPPED, UNVOICED = (
    Path(__file__).parents[1] / "pretrained" / name for name in ("reward_model", "reward_model_base")
)
"""Of the shipped generator: with its voice, and without."""
MODEL, CONFIG = "model.safetensors", "config.json"
RIDGE = 3000.0
"""How strongly weights are held near 0, for states of deviation 1."""


@dataclass(frozen=True)
class RewardModel:
    """The line, and whose states it is about."""

    weights: np.ndarray  # (width,) float32
    generator: str
    """The sha256 of the speaker's weights; see `weights_of`."""

    def score(self, hidden_state: np.ndarray) -> float:
        """How well a reply would be liked, beside others to the same person."""
        return float(self.weights @ hidden_state)

    @classmethod
    def load(cls, folder: Path) -> "RewardModel":
        """A folder that `save` wrote."""
        saved = open_checkpoint(folder, KIND)
        try:
            weights = load_file(saved.path(MODEL))["weights"].astype(np.float32)
            return cls(weights, str(saved.config().get("generator") or saved.config()["speaker"]))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise CheckpointError(f"{folder} is damaged: {error}.", "Put it there again.") from error

    @classmethod
    def of(cls, generator: Checkpoint, use_soft_prompt: bool = True) -> "RewardModel | None":
        """The one that is about this generator, with its voice or without: in its run's folder `liking`, or a
        shipped one."""
        for folder in (generator.folder.resolve().parent / KIND, SHIPPED, UNVOICED):
            if folder.is_dir() and (found := cls.load(folder)).generator == weights_of(
                generator, use_soft_prompt
            ):
                return found
        return None

    def save(self, folder: Path, about: Mapping[str, object]) -> None:
        """Write it, whole or not at all; `about` says how it was made."""
        with writing(folder, KIND) as aside:
            save_file({"weights": self.weights.astype(np.float32)}, aside / MODEL)
            config = {"generator": self.generator, **about}
            (aside / CONFIG).write_text(dumps(config) + "\n", encoding="utf-8")


def weights_of(generator: Checkpoint, use_soft_prompt: bool = True) -> str:
    """The sha256 of what a generator learned: its adapter or the whole model, and its voice, if it has one and
    speaks with it."""
    names = (ADAPTER, WHOLE, SOFT_PROMPT) if use_soft_prompt else (ADAPTER, WHOLE)
    return "+".join(generator.sums[name] for name in names if name in generator.sums)


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
