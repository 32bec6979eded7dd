"""The instructed generator: a larger instruct model, which the listening guide and a plan tell what to do.

Nothing is trained. Guide, plan and persona are the system prompt, in the model's own chat format; what people
write are turns of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from listenwell.dialogue import INSTRUCTION, Candidate, Dialogue, Factors
from listenwell.errors import InputError, WeightsError
from listenwell.generators.base import NEXT_SEED, Generator, Prefix, Prompt
from listenwell.generators.decoding import Decoding, Ending
from listenwell.generators.generation import generate_rows
from listenwell.generators.instructions import instruction, plans_for
from listenwell.generators.prompt_template import PERSONA_SHARE, build_prompt, with_short_persona
from listenwell.pipeline import Emotions, GeneratorOutput, OnText, Plan
from listenwell.runtime.base import Runtime
from listenwell.runtime.chat_format import Chat
from listenwell.runtime.engines import Engine, load_runtime
from listenwell.runtime.model_files import model_files
from listenwell.runtime.weights import source_at

GUIDE = Path(__file__).with_name("guide.txt")
MOST = 16
"""Plans or candidates: each plan's prompt is read anew."""


@dataclass(frozen=True)
class InstructedConfig:
    """Settings of the instructed generator."""

    guide: str = field(default_factory=lambda: GUIDE.read_text(encoding="utf-8").strip())
    """How to listen; the beginning of the system prompt."""
    plans: int = 2
    """How many plans with different acts are tried."""
    candidates: int = 4
    """How many replies in all, shared evenly among the plans; several are reranked."""
    prompt_tokens: int = 2048
    """Budget of the prompt: guide, plan, persona and the latest turns."""
    decoding: Decoding = field(
        default_factory=lambda: Decoding(
            max_tokens=120, repetition_penalty=1.0, ending=Ending(max_sentences=4)
        )
    )
    engine: Engine = field(default_factory=Engine)
    """What runs the model."""

    def __post_init__(self) -> None:
        for name, count in (("plans", self.plans), ("candidates", self.candidates)):
            if not 1 <= count <= MOST:
                raise InputError(f"{name} is {count}.", f"Give 1 to {MOST}.")
        if self.prompt_tokens < 64:
            raise InputError(f"prompt_tokens is {self.prompt_tokens}.", "Give at least 64.")


class Instructed(Generator, Plan):
    """Fills the stages *plan* and *generate* with an instruct model."""

    Config = InstructedConfig

    def __init__(self, config: InstructedConfig, runtime: Runtime, base: Path | None = None) -> None:
        self.config, self.runtime, self._base = config, runtime, base
        self.name = f"instructed ({base.name.removesuffix('.gguf')})" if base else "instructed"
        Chat(runtime.vocabulary)  # one that is not known is an error now, not at the first reply

    @classmethod
    def load(cls, config: InstructedConfig, weights: Path | None = None) -> "Instructed":
        """Start the engine of the user's own model: a folder, or a GGUF file."""
        if weights is None:
            raise WeightsError(
                "The model instructed has no weights of its own.",
                "Name an instruct model's folder or .gguf file: --base FILE",
            )
        base = source_at(weights.expanduser())
        return cls(config, load_runtime(base, engine=config.engine), base)

    def plan(
        self, dialogue: Dialogue, emotion: Emotions | None, target: Factors, seed: int
    ) -> tuple[Factors, ...]:
        """Plans with different acts; the emotion is the annotators'."""
        return plans_for(emotion, target, min(self.config.plans, self.config.candidates))

    def generate(
        self, dialogue: Dialogue, plans: Sequence[Factors], seed: int, on_text: OnText | None = None
    ) -> GeneratorOutput:
        """Replies under each plan, or without one, in one batch; no two have the same text."""
        told: Sequence[Factors | None] = plans or (None,)
        prompts = [self._prompt(dialogue, plan) for plan in told]
        rows = sorted(number % len(told) for number in range(max(self.config.candidates, len(told))))
        state = self.runtime.prefill_many([prompt.tokens for prompt in prompts])
        room = self.runtime.context_length - max(len(prompt.tokens) for prompt in prompts)
        prefix = Prefix(self.runtime.pick(state, rows), prompts[0].stop, room, starts=tuple(rows))
        seeds = [seed + number * NEXT_SEED for number in range(len(rows))]
        candidates: dict[str, Candidate] = {}
        generations = generate_rows(self.runtime, prefix, self.config.decoding, seeds, on_text)
        for row, generation in zip(rows, generations, strict=True):
            scores = {"likelihood": round(generation.log_likelihood / generation.tokens, 4)}
            candidates.setdefault(generation.text, Candidate(generation.text, told[row], scores))
        return GeneratorOutput(tuple(candidates.values()), prompts[0].notices)

    def files(self) -> Iterator[Path]:
        """The base model's files."""
        yield from model_files(self._base) if self._base else ()

    def _prompt(self, dialogue: Dialogue, plan: Factors | None) -> Prompt:
        config, vocabulary = self.config, self.runtime.vocabulary
        budget = min(config.prompt_tokens, self.runtime.context_length - config.decoding.max_tokens)
        lines = (config.guide, dialogue.note(INSTRUCTION), instruction(plan) if plan else None)
        short = with_short_persona(vocabulary, dialogue, int(PERSONA_SHARE * budget))
        return build_prompt(vocabulary, short, "\n".join(filter(None, lines)), budget)
