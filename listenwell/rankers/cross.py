"""Cross-encoder (Humeau et al. 2020, §4.3): persona, context and reply read as one text. Exact and slow."""

from typing import Any

import torch

from listenwell.rankers.base import RankingModel, States, Words, masked_mean
from listenwell.rankers.config import RankerConfig

CPU_CHUNKS, GPU_CHUNKS = 8, 2
"""In how many parts the pairs of a batch are read."""


class CrossEncoder(RankingModel):
    """score = w · mean of the states of the joined text: every pair takes a pass of its own."""

    reads_pairs = True

    def __init__(self, config: RankerConfig, backbone: Any) -> None:  # noqa: ANN401
        super().__init__(config, backbone)
        self.head = torch.nn.Linear(self.width, 1)

    def states(self, words: Words) -> States:
        """The words alone: a reply means nothing here before its context is known."""
        return States(words, words.tokens.new_zeros(*words.tokens.shape, 0))

    def match(self, context: States, persona: States | None, replies: States) -> torch.Tensor:
        """(contexts, replies)"""
        rows = torch.arange(len(context), device=context.words.tokens.device).repeat_interleave(len(replies))
        columns = torch.arange(len(replies), device=rows.device).repeat(len(context))
        texts = context.words if persona is None else joined(persona.words, context.words)
        lengths = texts.mask.sum(dim=1)[rows] + replies.mask.sum(dim=1)[columns]
        # Pairs of like length are read together, so that little is padded.
        order = lengths.argsort(stable=True)
        chunks = order.chunk(GPU_CHUNKS if order.is_cuda else CPU_CHUNKS)
        scores = [self._read(texts, replies.words, rows[some], columns[some]) for some in chunks]
        return torch.cat(scores)[order.argsort()].view(len(context), len(replies))

    def scores(self, context: States, persona: States | None, replies: States) -> torch.Tensor:
        """The same as `match`, which sees to the lengths itself."""
        return self.match(context, persona, replies)

    def _read(self, texts: Words, replies: Words, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """Scores of some pairs: (pairs,)"""
        pairs = to_the_left(joined(texts[rows], replies[columns]))
        pooled = masked_mean(self.backbone(pairs).float(), pairs.mask)
        with torch.autocast(pooled.device.type, enabled=False):  # half precision cannot tell close ones apart
            scores: torch.Tensor = self.head(pooled)
        return scores.squeeze(1)


def to_the_left(words: Words) -> Words:
    """The same rows without padding before or between words, cut to the longest."""
    order = (~words.mask).long().argsort(dim=1, stable=True)[:, : max(1, int(words.mask.sum(dim=1).max()))]
    return Words(*(part.gather(1, order) for part in (words.tokens, words.types, words.parts)))


def joined(first: Words, second: Words) -> Words:
    """Row by row one text: the second's parts are numbered on from the first's. Padding may stand between."""
    begin = first.parts.amax(dim=1, keepdim=True)
    parts = torch.where(second.mask, second.parts + begin, 0)
    return Words(
        torch.cat((first.tokens, second.tokens), 1),
        torch.cat((first.types, second.types), 1),
        torch.cat((first.parts, parts), 1),
    )
