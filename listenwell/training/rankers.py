"""Training a ranker: the true reply against the others of its batch (PEC's eq. 7).

A step is a number of examples drawn at random, whatever their length: each one's reply is a wrong answer for
all others. PEC draws 15 wrong ones for each; a batch of n gives n − 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from listenwell.checkpoint import MANIFEST, open_checkpoint
from listenwell.corpora.sources import HELD_OUT, Source
from listenwell.dialogue import Example
from listenwell.errors import RecipeError
from listenwell.files import written_whole
from listenwell.metrics import pools, rank_of_truth, ranking_metrics
from listenwell.rankers.base import RankingModel, States
from listenwell.rankers.config import KIND, RankerConfig
from listenwell.rankers.inference import moved, placed, score_pools, states_in_groups
from listenwell.rankers.inputs import Inputs, Text, stacked
from listenwell.rankers.model import adapted, make_ranker, save_ranker
from listenwell.rankers.scoring import POOL, POOL_SEED, RANKS
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import HUB_FILES
from listenwell.training.adapters import add_lora, start_from, take_weights
from listenwell.training.recipe import TrainRecipe
from listenwell.training.task_configs import PairsRecipe, RankingTaskConfig

POOLS_AT_ONCE = 8
"""Pools whose texts are read together."""


@dataclass(frozen=True)
class RankingExample:
    """One reply with what it answers."""

    context: Text
    persona: Text
    reply: Text

    weight = 1

    @property
    def tokens(self) -> np.ndarray:
        """Everything that is read for it: (length,) int32."""
        return np.concatenate((self.context.tokens, self.persona.tokens, self.reply.tokens))

    def __len__(self) -> int:
        return len(self.context) + len(self.persona) + len(self.reply)


@dataclass(frozen=True)
class RankBatch:
    """Arrays of a batch, each by the names of `rankers.base.Words`."""

    context: dict[str, np.ndarray]
    persona: dict[str, np.ndarray] | None
    """None where nobody in the batch has one."""
    reply: dict[str, np.ndarray]
    allowed: np.ndarray  # (n, n) bool: false where another reply has the very same words as the true one
    size: int
    """Tokens that are no padding."""

    @property
    def weight(self) -> int:
        """How many contexts."""
        return len(self.allowed)


def collate(
    examples: Sequence[RankingExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> RankBatch:
    """Examples as one batch; width and height are of no use here, since the three parts differ in length."""
    chosen = [examples[index] for row in rows for index in row]
    first: dict[bytes, int] = {}
    numbers = np.array(
        [first.setdefault(example.reply.tokens.tobytes(), index) for index, example in enumerate(chosen)]
    )
    allowed = numbers[:, None] != numbers[None]
    np.fill_diagonal(allowed, True)
    has_persona = any(len(example.persona) for example in chosen)
    return RankBatch(
        stacked([example.context for example in chosen]),
        stacked([example.persona for example in chosen]) if has_persona else None,
        stacked([example.reply for example in chosen]),
        allowed,
        sum(map(len, chosen)),
    )


class RankingTask:
    """A ranker and the replies it learns from."""

    kind = KIND
    metrics = ("error", "MRR_error")
    table, counted = "ranking", "replies"
    base_files: tuple[Path, ...] = ()
    collate = staticmethod(collate)

    def __init__(
        self, ranker: RankingModel, vocabulary: Vocabulary, recipe: TrainRecipe, device: torch.device
    ) -> None:
        self.model = ranker.to(device)
        self.recipe, self.device = recipe, device
        self._inputs = Inputs(vocabulary, ranker.config)
        self._sources = [source for source, _ in _parts(recipe)]
        self.corpus = " + ".join(source.name for source in self._sources)
        self._train: list[RankingExample] | None = None
        self._known: dict[tuple[str, tuple[str, ...]], list[RankingExample]] = {}

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "RankingTask":
        """Make the ranker, with adapters where the recipe asks for them."""
        config = config_of(recipe)
        for source, _ in (*_parts(recipe), *((Source(name), 0) for name in pairs_of(recipe).tests)):
            for split in recipe.data.used():
                source.files(split)  # before minutes are spent on the others
        start = pairs_of(recipe).start
        saved = open_checkpoint(start, KIND) if start else None
        ranker, folder = make_ranker(config, recipe.weights, recipe.dropout)
        if recipe.lora:
            if config.backbone == "words":
                raise RecipeError("Word vectors have no layers for adapters.", "Leave `lora` out.")
            ranker.backbone.encoder = add_lora(
                ranker.backbone.encoder, recipe.lora, recipe.base, "FEATURE_EXTRACTION"
            )
        if saved:
            start_from(ranker, adapted(ranker), saved, ("base", "backbone"))
        task = cls(ranker, Vocabulary.from_folder(folder), recipe, device)
        task.base_files = (
            *(folder / name for name in HUB_FILES),
            *([saved.folder / MANIFEST] if saved else ()),
        )
        return task

    def examples(self) -> Sequence[RankingExample]:
        """The training examples, read at the first call."""
        if self._train is None:
            random = np.random.default_rng([self.recipe.seed, 5])
            drawn: list[Example] = []
            for source, count in _parts(self.recipe):
                every = list(islice(source.examples(self.recipe.data.train), self.recipe.data.limit))
                if count > len(every):
                    raise RecipeError(
                        f"{source.name} has {len(every)} training replies, not {count}.",
                        "Lower pairs.sources.",
                    )
                indices = random.permutation(len(every))[:count] if count else range(len(every))
                drawn += [every[index] for index in indices]
            self._train = self._encoded(drawn)
        return self._train

    def loss_sum(self, batch: RankBatch) -> torch.Tensor:
        """The summed cross-entropy of each context's own reply."""
        context, reply = (self._states(part) for part in (batch.context, batch.reply))
        persona = self._states(batch.persona) if batch.persona else None
        allowed = moved(batch.allowed, self.device)
        scale = pairs_of(self.recipe).scale
        if self.model.reads_pairs:
            return self.model.losses(context, persona, reply, allowed, scale).sum()
        # In full precision: half of it cannot tell good replies from the best.
        with torch.autocast(self.device.type, enabled=False):
            exact = [part and part.exactly() for part in (context, persona, reply)]
            return self.model.losses(*exact, allowed, scale).sum()

    def measure(self, split: str) -> dict[str, float]:
        """Where the true reply stands among 100; on the test split also among its neighbours."""
        is_test = split == self.recipe.data.test
        examples = self._split_examples(split, self._sources)
        self.model.eval()
        ranks = self.ranks(examples, shuffled=True)
        figures = ranking_metrics(ranks)
        if is_test:
            with written_whole(self.recipe.output / RANKS) as out:
                np.save(out, ranks.astype(np.int32), allow_pickle=False)
            hard = ranking_metrics(self.ranks(examples, shuffled=False))
            figures |= {f"{name} unshuffled": value for name, value in hard.items()}
            for name in pairs_of(self.recipe).tests:
                source = Source(name)
                of_source = self.ranks(self._split_examples(split, [source]), shuffled=True)
                figures[f"R@1 on {source.title}"] = ranking_metrics(of_source)["R@1"]
        self.model.train()
        figures["error"], figures["MRR_error"] = 100 - figures["R@1"], 100 - figures["MRR"]
        figures["replies"] = float(len(ranks))
        return figures

    def ranks(self, examples: Sequence[RankingExample], shuffled: bool) -> np.ndarray:
        """The rank of every true reply in its pool; a short last pool is left out."""
        size = min(POOL, len(examples))  # a rehearsal may have fewer
        blocks, ranks = pools(len(examples), size, shuffled, POOL_SEED), []
        for start in range(0, len(blocks), POOLS_AT_ONCE):
            some = [[examples[index] for index in block] for block in blocks[start : start + POOLS_AT_ONCE]]
            texts = [
                ([p.context for p in pool], [p.persona for p in pool], [p.reply for p in pool])
                for pool in some
            ]
            ranks += [rank_of_truth(scores, np.arange(size)) for scores in score_pools(self.model, texts)]
        return np.concatenate(ranks)

    def save(self, folder: Path) -> None:
        """config.json and the weights in fp16."""
        save_ranker(self.model, folder)

    def load(self, folder: Path) -> None:
        """Take the weights of a checkpoint that `save` wrote."""
        take_weights(self.model, adapted(self.model), open_checkpoint(folder, KIND))

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The corpora's files of the splits in use; `shaping`: without the test split's."""
        for source in self._sources:
            for split in self.recipe.data.used(shaping):
                yield from source.files(split)
        if not shaping and (test := self.recipe.data.test):
            learned = {source.name for source in self._sources}
            for name in pairs_of(self.recipe).tests:
                if name not in learned:
                    yield from Source(name).files(test)

    def conditions(self) -> dict[str, str]:
        """How the ranker was taught and measured."""
        config, pairs = self.model.config, pairs_of(self.recipe)
        conditions = {
            "ranker": config.model,
            "body": config.backbone,
            "reads": f"{config.turns} turns, {config.persona} persona sentences",
            "batches": f"{self.recipe.batches.examples} examples a step",
            "longest training sequence": f"context {config.context_tokens}, persona {config.persona_tokens}, "
            f"reply {config.reply_tokens} tokens",
            "wrong replies in training": f"the other {self.recipe.batches.examples - 1} of a batch",
            "pool": f"{POOL} replies of the split, seed {POOL_SEED}; unshuffled: neighbours",
            "scale": f"{pairs.scale:g}",
            "learned": "everyone's replies" if self.recipe.learn == "all" else "the listeners' replies",
        }
        if any(count for _, count in pairs.sources):
            conditions["parts"] = ", ".join(f"{name} {count or 'all'}" for name, count in pairs.sources)
        if any(source.divides for source in self._sources):
            conditions["split"] = HELD_OUT
        if pairs.measured:
            conditions["measured"] = f"the first {pairs.measured:,} replies of each corpus"
        if pairs.start:
            conditions["begins from"] = str(pairs.start)
        return conditions

    def _split_examples(self, split: str, sources: Sequence[Source]) -> list[RankingExample]:
        """A split's examples as the ranker reads them; read once."""
        key = (split, tuple(source.name for source in sources))
        if key not in self._known:
            limits = (self.recipe.data.limit, pairs_of(self.recipe).measured)
            limit = min((number for number in limits if number is not None), default=None)
            examples = [example for source in sources for example in islice(source.examples(split), limit)]
            self._known[key] = self._encoded(examples)
        return self._known[key]

    def _encoded(self, examples: Sequence[Example]) -> list[RankingExample]:
        dialogues = [example.context for example in examples]
        texts_by_part: list[list[Text]] = [
            self._inputs.contexts(dialogues),
            self._inputs.personas(dialogues),
            self._inputs.replies([example.reply.text for example in examples]),
        ]
        return [RankingExample(*texts) for texts in zip(*texts_by_part, strict=True)]

    def _states(self, arrays: dict[str, np.ndarray]) -> States:
        return states_in_groups(self.model, placed(arrays, self.device), arrays["parts"] > 0)


def config_of(recipe: TrainRecipe) -> RankerConfig:
    """The ranker's config, on the recipe's base."""
    return replace(recipe.settings(RankingTaskConfig).ranker, base=recipe.base)


def pairs_of(recipe: TrainRecipe) -> PairsRecipe:
    """The replies that are learned from; all of data.corpus where `pairs` is left out."""
    return recipe.settings(RankingTaskConfig).pairs or PairsRecipe(sources=((recipe.data.corpus, 0),))


def _parts(recipe: TrainRecipe) -> list[tuple[Source, int]]:
    """The corpora that are learned from, and how many replies of each; 0 is all."""
    everyone, sources = recipe.learn == "all", pairs_of(recipe).sources
    if recipe.data.path and len(sources) > 1:
        raise RecipeError(
            "data.path is one folder, but pairs.sources names several corpora.",
            "Put them into one data folder and set LISTENWELL_DATA.",
        )
    return [(Source(name, recipe.data.path, everyone), count) for name, count in sources]
