"""Samples of a planned generator: several replies to each of many contexts, drawn on a GPU.

Each reply follows a plan of its own, drawn from the generator's probabilities. Raters rate such samples, a
reward model picks the best of them (best-of-n), and DPO learns from the best and the worst.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from listenwell.checkpoint import find_checkpoint, open_checkpoint
from listenwell.dialogue import MANNER, Example, Factors
from listenwell.errors import InputError
from listenwell.files import ResumableJsonl, hash_files, sha256
from listenwell.generators.generation import tidy
from listenwell.generators.planned import KIND
from listenwell.generators.plans import PlanTokens
from listenwell.generators.prompt_template import PromptTemplate
from listenwell.generators.vanilla import runtime_of
from listenwell.progress import progress
from listenwell.runtime.engines import Engine
from listenwell.serialization import Record

if TYPE_CHECKING:
    import torch

    from listenwell.runtime.torch_engine import TorchRuntime


KEPT = 0.6
"""A batch loses its finished rows when no larger share goes on."""


@dataclass(frozen=True)
class SampleSettings:
    """How replies are drawn."""

    each: int = 8
    """Replies to a context."""
    temperature: float = 0.8
    """Of the words."""
    plan_temperature: float = 0.8
    """Of the plans."""
    top_p: float = 0.95
    """Of the words: the smallest set of tokens with this probability (Holtzman et al. 2020)."""
    max_tokens: int = 56
    """Longer replies are left out."""
    prompt_tokens: int = 512
    rows: int = 1024
    """Replies drawn in one batch."""
    manner: str = "plain"
    """In which manner, one of `labels.MANNERS`."""
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("each", "max_tokens", "rows"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}.", "Give 1 or more.")
        for name in ("temperature", "plan_temperature", "top_p"):
            if not 0 < getattr(self, name) <= 10:
                raise InputError(f"{name} is {getattr(self, name)}.", "Give a number above 0.")


@dataclass(frozen=True)
class SampledReply(Record):
    """A reply and its plan."""

    text: str
    plan: Factors
    reward: float | None = None
    """The reward model's score, where it was asked."""


class Sampler:
    """Draws replies in large batches; the model runs in bfloat16 on a GPU, in float32 on a CPU."""

    def __init__(self, runtime: "TorchRuntime", settings: SampleSettings) -> None:
        import torch

        self.settings, self.vocabulary = settings, runtime.vocabulary
        self._model = runtime.model
        if self._model.device.type == "cuda":
            self._model = self._model.bfloat16()
        plans = PlanTokens.of(runtime.vocabulary)
        self._template = PromptTemplate(runtime.vocabulary, plans, settings.manner)
        self._levels = [torch.tensor(numbers, device=self._model.device) for numbers in plans.numbers]
        self._random = torch.Generator(self._model.device).manual_seed(settings.seed)
        # Text holds no special token but the end.
        self._end = self._template.chat.end
        special = {number for numbers in plans.numbers for number in numbers} | set(self._template.chat.stop)
        self._banned = torch.tensor(sorted(special - {self._end}), device=self._model.device)

    def prompt(self, example: Example) -> tuple[int, ...]:
        """The tokens before a reply's plan."""
        return self._template.prompt(example.context, self.settings.prompt_tokens).tokens

    def draw(self, prompts: Sequence[Sequence[int]]) -> list[list[SampledReply]]:
        """Different replies to each prompt, at most `each`."""
        import torch

        with torch.inference_mode():
            tokens = self._draw(prompts).tolist()
        each, depth = self.settings.each, len(self._levels)
        drawn = []
        for row in range(0, len(tokens), each):
            replies = dict[str, SampledReply]()
            for reply in tokens[row : row + each]:
                plan, words = self._template.plans.decode(reply[:depth]), reply[depth:]
                if self._end not in words:
                    continue
                text = tidy(self.vocabulary.decode(words[: words.index(self._end)]).strip())
                if text:
                    replies.setdefault(text.casefold(), SampledReply(text, plan))
            drawn.append(list(replies.values()))
        return drawn

    def _draw(self, prompts: Sequence[Sequence[int]]) -> "torch.Tensor":
        """Tokens of plans and replies: (prompts · each, tokens)."""
        import torch

        device, longest = self._model.device, max(map(len, prompts))
        known = torch.tensor([[0] * (longest - len(own)) + [1] * len(own) for own in prompts], device=device)
        tokens = torch.tensor([[0] * (longest - len(own)) + list(own) for own in prompts], device=device)
        positions = (known.cumsum(1) - 1).clamp(min=0)
        output = self._model(
            input_ids=tokens, attention_mask=known, position_ids=positions, use_cache=True, logits_to_keep=1
        )
        each, settings = self.settings.each, self.settings
        cache, logits = output.past_key_values, output.logits[:, -1].repeat_interleave(each, 0)
        cache.batch_repeat_interleave(each)
        known, position = known.repeat_interleave(each, 0), positions[:, -1:].repeat_interleave(each, 0)
        total = len(logits)
        drawn = torch.full((total, len(self._levels) + settings.max_tokens), self._end, device=device)
        rows = torch.arange(total, device=device)  # those that are still in the batch
        is_done = torch.zeros(total, dtype=torch.bool, device=device)
        for step in range(len(self._levels) + settings.max_tokens):
            if step < len(self._levels):
                numbers = self._levels[step]
                weights = (logits[:, numbers].float() / settings.plan_temperature).softmax(1)
                token = numbers[torch.multinomial(weights, 1, generator=self._random)[:, 0]]
            else:
                token = self._word(logits.float())
            drawn[rows, step] = token
            is_done = is_done | (token == self._end)
            going = (~is_done).nonzero()[:, 0]
            if not len(going):
                break
            if len(going) < KEPT * len(token):  # finished rows cost as much as the others
                cache.batch_select_indices(going)
                parts = (rows, token, position, known, is_done)
                rows, token, position, known, is_done = (part[going] for part in parts)
            known = torch.cat([known, known.new_ones(len(known), 1)], 1)
            position = position + 1
            output = self._model(
                input_ids=token[:, None],
                attention_mask=known,
                position_ids=position,
                past_key_values=cache,
                use_cache=True,
            )
            cache, logits = output.past_key_values, output.logits[:, -1]
        return drawn

    def _word(self, logits: "torch.Tensor") -> "torch.Tensor":
        """A token of each row's text."""
        import torch

        logits[:, self._banned] = -torch.inf
        values, tokens = (logits / self.settings.temperature).topk(64)
        weights = values.softmax(1)
        weights = weights.masked_fill(weights.cumsum(1) - weights > self.settings.top_p, 0)
        chosen = torch.multinomial(weights, 1, generator=self._random)
        return tokens.gather(1, chosen)[:, 0]


def sample(
    checkpoint: Path, examples: Sequence[Example], out: Path, settings: SampleSettings, data: Path
) -> int:
    """Write replies to each context as JSONL, or go on where an earlier run was stopped.

    Args:
        checkpoint: of a planned generator, or a run's folder.
        examples: the contexts, with the person's replies.
        out: the file to write; a line is {"context", "human", "replies"}.
        settings: how replies are drawn.
        data: the file the examples were read from.

    Returns:
        How many replies were written.
    """
    saved = open_checkpoint(find_checkpoint(checkpoint), KIND)
    runtime = cast("TorchRuntime", runtime_of(saved, Engine("torch")))
    runtime.use_gpu()
    sampler = Sampler(runtime, settings)
    made_of = {"generator": hash_files(saved.path(name) for name in saved.sums), "data": sha256(data)}
    file = ResumableJsonl(out, made_of | asdict(settings))
    prompts = [sampler.prompt(example) for example in examples]
    # Contexts of similar length share a batch, which keeps the padding short.
    order = sorted(range(len(examples)), key=lambda index: (len(prompts[index]), index))
    size = max(1, settings.rows // settings.each)
    with progress("sampling replies", total=len(order), unit="contexts") as advance:
        for start in range(0, len(order), size):
            indices = order[start : start + size]
            if str(start) not in file:
                drawn = sampler.draw([prompts[index] for index in indices])
                file.add(
                    str(start),
                    [
                        _line(examples[index], own, settings)
                        for index, own in zip(indices, drawn, strict=True)
                    ],
                )
            advance(len(indices))
    return sum(len(json.loads(line)["replies"]) for line in file.finish())


def _line(example: Example, replies: Sequence[SampledReply], settings: SampleSettings) -> str:
    notes = dict(example.context.notes) | {MANNER: settings.manner}
    return json.dumps(
        {
            "context": replace(example.context, notes=tuple(notes.items())).to_dict(),
            "human": example.reply.text,
            "replies": [reply.to_dict() for reply in replies],
        }
    )


def read_samples(file: Path) -> Iterator[tuple[dict[str, Any], list[SampledReply]]]:
    """The lines that `sample` wrote: the whole record, and its replies."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield record, [SampledReply.from_dict(reply) for reply in record["replies"]]
