"""Preference pairs with a person's reply as the chosen one, or with hard negatives (`hard_negatives`).

The rejected reply is the generator's `own`, sampled for the same context under the same plan (self-play:
SPIN, Chen et al. 2024, Algorithm 1), or mismatched (`other`): a person's to somebody else, under that plan.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from listenwell.checkpoint import find_checkpoint, open_checkpoint
from listenwell.dialogue import MANNER, STATE, Dialogue, Example, Factors, Turn
from listenwell.errors import CorpusError, InputError, ListenwellError
from listenwell.files import ResumableJsonl, hash_files, sha256, written_whole
from listenwell.generators.base import Prefix
from listenwell.generators.generation import generate_rows
from listenwell.generators.planned import KIND
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.plans import CROWD, PlanTokens, plan_of
from listenwell.generators.prompt_template import PromptTemplate
from listenwell.generators.vanilla import runtime_of
from listenwell.progress import progress
from listenwell.runtime.engines import Engine
from listenwell.training.preference_pairs import OTHER, OWN, Pair, conversation_key, read_lines

if TYPE_CHECKING:
    from listenwell.runtime.torch_engine import TorchRuntime

CPU_ROWS = 8
GPU_ROWS = 256

PlannedReply = tuple[Example, Factors]
"""A person's reply with its context, and the plan that it carries out."""


@dataclass(frozen=True)
class Settings:
    """How pairs are made."""

    count: int = 0
    """Contexts, drawn at random; 0 takes all."""
    seed: int = 1
    rows: int = CPU_ROWS
    """Replies sampled in one batch."""
    temperature: float = PlannedConfig().decoding.temperature
    """Of the generator's own replies; the other decoding settings are its defaults."""

    def __post_init__(self) -> None:
        for name, value, least in (("count", self.count, 0), ("seed", self.seed, 0), ("rows", self.rows, 1)):
            if value < least:
                raise InputError(f"{name} is {value}.", f"Give {least} or more.")


def read_planned(file: Path) -> list[PlannedReply]:
    """The replies of a file that `listenwell annotate` wrote, but for those without a whole plan."""
    replies: list[PlannedReply] = []
    for number, line in read_lines(file):
        try:
            examples = list(Dialogue.from_json(line).examples())
        except ListenwellError as error:
            raise CorpusError(f"{file}:{number}: {error.problem}", "Annotate the corpus anew.") from None
        replies += [(example, plan) for example in examples if (plan := plan_of(example)) is not None]
    if not replies:
        raise CorpusError(f"{file} holds no reply with a plan.", "Annotate the corpus: listenwell annotate")
    return replies


class MismatchedReplies:
    """People's replies by their plans, to find one that was meant for somebody else."""

    def __init__(self, planned: Sequence[PlannedReply]) -> None:
        self._planned = planned
        self._groups: dict[tuple[object, ...], list[int]] = {}
        for index, (_, plan) in enumerate(planned):
            for key in _group_keys(plan):
                self._groups.setdefault(key, []).append(index)

    def find(self, index: int, seed: int) -> str | None:
        """Another conversation's reply with the same factors, if possible to the same emotion.

        None where there is no such reply.
        """
        example, plan = self._planned[index]
        random = np.random.default_rng([seed, 37, index])
        for group in map(self._groups.__getitem__, _group_keys(plan)):
            first = int(random.integers(len(group)))
            for other in (*group[first:], *group[:first]):
                candidate = self._planned[other][0]
                is_foreign = conversation_key(candidate.context) != conversation_key(example.context)
                if is_foreign and not _same_words(candidate.reply.text, example.reply.text):
                    return candidate.reply.text
        return None


class OwnReplies:
    """The generator's own replies, sampled for many contexts in one batch."""

    def __init__(self, runtime: "TorchRuntime", settings: Settings) -> None:
        config = PlannedConfig()
        self._runtime, self._seed = runtime, settings.seed
        self._decoding = replace(config.decoding, temperature=settings.temperature)
        self._template = PromptTemplate(runtime.vocabulary, PlanTokens.of(runtime.vocabulary), CROWD)
        room = runtime.context_length - self._decoding.max_tokens - 8  # plan and end mark stand there too
        self._budget = min(config.prompt_tokens, room)

    def length(self, example: Example) -> int:
        """How many tokens stand before the plan."""
        return len(self._template.prompt(example.context, self._budget).tokens)

    def replies(self, planned: Sequence[PlannedReply], seeds: Sequence[int]) -> list[str | None]:
        """A reply for each context under its plan, drawn by its seed; None where the token limit cut it."""
        prompts = [self._template.prompt(example.context, self._budget) for example, _ in planned]
        tokens = [
            [*prompt.tokens, *self._template.plans.encode(plan)]
            for prompt, (_, plan) in zip(prompts, planned, strict=True)
        ]
        room = self._runtime.context_length - max(map(len, tokens))
        prefix = Prefix(self._runtime.prefill_many(tokens), prompts[0].stop, room)
        states = [int(np.random.SeedSequence([self._seed, 31, seed]).generate_state(1)[0]) for seed in seeds]
        generations = generate_rows(self._runtime, prefix, self._decoding, states)
        limit = self._decoding.max_tokens
        return [generation.text if generation.tokens <= limit else None for generation in generations]


@dataclass(frozen=True)
class Batch:
    """What pairs are made of: people's replies, and the two sources of worse ones."""

    planned: Sequence[PlannedReply]
    indices: Sequence[int]
    """Of the replies in this batch."""
    own: OwnReplies
    others: MismatchedReplies
    seed: int

    @property
    def replies(self) -> list[PlannedReply]:
        """Those of this batch."""
        return [self.planned[index] for index in self.indices]


Negatives = Callable[[Batch], Iterator[Pair]]


def own_and_mismatched_pairs(batch: Batch) -> Iterator[Pair]:
    """People's replies against the generator's own, and against replies to somebody else."""
    sampled = batch.own.replies(batch.replies, batch.indices)
    for index, (example, plan), reply in zip(batch.indices, batch.replies, sampled, strict=True):
        for source, text in ((OWN, reply), (OTHER, batch.others.find(index, batch.seed))):
            yield from pair_of(example.context, plan, example.reply.text, text, source)


def own_pairs(batch: Batch) -> Iterator[Pair]:
    """People's replies against the generator's own alone."""
    return (pair for pair in own_and_mismatched_pairs(batch) if pair.source == OWN)


def mismatched_pairs(batch: Batch) -> Iterator[Pair]:
    """People's replies against replies to somebody else; nothing is generated."""
    for index, (example, plan) in zip(batch.indices, batch.replies, strict=True):
        other = batch.others.find(index, batch.seed)
        yield from pair_of(example.context, plan, example.reply.text, other, OTHER)


def make_pairs(
    checkpoint: Path,
    annotated: Path,
    out: Path,
    settings: Settings,
    negatives: Negatives = own_and_mismatched_pairs,
) -> Counter[str]:
    """Write pairs, or go on where an earlier run was stopped; returns how many there are of each source.

    Args:
        checkpoint: of a planned generator, or a run's folder.
        annotated: JSONL as `listenwell annotate` writes it.
        out: the file to write.
        settings: how many, and how.
        negatives: makes the pairs of a batch.
    """
    saved, planned = open_checkpoint(find_checkpoint(checkpoint), KIND), read_planned(annotated)
    if settings.count > len(planned):
        raise InputError(f"{annotated} holds {len(planned)} replies, not {settings.count}.", "Lower --count.")
    drawn = np.random.default_rng([settings.seed, 17]).permutation(len(planned))[: settings.count or None]
    generator = hash_files(saved.path(name) for name in saved.sums)
    made_of = {"generator": generator, "annotated": sha256(annotated), "negatives": negatives.__name__}
    file = ResumableJsonl(out, made_of | asdict(settings))
    runtime = cast("TorchRuntime", runtime_of(saved, Engine("torch")))
    runtime.use_gpu()
    own, others = OwnReplies(runtime, settings), MismatchedReplies(planned)
    # Contexts of similar length share a batch, which keeps the padding short.
    order = sorted(map(int, drawn), key=lambda index: (own.length(planned[index][0]), index))
    with progress("making pairs", total=len(order), unit="contexts") as advance:
        for start in range(0, len(order), settings.rows):
            indices = order[start : start + settings.rows]
            if str(start) not in file:
                pairs = negatives(Batch(planned, indices, own, others, settings.seed))
                file.add(str(start), [pair.to_json() for pair in pairs])
            advance(len(indices))
    return Counter(Pair.from_json(row).source for row in file.finish())


def add_pairs(out: Path, pairs: Sequence[Pair]) -> None:
    """Append pairs to a file; whole or not at all."""
    before = out.read_bytes() if out.exists() else b""
    with written_whole(out) as file:
        file.write(before + b"".join(pair.to_json().encode() + b"\n" for pair in pairs))


def pair_of(
    context: Dialogue, plan: Factors, chosen: str | None, rejected: str | None, source: str
) -> Iterator[Pair]:
    """A pair, if there are two replies with different words."""
    if chosen is None or rejected is None or _same_words(chosen, rejected):
        return
    # Only what training uses: labels and predictions of the turns would make up most of the file.
    turns = tuple(Turn(turn.speaker, turn.text) for turn in context.turns)
    notes = tuple(note for note in context.notes if note[0] in (MANNER, STATE))
    yield Pair(replace(context, turns=turns, situation=None, notes=notes), plan, chosen, rejected, source)


def _group_keys(plan: Factors) -> tuple[tuple[object, ...], ...]:
    """The groups a reply belongs to, the closest one first."""
    alike = (plan.mechanisms, plan.act, plan.expressed_emotion)
    return (plan.emotion, *alike), alike


def _same_words(first: str, second: str) -> bool:
    return first.casefold().split() == second.casefold().split()
