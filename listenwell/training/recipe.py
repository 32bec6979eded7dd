"""What a training run is made of; read from YAML, written beside the weights."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from listenwell.errors import RecipeError
from listenwell.recipe import check_one_of, check_range
from listenwell.serialization import also_read_as, build, tagged_by
from listenwell.training import TASK_CONFIGS

BATCHINGS = ("packed", "bucketed", "examples")
PRECISIONS = ("auto", "bf16", "fp16", "fp32")
DECAYS = ("cosine", "linear", "constant")


@dataclass(frozen=True)
class DataRecipe:
    """The corpus and its splits for training, validation and test."""

    corpus: str = "empathetic_dialogues"
    path: Path | None = None
    """The corpus's folder or file; looked for in the data folder otherwise."""
    train: str = "train"
    valid: str = "valid"
    test: str | None = None
    """Measured once, after training, with the best checkpoint; nothing is chosen by it."""
    annotated: Path | None = None
    """Of planned generators: the folder with the corpora as `listenwell annotate` wrote them, as
    CORPUS/SPLIT.jsonl."""
    limit: int | None = None
    """Only so many dialogues of each split (replies, for rankers and planned generators), for rehearsals."""

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
        check_one_of("batches.batching", self.batching, BATCHINGS)
        check_range("batches.accumulate", self.accumulate, 1, 10_000)
        check_range("batches.examples", self.examples, 2, 1_000_000)
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
    """The learning rate of the layers on a ranker's encoder is multiplied by it: a weight of 20 moves by
    hundredths in some hundred steps of 2e-4."""

    def __post_init__(self) -> None:
        check_range("optimizer.head_lr_multiplier", self.head_lr_multiplier, 1e-3, 1e4)
        check_one_of("optimizer.decay", self.decay, DECAYS)
        check_range("optimizer.learning_rate", self.learning_rate, 1e-12, 100)
        check_range("optimizer.weight_decay", self.weight_decay, 0, 100)
        check_range("optimizer.warmup_share", self.warmup_share, 0, 0.99)
        check_range("optimizer.clip", self.clip, 1e-9, 1e9)
        for beta in self.betas:
            check_range("optimizer.betas", beta, 0, 0.999999)


@dataclass(frozen=True)
class LoraRecipe:
    """Low-rank adapters instead of full fine-tuning (Hu et al. 2022)."""

    rank: int = 32
    alpha: int = 64
    dropout: float = 0.05
    targets: str = "all-linear"

    def __post_init__(self) -> None:
        check_range("lora.rank", self.rank, 1, 4096)
        check_range("lora.alpha", self.alpha, 1, 65536)
        check_range("lora.dropout", self.dropout, 0, 0.99)


@dataclass(frozen=True)
class TaskConfig:
    """Settings of one training task, a member of the union `TrainRecipe.task`."""

    def check(self, recipe: "TrainRecipe") -> None:
        """Raise a RecipeError if the rest of the recipe does not fit the task."""


C = TypeVar("C", bound=TaskConfig)
UNSET = TaskConfig()
"""Stands for the task's defaults."""


@dataclass(frozen=True)
class TrainRecipe:
    """A whole run."""

    output: Path
    """The run's folder: checkpoints `best` and `last`, log.jsonl, result.json."""
    model: str = "vanilla"
    base: str = "smollm2-135m-instruct"
    """A base model's name, or its own path: that of a folder or a .gguf file."""
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
    """Of generators: this share of the replies is also learned without its context, so that the model gives
    P(y) too."""
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
    task: TaskConfig = field(
        default=UNSET, metadata=tagged_by("model", TASK_CONFIGS.load, unused=("speaker", "planning"))
    )
    """Settings of the task that `model` names; in a file they stand at this level, such as `ranker:`."""

    def __post_init__(self) -> None:
        check_one_of("precision", self.precision, PRECISIONS)
        check_one_of("learn", self.learn, ("replies", "all"))
        check_range("seed", self.seed, 0, 2**31)
        check_range("dropout", self.dropout, 0, 0.99)
        check_range("unconditional", self.unconditional, 0, 1)
        if self.epochs <= 0 or self.validate_every <= 0 or self.patience < 1:
            raise RecipeError(
                "epochs, validate_every and patience must be above zero.", "Correct the recipe."
            )
        config = TASK_CONFIGS.load(self.model)
        if self.task is UNSET:
            object.__setattr__(self, "task", build(config, {}, RecipeError))
        if type(self.task) is not config:
            raise RecipeError(
                f"The model {self.model!r} takes a {config.__name__}, not a {type(self.task).__name__}.",
                "Give a task of that class.",
            )
        self.task.check(self)

    @property
    def base_name(self) -> str:
        """What results call the base model, wherever its files lie."""
        return (self.weights or Path(self.base)).name

    def settings(self, config: type[C]) -> C:
        """The task's settings, known to be of a class; an error if the recipe trains something else."""
        if not isinstance(self.task, config):
            raise RecipeError(
                f"The recipe trains the model {self.model!r}, which has no {config.__name__}.",
                "Name the recipe of another run.",
            )
        return self.task
