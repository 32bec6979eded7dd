"""The prompted generator: an instruction-tuned model with a short system prompt and three examples."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from listenwell.dialogue import INSTRUCTION, Candidate, Dialogue, Factors
from listenwell.errors import InputError
from listenwell.generators.base import NEXT_SEED, Generator
from listenwell.generators.decoding import Decoding
from listenwell.generators.generation import generate_from_prompt
from listenwell.generators.prompt_template import build_prompt
from listenwell.pipeline import GeneratorOutput, OnText
from listenwell.runtime.base import Runtime
from listenwell.runtime.engines import Engine, load_runtime
from listenwell.runtime.weights import find_source

SYSTEM = (
    "You are a kind friend who listens. Reply in one or two short sentences: show that you understand how "
    "the person feels, then ask a short question."
)
SHOTS = (
    (
        "My sister finally had her baby!",
        "Oh, how wonderful, you must be so happy for her! Have you met the little one yet?",
    ),
    (
        "I failed my driving test again.",
        "Again, after all that practice? That must be really frustrating. What went wrong this time?",
    ),
    (
        "There was a strange noise in the kitchen and I was home alone.",
        "That sounds scary, especially with nobody there. Did you find out what it was?",
    ),
)


MOST_CANDIDATES = 64


@dataclass(frozen=True)
class PromptedConfig:
    """Settings of the prompted generator."""

    base: str = "smollm2-135m-instruct"
    """A base model's name; see `listenwell.runtime.weights`."""
    system: str = SYSTEM
    shots: tuple[tuple[str, str], ...] = SHOTS
    """Exchanges that show how to answer; a model this small follows examples better than instructions."""
    prompt_tokens: int = 1024
    """Budget of the prompt: system turn, persona and the latest turns."""
    decoding: Decoding = field(default_factory=lambda: Decoding(temperature=0.3))
    """Lower than elsewhere: without fine-tuning only the likeliest tokens make sense."""
    candidates: int = 1
    """How many replies it proposes; several are reranked."""
    engine: Engine = field(default_factory=Engine)
    """What runs the model."""

    def __post_init__(self) -> None:
        if not 1 <= self.candidates <= MOST_CANDIDATES:
            raise InputError(f"candidates is {self.candidates}.", f"Give 1 to {MOST_CANDIDATES}.")
        if self.prompt_tokens < 64:
            raise InputError(f"prompt_tokens is {self.prompt_tokens}.", "Give at least 64.")


class Prompted(Generator):
    """Continues a ChatML prompt."""

    Config = PromptedConfig

    def __init__(self, config: PromptedConfig, runtime: Runtime, name: str = "prompted") -> None:
        self.config = config
        self.runtime = runtime
        self.name = name

    @classmethod
    def load(cls, config: PromptedConfig, weights: Path | None = None) -> "Prompted":
        """Find the weights and start the engine; `weights` is the user's own folder."""
        runtime = load_runtime(find_source(config.base, weights), engine=config.engine)
        return cls(config, runtime, f"prompted ({weights.name if weights else config.base})")

    def generate(
        self, dialogue: Dialogue, plans: Sequence[Factors], seed: int, on_text: OnText | None = None
    ) -> GeneratorOutput:
        """One reply or more; plans are not used, since this model was not trained with any.

        Of several, no two have the same text, so they can be fewer than requested.
        """
        decoding = self.config.decoding
        budget = min(self.config.prompt_tokens, self.runtime.context_length - decoding.max_tokens)
        system = "\n".join(filter(None, (self.config.system, dialogue.note(INSTRUCTION))))
        prompt = build_prompt(self.runtime.vocabulary, dialogue, system, budget, self.config.shots)
        seeds = [seed + number * NEXT_SEED for number in range(self.config.candidates)]
        generations = generate_from_prompt(self.runtime, prompt, decoding, seeds, on_text)
        texts = dict.fromkeys(generation.text for generation in generations)
        return GeneratorOutput(tuple(Candidate(text) for text in texts), prompt.notices)
