"""A ranker as a checkpoint: made from its config, written, read back."""

from pathlib import Path

from listenwell.checkpoint import open_checkpoint
from listenwell.rankers import RANKERS
from listenwell.rankers.backbones import EncoderBackbone, make_backbone
from listenwell.rankers.base import RankingModel
from listenwell.rankers.config import KIND, RankerConfig
from listenwell.rankers.inputs import Inputs
from listenwell.runtime.encoder import load_weights, save_weights
from listenwell.runtime.text import Vocabulary
from listenwell.serialization import build, dumps

OLD_PREFIXES = {"body.": "backbone."}
"""Of weights in checkpoints of earlier releases."""


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
    """A ranker from its checkpoint, ready to score, and what makes its inputs.

    Args:
        folder: a checkpoint that `save_ranker` filled.
        weights: the base model's own folder, where it is not the installed one.
    """
    saved = open_checkpoint(folder, KIND)
    config = build(RankerConfig, saved.config())
    ranker, base = make_ranker(config, weights)
    load_weights(ranker, adapted(ranker), saved, OLD_PREFIXES)
    return ranker.eval(), Inputs(Vocabulary.from_folder(base), config)


def adapted(ranker: RankingModel) -> object:
    """The part of a ranker that adapters are put on."""
    return ranker.backbone.encoder if isinstance(ranker.backbone, EncoderBackbone) else ranker.backbone
