"""Cross-encoder (Humeau et al. 2020, §4.3): persona, context and reply read as one text. Exact and slow."""

from typing import Any

import torch

from listenwell.rankers.base import Ranker, States, Words, masked_mean
from listenwell.rankers.config import RankerConfig


class CrossEncoder(Ranker):
    """score = w · mean of the states of the joined text: every pair takes a pass of its own."""

    reads_pairs = True

    def __init__(self, config: RankerConfig, body: Any) -> None:  # noqa: ANN401
        super().__init__(config, body)
        self.head = torch.nn.Linear(self.width, 1)

    def states(self, words: Words) -> States:
        """The words alone: a reply means nothing here before its context is known."""
        return States(words, words.tokens.new_zeros(*words.tokens.shape, 0))

    def match(self, context: States, persona: States | None, replies: States) -> torch.Tensor:
        """(contexts, replies)"""
        texts = context.words if persona is None else joined(persona.words, context.words)
        pairs = joined(
            _repeated(texts, len(replies), each=True), _repeated(replies.words, len(texts), each=False)
        )
        pooled = masked_mean(self.body(pairs).float(), pairs.mask)
        with torch.autocast(pooled.device.type, enabled=False):  # half precision cannot tell close ones apart
            scores: torch.Tensor = self.head(pooled)
        return scores.view(len(texts), len(replies))


def joined(first: Words, second: Words) -> Words:
    """Row by row one text: the second's parts are numbered on from the first's. Padding may stand between."""
    begin = first.parts.amax(dim=1, keepdim=True)
    parts = torch.where(second.mask, second.parts + begin, 0)
    return Words(
        torch.cat((first.tokens, second.tokens), 1),
        torch.cat((first.types, second.types), 1),
        torch.cat((first.parts, parts), 1),
    )


def _repeated(words: Words, times: int, each: bool) -> Words:
    """Rows a a b b (each) or a b a b."""
    rows = torch.arange(len(words), device=words.tokens.device)
    order = rows.repeat_interleave(times) if each else rows.repeat(times)
    return Words(words.tokens[order], words.types[order], words.parts[order])
