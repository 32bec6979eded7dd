"""The planned generator's settings."""

from dataclasses import dataclass, field

from listenwell.errors import InputError
from listenwell.generators.decoding import Decoding, Ending
from listenwell.generators.planner import Draw
from listenwell.labels import MANNERS
from listenwell.runtime.engines import Engine
from listenwell.serialization import also_read_as

MOST = 64


@dataclass(frozen=True)
class PlannedConfig:
    """Settings of the planned generator."""

    plans: int = 4
    """How many different plans are tried."""
    candidates: int = 8
    """How many replies in all, shared evenly among the plans."""
    prompt_tokens: int = 512
    """Budget of the dialogue and the persona."""
    annotator_weight: float = field(default=0.5, metadata=also_read_as("heard"))
    """The weight of the annotators' emotion beside the generator's own prediction, 0 to 1."""
    plan_temperature: float = 0.5
    """Below 1 prefers likely plans; at 1, one of four plans is often far off."""
    mechanism_bias: float = 0.3
    """What a plan gains, in nats, for each mechanism of empathy that it uses."""
    interpretation_bias: float = 0.3
    """What it gains besides for interpretation."""
    others_penalty: float = 0.5
    """What a plan loses, in nats, for the act `others`: such replies often miss the point."""
    opposite_penalty: float = 1.5
    """What it loses for an expressed emotion that contradicts the user's, such as joy at a loss."""
    plan_beam: int = 16
    """How many of the 72 pairs of mechanisms and act are extended by an expressed emotion, the likeliest."""
    tidy: bool = True
    """Whether capitals, apostrophes and full stops are corrected; the training corpus often lacks them."""
    use_soft_prompt: bool = True
    """Whether the soft prompt is used, where the checkpoint has one (prefix_cache.py)."""
    soft_prompt_temperature: float = 0.8
    """The decoding's temperature with a soft prompt, under which replies vary less."""
    manner: str = "plain"
    """In which manner it replies, one of `labels.MANNERS`, where the generator was trained with manners."""
    use_state: bool = True
    """Whether the conversation's state stands before the reply, and after a loss no plan has a glad tone."""
    engine: Engine = field(default_factory=Engine)
    """What runs the model."""
    decoding: Decoding = field(
        default_factory=lambda: Decoding(
            temperature=0.7, repetition_penalty=1.0, no_repeat=4, ending=Ending(max_sentences=3)
        )
    )

    def __post_init__(self) -> None:
        for name in ("plans", "candidates"):
            if not 1 <= getattr(self, name) <= MOST:
                raise InputError(f"{name} is {getattr(self, name)}.", f"Give 1 to {MOST}.")
        if self.prompt_tokens < 64:
            raise InputError(f"prompt_tokens is {self.prompt_tokens}.", "Give at least 64.")
        if not 0 <= self.annotator_weight <= 1:
            raise InputError(f"annotator_weight is {self.annotator_weight}.", "Give 0 to 1.")
        if not 0 < self.plan_temperature <= 10:
            raise InputError(f"plan_temperature is {self.plan_temperature}.", "Give a number up to 10.")
        if not 0 <= self.soft_prompt_temperature <= 10:
            raise InputError(f"soft_prompt_temperature is {self.soft_prompt_temperature}.", "Give 0 to 10.")
        MANNERS.check(self.manner)

    def draw(self) -> Draw:
        """How plans are drawn."""
        return Draw(
            count=min(self.plans, self.candidates),
            temperature=self.plan_temperature,
            mechanism_bias=self.mechanism_bias,
            interpretation_bias=self.interpretation_bias,
            others_penalty=self.others_penalty,
            opposite_penalty=self.opposite_penalty,
            beam=self.plan_beam,
        )
