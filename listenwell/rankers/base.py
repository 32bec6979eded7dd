"""What all rankers share: words as tensors, states, and sums, maxima and attention that never see padding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch

from listenwell.rankers.config import RankerConfig
from listenwell.rankers.inputs import Text


@dataclass(frozen=True)
class Words:
    """Texts as rows of tokens."""

    tokens: torch.Tensor  # (rows, length) int64
    types: torch.Tensor  # (rows, length) int64: 1 where the words of who replies are
    parts: torch.Tensor  # (rows, length) int64: the turn's or sentence's number from 1; 0 is padding

    @property
    def mask(self) -> torch.Tensor:
        """(rows, length) bool: where words are. A row may have none, such as an empty persona."""
        return self.parts > 0

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, rows: "slice | torch.Tensor | tuple[slice, slice]") -> "Words":
        return Words(self.tokens[rows], self.types[rows], self.parts[rows])


@dataclass(frozen=True)
class States:
    """Texts and what the backbone makes of their words."""

    words: Words
    values: torch.Tensor  # (rows, length, width)

    @property
    def mask(self) -> torch.Tensor:
        """(rows, length) bool."""
        return self.words.mask

    def __len__(self) -> int:
        return len(self.words)

    def exactly(self) -> "States":
        """The same in full precision."""
        return States(self.words, self.values.float())

    def pooled(self) -> "States":
        """Each text as one position, the mean of its words; a text without words stays without."""
        vectors = masked_mean(self.values, self.mask)[:, None]
        has = self.mask.any(dim=1, keepdim=True).long()
        return States(Words(has, has, has), vectors)

    def __getitem__(self, rows: "slice | torch.Tensor | tuple[slice, slice]") -> "States":
        return States(self.words[rows], self.values[rows])


class RankingModel(torch.nn.Module):  # type: ignore[misc]
    """A backbone, which turns Words into values (rows, length, width), and a way to match them."""

    gives_vectors = False
    """Whether `vectors` and `queries` are trained: then replies can be searched by inner product."""
    reads_pairs = False
    """Whether `match` itself runs the backbone, once a pair, so that nothing can be kept."""

    def __init__(self, config: RankerConfig, backbone: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.config, self.backbone = config, backbone
        self.width: int = backbone.width

    @property
    def vector_width(self) -> int:
        """Of `vectors`."""
        return self.width

    def states(self, words: Words) -> States:
        """What the backbone makes of contexts, personas or replies; those of replies can be kept."""
        return States(words, self.backbone(words))

    def kept(self, replies: States) -> States:
        """What has to be kept of replies to match them later: all of it, where words are compared."""
        return replies

    def match(self, context: States, persona: States | None, replies: States) -> torch.Tensor:
        """Scores of every reply for every context: (contexts, replies); `persona` has a row per context.

        By default they are inner products of vectors.
        """
        return self.queries(context, persona) @ self.vectors(replies).T

    def scores(self, context: States, persona: States | None, replies: States) -> torch.Tensor:
        """The same as `match`, quicker where texts differ in length."""
        from listenwell.rankers.inference import match_in_blocks

        return match_in_blocks(self, context, persona, replies)

    def losses(
        self,
        context: States,
        persona: States | None,
        replies: States,
        allowed: torch.Tensor,
        scale: float = 1.0,
    ) -> torch.Tensor:
        """Cross-entropy of each context's own reply among all that are allowed: (contexts,) (PEC's eq. 7).

        Args:
            context, persona, replies: as in `match`; the n-th reply is the n-th context's own.
            allowed: (contexts, replies) bool; false where another reply has the very same words.
            scale: what scores are multiplied by before the softmax.
        """
        return choice_losses(self.scores(context, persona, replies) * scale, allowed)

    def vectors(self, replies: States) -> torch.Tensor:
        """(replies, width); their inner product with `queries` is a first score."""
        return masked_mean(replies.values, replies.mask)

    def queries(self, context: States, persona: States | None) -> torch.Tensor:
        """(contexts, width): the average of context and persona (PEC §5.1's Tri-encoder)."""
        vector = masked_mean(context.values, context.mask)
        if persona is None:
            return vector
        known = masked_mean(persona.values, persona.mask)
        has = persona.mask.any(dim=1, keepdim=True)
        return torch.where(has, (vector + known) / 2, vector)

    # As in `onnx_ranker.OnnxRanker`: arrays in, arrays out.
    def score_texts(
        self, contexts: Sequence[Text], personas: Sequence[Text], replies: Sequence[Text]
    ) -> np.ndarray:
        """Every reply for every context: (contexts, replies) float32."""
        from listenwell.rankers.inference import score

        return score(self, contexts, personas, replies)

    def reply_vectors(
        self, replies: Sequence[Text], advance: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """(replies, width) float32"""
        from listenwell.rankers.inference import states_of

        with torch.inference_mode():
            return np.asarray(self.vectors(states_of(self, replies, advance)).float().cpu().numpy())

    def context_vectors(self, contexts: Sequence[Text], personas: Sequence[Text]) -> np.ndarray:
        """(contexts, width) float32"""
        from listenwell.rankers.inference import states_of

        with torch.inference_mode():
            persona = states_of(self, personas) if any(map(len, personas)) else None
            return np.asarray(self.queries(states_of(self, contexts), persona).float().cpu().numpy())


def choice_losses(scores: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """−log of the softmax at the diagonal, over allowed columns: (rows,)."""
    logits = scores.float().masked_fill(~allowed, float("-inf"))
    return logits.logsumexp(dim=1) - logits.diagonal()


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension of `scores` where the mask is true; zeros where it never is."""
    shut = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return shut.softmax(dim=-1) * mask  # the product: a row without true places would be uniform


def masked_mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of values (…, n, width) over n where the mask (…, n) is true; zeros where it never is."""
    weights = mask.unsqueeze(-1).to(values.dtype)
    return (values * weights).sum(dim=-2) / weights.sum(dim=-2).clamp(min=1)


def masked_max(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Maximum of values (…, n, width) over n where the mask (…, n) is true; zeros where it never is."""
    shut = values.masked_fill(~mask.unsqueeze(-1), torch.finfo(values.dtype).min)
    largest = shut.max(dim=-2).values  # amax would divide its gradient among equals, in many passes
    return cast(torch.Tensor, largest * mask.any(dim=-1, keepdim=True))
