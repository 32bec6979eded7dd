"""How much each judge of a reply counts."""

import math
from dataclasses import dataclass, replace

from listenwell.errors import InputError, unknown_name

SOFT = ("reward", "reader", "ranker", "likelihood", "prior", "plan", "plan_adherence")
"""Judges whose scores mean something only beside those of the other candidates."""
FAULTS = (
    "generic_response",
    "repeated",
    "copied",
    "unsupported_disclosure",
    "unfinished",
    "generic_question",
    "brevity",
)
"""Judges who find what a reply should not do; what they find is taken off as it is."""
SHORT = ("generic_question", "brevity")
"""Faults that a plan can ask for: a question and nothing else is short."""
MERITS = ("interprets", "explores")
"""Judges who find what a reply should do; what they find is added as it is."""
FEATURES = (*SOFT, *MERITS, *FAULTS)
LATE = ("reader", "ranker", "prior")
"""Soft judges that take time and count little: asked in this order after all others, and only while they
could still change which candidate comes first."""
READ = {"interprets": "interpretation", "explores": "exploration", "plan_adherence": None}
"""Judges who ask the annotators, and the mechanism that is looked at, where it is one."""
CHOICE = "choice"
"""The name of the score by which candidates are put in order."""


@dataclass(frozen=True)
class RerankerConfig:
    """The weight of each judge; 0 leaves a judge out.

    A soft judge's scores are first brought to mean 0 and deviation 1 over the candidates of a reply: with a
    weight of 1, a reply one deviation better than the others gains one point. A fault costs its weight times
    what the judge found.
    """

    reward: float = 3.0
    """How well raters would like the reply, as the speaker's own states tell (`generators.reward_model`): on 160
    validation contexts it agrees with raters far better than any other judge (docs/speaking.md)."""
    reader: float = 0.5
    """How well the reply fits what was said before, by the reader, which learned to tell it from replies that
    are nearly right: to the opposite feeling, to the last turn alone, to somebody else."""
    ranker: float = 0.0
    """How well the reply fits by the trained ranker, which learned to find it among a hundred others: what it
    is about counts most there, and not whether it takes the right side. Beside the others it adds nothing."""
    likelihood: float = 0.5
    """log P(reply | dialogue, plan) by token: likely replies are better than odd ones."""
    prior: float = 0.1
    """log P(reply) by token, taken off: a mild pull away from what fits everywhere. Strong ones choose odd
    replies: with 0.7 against a likelihood of 1, the best of 16 was worse than no choice."""
    plan: float = 0.2
    """log P(plan | dialogue): replies to likely plans."""
    plan_adherence: float = 0.5
    """How likely the reply does what its plan says, by the annotators."""
    interprets: float = 2.5
    """For each level of interpretation that the annotators read in it, from 0 to 2: what raters like most is
    warm, and says little of what the other must feel or wants to know nothing more."""
    explores: float = 1.25
    """For each level of exploration."""
    steered: float = 4.5
    """What `realized` weighs where somebody asked for a part of the plan: who steers wants to see it done."""
    steered_reward: float = 1.0
    """What `liked` weighs at most then: it knows nothing of what was asked for."""
    steered_faults: float = 2.0
    """What the weight of every fault but those of SHORT is multiplied by then: no plan excuses an invented
    life."""
    done: float = 0.5
    """A reply that is less likely to do what was asked for is not enough: a generator with a voice then says it
    once more without."""
    generic_response: float = 0.7
    """For the share of its words that are stock phrases, from 0 to 1."""
    repeated: float = 12.0
    """For the share that was said before, from 0 to 1: above all the soft judges for a whole repetition."""
    copied: float = 3.0
    """For the share of a persona line that is said word for word, from 0 to 1."""
    unsupported_disclosure: float = 8.0
    """For each claim about the listener's life that its persona does not hold."""
    unfinished: float = 3.0
    """For a reply that stops in the middle."""
    generic_question: float = 1.0
    """For a bare question that would fit any talk."""
    brevity: float = 4.0
    """For the share of words that a short reply lacks, from 0 to 1."""
    without: tuple[str, ...] = ()
    """Judges that are left out, by name: for ablations."""
    every: bool = False
    """Ask also those of LATE that cannot change which reply comes first: their scores then stand on every
    candidate, and have a say in the order of the others."""

    def __post_init__(self) -> None:
        for name in self.without:
            if name not in FEATURES:
                raise unknown_name("judge", name, FEATURES)
        for name in (*FEATURES, "steered", "steered_reward", "steered_faults", "done"):
            weight = getattr(self, name)
            if not (math.isfinite(weight) and weight >= 0):
                raise InputError(f"The weight of {name} is {weight}.", "Give a number from 0 up.")

    def weight(self, feature: str) -> float:
        """How much a judge counts; 0 for one that is left out."""
        return 0.0 if feature in self.without else float(getattr(self, feature))

    def for_steering(self) -> "RerankerConfig":
        """The weights for a reply of which somebody asked for a part of the plan."""
        weights = {name: self.steered_faults * self.weight(name) for name in FAULTS if name not in SHORT}
        weights |= dict.fromkeys(MERITS, 0.0)  # what was not asked for is free
        weights |= {"plan_adherence": self.steered, "reward": min(self.reward, self.steered_reward)}
        return replace(self, **weights)  # type: ignore[arg-type]

    def asked(self) -> tuple[str, ...]:
        """The judges that count."""
        return tuple(feature for feature in FEATURES if self.weight(feature))
