"""What each training task adds to a recipe; every class here is one member of the union `TrainRecipe.task`.

The fields of a task's config stand at the top level of the recipe's file, beside `model`, which names the
task. Imports no torch, so that recipes are read and checked without it.
"""

from dataclasses import dataclass, field
from pathlib import Path

from listenwell.errors import RecipeError
from listenwell.labels import current_factor
from listenwell.rankers.config import RankerConfig
from listenwell.recipe import check_range
from listenwell.serialization import also_read_as
from listenwell.training.recipe import TaskConfig, TrainRecipe

PREFERENCE_METRICS = ("preference_loss", "preference_errors")
"""Metrics of preference tuning that are measured on the pairs held out."""


@dataclass(frozen=True)
class ClassifierRecipe:
    """The heads of a multi-task classifier, and how they are trained."""

    heads: tuple[str, ...]
    """Names of `annotators.heads.HEADS`; they share one adapter and one pass."""
    pooling: str = "mean"
    limit: int = 256
    """Longest input in tokens; not above batches.row_tokens."""
    dropout: float = 0.1
    """On the pooled vector, before the heads."""
    weights: tuple[tuple[str, float], ...] = ()
    """How much a head's loss counts, by name; 1 otherwise."""
    repeat: tuple[tuple[str, int], ...] = ()
    """How often a source's texts stand in an epoch, by the source's name; once otherwise."""
    paths: tuple[tuple[str, Path], ...] = ()
    """Your own data in a corpus's format, by the source's name (`annotators.sources.SOURCES`)."""
    words: float = 0.0
    """How much marking words (EPITOME's rationales) counts; 0 leaves it out."""
    teachers: tuple[Path, ...] = ()
    """Checkpoints of trained classifiers whose probabilities are learned from too (Hinton et al. 2015)."""
    teacher_share: float = 0.5
    """The teachers' share of a target; the rest is the label."""
    spread: bool = False
    """Learn the teachers' probabilities also on texts that have no label for a head."""
    start: Path | None = None
    """A trained classifier to start from: a checkpoint, or `shipped` for the package's own."""
    only: tuple[str, ...] = ()
    """Train these heads only; the encoder and the other heads stay as `start` has them."""
    leave_out: tuple[int, int] | None = None
    """(k, n): train without part k of n of the data, so that it can be labelled as a teacher."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", tuple(map(current_factor, self.heads)))
        object.__setattr__(self, "only", tuple(map(current_factor, self.only)))
        if not self.heads:
            raise RecipeError("classifier.heads is empty.", "Name at least one head.")
        check_range("classifier.limit", self.limit, 8, 100_000)
        check_range("classifier.dropout", self.dropout, 0, 0.99)
        check_range("classifier.teacher_share", self.teacher_share, 0, 1)
        if self.only and (self.start is None or not set(self.only) <= set(self.heads)):
            raise RecipeError(
                "classifier.only needs classifier.start, and heads that are in classifier.heads.",
                "Correct the recipe.",
            )
        if self.leave_out is not None and not 0 <= self.leave_out[0] < self.leave_out[1]:
            raise RecipeError(
                f"classifier.leave_out is {self.leave_out}.", "Give (k, n) with k from 0 to n - 1."
            )


@dataclass(frozen=True)
class FastTextRecipe:
    """The features of a fastText classifier; the recipe's `dropout` is the share left out in training."""

    dimensions: int = 64
    """Of a feature's vector."""
    buckets: int = 0
    """Vectors that word pairs share, by a hash; 0 uses single words only."""
    least: int = 2
    """A word has a vector of its own if the training texts hold it so often."""

    def __post_init__(self) -> None:
        check_range("fasttext.dimensions", self.dimensions, 1, 4096)
        check_range("fasttext.buckets", self.buckets, 0, 2**24)
        check_range("fasttext.least", self.least, 1, 10**9)


@dataclass(frozen=True)
class PairsRecipe:
    """Which replies a ranker or a planned generator learns from."""

    sources: tuple[tuple[str, int], ...]
    """Corpora by name, and how many replies of each, drawn at random; 0 takes all."""
    tests: tuple[str, ...] = ()
    """Corpora that are measured one by one on the test split, beside the sources together."""
    measured: int | None = None
    """Measure at most so many replies of each corpus, the first ones, where a split is large."""
    start: Path | None = None
    """A trained checkpoint on the same base to start from; `shipped`: the package's own generator."""
    scale: float = 1.0
    """Scores are multiplied by it in the loss; no order of replies depends on it, but products of long
    vectors are too large for a softmax to begin with. The papers have 1."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise RecipeError("pairs.sources is empty.", "Name at least one corpus.")
        for name, count in self.sources:
            check_range(f"pairs.sources.{name}", count, 0, 10**12)
        check_range("pairs.scale", self.scale, 1e-6, 1e6)
        if self.measured is not None:
            check_range("pairs.measured", self.measured, 2, 10**12)


@dataclass(frozen=True)
class PlanningRecipe:
    """What a planned generator learns beside plans and replies."""

    plan_dropout: float = field(default=0.1, metadata=also_read_as("unplanned"))
    """This share of the replies is learned without its plan, so that the model gives P(y|x) too and
    can be used without plans."""
    emotions: bool = True
    """Predict the speaker's emotion, where the corpus labels it."""
    replies: int = 0
    """Learn so many replies of each conversation, the last one and others drawn at random; 0 learns all."""
    earlier: bool = False
    """After a conversation's last reply, the listener's earlier turns are targets too, without plans."""
    state: float = 0.0
    """Before this share of the replies after a second message stands the conversation's state
    (conversation_state.py)."""
    situations: float = 0.0
    """After this share of the conversations, also predict the situation, where the corpus has it."""

    def __post_init__(self) -> None:
        check_range("planning.plan_dropout", self.plan_dropout, 0, 1)
        check_range("planning.state", self.state, 0, 1)
        check_range("planning.situations", self.situations, 0, 1)
        check_range("planning.replies", self.replies, 0, 10**6)


@dataclass(frozen=True)
class PreferenceRecipe:
    """Preference tuning: the pairs, and the terms of the loss."""

    file: Path
    """Pairs as `listenwell preference pairs` or `listenwell preference rated-pairs` writes them."""
    beta: float = 0.1
    """DPO's β: with a smaller one the generator may go farther from where it started."""
    nll: float = 0.2
    """Weight of the chosen reply's mean loss a token: without it, both replies get less likely."""
    normalized: bool = False
    """Count likelihoods a token instead of a reply, so that length is no merit; beta is then 2 to 10."""
    margin: float = 0.0
    """The chosen reply is to gain so much more than the rejected one (SimPO's γ)."""
    unlikelihood: float = 0.0
    """Weight of the unlikelihood loss on replies to somebody else (source `other`)."""
    shares: tuple[tuple[str, float], ...] = ()
    """Which share of a source's pairs is used, by its name (`own`, `other`); all otherwise."""
    held_out: float = 0.05
    """This share of the conversations is measured on and not learned from."""
    plans: bool = False
    """Whether the tokens of the replies' plans count too, where the two differ in their plans."""
    soft_prompt: int = field(default=16, metadata=also_read_as("voice"))
    """Of the model `soft_prompt`: how many tokens stand before the plan; they alone are trained."""

    def __post_init__(self) -> None:
        check_range("preference.soft_prompt", self.soft_prompt, 1, 256)
        check_range("preference.beta", self.beta, 1e-6, 1e3)
        check_range("preference.nll", self.nll, 0, 1e3)
        check_range("preference.margin", self.margin, 0, 1e3)
        check_range("preference.unlikelihood", self.unlikelihood, 0, 1e3)
        check_range("preference.held_out", self.held_out, 0, 0.9)
        for name, share in self.shares:
            check_range(f"preference.shares.{name}", share, 0, 1)


@dataclass(frozen=True)
class RewardRecipe:
    """The ratings that a reward model learns from, and its loss."""

    ratings: tuple[Path, ...]
    """Folders of rated sheets, or compact files, as in data/ratings."""
    pairwise: float = 1.0
    """Weight of the pairwise loss within a context beside the squared error."""
    limit: int = 384
    """Longest context and reply in tokens; the oldest turns are left out."""
    held_out: float = 0.06
    """This share of the conversations is measured on and not learned from."""

    def __post_init__(self) -> None:
        if not self.ratings:
            raise RecipeError("reward.ratings is empty.", "Name at least one file of ratings.")
        check_range("reward.pairwise", self.pairwise, 0, 1e3)
        check_range("reward.limit", self.limit, 128, 8192)
        check_range("reward.held_out", self.held_out, 1e-6, 0.9)


@dataclass(frozen=True)
class RewardTaskConfig(TaskConfig):
    """Training a reward model."""

    reward: RewardRecipe

    def check(self, recipe: TrainRecipe) -> None:
        """A batch holds whole contexts, whose replies are compared."""
        if recipe.batches.batching != "examples":
            raise RecipeError(
                "A reward model learns from batches of contexts.",
                "Set batches.batching to examples, and batches.examples.",
            )


@dataclass(frozen=True)
class CausalTaskConfig(TaskConfig):
    """Fine-tuning a causal language model on dialogues: nothing but the recipe's own settings."""


@dataclass(frozen=True)
class FastTextTaskConfig(TaskConfig):
    """Training a fastText classifier."""

    fasttext: FastTextRecipe = field(default_factory=FastTextRecipe, metadata=also_read_as("bag"))


@dataclass(frozen=True)
class ClassifierTaskConfig(TaskConfig):
    """Training a multi-task classifier."""

    classifier: ClassifierRecipe = field(metadata=also_read_as("ear"))

    def check(self, recipe: TrainRecipe) -> None:
        """A text must fit into a packed row."""
        limit, batches = self.classifier.limit, recipe.batches
        if batches.batching == "packed" and limit > batches.row_tokens:
            raise RecipeError(
                f"classifier.limit is {limit}, but a row has {batches.row_tokens} tokens.",
                "Lower classifier.limit, or raise batches.row_tokens.",
            )


@dataclass(frozen=True)
class RankingTaskConfig(TaskConfig):
    """Training a ranker."""

    ranker: RankerConfig
    pairs: PairsRecipe | None = None
    """Without it, all replies of data.corpus."""

    def check(self, recipe: TrainRecipe) -> None:
        """The wrong replies of a ranker are the other examples of its batch."""
        if recipe.batches.batching != "examples":
            raise RecipeError(
                "A ranker learns from batches of examples.",
                "Set batches.batching to examples, and batches.examples.",
            )


@dataclass(frozen=True)
class PlannedTaskConfig(TaskConfig):
    """Training a planned generator."""

    pairs: PairsRecipe | None = None
    """Without it, all replies of data.corpus."""
    planning: PlanningRecipe = field(default_factory=PlanningRecipe, metadata=also_read_as("speaker"))


@dataclass(frozen=True)
class PreferenceTaskConfig(PlannedTaskConfig):
    """Preference tuning of a planned generator."""

    preference: PreferenceRecipe = field(kw_only=True)

    def check(self, recipe: TrainRecipe) -> None:
        """There must be a generator to start from, and pairs held out if the metric needs them."""
        if self.pairs is None or self.pairs.start is None:
            raise RecipeError(
                "Preference tuning starts from a trained generator.", "Give its checkpoint as pairs.start."
            )
        if recipe.metric in PREFERENCE_METRICS and not self.preference.held_out:
            raise RecipeError(
                f"The metric {recipe.metric} is measured on pairs held out.", "Raise preference.held_out."
            )


@dataclass(frozen=True)
class SoftPromptTaskConfig(PreferenceTaskConfig):
    """Preference tuning of a soft prompt for a planned generator."""

    def check(self, recipe: TrainRecipe) -> None:
        """The generator must have an adapter, whose files are kept as they are."""
        super().check(recipe)
        if recipe.lora is None:
            raise RecipeError(
                "A soft prompt is trained for a generator with an adapter.",
                "Give the recipe the generator's `lora`.",
            )
