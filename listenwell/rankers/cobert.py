"""CoBERT (Zhong et al. 2020, §4): co-attention in two hops between context and reply, persona and reply."""

from typing import Any, cast

import torch

from listenwell.rankers.base import Ranker, States, choice_losses, masked_max, masked_mean, masked_softmax
from listenwell.rankers.bi import FIRST_SCALE
from listenwell.rankers.config import RankerConfig

PARTS = ("hop 0", "max", "mean", "hop 2", "hop 3")
"""What can stand in the concatenations: hop 1 pooled in two ways, and the later hops."""
FIRST_WEIGHTS = {"hop 0": FIRST_SCALE, "max": 0.1, "mean": 0.5, "hop 2": 0.5, "hop 3": 0.5}
"""Where learned weights begin: each part's products are then about as large as a bi-encoder's."""


class CoBERT(Ranker):
    """f(X, P, y) = dot(X_f, Y_f), the concatenations of what the hops found (eq. 6).

    The product of concatenations is the sum of the parts' products, so nothing is concatenated.
    """

    def __init__(self, config: RankerConfig, body: Any) -> None:  # noqa: ANN401
        super().__init__(config, body)
        weights = [[FIRST_WEIGHTS[part] for part in PARTS] for _ in ("context", "persona")]
        self.weights = torch.nn.Parameter(torch.tensor(weights)) if config.cobert.weighted else None
        self.sharpness = torch.nn.Parameter(torch.tensor(self.width**-0.5)) if config.cobert.weighted else None

    @property
    def gives_vectors(self) -> bool:  # type: ignore[override]
        """Whether a bi-encoder's loss was part of its training."""
        return self.config.cobert.vectors > 0

    def match(self, context: States, persona: States | None, replies: States) -> torch.Tensor:
        """(contexts, replies)"""
        own, theirs = (None, None) if self.weights is None else self.weights.unbind()
        scores = self._matched(context, replies, own)
        return scores if persona is None else scores + self._matched(persona, replies, theirs)

    def losses(
        self,
        context: States,
        persona: States | None,
        replies: States,
        allowed: torch.Tensor,
        scale: float = 1.0,
    ) -> torch.Tensor:
        """Its own, mixed with a bi-encoder's on the same states where the config asks for vectors."""
        own = super().losses(context, persona, replies, allowed, scale)
        if not (share := self.config.cobert.vectors):
            return own
        first = FIRST_SCALE * self.asked(context, persona) @ self.vectors(replies).T
        return cast(torch.Tensor, (1 - share) * own + share * choice_losses(first, allowed))

    def vectors(self, replies: States) -> torch.Tensor:
        """(replies, width), of length 1."""
        return torch.nn.functional.normalize(super().vectors(replies), dim=-1)

    def asked(self, context: States, persona: States | None) -> torch.Tensor:
        """(contexts, width), of length 1."""
        return torch.nn.functional.normalize(super().asked(context, persona), dim=-1)

    def _matched(self, text: States, replies: States, weights: torch.Tensor | None) -> torch.Tensor:
        """One of the two pairs: a text X (context or persona) and the reply Y. (texts, replies)"""
        found = self._products(text, replies)
        if weights is None:
            return torch.stack(list(found.values())).sum(dim=0)
        return torch.stack([weights[PARTS.index(part)] * value for part, value in found.items()]).sum(dim=0)

    def _products(self, text: States, replies: States) -> dict[str, torch.Tensor]:
        """The inner product of each part of the two concatenations, by its name: (texts, replies) each."""
        settings = self.config.cobert
        x, y = text.values, replies.values  # (texts, m, d), (replies, n, d)
        x_mask, y_mask = text.mask[:, None], replies.mask[None]  # (texts, 1, m), (1, replies, n)
        affinity = torch.einsum("xmd,ynd->xymn", x, y)  # eq. 1
        if self.sharpness is not None:
            affinity = affinity * self.sharpness
        to_reply = masked_softmax(affinity, y_mask[:, :, None])  # eq. 2: (texts, replies, m, n)
        to_text = masked_softmax(
            affinity.transpose(2, 3), x_mask[:, :, None]
        )  # eq. 3: (texts, replies, n, m)
        found: dict[str, torch.Tensor] = {}
        if 0 in settings.hops:
            means = [masked_mean(part.values, part.mask) for part in (text, replies)]
            mean_x, mean_y = (torch.nn.functional.normalize(mean, dim=-1) for mean in means)
            found["hop 0"] = mean_x @ mean_y.T
        if 1 in settings.hops:
            attended_x = torch.einsum("xymn,ynd->xymd", to_reply, y)
            attended_y = torch.einsum("xynm,xmd->xynd", to_text, x)
            for pooling in ("max", "mean"):
                if settings.pooling in (pooling, "both"):
                    pool = masked_max if pooling == "max" else masked_mean
                    found[pooling] = (pool(attended_x, x_mask) * pool(attended_y, y_mask)).sum(dim=-1)
        # Attention over attention; the mean is over the words that are there. (texts, replies, 1, n or m)
        over_reply = masked_mean(to_reply, x_mask).unsqueeze(2)
        over_text = masked_mean(to_text, y_mask).unsqueeze(2)
        for hop in (2, 3):
            # Hop 2 is eq. 4 and 5; hop 3 sends its results through the matrices once more.
            over_text, over_reply = over_reply @ to_text, over_text @ to_reply
            if hop in settings.hops:
                second_x = torch.einsum("xym,xmd->xyd", over_text.squeeze(2), x)
                second_y = torch.einsum("xyn,ynd->xyd", over_reply.squeeze(2), y)
                found[f"hop {hop}"] = (second_x * second_y).sum(dim=-1)
        return found
