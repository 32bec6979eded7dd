"""Poly-encoder (Humeau et al. 2020, §4.4): learned codes look at the context, the reply at what they saw."""

from typing import Any

import torch

from listenwell.rankers.base import RankingModel, States, masked_mean, masked_softmax
from listenwell.rankers.config import RankerConfig


class PolyEncoder(RankingModel):
    """y_i = Σ_j softmax_j(c_i · h_j) h_j for each code c_i; score = Σ_i softmax_i(y · y_i) (y_i · y).

    The codes read context and persona as one text: PEC §5.1 gives it the persona too and does not say how.
    """

    def __init__(self, config: RankerConfig, backbone: Any) -> None:  # noqa: ANN401
        super().__init__(config, backbone)
        self.codes = torch.nn.Parameter(torch.randn(config.poly.codes, self.width) * self.width**-0.5)

    def kept(self, replies: States) -> States:
        """The mean of a reply's states."""
        return replies.pooled()

    def match(self, context: States, persona: States | None, replies: States) -> torch.Tensor:
        """(contexts, replies)"""
        values, mask = context.values, context.mask
        if persona is not None:
            values, mask = torch.cat((values, persona.values), 1), torch.cat((mask, persona.mask), 1)
        # (contexts, codes, length) @ (contexts, length, width)
        seen = masked_softmax(self.codes @ values.transpose(1, 2), mask[:, None]) @ values
        reply = masked_mean(replies.values, replies.mask)  # (replies, width)
        products = torch.einsum("rd,ckd->crk", reply, seen)
        return (products.softmax(dim=-1) * products).sum(dim=-1)
