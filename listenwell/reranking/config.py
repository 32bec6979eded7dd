"""The weight of each reranking feature."""

import math
from dataclasses import dataclass, field, replace

from listenwell.errors import InputError, unknown_name
from listenwell.serialization import also_read_as

STANDARDIZED = ("reward", "likelihood", "plan_adherence")
"""Features that are standardized over the candidates of a reply: their scale means nothing by itself."""
MERITS = ("interpretation", "exploration")
"""Features that are added as they are."""
FAULTS = (
    "generic_response",
    "repetition",
    "copied_persona",
    "unsupported_disclosure",
    "unfinished",
    "generic_question",
    "brevity",
)
"""Features that are subtracted as they are."""
SHORT = ("generic_question", "brevity")
"""Faults that a target can ask for: a reply that only asks a question is short."""
FEATURES = (*STANDARDIZED, *MERITS, *FAULTS)
ANNOTATED = ("plan_adherence", *MERITS)
"""Features that come from the annotators."""
TOTAL = "total"
"""The name of the score that orders the candidates."""

OLD_NAMES = {
    "liked": "reward",
    "realized": "plan_adherence",
    "interprets": "interpretation",
    "explores": "exploration",
    "stock": "generic_response",
    "repeated": "repetition",
    "copied": "copied_persona",
    "invented": "unsupported_disclosure",
    "bare": "generic_question",
    "brief": "brevity",
    "choice": TOTAL,
}
"""Feature names of earlier releases, still accepted where a user names features."""
REMOVED = ("reader", "ranker", "prior")
"""Features of earlier releases that no longer exist; leaving them out is accepted and does nothing."""


@dataclass(frozen=True)
class RerankerConfig:
    """The weight of each feature; 0 leaves a feature out.

    A standardized feature has mean 0 and deviation 1 over the candidates of a reply: with a weight of 1, a
    reply that is one deviation better than the others gains one point. A merit gains, and a fault costs, its
    weight times its value.
    """

    reward: float = field(default=3.0, metadata=also_read_as("liked"))
    """The reward model's score (`generators.reward_model`), which predicts raters' empathy and relevance."""
    likelihood: float = 0.5
    """log P(reply | dialogue, plan) per token: likely replies are better than odd ones."""
    plan_adherence: float = field(default=0.5, metadata=also_read_as("realized"))
    """The probability that the reply does what its plan says, by the annotators."""
    interpretation: float = field(default=0.0, metadata=also_read_as("interprets"))
    """For each level of interpretation, 0 to 2, by the annotators; the reward model counts it already."""
    exploration: float = field(default=0.0, metadata=also_read_as("explores"))
    """For each level of exploration, 0 to 2."""
    steered: float = 4.5
    """The weight of `plan_adherence` where the caller gave a target."""
    steered_reward: float = field(default=1.0, metadata=also_read_as("steered_liked"))
    """The largest weight of `reward` then: the reward model does not see the target."""
    steered_faults: float = 2.0
    """Multiplies the weight of every fault but those of SHORT then: no target excuses an invented life."""
    done: float = 0.5
    """A steered reply with a lower `plan_adherence` misses its target: the generator tries once more."""
    generic_response: float = field(default=0.7, metadata=also_read_as("stock"))
    """For the part of the words that are stock phrases, 0 to 1."""
    repetition: float = field(default=12.0, metadata=also_read_as("repeated"))
    """For the part that was said before, 0 to 1: a whole repetition outweighs everything else."""
    copied_persona: float = field(default=3.0, metadata=also_read_as("copied"))
    """For the part of a persona line that is quoted word for word, 0 to 1."""
    unsupported_disclosure: float = field(default=8.0, metadata=also_read_as("invented"))
    """For each claim about the listener's own life that its persona does not support."""
    unfinished: float = 3.0
    """For a reply that stops in the middle."""
    generic_question: float = field(default=1.0, metadata=also_read_as("bare"))
    """For a reply that is only a question that fits any conversation."""
    brevity: float = field(default=4.0, metadata=also_read_as("brief"))
    """For the part of the words that a short reply lacks, 0 to 1."""
    without: tuple[str, ...] = ()
    """Names of features that are left out, for ablations."""

    def __post_init__(self) -> None:
        names = tuple(OLD_NAMES.get(name, name) for name in self.without if name not in REMOVED)
        object.__setattr__(self, "without", names)
        for name in names:
            if name not in FEATURES:
                raise unknown_name("reranking feature", name, FEATURES)
        for name in (*FEATURES, "steered", "steered_reward", "steered_faults", "done"):
            weight = getattr(self, name)
            if not (math.isfinite(weight) and weight >= 0):
                raise InputError(f"The weight of {name} is {weight}.", "Give a number from 0 up.")

    def weight(self, feature: str) -> float:
        """The weight of a feature; 0 for one that is left out."""
        return 0.0 if feature in self.without else float(getattr(self, feature))

    def for_steering(self) -> "RerankerConfig":
        """The weights for a reply with a target."""
        weights = {name: self.steered_faults * self.weight(name) for name in FAULTS if name not in SHORT}
        weights |= dict.fromkeys(MERITS, 0.0)  # the target alone says what the reply should do
        weights |= {"plan_adherence": self.steered, "reward": min(self.reward, self.steered_reward)}
        return replace(self, **weights)  # type: ignore[arg-type]

    def active(self) -> tuple[str, ...]:
        """The features with a weight above 0."""
        return tuple(feature for feature in FEATURES if self.weight(feature))
