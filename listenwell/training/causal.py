"""Fine-tuning a causal language model on dialogues: the listener's turns are predicted, nothing else.

A dialogue is one sequence in ChatML. Every listener turn in it is learned with exactly the turns before it
as context, so each reply counts once and each context is read once.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from listenwell.corpora import CORPORA, Reader
from listenwell.dialogue import Dialogue
from listenwell.errors import RecipeError
from listenwell.generators.prompt_template import role_of, turn_tokens
from listenwell.generators.vanilla import KIND
from listenwell.metrics import Perplexity
from listenwell.runtime.quiet import quiet_transformers
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import HUB_FILES, find_weights
from listenwell.training.adapters import add_lora, load_lora
from listenwell.training.batching import Epoch
from listenwell.training.compiled import Functions, compiled
from listenwell.training.recipe import BatchRecipe, TrainRecipe
from listenwell.training.tokens import Encoded, TokenBatch, collate


def encode_dialogue(
    vocabulary: Vocabulary, dialogue: Dialogue, limit: int, everyone: bool = False
) -> Encoded | None:
    """A dialogue's tokens, with the listener's words and end marks as targets.

    A dialogue longer than the limit loses its oldest turns; None if no reply with a context is left.

    Args:
        vocabulary: the model's.
        dialogue: any dialogue.
        limit: how many tokens it may have.
        everyone: everybody's turns are targets, the first one too.
    """
    turns = list(dialogue.turns)
    parts: list[tuple[list[int], bool]] = []
    for turn in turns:
        text = vocabulary.encode(turn.text)
        parts.append(
            (turn_tokens(vocabulary, role_of(turn, dialogue), text), turn.speaker == dialogue.listener)
        )
    length = sum(len(tokens) for tokens, _ in parts)
    while len(parts) > 2 and length > limit:
        length -= len(parts.pop(0)[0])
        turns.pop(0)
    if length > limit or not (everyone or any(is_reply for _, is_reply in parts[1:])):
        return None
    targets, texts = np.zeros(length, bool), list[str]()
    begin = 0
    for number, (tokens, is_reply) in enumerate(parts):
        if everyone or (is_reply and number > 0):
            # A start mark and the role stand before the words, an end mark and a new line after them.
            head = len(turn_tokens(vocabulary, role_of(turns[number], dialogue), [])) - 2
            targets[begin + head : begin + len(tokens) - 1] = (
                True  # the new line after the end mark is no target
            )
            texts.append(turns[number].text)
        begin += len(tokens)
    return Encoded(
        np.array([token for tokens, _ in parts for token in tokens], np.int32),
        targets,
        len(texts),
        sum(len(text.split()) for text in texts),
        sum(len(text.encode("utf-8", "replace")) for text in texts),
    )


def load_causal(recipe: TrainRecipe) -> tuple[Any, Path]:
    """The recipe's base model in float32, and its folder."""
    from transformers import AutoModelForCausalLM

    folder = find_weights(recipe.base, recipe.weights)
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        dtype=torch.float32,
        attn_implementation="sdpa",
        use_safetensors=True,
        local_files_only=True,
        attention_dropout=recipe.dropout,  # layers take it when they are made: a later change is unheard
    )
    return model, folder


class CausalTask:
    """A causal model and the dialogues it learns from."""

    kind = KIND
    metrics = ("perplexity_by_token", "perplexity_by_word", "bits_per_byte")
    table, counted = "perplexity", "replies"
    base_files: tuple[Path, ...] = ()
    collate = staticmethod(collate)

    def __init__(self, model: Any, vocabulary: Vocabulary, recipe: TrainRecipe, device: torch.device) -> None:  # noqa: ANN401
        self.model = model.to(device)
        self.vocabulary, self.recipe, self.device = vocabulary, recipe, device
        self.corpus = recipe.data.corpus
        reader: type[Reader] = CORPORA.load(recipe.data.corpus)
        self._reader = reader(recipe.data.path)
        # Tokens to hidden states; the head is applied at targets only. Validation, whose rows have every
        # length, runs the plain functions.
        self._plain: Functions = (self._base().model, _token_losses)
        self._fast = compiled(self._plain, recipe, device)
        self._train = self._training_sequences(recipe.batches.row_tokens)

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "CausalTask":
        """Load the base model, with adapters where the recipe asks for them."""
        reader: Reader = CORPORA.load(recipe.data.corpus)(recipe.data.path)
        for split in recipe.data.used():
            reader.check(split)  # before minutes are spent on the others
        model, folder = load_causal(recipe)
        if recipe.lora:
            model = add_lora(model, recipe.lora, recipe.base, "CAUSAL_LM")
        task = cls(model, Vocabulary.from_folder(folder), recipe, device)
        task.base_files = tuple(folder / name for name in HUB_FILES)
        return task

    def pieces(self) -> Sequence[Encoded]:
        """The training dialogues."""
        return self._train

    def loss_sum(self, batch: TokenBatch) -> torch.Tensor:
        """The summed negative log-likelihood of the targets, in nats."""
        return self._losses(batch).sum()

    def measure(self, split: str) -> dict[str, float]:
        """Perplexity by token and word and bits by byte, from sums over the whole split."""
        # The whole context the model can read: what is measured must not depend on how training is batched.
        return self._measured(self._encoded(split, limit=self._window()))

    def _measured(self, sequences: Sequence[Encoded]) -> dict[str, float]:
        """How likely the targets of given sequences are."""
        nll, tokens = 0.0, 0
        plain = BatchRecipe("bucketed", 16_384 if self.device.type == "cuda" else 4_096, 8)
        self.model.eval()
        with torch.no_grad():
            for step in Epoch(sequences, collate, plain, 0, 0).steps():
                for batch in step.batches:
                    nll += float(self.loss_sum(batch).double())
                tokens += step.targets
        self.model.train()
        words, size = sum(s.words for s in sequences), sum(s.bytes for s in sequences)
        found = Perplexity(nll, tokens, words, size, self.recipe.base)
        return {
            "perplexity_by_token": found.by_token,
            "perplexity_by_word": found.by_word,
            "bits_per_byte": found.bits_per_byte,
            "nll": nll,
            "tokens": float(tokens),
            "words": float(words),
            "bytes": float(size),
            "replies": float(sum(s.replies for s in sequences)),
        }

    def save(self, folder: Path) -> None:
        """config.json, tokenizer.json and model.safetensors, or the adapter's files under LoRA."""
        # Embeddings are never among what an adapter trains; peft would ask the hub whether they were.
        settings = {"save_embedding_layers": False} if self.recipe.lora else {}
        with quiet_transformers():
            self.model.save_pretrained(folder, **settings)
        (folder / "README.md").unlink(missing_ok=True)  # peft's empty form for a model card
        (folder / "tokenizer.json").write_text(self.vocabulary.to_json(), encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Take the weights of a checkpoint that `save` wrote."""
        from safetensors.torch import load_file

        if self.recipe.lora:
            load_lora(self.model, folder / "adapter_model.safetensors")
        else:
            self.model.load_state_dict(
                load_file(folder / "model.safetensors"), strict=False
            )  # the head is tied

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The corpus's files of the splits in use; `shaping`: without the test split's."""
        for split in self.recipe.data.used(shaping):
            yield from self._reader.files(split)

    def conditions(self) -> dict[str, str]:
        """Units, and which turns are learned."""
        recipe = self.recipe
        return {
            "learned": "the listener's turns" if recipe.learn == "replies" else "everybody's turns",
            "learned without context": f"{100 * recipe.unconditional:g} % of the replies once more",
            "measured": "the listener's tokens and the end mark of each reply, given all turns before it",
            "tokenizer": recipe.weights.name if recipe.weights else recipe.base,
            "unit": "perplexity by token (tokenizer's), by word (between white space), bits by UTF-8 byte",
        }

    def _training_sequences(self, limit: int) -> list[Encoded]:
        """What is learned from, none longer than the limit."""
        found = self._encoded(self.recipe.data.train, limit, self.recipe.learn == "all")
        return found + self._replies_alone(limit) if self.recipe.unconditional else found

    def _window(self) -> int:
        """How many tokens the model can read."""
        return int(self._base().config.max_position_embeddings)

    def _head(self) -> Sequence[torch.Tensor]:
        """The output layer's weights in one part or more, which together are (vocabulary, width)."""
        return (self._base().lm_head.weight,)

    def _base(self) -> Any:  # noqa: ANN401
        return self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model

    def _dialogues(self, split: str) -> Iterator[Dialogue]:
        items = islice(self._reader.read(split), self.recipe.data.limit)
        return (item for item in items if isinstance(item, Dialogue))

    def _encoded(self, split: str, limit: int, everyone: bool = False) -> list[Encoded]:
        found = [
            encode_dialogue(self.vocabulary, dialogue, limit, everyone) for dialogue in self._dialogues(split)
        ]
        sequences = [sequence for sequence in found if sequence is not None]
        if not sequences:
            raise RecipeError(
                f"{self._reader.name} {split} holds no dialogue with a reply to learn from.",
                "Name another corpus or split in the recipe's data, or raise its limit.",
            )
        return sequences

    def _replies_alone(self, limit: int) -> list[Encoded]:
        """A share of the training replies without their contexts, which teach P(y)."""
        random = np.random.default_rng([self.recipe.seed, 7])
        found = [
            encode_dialogue(
                self.vocabulary, Dialogue((example.reply,), listener=example.reply.speaker), limit, True
            )
            for dialogue in self._dialogues(self.recipe.data.train)
            for example in dialogue.examples()
            if random.random() < self.recipe.unconditional
        ]
        return [sequence for sequence in found if sequence is not None]

    def _losses(self, batch: TokenBatch) -> torch.Tensor:
        decoder, token_losses = self._fast if self.model.training else self._plain
        move = self._to_device
        segments = move(batch.segments)
        # Causal, and only inside its own sequence; padding sees itself, so that no row of the mask is empty.
        length = batch.tokens.shape[1]
        same = segments[:, :, None] == segments[:, None, :]
        causal = torch.ones(length, length, dtype=torch.bool, device=self.device).tril()
        hidden = decoder(
            input_ids=move(batch.tokens),
            attention_mask=(same & causal)[:, None],
            position_ids=move(batch.positions),
            use_cache=False,
        ).last_hidden_state
        at_targets = hidden.flatten(0, 1)[move(batch.sources)]  # logits only where a token counts
        return token_losses(at_targets, self._head(), move(batch.labels))

    def _to_device(self, array: np.ndarray) -> torch.Tensor:
        tensor = torch.from_numpy(array)
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor


def _token_losses(hidden: torch.Tensor, head: Sequence[torch.Tensor], labels: torch.Tensor) -> torch.Tensor:
    """Negative log-likelihood of each label; hidden (targets, width), head (vocabulary, width) in parts."""
    parts = [torch.nn.functional.linear(hidden, part) for part in head]
    logits = (torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]).float()
    return torch.nn.functional.cross_entropy(logits, labels, ignore_index=-100, reduction="none")
