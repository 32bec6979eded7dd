"""Bi-encoder (Humeau et al. 2020), with persona the Tri-encoder of PEC §5.1.

score = dot(mean(vector of context, vector of persona), vector of reply); vectors are means over states.
With the backbone `words` it is PEC's BoW, with `transformer` EmpatheticDialogues' retrieval model.
"""

import math
from typing import Any

import torch

from listenwell.rankers.base import RankingModel, States
from listenwell.rankers.config import RankerConfig

FIRST_SCALE = 20.0
"""Of cosines, before it is learned; all-MiniLM-L6-v2 was trained with it."""


class BiEncoder(RankingModel):
    """One vector each for what was said and for the reply."""

    gives_vectors = True

    def __init__(self, config: RankerConfig, backbone: Any) -> None:  # noqa: ANN401
        super().__init__(config, backbone)
        self.scale = torch.nn.Parameter(torch.tensor(math.log(FIRST_SCALE))) if config.bi.cosine else None

    def kept(self, replies: States) -> States:
        """The mean of a reply's states."""
        return replies.pooled()

    def vectors(self, replies: States) -> torch.Tensor:
        """(replies, width); of length 1 where directions are compared."""
        vectors = super().vectors(replies)
        return vectors if self.scale is None else torch.nn.functional.normalize(vectors, dim=-1)

    def queries(self, context: States, persona: States | None) -> torch.Tensor:
        """(contexts, width); the learned scale is in it."""
        vectors = super().queries(context, persona)
        if self.scale is None:
            return vectors
        return torch.nn.functional.normalize(vectors, dim=-1) * self.scale.exp()
