"""A causal model fine-tuned on dialogues: replies from the dialogue alone, no factors.

The baseline of CoMAE's tables ("vanilla") and the fine-tuned model of EmpatheticDialogues §4, on our base.
`listenwell train recipes/vanilla.yaml` makes one.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from listenwell.checkpoint import Checkpoint, find_checkpoint, open_checkpoint
from listenwell.dialogue import Example
from listenwell.errors import WeightsError
from listenwell.generators.decoding import Decoding
from listenwell.generators.prompt_template import build_prompt
from listenwell.generators.prompted import Prompted, PromptedConfig
from listenwell.metrics import Perplexity, perplexity_of
from listenwell.runtime.base import Runtime
from listenwell.runtime.chat_format import Chat
from listenwell.runtime.engines import Engine, load_runtime
from listenwell.runtime.weights import find_source

KIND = "causal"
ADAPTER = "adapter_config.json"


@dataclass(frozen=True)
class VanillaConfig(PromptedConfig):
    """Settings of a fine-tuned model: no instructions and no examples, CoMAE's decoding."""

    system: str = ""
    shots: tuple[tuple[str, str], ...] = ()
    decoding: Decoding = field(default_factory=Decoding)


class Vanilla(Prompted):
    """Generates from the dialogue alone; a persona goes before it, although training has none."""

    Config = VanillaConfig

    @classmethod
    def load(cls, config: PromptedConfig, weights: Path | None = None) -> "Vanilla":
        """Load a run, or a checkpoint that it wrote: a whole model, or an adapter for the base model."""
        if weights is None:
            raise WeightsError(
                "The model vanilla has no weights of its own.",
                "Train some with `listenwell train recipes/vanilla.yaml`, then: --weights runs/vanilla/best",
            )
        checkpoint = open_checkpoint(find_checkpoint(weights), KIND)
        folder = checkpoint.folder
        runtime = runtime_of(checkpoint, config.engine)
        generator = cls(config, runtime, f"vanilla ({folder.resolve().parent.name})")
        generator._folder = folder
        return generator

    def perplexity(self, examples: Iterable[Example]) -> Perplexity:
        """The perplexity of human replies by token (end tokens included), by word and by byte."""
        nlls, counts, texts = list[float](), list[int](), list[str]()
        end = Chat(self.runtime.vocabulary).end
        for example in examples:
            prompt = build_prompt(
                self.runtime.vocabulary, example.context, self.config.system, self.config.prompt_tokens
            )
            reply = [*self.runtime.encode(example.reply.text), end]
            nlls.append(-float(self.runtime.log_likelihoods(prompt.tokens, [reply])[0]))
            counts.append(len(reply))
            texts.append(example.reply.text)
        return perplexity_of(nlls, counts, texts, self.name)


def runtime_of(checkpoint: Checkpoint, engine: Engine | None = None) -> Runtime:
    """The engine of a fine-tuned model: a whole one, or an adapter on its base."""
    folder = checkpoint.folder
    if not (folder / ADAPTER).is_file():
        return load_runtime(folder, engine=engine)
    # The base the adapter was trained on; another would be merged without a word.
    base = json.loads((folder / ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"]
    return load_runtime(find_source(base), folder, engine)
