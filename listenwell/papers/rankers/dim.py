"""DIM (Gu et al. 2019, Dually Interactive Matching): replies are matched with context and persona.

With the backbone `words` it is PEC's DIM, with the pretrained one BERT+DIM (PEC §5.4).
"""

from typing import Any, cast

import torch
from torch.nn import functional

from listenwell.papers.rankers.parts import Parts, bilstm
from listenwell.rankers.base import RankingModel, States, masked_softmax
from listenwell.rankers.config import RankerConfig

HIDDEN = 256
"""Of the last layers, as in the release that PEC §5.2 follows."""


class Enhancement(torch.nn.Module):  # type: ignore[misc]
    """ReLU(W [a; a'; a − a'; a ∘ a'] + b) of words a and what they see in the other text, a'.

    The release gives the four parts to the next LSTM as they are; the projection is ESIM's (Chen et al. 2017)
    and keeps the words of all pairs small.
    """

    def __init__(self, width: int, smaller: int) -> None:
        super().__init__()
        self.projection = torch.nn.Linear(4 * width, smaller)

    def forward(self, own: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """(…, words, width), broadcast, to (…, words, smaller).

        By linearity without the concatenation: what depends on `own` alone is computed once for all pairs.
        """
        of_own, of_seen, of_difference, of_product = self.projection.weight.chunk(4, dim=1)
        alone = functional.linear(own, of_own + of_difference, self.projection.bias)
        other = functional.linear(seen, of_seen - of_difference)
        return cast(torch.Tensor, functional.relu(alone + other + functional.linear(own * seen, of_product)))


class DIM(RankingModel):
    """score = MLP([context; reply to the context; persona; reply to the persona]).

    Without a persona the last two are zeros. All texts share the BiLSTMs, as in the release.
    """

    def __init__(self, config: RankerConfig, backbone: Any) -> None:  # noqa: ANN401
        super().__init__(config, backbone)
        width = config.recurrent.width
        self.encoder = bilstm(self.width, width)
        self.enhancement = Enhancement(2 * width, width)
        self.words = bilstm(width, width)
        self.turns = bilstm(4 * width, width)
        self.sentences = torch.nn.Linear(4 * width, 1, bias=False)
        self.hidden = torch.nn.Linear(16 * width, HIDDEN)
        self.head = torch.nn.Linear(HIDDEN, 1, bias=False)  # one number for all replies chooses none

    def match(self, context: States, persona: States | None, replies: States) -> torch.Tensor:
        """(contexts, replies)"""
        whole = replies.mask.long()  # a reply is one part
        reply = Parts(whole).read(self.encoder, replies.values).words()
        turns, mask, reply_to_context = self._matched(context, reply, whole)
        # Turns have an order: an LSTM reads them; (pairs, turns, 4 width) to (pairs, 4 width).
        spoken = Parts(mask.long()).read(self.turns, turns).pooled()[:, 0]
        if persona is None:
            known = reply_to_persona = torch.zeros_like(spoken)
        else:
            sentences, mask, reply_to_persona = self._matched(persona, reply, whole)
            # Sentences have none: attention weighs them. The release takes the ReLU of weights before their
            # softmax; where all begin below zero they never learn, so it is left out.
            weights = masked_softmax(self.sentences(sentences).squeeze(2), mask)
            known = torch.einsum("ps,psd->pd", weights, sentences)
        features = torch.cat((spoken, reply_to_context, known, reply_to_persona), dim=1)
        scores: torch.Tensor = self.head(functional.relu(self.hidden(features)))
        return scores.view(len(context), len(replies))

    def _matched(
        self, text: States, reply: torch.Tensor, whole: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Match all words of a text with those of every reply (replies, n, 2 width), masked by `whole`.

        Returns:
            Vectors of the text's parts, (pairs, parts, 4 width); which there are; vectors of the replies,
            (pairs, 4 width). A text without words leaves zeros in both.
        """
        numbers = text.words.parts
        x, y = Parts(numbers).read(self.encoder, text.values).words(), reply
        affinity = torch.einsum("tmd,rnd->trmn", x, y)
        to_reply = masked_softmax(affinity, whole[None, :, None] > 0)
        to_text = masked_softmax(affinity.transpose(2, 3), text.mask[:, None, None])
        seen_y = torch.einsum("trmn,rnd->trmd", to_reply, y)
        seen_x = torch.einsum("trnm,tmd->trnd", to_text, x)
        enhanced_x = self.enhancement(x[:, None], seen_y).flatten(0, 1)  # (pairs, m, width)
        enhanced_y = self.enhancement(y[None], seen_x).flatten(0, 1)  # (pairs, n, width)
        parts = Parts(numbers.repeat_interleave(len(y), dim=0))
        # A reply is not read where it was matched with nothing.
        spoken = Parts((whole[None] * text.mask.any(dim=1)[:, None, None]).flatten(0, 1))
        vectors = parts.read(self.words, enhanced_x).pooled()
        return vectors, parts.mask, spoken.read(self.words, enhanced_y).pooled()[:, 0]
