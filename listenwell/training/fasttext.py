"""Training the fastText classifier (`annotators.fasttext`): one label for each text, by the one loop."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from listenwell.annotators.fasttext import KIND, FastTextClassifier, FastTextConfig, Features, common_words
from listenwell.corpora import CORPORA, CorpusLoader, Item
from listenwell.dialogue import Dialogue, LabelledText
from listenwell.errors import RecipeError
from listenwell.labels import EMOTIONS, NEWSGROUPS, LabelSet
from listenwell.metrics import accuracy, top_k_accuracy
from listenwell.rankers.inference import moved
from listenwell.training.batching import PackedRows, pack_rows
from listenwell.training.recipe import TrainRecipe
from listenwell.training.task_configs import FastTextTaskConfig


@dataclass(frozen=True)
class Source:
    """What is read from a corpus, and which of it is the label."""

    table: str
    """The results' task."""
    labels: LabelSet
    text: str
    """What the text is, for people."""
    pick: Callable[[Item], tuple[str, str] | None]
    """Text and label of an item; None where it has none."""


def _situation(item: Item) -> tuple[str, str] | None:
    if isinstance(item, Dialogue) and item.situation and item.emotion:
        return item.situation, item.emotion
    return None


def _labelled(item: Item) -> tuple[str, str] | None:
    return (item.text, item.labels[0]) if isinstance(item, LabelledText) else None


SOURCES = {
    "empathetic_dialogues": Source(
        "situation emotion", EMOTIONS, "the situation, as written before the conversation", _situation
    ),
    "newsgroups": Source("topic", NEWSGROUPS, "a post without headers, quotes and signature", _labelled),
}
"""By corpus: EmoPrepend's emotion and TopicPrepend's topic (Rashkin et al. 2019, §4.3)."""


@dataclass(frozen=True)
class FastTextExample:
    """A text as feature numbers, and its label's number."""

    tokens: np.ndarray  # (length,) int32
    label: int

    weight = 1

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class FastTextBatch(PackedRows):
    """Rows of features, and the label of each text in them."""

    labels: np.ndarray  # (texts,) int64

    @property
    def weight(self) -> int:
        """How many texts it holds."""
        return len(self.labels)


def collate(
    examples: Sequence[FastTextExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> FastTextBatch:
    """Rows of text numbers as one batch; rows of padding fill up to `height`."""
    packed = pack_rows(examples, rows, width, height)
    labels = np.array([examples[index].label for row in rows for index in row], np.int64)
    return FastTextBatch(**vars(packed), labels=labels)


class FastTextModel(torch.nn.Module):
    """The mean of feature vectors, and a linear layer."""

    def __init__(self, config: FastTextConfig, dropout: float) -> None:
        super().__init__()
        self.vectors = torch.nn.Parameter(torch.empty(config.features, config.dimensions))
        self.head = torch.nn.Linear(config.dimensions, len(config.labels))
        self.dropout = dropout
        # As fastText begins: small vectors, and labels that are equally likely.
        torch.nn.init.uniform_(self.vectors, -1 / config.dimensions, 1 / config.dimensions)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)

    def forward(self, features: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        """Logits (texts, labels) of flat features (n,), with the index of each text's first one (texts,)."""
        ends = torch.cat([starts[1:], starts.new_tensor([len(features)])])
        lengths = ends - starts
        shares = torch.repeat_interleave(1 / lengths, lengths)
        # Whole features fall out, not numbers of vectors: a text must be understood without any one word.
        shares = torch.nn.functional.dropout(shares, self.dropout, self.training)
        means = torch.nn.functional.embedding_bag(
            features, self.vectors, starts, mode="sum", per_sample_weights=shares
        )
        return self.head(means)


class FastTextTask:
    """A fastText classifier and the texts it learns from."""

    kind = KIND
    metrics = ("error", "nll")
    counted = "texts"
    base_files: tuple[Path, ...] = ()
    collate = staticmethod(collate)

    def __init__(self, recipe: TrainRecipe, device: torch.device) -> None:
        self.recipe, self.device = recipe, device
        self._source = _source(recipe)
        self.corpus, self.table = recipe.data.corpus, self._source.table
        self._reader: CorpusLoader = CORPORA.load(recipe.data.corpus)(recipe.data.path)
        settings = recipe.settings(FastTextTaskConfig).fasttext
        texts = self._texts(recipe.data.train)
        self.config = FastTextConfig(
            reads=self.table,
            labels=self._source.labels.labels,
            dimensions=settings.dimensions,
            buckets=settings.buckets,
            words=common_words((text for text, _ in texts), settings.least),
        )
        self.model = FastTextModel(self.config, recipe.dropout).to(device)
        self._train = self._encoded(texts, recipe.batches.row_tokens)

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "FastTextTask":
        """Read the training texts and count their words."""
        _source(recipe)
        reader: CorpusLoader = CORPORA.load(recipe.data.corpus)(recipe.data.path)
        for split in recipe.data.used():
            reader.check(split)
        return cls(recipe, device)

    def examples(self) -> Sequence[FastTextExample]:
        """The training texts."""
        return self._train

    def loss_sum(self, batch: FastTextBatch) -> torch.Tensor:
        """The summed negative log-likelihood of the labels, in nats."""
        filled = batch.segments > 0
        # Without the padding, a text begins where the features before it end.
        starts = np.cumsum(filled)[batch.starts] - 1
        tokens, first, labels = (
            moved(array, self.device) for array in (batch.tokens[filled], starts, batch.labels)
        )
        logits = self.model(tokens, first)
        return torch.nn.functional.cross_entropy(logits.float(), labels, reduction="sum")

    def measure(self, split: str) -> dict[str, float]:
        """Accuracy, top-5 accuracy and error in percent, and the summed negative log-likelihood in nats.

        The classifier that would be saved is what is measured: numpy, with weights of 16 bits.
        """
        examples = self._encoded(self._texts(split))
        truth = np.array([example.label for example in examples])
        predicted = self.classifier().probabilities([example.tokens for example in examples])
        names = self.config.labels
        right = accuracy([names[i] for i in truth], [names[i] for i in predicted.argmax(axis=1)])
        own = np.take_along_axis(predicted, truth[:, None], axis=1).astype(np.float64)
        return {
            "accuracy": right,
            "top_5_accuracy": top_k_accuracy(truth, predicted, min(5, len(names))),
            "error": 100 - right,
            "nll": float(-np.log(np.maximum(own, np.finfo(np.float32).tiny)).sum()),
            "texts": float(len(examples)),
        }

    def classifier(self) -> FastTextClassifier:
        """The model as it is now, in numpy."""
        arrays = (self.model.vectors, self.model.head.weight, self.model.head.bias)
        return FastTextClassifier(self.config, *(array.detach().cpu().numpy() for array in arrays))

    def save(self, folder: Path) -> None:
        """config.json with labels and words, and model.safetensors in 16 bits."""
        self.classifier().save(folder)

    def load(self, folder: Path) -> None:
        """Take the weights of a checkpoint that `save` wrote."""
        saved = FastTextClassifier.read(folder).weights
        with torch.no_grad():
            self.model.vectors.copy_(torch.from_numpy(saved["vectors"]))
            self.model.head.weight.copy_(torch.from_numpy(saved["matrix"]))
            self.model.head.bias.copy_(torch.from_numpy(saved["bias"]))

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The corpus's files of the splits in use; `shaping`: without the test split's."""
        for split in self.recipe.data.used(shaping):
            yield from self._reader.files(split)

    def conditions(self) -> dict[str, str]:
        """What is read, what the features are, and that nothing was trained before."""
        config, batches = self.config, self.recipe.batches
        least = self.recipe.settings(FastTextTaskConfig).fasttext.least
        pairs = f" and word pairs in {config.buckets:,} buckets" if config.buckets else ""
        return {
            "base": "none",
            "tuning": "all weights, from random vectors",
            "text": self._source.text,
            "features": f"{len(config.words):,} words seen at least {least} times{pairs}",
            "vectors": f"{config.dimensions} dimensions, 16 bits",
            "dropout": f"{self.recipe.dropout:g} of a text's features",
            "longest training sequence": f"{batches.row_tokens} features",
            "batches": f"{batches.batching}, {batches.tokens:,} features a step",
        }

    def _texts(self, split: str) -> list[tuple[str, str]]:
        """Text and label of each item of a split."""
        items = islice(self._reader.read(split), self.recipe.data.limit)
        texts = [labelled for item in items if (labelled := self._source.pick(item)) is not None]
        if not texts:
            raise RecipeError(
                f"{self._reader.name} {split} holds no text with a label to learn.",
                "Name another split in the recipe's data, or raise its limit.",
            )
        return texts

    def _encoded(self, texts: list[tuple[str, str]], limit: int | None = None) -> list[FastTextExample]:
        """Texts as features; one with more than `limit` loses the last ones."""
        features, labels = Features(self.config), self._source.labels
        return [FastTextExample(features.of(text)[:limit], labels.index(label)) for text, label in texts]


def _source(recipe: TrainRecipe) -> Source:
    """What to read of the recipe's corpus; what a fastText classifier cannot do is an error."""
    if recipe.data.corpus not in SOURCES:
        raise RecipeError(
            f"A fastText classifier cannot learn from {recipe.data.corpus}.",
            f"Give one of these as data.corpus: {', '.join(SOURCES)}.",
        )
    if recipe.lora:
        raise RecipeError("A fastText classifier has no adapters.", "Leave lora out of the recipe.")
    return SOURCES[recipe.data.corpus]
