"""CoBERT (Zhong et al. 2020, §4): co-attention in two hops between context and reply, persona and reply."""

from collections.abc import Iterator
from typing import Any

import torch

from listenwell.rankers.base import RankingModel, States, choice_losses, masked_mean
from listenwell.rankers.bi import FIRST_SCALE
from listenwell.rankers.config import PARTS, RankerConfig

FIRST_WEIGHTS = {"hop 0": FIRST_SCALE, "max": 0.1, "mean": 0.5, "hop 2": 0.5, "hop 3": 0.5}
"""Where learned weights begin: each part's products are then about as large as a bi-encoder's."""


class CoBERT(RankingModel):
    """f(X, P, y) = dot(X_f, Y_f), the concatenations of what the hops found (eq. 6).

    The product of concatenations is the sum of the parts' products, so nothing is concatenated.
    """

    def __init__(self, config: RankerConfig, backbone: Any) -> None:  # noqa: ANN401
        super().__init__(config, backbone)
        weights = [[FIRST_WEIGHTS[part] for part in PARTS] for _ in ("context", "persona")]
        sharpness = self.width**-0.5
        self.weights, self.sharpness = (
            torch.nn.Parameter(torch.tensor(values)) if config.cobert.weighted else None
            for values in (weights, sharpness)
        )

    @property
    def gives_vectors(self) -> bool:  # type: ignore[override]
        """Whether a bi-encoder's loss was part of its training."""
        return self.config.cobert.vectors > 0

    def match(self, context: States, persona: States | None, replies: States) -> torch.Tensor:
        """(contexts, replies)"""
        own, theirs = (None, None) if self.weights is None else self.weights.unbind()
        scores = self._matched(context, replies, own)
        if persona is not None:
            scores = scores + self._matched(persona, replies, theirs)
        if self.config.cobert.joint:
            both = self.queries(context, persona) @ self.vectors(replies).T
            scores = scores + (both if own is None else own[PARTS.index("hop 0")] * both)
        return scores

    def losses(
        self,
        context: States,
        persona: States | None,
        replies: States,
        allowed: torch.Tensor,
        scale: float = 1.0,
    ) -> torch.Tensor:
        """Its own, mixed with a bi-encoder's on the same states where the config asks for vectors."""
        if not (share := self.config.cobert.vectors):
            return super().losses(context, persona, replies, allowed, scale)
        vectors, most, own = self.vectors(replies), self.config.cobert.among or len(context), []
        order = torch.arange(len(context), device=vectors.device)
        if self.config.cobert.alike:
            order = _alike_together(vectors.detach(), order, most)
        for part in _rows(len(context), most):
            rows = order[part]
            theirs = persona[rows] if persona is not None else None
            among = allowed[rows][:, rows]
            own.append(super().losses(context[rows], theirs, replies[rows], among, scale))
        cosines = FIRST_SCALE * self.queries(context, persona) @ vectors.T
        return (1 - share) * torch.cat(own)[order.argsort()] + share * choice_losses(cosines, allowed)

    def vectors(self, replies: States) -> torch.Tensor:
        """(replies, width), of length 1."""
        return torch.nn.functional.normalize(super().vectors(replies), dim=-1)

    def queries(self, context: States, persona: States | None) -> torch.Tensor:
        """(contexts, width), of length 1."""
        return torch.nn.functional.normalize(super().queries(context, persona), dim=-1)

    def _matched(self, text: States, replies: States, weights: torch.Tensor | None) -> torch.Tensor:
        """One of the two pairs: a text X (context or persona) and the reply Y. (texts, replies)"""
        products = self._products(text, replies)
        if not products:
            return text.values.new_zeros(len(text), len(replies))
        if weights is not None:
            products = {part: weights[PARTS.index(part)] * value for part, value in products.items()}
        return torch.stack(list(products.values())).sum(dim=0)

    def _products(self, text: States, replies: States) -> dict[str, torch.Tensor]:
        """The inner product of each part of the two concatenations, by its name: (texts, replies) each.

        Written so that every large array is made once: x texts of m words, y replies of n words, d wide.
        """
        settings, has_words = self.config.cobert, text.mask.any(dim=1)[:, None]
        x, y = _filled(text), _filled(replies)  # (x, m, d), (y, n, d)
        m, n, d = x.shape[1], y.shape[1], x.shape[2]
        affinity = (x.reshape(-1, d) @ y.reshape(-1, d).T).view(len(x), m, len(y), n)  # eq. 1
        if self.sharpness is not None:
            affinity = affinity * self.sharpness
        shut = torch.finfo(affinity.dtype).min
        to_reply = affinity.masked_fill(~replies.mask, shut).softmax(dim=3)  # eq. 2, over the reply's words
        to_text = affinity.masked_fill(~text.mask[:, :, None, None], shut).softmax(dim=1)  # eq. 3
        products: dict[str, torch.Tensor] = {}
        if 0 in settings.hops and not settings.joint:
            means = [masked_mean(part.values, part.mask) for part in (text, replies)]
            mean_x, mean_y = (torch.nn.functional.normalize(mean, dim=-1) for mean in means)
            products["hop 0"] = mean_x @ mean_y.T
        if 1 in settings.hops:
            # X' of every word of every text, by reply: (y, x, m, d); Y' of every reply's word, by text.
            attended_x = (to_reply.view(-1, len(y), n).transpose(0, 1) @ y).view(len(y), len(x), m, d)
            attended_y = (to_text.view(len(x), m, -1).transpose(1, 2) @ x).view(len(x), len(y), n, d)
            for pooling, pool in (("max", _largest), ("mean", masked_mean)):
                if settings.pooling in (pooling, "both"):
                    pooled_x = pool(attended_x, text.mask).transpose(0, 1)  # (x, y, d)
                    products[pooling] = (pooled_x * pool(attended_y, replies.mask)).sum(dim=-1)
        products |= self._later_hops(to_reply, to_text, text, replies)
        return {part: value * has_words for part, value in products.items()}

    def _later_hops(
        self, to_reply: torch.Tensor, to_text: torch.Tensor, text: States, replies: States
    ) -> dict[str, torch.Tensor]:
        """Attention over attention; the means are over the words that are there."""
        hops = [hop for hop in (2, 3) if hop in self.config.cobert.hops]
        if not hops:
            return {}
        counts_x, counts_y = (part.mask.sum(dim=1).clamp(min=1) for part in (text, replies))
        sums = (to_reply * text.mask[:, :, None, None]).sum(dim=1)
        over_reply = sums / counts_x[:, None, None]  # (x, y, n)
        over_text = (to_text * replies.mask).sum(dim=3) / counts_y  # (x, m, y)
        products = {}
        for hop in range(2, max(hops) + 1):
            # Hop 2 is eq. 4 and 5; hop 3 sends its results through the matrices once more.
            over_text, over_reply = (
                (over_reply[:, None] * to_text).sum(dim=3),
                (over_text.unsqueeze(3) * to_reply).sum(dim=1),
            )
            if hop in hops:
                second_x = over_text.transpose(1, 2) @ text.values  # (x, y, d)
                second_y = torch.einsum("xyn,ynd->xyd", over_reply, replies.values)
                products[f"hop {hop}"] = (second_x * second_y).sum(dim=-1)
        return products


def _rows(count: int, most: int) -> Iterator[slice]:
    """Parts of so many rows; a last one alone would have nothing to choose among, and joins those before."""
    ends = [*range(most, count - 1, most), count]
    yield from map(slice, [0, *ends], ends)


def _alike_together(vectors: torch.Tensor, rows: torch.Tensor, most: int) -> torch.Tensor:
    """The rows in an order in which like ones are neighbours: halved across the direction in which they
    differ most, until no part has more than `most`. Wrong answers that resemble the right one teach more."""
    if len(rows) <= most:
        return rows
    some = vectors[rows] - vectors[rows].mean(dim=0)
    direction = torch.ones(some.shape[1], device=some.device)
    for _ in range(8):  # power iteration; the very direction does not matter
        direction = torch.nn.functional.normalize(some.T @ (some @ direction), dim=0)
    across, half = rows[(some @ direction).argsort(stable=True)], most * -(-(len(rows) // 2) // most)
    parts = (across[:half], across[half:])
    return torch.cat([_alike_together(vectors, part, most) for part in parts])


def _filled(states: States) -> torch.Tensor:
    """The values with each row's first word wherever it has none: a word twice moves no maximum."""
    first = states.mask.long().argmax(dim=1)
    words = states.values[torch.arange(len(states), device=first.device), first]
    return torch.where(states.mask.unsqueeze(-1), states.values, words[:, None])


def _largest(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The maximum over words: padding holds a word twice, so that the mask need not be looked at."""
    return values.max(dim=-2).values
