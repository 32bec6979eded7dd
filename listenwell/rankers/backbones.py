"""How words become states: a pretrained encoder, a small Transformer from scratch, or word vectors alone."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from listenwell.rankers.base import Words
from listenwell.rankers.config import HEADS, INNER, LAYERS, WIDTH, RankerConfig
from listenwell.runtime.encoder import load_encoder


class EncoderBackbone(torch.nn.Module):  # type: ignore[misc]
    """The states of a BERT's last layer."""

    def __init__(self, encoder: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.encoder = encoder
        self.width = int(encoder.config.hidden_size)
        self._causal = encoder.config.model_type != "bert"

    def forward(self, words: Words) -> torch.Tensor:
        """(rows, length, width); places count words only, so that padding inside a row moves nothing."""
        mask = words.mask
        # Words see words; padding sees padding, so that no row of the mask is empty.
        seen = mask[:, :, None] == mask[:, None, :]
        if self._causal:
            seen = seen & torch.ones(seen.shape[1:], dtype=torch.bool, device=seen.device).tril()
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        inputs = {"input_ids": words.tokens, "attention_mask": seen[:, None], "position_ids": positions}
        if not self._causal:
            inputs["token_type_ids"] = words.types
        with _attention():
            states: torch.Tensor = self.encoder(**inputs).last_hidden_state
        return states


def _attention() -> AbstractContextManager[None]:
    """Without cuDNN's attention, which makes a plan for every new length of a batch."""
    kernels = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH)
    return cast(AbstractContextManager[None], sdpa_kernel(list(kernels)))


class WordBackbone(torch.nn.Module):  # type: ignore[misc]
    """The vectors of the words alone; they begin as a pretrained encoder's, where PEC §5.2 has fastText's."""

    def __init__(self, vectors: torch.Tensor) -> None:
        super().__init__()
        self.vectors = torch.nn.Embedding.from_pretrained(vectors.clone(), freeze=False)
        self.width = int(vectors.shape[1])

    def forward(self, words: Words) -> torch.Tensor:
        """(rows, length, width)"""
        vectors: torch.Tensor = self.vectors(words.tokens)
        return vectors


def make_backbone(
    config: RankerConfig, weights: Path | None = None, dropout: float = 0.0
) -> tuple[EncoderBackbone | WordBackbone, Path]:
    """A backbone as the config wants it, not yet trained, and the base model's folder."""
    encoder, folder = load_encoder(config.base, weights, dropout)
    if config.backbone == "pretrained":
        return EncoderBackbone(encoder), folder
    vectors = encoder.get_input_embeddings().weight.detach()
    if config.backbone == "words":
        return WordBackbone(vectors), folder
    from transformers import BertConfig, BertModel

    shape = BertConfig(
        vocab_size=len(vectors),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        attn_implementation="sdpa",
    )
    return EncoderBackbone(BertModel(shape, add_pooling_layer=False)), folder
