"""DAM (Zhou et al. 2018, Deep Attention Matching): convolutions over images of how words match.

The paper's images have the turns as a third dimension; PEC §5.4 puts DAM on BERT, where a context is one
text, so they are flat here: its words down, the reply's words across.
"""

import math
from typing import Any, cast

import torch
from torch.nn import functional

from listenwell.papers.rankers.parts import aligned
from listenwell.rankers.base import RankingModel, States, masked_max, masked_mean, masked_softmax
from listenwell.rankers.config import RankerConfig

KERNEL, POOL = 3, 3
"""Of both convolutions and of the max pooling after each, as in the paper."""


class AttentiveModule(torch.nn.Module):  # type: ignore[misc]
    """What is done with attended values: residual, layer norm, feed-forward, residual, layer norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.inner, self.outer = torch.nn.Linear(width, width), torch.nn.Linear(width, width)

    def forward(self, query: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """(…, words, width), broadcast."""
        seen = self.norms[0](query + attended)
        states: torch.Tensor = self.norms[1](seen + self.outer(functional.relu(self.inner(seen))))
        return states


class DAM(RankingModel):
    """Two images for each depth: words after self-attention, and after attention to the other text.

    The persona has images of its own, by the same weights, and its own last layer; the two scores are added.
    """

    def __init__(self, config: RankerConfig, backbone: Any) -> None:  # noqa: ANN401
        super().__init__(config, backbone)
        depths, (first, second) = config.dam.layers + 1, config.dam.filters

        def modules(count: int) -> torch.nn.ModuleList:
            return torch.nn.ModuleList(AttentiveModule(self.width) for _ in range(count))

        self.deeper, self.to_reply, self.to_text = modules(depths - 1), modules(depths), modules(depths)
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv2d(before, after, KERNEL, padding=KERNEL // 2)
            for before, after in ((2 * depths, first), (first, second))
        )
        # Without bias: the same number for every reply chooses none, and an empty persona must add nothing.
        self.context_head = torch.nn.Linear(2 * second, 1, bias=False)
        self.persona_head = torch.nn.Linear(2 * second, 1, bias=False)

    def match(self, context: States, persona: States | None, replies: States) -> torch.Tensor:
        """(contexts, replies)"""
        reply = self._depths(replies)
        scores: torch.Tensor = self.context_head(self._features(self._depths(context), reply)).squeeze(2)
        if persona is not None:
            scores = scores + self.persona_head(self._features(self._depths(persona), reply)).squeeze(2)
        return scores

    def _depths(self, text: States) -> tuple[list[torch.Tensor], torch.Tensor]:
        """The states and what each layer of self-attention makes of them, and the mask."""
        values, mask = aligned(text)
        layers = [values]
        for module in self.deeper:
            weights = masked_softmax(values @ values.transpose(1, 2) / math.sqrt(self.width), mask[:, None])
            values = module(values, weights @ values)
            layers.append(values)
        return layers, mask

    def _features(
        self, text: tuple[list[torch.Tensor], torch.Tensor], reply: tuple[list[torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        """What the convolutions find in the images: (texts, replies, 2 filters).

        The paper's images have one size, and all places of the last maps go to the last layer; here texts
        have their own lengths, so the maximum and the mean over places do.
        """
        mask = text[1][:, None, :, None] & reply[1][None, :, None, :]  # (texts, replies, m, n)
        pairs = mask.shape[:2]
        mask, images = mask.flatten(0, 1)[:, None], self._images(text, reply).flatten(0, 1)
        for convolution in self.convolutions:
            # Zeros outside the mask are what the convolution itself adds at the border. For the maxima, what
            # is outside stays below all else: a window over the end counts what is inside.
            images = functional.elu(convolution(images * mask))
            images = images.masked_fill(~mask, torch.finfo(images.dtype).min)
            images, mask = _shrunk(images), _shrunk(mask.to(images.dtype)) > 0
        cells, there = images.flatten(2).transpose(1, 2), mask.flatten(1)  # (pairs, cells, filters)
        pooled = torch.cat((masked_max(cells, there), masked_mean(cells, there)), dim=1)
        return pooled.view(*pairs, -1)

    def _images(
        self, text: tuple[list[torch.Tensor], torch.Tensor], reply: tuple[list[torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        """M_self and M_cross at each depth: (texts, replies, 2 depths, m, n)."""
        (xs, x_mask), (ys, y_mask) = text, reply
        scale, images = 1 / math.sqrt(self.width), []
        for x, y, to_reply, to_text in zip(xs, ys, self.to_reply, self.to_text, strict=True):
            own = torch.einsum("tmd,rnd->trmn", x, y) * scale
            seen_y = torch.einsum("trmn,rnd->trmd", masked_softmax(own, y_mask[None, :, None]), y)
            seen_x = torch.einsum(
                "trnm,tmd->trnd", masked_softmax(own.transpose(2, 3), x_mask[:, None, None]), x
            )
            cross_x, cross_y = to_reply(x[:, None], seen_y), to_text(y[None], seen_x)
            images += [own, torch.einsum("trmd,trnd->trmn", cross_x, cross_y) * scale]
        return torch.stack(images, dim=2)


def _shrunk(images: torch.Tensor) -> torch.Tensor:
    """The maximum of each window; the last ones may reach over the end."""
    return cast(torch.Tensor, functional.max_pool2d(images, POOL, POOL, ceil_mode=True))
