"""The reward model: a linear probe on the generator's own hidden states that predicts raters' preferences.

The states of the middle layers tell replies that raters prefer from others (linear probes; Alain and Bengio
2017). score = w · m with m the mean of `Runtime.hidden_states` over the reply's tokens. w is fitted by ridge
regression of ratings on states, both centred within each context, so that it compares replies to one person.
It costs no time: the states exist after generation.

`preference.fit_reward` fits it to rated candidates. It belongs to one generator. Where a run has a folder
`reward_model` (`liking` in earlier releases), the generator trained there uses it.
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

KIND, OLD_KIND = "reward_model", "liking"
SHIPPED = Path(__file__).parents[1] / "pretrained" / "reward_model"
"""Of the shipped generator."""
MODEL, CONFIG = "model.safetensors", "config.json"
RIDGE = 3000.0
"""The ridge penalty, for states of deviation 1."""


@dataclass(frozen=True)
class RewardModel:
    """The probe's weights, and the generator whose states it is for."""

    weights: np.ndarray  # (width,) float32
    generator: str
    """The sha256 of the generator's weights; see `weights_of`."""

    def score(self, hidden_state: np.ndarray) -> float:
        """The reward of a reply, to be compared with others in the same context."""
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
        """A generator's reward model, with its soft prompt or without: in its run's folder, or shipped."""
        run = generator.folder.resolve().parent
        folders = (run / KIND, run / OLD_KIND, SHIPPED)
        for folder in folders:
            if folder.is_dir():
                model = cls.load(folder)
                if model.generator == weights_of(generator, use_soft_prompt):
                    return model
        return None

    def save(self, folder: Path, about: Mapping[str, object]) -> None:
        """Write it, whole or not at all; `about` says how it was fitted."""
        with writing(folder, KIND) as aside:
            save_file({"weights": self.weights.astype(np.float32)}, aside / MODEL)
            config = {"generator": self.generator, **about}
            (aside / CONFIG).write_text(dumps(config) + "\n", encoding="utf-8")


def weights_of(generator: Checkpoint, use_soft_prompt: bool = True) -> str:
    """The sha256 of a generator's trained weights: adapter or whole model, and its soft prompt if used."""
    names = (ADAPTER, WHOLE, SOFT_PROMPT) if use_soft_prompt else (ADAPTER, WHOLE)
    return "+".join(generator.sums[name] for name in names if name in generator.sums)


def fit(states: np.ndarray, ratings: np.ndarray, contexts: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
    """Weights that tell well-rated replies from others in the same context: (width,) float32.

    States are (replies, width); `contexts` holds the number of each reply's context.
    """
    inputs, targets = (centred(values.astype(np.float64), contexts) for values in (states, ratings))
    scale = max(float(inputs.std()), 1e-12)
    inputs /= scale
    gram = inputs.T @ inputs + ridge * np.eye(inputs.shape[1])
    weights: np.ndarray = np.linalg.solve(gram, inputs.T @ targets) / scale
    return weights.astype(np.float32)


def agreement(scores: np.ndarray, ratings: np.ndarray, contexts: np.ndarray) -> float:
    """The correlation of scores and ratings within contexts."""
    predicted, rated = (centred(values.astype(np.float64), contexts) for values in (scores, ratings))
    size = float(np.sqrt((predicted**2).sum() * (rated**2).sum()))
    return float((predicted * rated).sum() / size) if size else 0.0


def centred(values: np.ndarray, contexts: np.ndarray) -> np.ndarray:
    """The values minus the mean of their context."""
    _, index, count = np.unique(contexts, return_inverse=True, return_counts=True)
    sums = np.zeros((len(count), *values.shape[1:]))
    np.add.at(sums, index, values)
    result: np.ndarray = values - (sums / count.reshape(-1, *[1] * (values.ndim - 1)))[index]
    return result
