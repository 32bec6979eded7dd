"""A causal language model in training: what is loaded, what is trained, what is saved."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from listenwell.checkpoint import MANIFEST, Checkpoint, open_checkpoint
from listenwell.errors import RecipeError
from listenwell.generators.planned import KIND as PLANNED
from listenwell.generators.planned import SHIPPED
from listenwell.generators.plans import CHOICES, LEVELS, MANNER_TOKENS, TOKENS, token_words
from listenwell.generators.vanilla import KIND as CAUSAL
from listenwell.labels import MANNERS
from listenwell.metrics import Perplexity
from listenwell.rankers.inference import moved
from listenwell.runtime.model_files import model_files
from listenwell.runtime.names import ADAPTER, ADAPTER_CONFIG, ADDED_TOKENS, SOFT_PROMPT
from listenwell.runtime.quiet import quiet_transformers
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.torch_models import (
    AddedTokens,
    attention_masks,
    capped,
    embedding_scale,
    load_causal,
    logit_cap,
)
from listenwell.runtime.weights import find_weights
from listenwell.training.adapters import add_lora, load_lora
from listenwell.training.batching import Epoch
from listenwell.training.compiled import Functions, compiled
from listenwell.training.recipe import BatchRecipe, TrainRecipe
from listenwell.training.tokens import Encoded, TokenBatch, collate

SOFT_PROMPT_WORDS = (
    *(" understanding", " specific", " kind", " honest"),
    *(" warm", " clear", " caring", " attentive"),
)
"""The soft prompt's embeddings are initialized with these words' (Lester et al. 2021, §3.1), in turn."""
_GENERATOR_FILES = (ADAPTER_CONFIG, ADAPTER, ADDED_TOKENS, "tokenizer.json")


@dataclass(frozen=True)
class _SoftPrompt:
    """A soft prompt, and the generator it is trained for."""

    tokens: np.ndarray  # (count,) int32: its token numbers, after the vocabulary's
    generator: Checkpoint
    head: torch.Tensor
    """The output layer: a soft prompt is never an output."""


class CausalModel:
    """A causal model with its vocabulary: full fine-tuning, an adapter, or a soft prompt."""

    def __init__(
        self,
        module: Any,  # noqa: ANN401
        vocabulary: Vocabulary,
        recipe: TrainRecipe,
        device: torch.device,
        base_files: tuple[Path, ...] = (),
    ) -> None:
        self.module = module.to(device)
        self.vocabulary, self.device, self.base_files = vocabulary, device, base_files
        self._base_name, self._is_adapter = recipe.base_name, recipe.lora is not None
        self._soft_prompt: _SoftPrompt | None = None
        # Tokens to hidden states; the head is applied at targets only. Measuring, whose rows have every
        # length, runs the functions without compilation.
        self._plain: Functions = (self.base.model, _token_losses)
        self._logit_cap = logit_cap(self.base.config)
        self._fast = compiled(self._plain, recipe, device)

    @classmethod
    def load(cls, recipe: TrainRecipe, device: torch.device, plans: bool = False) -> "CausalModel":
        """The recipe's base model in float32, with its adapters and, for `plans`, trained tokens of plans."""
        folder = find_weights(recipe.base, recipe.weights)
        # Layers read their dropout when they are made, not later.
        module = load_causal(folder, attention_dropout=recipe.dropout)
        vocabulary = Vocabulary.from_folder(folder)
        if plans:
            module, vocabulary = _with_plan_tokens(module, vocabulary, recipe)
        elif recipe.lora:
            module = add_lora(module, recipe.lora, recipe.base, "CAUSAL_LM")
        return cls(module, vocabulary, recipe, device, model_files(folder))

    @property
    def base(self) -> Any:  # noqa: ANN401
        """The transformers model inside of an adapter's wrapper."""
        return self.module.get_base_model() if self._is_adapter else self.module

    @property
    def context_length(self) -> int:
        """How many tokens the model can read."""
        return int(self.base.config.max_position_embeddings)

    @property
    def soft_prompt(self) -> np.ndarray | None:
        """The soft prompt's token numbers, (count,) int32; None without one."""
        return self._soft_prompt.tokens if self._soft_prompt else None

    def start_from(self, start: Path, kinds: Sequence[str] = (PLANNED, CAUSAL)) -> Checkpoint:
        """Take the weights of a checkpoint, or of the `shipped` one; its manifest joins `base_files`."""
        folder = SHIPPED if str(start) == "shipped" else start
        saved = open_checkpoint(folder, kinds[0]) if len(kinds) == 1 else open_checkpoint(folder)
        if saved.kind not in kinds or (ADAPTER in saved.sums) != self._is_adapter:
            raise RecipeError(
                f"{saved.folder} holds a {saved.kind!r} checkpoint that this recipe cannot go on from.",
                "Name a generator's; give `lora` of the same rank if it was trained so.",
            )
        try:
            self.load_weights(saved.folder)
        except (RuntimeError, ValueError) as error:  # peft and torch tell shapes that differ
            raise RecipeError(
                f"{saved.folder} has weights of another form: {str(error).splitlines()[0]}",
                "Give the recipe's `lora` the rank and targets that it was trained with.",
            ) from error
        self.base_files += (saved.folder / MANIFEST,)
        return saved

    def add_soft_prompt(self, count: int, generator: Checkpoint) -> None:
        """Add a soft prompt of `count` tokens, which alone is trained; it starts from the generator's own."""
        old = self.base.get_input_embeddings()
        known = torch.cat([old.known, old.rows.detach()])
        words = [self.vocabulary.encode(word)[0] for word in SOFT_PROMPT_WORDS]
        rows = known[[words[index % len(words)] for index in range(count)]]
        self.module.requires_grad_(False)
        scale = embedding_scale(self.base.config)
        self.base.set_input_embeddings(AddedTokens(known, rows, scale).to(self.device))
        numbers = np.arange(len(known), len(known) + count, dtype=np.int32)
        head = torch.cat([self.base.lm_head.weight.detach(), old.rows.detach()])
        self._soft_prompt = _SoftPrompt(numbers, generator, head)
        if SOFT_PROMPT in generator.sums:
            self.load_weights(generator.folder)

    def token_losses(self, batch: TokenBatch) -> torch.Tensor:
        """Negative log-likelihood of each target, in nats: (targets,)."""
        decoder, token_losses = self._fast if self.module.training else self._plain
        segments = self.to_device(batch.segments)
        # Causal, and only inside its own sequence; padding sees itself, so that no row of the mask is empty.
        length = batch.tokens.shape[1]
        same = segments[:, :, None] == segments[:, None, :]
        causal = torch.ones(length, length, dtype=torch.bool, device=self.device).tril()
        positions = self.to_device(batch.positions)
        hidden = decoder(
            input_ids=self.to_device(batch.tokens),
            attention_mask=attention_masks(self.base.config, same & causal, positions),
            position_ids=positions,
            use_cache=False,
        ).last_hidden_state
        at_targets = hidden.flatten(0, 1)[self.to_device(batch.sources)]  # logits only where a token counts
        labels = self.to_device(batch.labels)
        losses: torch.Tensor = token_losses(at_targets, self._head(), labels, self._logit_cap)
        return losses

    def perplexity(self, sequences: Sequence[Encoded]) -> dict[str, float]:
        """Perplexity by token and word and bits by byte, from sums over all sequences' targets."""
        nll, tokens = 0.0, 0
        self.module.eval()
        with torch.no_grad():
            for step in Epoch(sequences, collate, measuring_batches(self.device), 0, 0).steps():
                for batch in step.batches:
                    nll += float(self.token_losses(batch).sum().double())
                tokens += step.targets
        self.module.train()
        words = sum(sequence.words for sequence in sequences)
        size = sum(sequence.bytes for sequence in sequences)
        perplexity = Perplexity(nll, tokens, words, size, self._base_name)
        return {
            "perplexity_by_token": perplexity.by_token,
            "perplexity_by_word": perplexity.by_word,
            "bits_per_byte": perplexity.bits_per_byte,
            "nll": nll,
            "tokens": float(tokens),
            "words": float(words),
            "bytes": float(size),
            "replies": float(sum(sequence.replies for sequence in sequences)),
        }

    def save(self, folder: Path) -> None:
        """Write the tokenizer and the whole model, an adapter, or the generator's files and a soft prompt."""
        from safetensors.torch import load_file, save_file

        embeddings = self.base.get_input_embeddings()
        if self._soft_prompt:
            for name in _GENERATOR_FILES:
                if name in self._soft_prompt.generator.sums:
                    shutil.copyfile(self._soft_prompt.generator.path(name), folder / name)
            save_file({"rows": embeddings.rows.detach().half().cpu()}, folder / SOFT_PROMPT)
            return
        # Embeddings are never among what an adapter trains; peft would ask the hub whether they were.
        settings = {"save_embedding_layers": False} if self._is_adapter else {}
        with quiet_transformers():
            self.module.save_pretrained(folder, **settings)
        (folder / "README.md").unlink(missing_ok=True)  # peft's empty form for a model card
        (folder / "tokenizer.json").write_text(self.vocabulary.to_json(), encoding="utf-8")
        if isinstance(embeddings, AddedTokens):
            # In half precision, as adapters are shipped: what is measured is what is used.
            rows = {"rows": embeddings.rows.detach()}
            for name, tensors in ((ADAPTER, load_file(folder / ADAPTER)), (ADDED_TOKENS, rows)):
                save_file({key: value.half().cpu() for key, value in tensors.items()}, folder / name)

    def load_weights(self, folder: Path) -> None:
        """Take the weights of a checkpoint that `save` wrote, or of a model without plan tokens."""
        from safetensors.torch import load_file

        embeddings = self.base.get_input_embeddings()
        if self._soft_prompt:
            rows = load_file(folder / SOFT_PROMPT)["rows"]
            if rows.shape != embeddings.rows.shape:
                raise RecipeError(
                    f"{folder} has a soft prompt of {len(rows)} tokens.",
                    f"Give preference.soft_prompt {len(rows)}.",
                )
            with torch.no_grad():
                embeddings.rows.copy_(rows)
        elif self._is_adapter:
            load_lora(self.module, folder / ADAPTER)
            if isinstance(embeddings, AddedTokens) and (folder / ADDED_TOKENS).is_file():
                rows = load_file(folder / ADDED_TOKENS)["rows"]
                with torch.no_grad():  # a generator of an earlier release has no manners
                    embeddings.rows[: len(rows)].copy_(rows)
        else:  # a head that is tied is not in the file
            self.module.load_state_dict(load_file(folder / "model.safetensors"), strict=False)

    def to_device(self, array: np.ndarray) -> torch.Tensor:
        """An array as a tensor on the model's device, without waiting for it."""
        return moved(array, self.device)

    def _head(self) -> Sequence[torch.Tensor]:
        """The output layer's weights in one part or more, which together are (vocabulary, width)."""
        embeddings = self.base.get_input_embeddings()
        if not isinstance(embeddings, AddedTokens):
            return (self.base.lm_head.weight,)
        if self._soft_prompt:
            return (self._soft_prompt.head,)
        # New tokens have one row for input and output. In two parts, no gradient is worked out for the one
        # that is not trained.
        return (self.base.lm_head.weight, embeddings.rows)


def measuring_batches(device: torch.device) -> BatchRecipe:
    """Batches of like length to measure on: they do not depend on how training is batched."""
    return BatchRecipe("bucketed", 16_384 if device.type == "cuda" else 4_096, 8)


def _with_plan_tokens(
    module: Any,  # noqa: ANN401
    vocabulary: Vocabulary,
    recipe: TrainRecipe,
) -> tuple[Any, Vocabulary]:
    """The model and its vocabulary with the tokens of plans; under LoRA only their rows are trained."""
    first = len(vocabulary)
    known = _fitted(module.get_input_embeddings().weight.detach(), first)
    # A token's row begins as the mean of the embeddings of words that say what it stands for.
    words = [token_words(level, value) for level in LEVELS for value in CHOICES[level]]
    words += [f" {manner}" for manner in MANNERS]
    rows = torch.stack([known[torch.tensor(vocabulary.encode(text))].mean(dim=0) for text in words])
    extended = vocabulary.extended((*TOKENS, *MANNER_TOKENS))
    if recipe.lora:
        head = _fitted(module.lm_head.weight.detach(), first)
        module = add_lora(module, recipe.lora, recipe.base, "CAUSAL_LM")
        base = module.get_base_model()
        base.set_input_embeddings(AddedTokens(known, rows, embedding_scale(base.config)))
        base.lm_head.weight = torch.nn.Parameter(head, requires_grad=False)
    else:
        with quiet_transformers(), torch.no_grad():
            module.resize_token_embeddings(len(extended), mean_resizing=False)
            for table in (module.get_input_embeddings(), module.get_output_embeddings()):
                table.weight[first:] = rows
    return module, extended


def _fitted(table: torch.Tensor, count: int) -> torch.Tensor:
    """A table with a row for each token: some models have unused ones more, some lack the last."""
    if len(table) < count:
        return torch.cat([table, table.new_zeros(count - len(table), table.shape[1])])
    return table[:count]


def _token_losses(
    hidden: torch.Tensor, head: Sequence[torch.Tensor], labels: torch.Tensor, cap: float | None
) -> torch.Tensor:
    """Negative log-likelihood of each label; hidden (targets, width), head (vocabulary, width) in parts."""
    parts = [torch.nn.functional.linear(hidden, part) for part in head]
    logits = capped((torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]).float(), cap)
    return torch.nn.functional.cross_entropy(logits, labels, ignore_index=-100, reduction="none")
