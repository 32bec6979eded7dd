"""What a training run is made of; read from YAML, written beside the weights."""

from dataclasses import dataclass, field
from pathlib import Path

from listenwell.errors import RecipeError
from listenwell.papers.comae.config import ComaeConfig
from listenwell.rankers.config import RankerConfig
from listenwell.serialization import also_read_as

BATCHINGS = ("packed", "bucketed", "examples")
PRECISIONS = ("auto", "bf16", "fp16", "fp32")
DECAYS = ("cosine", "linear", "constant")


@dataclass(frozen=True)
class DataRecipe:
    """Which corpus is learned from, chosen by, and reported on."""

    corpus: str = "empathetic_dialogues"
    path: Path | None = None
    """The corpus's folder or file; looked for in the data folder otherwise."""
    train: str = "train"
    valid: str = "valid"
    test: str | None = None
    """Measured once, after training, with the best checkpoint; nothing is chosen by it."""
    annotated: Path | None = None
    """Of generators that plan: the folder with the corpora as `listenwell annotate` wrote them, as
    CORPUS/SPLIT.jsonl."""
    limit: int | None = None
    """Only so many dialogues of each split (replies, for rankers and generators that plan), for rehearsals."""

    def used(self, shaping: bool = False) -> tuple[str, ...]:
        """The splits in use; `shaping`: only those that are learned from and chosen by."""
        return tuple(split for split in (self.train, self.valid, None if shaping else self.test) if split)


@dataclass(frozen=True)
class BatchRecipe:
    """How sequences become batches."""

    batching: str = "packed"
    """packed: several sequences share a row, none sees another; bucketed: rows of like length, padded;
    examples: a number of them drawn at random, for rankers."""
    tokens: int = 32_768
    """Tokens in one step, over all processes and accumulated parts."""
    row_tokens: int = 512
    """Length of a packed row, and the longest sequence; a longer one loses its oldest turns."""
    accumulate: int = 1
    """In how many parts one step's batch is computed, where memory is short."""
    examples: int = 64
    """Of a step that is counted in examples, which are each other's wrong answers; it is never divided."""

    def __post_init__(self) -> None:
        _one_of("batches.batching", self.batching, BATCHINGS)
        _within("batches.accumulate", self.accumulate, 1, 10_000)
        _within("batches.examples", self.examples, 2, 1_000_000)
        if self.batching == "examples":
            if self.accumulate > 1:
                raise RecipeError("Batches of examples cannot be computed in parts.", "Leave accumulate out.")
            return
        if self.row_tokens < 8 or self.tokens < self.row_tokens * self.accumulate:
            raise RecipeError(
                f"A step of {self.tokens} tokens in {self.accumulate} parts has no room for rows of "
                f"{self.row_tokens}.",
                "Give larger batches.tokens, or smaller batches.row_tokens.",
            )


@dataclass(frozen=True)
class OptimizerRecipe:
    """AdamW with warm-up and decay."""

    learning_rate: float = 2e-4
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    warmup_share: float = 0.06
    """Share of all steps over which the learning rate rises from zero."""
    decay: str = "cosine"
    clip: float = 1.0
    """The gradient's largest norm."""
    head_lr_multiplier: float = field(default=1.0, metadata=also_read_as("head_pace"))
    """What stands on a ranker's encoder learns so many times as fast: a weight of 20 moves by hundredths in
    some hundred steps of 2e-4."""

    def __post_init__(self) -> None:
        _within("optimizer.head_lr_multiplier", self.head_lr_multiplier, 1e-3, 1e4)
        _one_of("optimizer.decay", self.decay, DECAYS)
        _within("optimizer.learning_rate", self.learning_rate, 1e-12, 100)
        _within("optimizer.weight_decay", self.weight_decay, 0, 100)
        _within("optimizer.warmup_share", self.warmup_share, 0, 0.99)
        _within("optimizer.clip", self.clip, 1e-9, 1e9)
        for beta in self.betas:
            _within("optimizer.betas", beta, 0, 0.999999)


@dataclass(frozen=True)
class LoraRecipe:
    """Low-rank adapters instead of full fine-tuning (Hu et al. 2022)."""

    rank: int = 32
    alpha: int = 64
    dropout: float = 0.05
    targets: str = "all-linear"

    def __post_init__(self) -> None:
        _within("lora.rank", self.rank, 1, 4096)
        _within("lora.alpha", self.alpha, 1, 65536)
        _within("lora.dropout", self.dropout, 0, 0.99)


@dataclass(frozen=True)
class ClassifierRecipe:
    """Which heads an encoder gets, and how they are taught."""

    heads: tuple[str, ...]
    """Names of `annotators.heads.HEADS`; they share one adapter and one pass."""
    pooling: str = "mean"
    limit: int = 256
    """Tokens it reads at most; not above batches.row_tokens."""
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
    """Checkpoints of trained ears whose thoughts are learned from too (Hinton et al. 2015)."""
    teacher_share: float = 0.5
    """The teachers' share of a target; the rest is what is known."""
    spread: bool = False
    """Learn the teachers' thoughts also on texts whose label for a head is not known."""
    start: Path | None = None
    """A trained ear to go on from: a checkpoint, or `shipped` for the one that comes with the package."""
    only: tuple[str, ...] = ()
    """Heads that learn alone, while the encoder and the other heads stay as `start` has them."""
    leave_out: tuple[int, int] | None = None
    """(k, n): learn without part k of n of the data, so as to be a fair teacher for it."""

    def __post_init__(self) -> None:
        if not self.heads:
            raise RecipeError("classifier.heads is empty.", "Name at least one head.")
        _within("classifier.limit", self.limit, 8, 100_000)
        _within("classifier.dropout", self.dropout, 0, 0.99)
        _within("classifier.teacher_share", self.teacher_share, 0, 1)
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
    """The features of a bag classifier; the recipe's `dropout` is the share of them left out in training."""

    dimensions: int = 64
    """Of a feature's vector."""
    buckets: int = 0
    """Vectors that word pairs share, by a hash; 0 reads words alone."""
    least: int = 2
    """A word has a vector of its own if the training texts hold it so often."""

    def __post_init__(self) -> None:
        _within("fasttext.dimensions", self.dimensions, 1, 4096)
        _within("fasttext.buckets", self.buckets, 0, 2**24)
        _within("fasttext.least", self.least, 1, 10**9)


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
    """A trained model's checkpoint to go on from, on the same base; `shipped`: the package's own generator."""
    scale: float = 1.0
    """Scores are multiplied by it in the loss; no order of replies depends on it, but products of long
    vectors are too large for a softmax to begin with. The papers have 1."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise RecipeError("pairs.sources is empty.", "Name at least one corpus.")
        for name, count in self.sources:
            _within(f"pairs.sources.{name}", count, 0, 10**12)
        _within("pairs.scale", self.scale, 1e-6, 1e6)
        if self.measured is not None:
            _within("pairs.measured", self.measured, 2, 10**12)


@dataclass(frozen=True)
class PlanningRecipe:
    """How a planned generator is taught."""

    plan_dropout: float = field(default=0.1, metadata=also_read_as("unplanned"))
    """This share of the replies is learned without its plan, so that P(y|x) is known and an engine without
    plans can speak too."""
    emotions: bool = True
    """Learn to say what the other person feels, where the corpus knows it."""
    situations: float = 0.0
    """After this share of the talks, also learn to tell what happened, where the corpus knows it."""

    def __post_init__(self) -> None:
        _within("planning.plan_dropout", self.plan_dropout, 0, 1)
        _within("planning.situations", self.situations, 0, 1)


@dataclass(frozen=True)
class PreferenceRecipe:
    """How a planned generator is taught to prefer good replies to worse ones."""

    file: Path
    """Pairs as `preference.pairs` or `preference.candidate_pairs` write them."""
    beta: float = 0.1
    """How much a gain in likelihood counts (DPO's β): smaller lets the generator go farther from its start."""
    nll: float = 0.2
    """Weight of the chosen reply's mean loss a token: without it, the chances of both replies fall."""
    normalized: bool = False
    """Count likelihoods a token instead of a reply, so that length is no merit; beta is then 2 to 10."""
    margin: float = 0.0
    """The chosen reply is to gain so much more than the rejected one (SimPO's γ)."""
    unlikelihood: float = 0.0
    """Weight of making unlikely, token by token, what was said to somebody else (source `other`)."""
    shares: tuple[tuple[str, float], ...] = ()
    """Which share of a source's pairs is used, by its name (`own`, `other`); all otherwise."""
    held_out: float = 0.05
    """This share of the talks is measured on and not learned from."""
    soft_prompt: int = field(default=16, metadata=also_read_as("voice"))
    """Of the model `voice`: so many tokens stand before the plan, and they alone are learned."""

    def __post_init__(self) -> None:
        _within("preference.soft_prompt", self.soft_prompt, 1, 256)
        _within("preference.beta", self.beta, 1e-6, 1e3)
        _within("preference.nll", self.nll, 0, 1e3)
        _within("preference.margin", self.margin, 0, 1e3)
        _within("preference.unlikelihood", self.unlikelihood, 0, 1e3)
        _within("preference.held_out", self.held_out, 0, 0.9)
        for name, share in self.shares:
            _within(f"preference.shares.{name}", share, 0, 1)


@dataclass(frozen=True)
class TrainRecipe:
    """A whole run."""

    output: Path
    """The run's folder: checkpoints `best` and `last`, log.jsonl, result.json."""
    model: str = "vanilla"
    base: str = "smollm2-135m-instruct"
    weights: Path | None = None
    """Your own folder with base weights, or a .gguf file."""
    seed: int = 1
    epochs: float = 3.0
    precision: str = "auto"
    """auto is bf16 on a GPU and fp32 on a CPU."""
    compile: bool = True
    """On a GPU, compile the model (torch.compile): a minute at the start, much faster steps."""
    learn: str = "replies"
    """replies: the listener's turns are learned; all: everybody's are. Validation always measures replies."""
    unconditional: float = field(default=0.0, metadata=also_read_as("alone"))
    """Of generators: this share of the replies is also learned without its context, so that P(y) is known and
    likelihood can be compared with it."""
    dropout: float = 0.0
    """Dropout on attention weights."""
    validate_every: float = 0.5
    """In epochs."""
    metric: str = "perplexity_by_token"
    """The validation metric the best checkpoint is chosen by; smaller is better."""
    save_seconds: float = 300.0
    """Save at least this often, so that a kill costs little; several processes save at validations only."""
    patience: int = 3
    """Stop after so many validations without a better one."""
    data: DataRecipe = field(default_factory=DataRecipe)
    batches: BatchRecipe = field(default_factory=BatchRecipe)
    optimizer: OptimizerRecipe = field(default_factory=OptimizerRecipe)
    lora: LoraRecipe | None = None
    fasttext: FastTextRecipe | None = field(default=None, metadata=also_read_as("bag"))
    """For the model `bag`; its defaults where it is left out."""
    classifier: ClassifierRecipe | None = field(default=None, metadata=also_read_as("ear"))
    """Of annotators only."""
    ranker: RankerConfig | None = None
    """Of rankers only."""
    pairs: PairsRecipe | None = None
    """Of rankers and planned generators; without it, data.corpus is learned from."""
    planning: PlanningRecipe = field(default_factory=PlanningRecipe, metadata=also_read_as("speaker"))
    """Of planned generators only."""
    preference: PreferenceRecipe | None = None
    """Of planned generators that are taught by contrast (the model `preferred`)."""
    comae: ComaeConfig | None = None
    """Of CoMAE's family only; its defaults where it is left out."""

    def __post_init__(self) -> None:
        _one_of("precision", self.precision, PRECISIONS)
        _one_of("learn", self.learn, ("replies", "all"))
        _within("seed", self.seed, 0, 2**31)
        _within("dropout", self.dropout, 0, 0.99)
        _within("unconditional", self.unconditional, 0, 1)
        if (
            self.classifier
            and self.batches.batching == "packed"
            and self.classifier.limit > self.batches.row_tokens
        ):
            raise RecipeError(
                f"classifier.limit is {self.classifier.limit}, but a row has {self.batches.row_tokens} tokens.",
                "Lower classifier.limit, or raise batches.row_tokens.",
            )
        if self.epochs <= 0 or self.validate_every <= 0 or self.patience < 1:
            raise RecipeError(
                "epochs, validate_every and patience must be above zero.", "Correct the recipe."
            )


def settings_of(recipe: TrainRecipe) -> ClassifierRecipe:
    """The recipe's part about the classifier."""
    if recipe.classifier is None:
        raise RecipeError("The recipe trains an ear, but says nothing of it.", "Add classifier: heads: […].")
    return recipe.classifier


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise RecipeError(f"{name} is {value!r}.", f"Give one of: {', '.join(allowed)}.")


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also catches NaN
        raise RecipeError(f"{name} is {value}.", f"Give a number from {low:g} to {high:g}.")
