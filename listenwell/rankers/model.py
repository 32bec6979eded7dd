"""A ranker and its backbone: made from a config, written to a checkpoint, read back.

A backbone turns words into states: a pretrained encoder, a small Transformer from scratch, or word vectors.
"""

from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from listenwell.checkpoint import open_checkpoint
from listenwell.rankers import RANKERS
from listenwell.rankers.base import RankingModel, Words
from listenwell.rankers.config import HEADS, INNER, KIND, LAYERS, WIDTH, RankerConfig
from listenwell.rankers.inputs import Inputs
from listenwell.runtime.encoder import load_encoder, load_weights, save_weights
from listenwell.runtime.text import Vocabulary
from listenwell.serialization import build, dumps

KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Without cuDNN's attention, which makes a plan for every new length of a batch."""


class EncoderBackbone(torch.nn.Module):  # type: ignore[misc]
    """The states of a BERT's last layer."""

    def __init__(self, encoder: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.encoder = encoder
        self.width = int(encoder.config.hidden_size)
        self._causal = encoder.config.model_type != "bert"

    def forward(self, words: Words) -> torch.Tensor:
        """(rows, length, width); positions count words only, so that padding inside a row moves nothing."""
        mask = words.mask
        # Words see words; padding sees padding, so that no row of the mask is empty.
        seen = mask[:, :, None] == mask[:, None, :]
        if self._causal:
            seen = seen & torch.ones(seen.shape[1:], dtype=torch.bool, device=seen.device).tril()
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        inputs = {"input_ids": words.tokens, "attention_mask": seen[:, None], "position_ids": positions}
        if not self._causal:
            inputs["token_type_ids"] = words.types
        with sdpa_kernel(KERNELS):
            states: torch.Tensor = self.encoder(**inputs).last_hidden_state
        return states


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


def make_ranker(
    config: RankerConfig, weights: Path | None = None, dropout: float = 0.0
) -> tuple[RankingModel, Path]:
    """A ranker that was not trained, and its base model's folder."""
    backbone, folder = make_backbone(config, weights, dropout)
    ranker: type[RankingModel] = RANKERS.load(config.model)
    if isinstance(backbone, EncoderBackbone):
        config.check_room(int(backbone.encoder.config.max_position_embeddings), ranker.reads_pairs)
    return ranker(config, backbone), folder


def save_ranker(ranker: RankingModel, folder: Path) -> None:
    """Write config.json and the weights in fp16: the adapter's and the ranker's own, or all of them."""
    (folder / "config.json").write_text(dumps(ranker.config.to_dict()) + "\n", encoding="utf-8")
    save_weights(ranker, adapted(ranker), folder)


def load_ranker(folder: Path, weights: Path | None = None) -> tuple[RankingModel, Inputs]:
    """Load a ranker that `save_ranker` wrote, and its inputs; `weights` is the base model's own folder."""
    saved = open_checkpoint(folder, KIND)
    config = build(RankerConfig, saved.config())
    ranker, base = make_ranker(config, weights)
    load_weights(ranker, adapted(ranker), saved)
    return ranker.eval(), Inputs(Vocabulary.from_folder(base), config)


def adapted(ranker: RankingModel) -> object:
    """The part of a ranker that adapters are put on."""
    return ranker.backbone.encoder if isinstance(ranker.backbone, EncoderBackbone) else ranker.backbone
