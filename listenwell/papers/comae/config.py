"""What a CoMAE model is made of; read from recipes, written beside the weights. Imports no torch."""

from dataclasses import dataclass, field

from listenwell.errors import InputError, RecipeError, unknown_name
from listenwell.labels import ACTS, EXPRESSED_EMOTIONS, MECHANISMS, current_factor
from listenwell.recipe import check_range
from listenwell.serialization import Record
from listenwell.training.recipe import TaskConfig, TrainRecipe

SHORT = {"mechanisms": "CM", "act": "DA", "expressed_emotion": "EM"}
"""The factors, fields of `dialogue.Factors`, and the paper's names for them."""
SLOTS: dict[str, tuple[int, ...]] = {"mechanisms": (0, 1, 2), "act": (3,), "expressed_emotion": (4,)}
"""Where a factor's choices stand in a plan as five numbers: ER, IP, EX, act, expressed emotion."""
CHOICES = {"mechanisms": 2, "act": len(ACTS), "expressed_emotion": len(EXPRESSED_EMOTIONS)}
"""How many choices each slot of a factor has; a mechanism is no or yes."""
SLOT_COUNT = len(MECHANISMS) + 2


@dataclass(frozen=True)
class ComaeConfig(Record):
    """One model of CoMAE's family (§6.1).

    The factors in use are predicted, their embeddings are on the reply's tokens, those of act and emotion on
    the context's tokens too. A factor that is not in use is nowhere: the paper says that its vanilla model
    adds none, and that DA ‖ EM reads what EmpTransfo reads. Who speaks is always told.
    """

    base: str = "smollm2-135m-instruct"
    """The causal model around which it is built, a name of `weights.BASE_MODELS`; GPT-2 in the paper."""
    factors: tuple[str, ...] = ("mechanisms", "act", "expressed_emotion")
    """In the order in which they are predicted; none is the vanilla model."""
    hierarchical: bool = True
    """Each factor is predicted from the context and the factors before it (→); otherwise from the context
    alone (‖)."""
    weight: float = 1.0
    """λ, how much the losses of the factors count (§5.2)."""
    lr_multiplier: float = 1.0
    """So many times faster than all else the new embeddings learn. The paper, at 1, takes tens of thousands
    of small steps; in a few hundred large ones Adam, whose steps are bounded, would leave them small."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(map(current_factor, self.factors)))
        for name in self.factors:
            if name not in SHORT:
                raise unknown_name("factor", name, SHORT)
        if len(set(self.factors)) < len(self.factors):
            raise InputError(f"comae.factors is {list(self.factors)}.", "Name each factor once.")
        check_range("comae.weight", self.weight, 0, 1e3)
        check_range("comae.lr_multiplier", self.lr_multiplier, 1e-3, 1e3)

    @property
    def title(self) -> str:
        """Its name in the paper's tables, such as CM → DA → EM."""
        names = [SHORT[name] for name in self.factors]
        if len(names) < 2:
            return f"+{names[0]}" if names else "vanilla"
        return (" → " if self.hierarchical else " ‖ ").join(names)

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots of a plan that are in use."""
        return tuple(slot for name in self.factors for slot in SLOTS[name])


@dataclass(frozen=True)
class ComaeTaskConfig(TaskConfig):
    """Training a model of CoMAE's family."""

    comae: ComaeConfig = field(default_factory=ComaeConfig)

    def check(self, recipe: TrainRecipe) -> None:
        """Its loss is a mean over tokens."""
        if recipe.batches.batching == "examples":
            raise RecipeError(
                "CoMAE learns from batches of tokens.", "Set batches.batching to packed or bucketed."
            )
