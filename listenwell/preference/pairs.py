"""Pairs to learn from by contrast: what a person said, and beside it something worse.

The worse reply is the speaker's `own`, sampled for the same context under the same plan (self-play: SPIN,
Chen et al. 2024, Algorithm 1), or an `other` person's to somebody else, under the same plan: fluent, and
beside the point. `python -m listenwell.preference.pairs CHECKPOINT …` writes a `Pair` a line, on a bare
machine too; `contrasts` makes others, which teach a judge of replies.
"""

import argparse
import hashlib
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from listenwell.checkpoint import Checkpoint, find_checkpoint, open_checkpoint
from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.errors import CorpusError, InputError, ListenwellError
from listenwell.files import disk_errors, hash_files, sha256, written_whole
from listenwell.generators.base import Prefix
from listenwell.generators.generation import generate_rows
from listenwell.generators.planned import KIND, PlannedConfig
from listenwell.generators.plans import PlanTokens, is_whole, plan_of
from listenwell.generators.prompt_template import PromptTemplate
from listenwell.generators.vanilla import runtime_of
from listenwell.runtime.engines import Engine
from listenwell.serialization import Record, dumps, strings

if TYPE_CHECKING:
    from listenwell.runtime.torch_engine import TorchRuntime

OWN, OTHER = "own", "other"
"""Where a rejected reply comes from."""
GPU_ROWS, CPU_ROWS = 256, 8
RUN = "run.json"

Planned = tuple[Example, Factors]
"""A human reply, and the plan that it carried out."""


@dataclass(frozen=True, slots=True)
class Pair(Record):
    """Two replies to one context, of which the first is to be preferred."""

    context: Dialogue
    plan: Factors
    chosen: str
    rejected: str
    source: str
    """Where the rejected one comes from, such as `own` or `other`."""
    rejected_plan: Factors | None = None
    """What the rejected one was meant to do, where it is not `plan`."""

    def __post_init__(self) -> None:
        strings("replies and the source of a pair", (self.chosen, self.rejected, self.source))
        if not all(map(is_whole, self.plans)):
            raise InputError("A plan of the pair lacks a factor.", "Decide every level.")

    @property
    def plans(self) -> tuple[Factors, Factors]:
        """Of the chosen and of the rejected reply."""
        return self.plan, self.rejected_plan or self.plan


@dataclass(frozen=True)
class Settings:
    """How pairs are made."""

    count: int = 0
    """For so many contexts, drawn at random, each with up to two pairs; 0 takes all."""
    seed: int = 1
    rows: int = CPU_ROWS
    """So many replies are sampled in one batch."""
    temperature: float = PlannedConfig().decoding.temperature
    """Of the speaker's own replies; otherwise they are decoded as it speaks."""

    def __post_init__(self) -> None:
        for name, least in (("count", 0), ("seed", 0), ("rows", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}.", f"Give {least} or more.")


def read_pairs(file: Path) -> list[Pair]:
    """All pairs of a file; a line that is none is an error that names it."""
    found = []
    for number, line in _lines(file):
        try:
            found.append(Pair.from_json(line))
        except ListenwellError as error:
            raise InputError(
                f"{file}:{number} is no pair: {error.problem}",
                "Correct the line, or make the file anew: python -m listenwell.preference.pairs",
            ) from None
    return found


def read_planned(file: Path) -> list[Planned]:
    """The human replies of a file that `listenwell annotate` wrote, but for those without a whole plan."""
    found = []
    for number, line in _lines(file):
        try:
            examples = list(Dialogue.from_json(line).examples())
        except ListenwellError as error:
            raise CorpusError(f"{file}:{number}: {error.problem}", "Annotate the corpus anew.") from None
        found += [(example, plan) for example in examples if (plan := plan_of(example)) is not None]
    if not found:
        raise CorpusError(f"{file} holds no reply with a plan.", "Annotate the corpus: listenwell annotate")
    return found


def talk_of(dialogue: Dialogue) -> str:
    """What tells a talk from others, the same in all of its replies' contexts."""
    return dialogue.id or dialogue.turns[0].text


def share_of_talks(pair: Pair) -> float:
    """Where a pair's talk stands between 0 and 1, by hash: a talk is held out with all of its pairs."""
    return int(hashlib.sha256(talk_of(pair.context).encode("utf-8", "replace")).hexdigest()[:8], 16) / 2**32


class Others:
    """Human replies by their plans, to find one that was meant for somebody else."""

    def __init__(self, known: Sequence[Planned]) -> None:
        self._known = known
        self._groups: dict[tuple[object, ...], list[int]] = {}
        for place, (_, plan) in enumerate(known):
            for key in _keys(plan):
                self._groups.setdefault(key, []).append(place)

    def find(self, place: int, seed: int) -> str | None:
        """A reply from another talk with the same mechanisms, act and tone as the one at a place; also to the
        same emotion where there is one. None if nobody said anything of the kind."""
        example, plan = self._known[place]
        random = np.random.default_rng([seed, 37, place])
        for key in _keys(plan):
            group = self._groups[key]
            first = int(random.integers(len(group)))
            for other in (*group[first:], *group[:first]):
                found = self._known[other][0]
                is_foreign = talk_of(found.context) != talk_of(example.context)
                if is_foreign and not _same_words(found.reply.text, example.reply.text):
                    return found.reply.text
        return None


class Own:
    """The speaker's own replies, sampled for many contexts in one batch.

    Args:
        runtime: the speaker's engine.
        settings: seed and temperature.
    """

    def __init__(self, runtime: "TorchRuntime", settings: Settings) -> None:
        config = PlannedConfig()
        self._runtime, self._seed = runtime, settings.seed
        self._decoding = replace(config.decoding, temperature=settings.temperature)
        self._layout = PromptTemplate(runtime.vocabulary, PlanTokens.of(runtime.vocabulary))
        room = runtime.context_length - self._decoding.max_tokens - 8  # plan and end mark stand there too
        self._budget = min(config.prompt_tokens, room)

    def length(self, example: Example) -> int:
        """How many tokens stand before the plan."""
        return len(self._layout.prompt(example.context, self._budget).tokens)

    def replies(self, asked: Sequence[Planned], places: Sequence[int]) -> list[str | None]:
        """A reply for each context under its plan; None where the token limit cut it off.

        Args:
            asked: contexts and plans.
            places: numbers that, with the seed, fix what each reply is.
        """
        prompts = [self._layout.prompt(example.context, self._budget) for example, _ in asked]
        read = [
            [*prompt.tokens, *self._layout.plans.encode(plan)]
            for prompt, (_, plan) in zip(prompts, asked, strict=True)
        ]
        room = self._runtime.context_length - max(map(len, read))
        prefix = Prefix(self._runtime.prefill_many(read), prompts[0].stop, room)
        seeds = [int(np.random.SeedSequence([self._seed, 31, at]).generate_state(1)[0]) for at in places]
        generations = generate_rows(self._runtime, prefix, self._decoding, seeds)
        return [one.text if one.tokens <= self._decoding.max_tokens else None for one in generations]


Pairing = Callable[[Sequence[Planned], Sequence[int], Own, Others, int], Iterator[Pair]]
"""All human replies, the places of those that are asked about, who finds worse ones, and a seed."""


def generator_pairs(
    known: Sequence[Planned], places: Sequence[int], own: Own, others: Others, seed: int
) -> Iterator[Pair]:
    """People's replies against the speaker's own, and against those to somebody else."""
    made = own.replies([known[place] for place in places], places)
    for place, reply in zip(places, made, strict=True):
        example, plan = known[place]
        for source, text in ((OWN, reply), (OTHER, others.find(place, seed))):
            yield from pair_of(example.context, plan, example.reply.text, text, source)


def make_pairs(
    checkpoint: Path, talks: Path, out: Path, settings: Settings, pairing: Pairing = generator_pairs
) -> Counter[str]:
    """Write pairs, or go on where an earlier run was stopped; gives how many there are of each source.

    Every batch is a file of its own in OUT.parts until all are there: a kill costs one batch.

    Args:
        checkpoint: a planned speaker's, or a run's folder.
        talks: JSONL as `listenwell annotate` writes it.
        out: the file to write.
        settings: how many, and how.
        pairing: what is set against what.
    """
    if out.exists():
        raise InputError(f"{out} is there already, and finished.", "Name another --out, or remove it.")
    saved, known = open_checkpoint(find_checkpoint(checkpoint), KIND), read_planned(talks)
    if settings.count > len(known):
        raise InputError(f"{talks} holds {len(known)} replies, not {settings.count}.", "Lower --count.")
    drawn = np.random.default_rng([settings.seed, 17]).permutation(len(known))
    drawn = drawn[: settings.count or None]
    parts = out.with_name(f"{out.name}.parts")
    _claim(parts, saved, talks, settings, pairing)
    runtime = cast("TorchRuntime", runtime_of(saved, Engine("torch")))
    runtime.use_gpu()
    own, others = Own(runtime, settings), Others(known)
    # Contexts of like length share a batch, so that little is filled up.
    places = sorted(map(int, drawn), key=lambda place: (own.length(known[place][0]), place))
    prefix, files = time.perf_counter(), []
    for start in range(0, len(places), settings.rows):
        files.append(parts / f"{start:08}.jsonl")
        if files[-1].exists():
            continue
        batch = places[start : start + settings.rows]
        with written_whole(files[-1]) as part:
            for pair in pairing(known, batch, own, others, settings.seed):
                part.write(pair.to_json().encode() + b"\n")
        seconds = time.perf_counter() - prefix
        print(f"{start + len(batch):,} of {len(places):,} contexts, {seconds:.0f} s", file=sys.stderr)
    return _join(files, out)


def add_pairs(out: Path, pairs: Sequence[Pair]) -> None:
    """Write pairs after those that a file holds already; whole or not at all."""
    before = out.read_bytes() if out.exists() else b""
    with written_whole(out) as whole:
        whole.write(before + b"".join(pair.to_json().encode() + b"\n" for pair in pairs))


def pair_of(
    context: Dialogue, plan: Factors, chosen: str | None, rejected: str | None, source: str
) -> Iterator[Pair]:
    """A pair, if there are two replies that differ: one with the words of the other teaches nothing."""
    if chosen is None or rejected is None or _same_words(chosen, rejected):
        return
    # Only what is read: labels and readings of the turns would make up most of the file.
    turns = tuple(Turn(turn.speaker, turn.text) for turn in context.turns)
    yield Pair(replace(context, turns=turns, situation=None, notes=()), plan, chosen, rejected, source)


def _join(files: Sequence[Path], out: Path) -> Counter[str]:
    """All batches as one file in its place; the batches are taken away."""
    found: Counter[str] = Counter()
    with written_whole(out) as whole:
        for file in files:
            lines = file.read_bytes()
            found.update(json.loads(line)["source"] for line in lines.split(b"\n") if line)
            whole.write(lines)
    shutil.rmtree(files[0].parent)
    return found


def _claim(parts: Path, saved: Checkpoint, talks: Path, settings: Settings, pairing: Pairing) -> None:
    """Mark a folder as one run's, so that batches of two runs never stand in one file."""
    generator = hash_files(saved.path(name) for name in saved.sums)
    made_of = {"speaker": generator, "talks": sha256(talks), "pairs": pairing.__name__, **asdict(settings)}
    mark, text = parts / RUN, dumps(made_of) + "\n"
    with disk_errors(parts):
        parts.mkdir(parents=True, exist_ok=True)
        if not mark.exists():
            mark.write_text(text, encoding="utf-8")
        elif mark.read_text(encoding="utf-8") != text:
            raise InputError(
                f"{parts} was begun with another generator, corpus or setting (see its {RUN}).",
                "Give the same ones to go on, or remove the folder.",
            )


def _keys(plan: Factors) -> tuple[tuple[object, ...], ...]:
    """The groups a reply belongs to, the closest one first."""
    likeness = (plan.mechanisms, plan.act, plan.tone)
    return (plan.emotion, *likeness), likeness


def _same_words(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers."""
    try:
        with file.open("rb") as lines:
            yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}.", "Name a file of JSON lines.") from None


def _asked(arguments: Sequence[str] | None, module: str) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description="Write pairs of a reply and a worse one, to teach by contrast.",
    )
    parser.add_argument("checkpoint", type=Path, help="a planned speaker's checkpoint, or its run's folder")
    parser.add_argument("--annotated", type=Path, required=True, help="folder that holds CORPUS/SPLIT.jsonl")
    parser.add_argument("--corpus", default="empathetic_dialogues")
    parser.add_argument("--split", default="train")
    parser.add_argument("--count", type=int, default=0, help="contexts, with two pairs each; 0 takes all")
    parser.add_argument("--out", type=Path, required=True, help="the JSONL file; a stopped run goes on")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--rows", type=int, help=f"replies in a batch: {GPU_ROWS} on a GPU, or {CPU_ROWS}")
    parser.add_argument("--temperature", type=float, default=Settings.temperature)
    return parser.parse_args(arguments)


def main(
    arguments: Sequence[str] | None = None,
    pairing: Pairing = generator_pairs,
    module: str = "listenwell.preference.pairs",
) -> int:
    """Make pairs as the command line says; gives the exit status."""
    asked = _asked(arguments, module)
    import torch

    rows = asked.rows if asked.rows is not None else GPU_ROWS if torch.cuda.is_available() else CPU_ROWS
    try:
        talks = asked.annotated / asked.corpus / f"{asked.split}.jsonl"
        if not talks.is_file():
            raise CorpusError(
                f"There is no {talks}.",
                f"Write it: listenwell annotate {asked.corpus} --split {asked.split} --top 1 --out {talks}",
            )
        settings = Settings(asked.count, asked.seed, rows, asked.temperature)
        found = make_pairs(asked.checkpoint, talks, asked.out, settings, pairing)
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    print(f"{asked.out}: {', '.join(f'{count:,} {source}' for source, count in sorted(found.items()))} pairs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
