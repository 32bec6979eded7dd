"""HLSTM (Lowe et al. 2015, as PEC §5.1 has it): an LSTM reads words, a second one reads turns."""

from typing import Any

import torch

from listenwell.papers.rankers.parts import Parts, bilstm
from listenwell.rankers.base import RankingModel, States, masked_mean
from listenwell.rankers.config import RankerConfig


class HLSTM(RankingModel):
    """score = dot(mean(context, persona), reply), PEC's Tri-encoder on vectors of LSTMs.

    One BiLSTM reads each turn, persona sentence and reply; its last states are their vectors. A context is
    what a second BiLSTM makes of its turns, a persona the average of its sentences. Vectors have twice
    `config.recurrent.width` numbers, whatever the backbone's width.
    """

    gives_vectors = True

    def __init__(self, config: RankerConfig, backbone: Any) -> None:  # noqa: ANN401
        super().__init__(config, backbone)
        width = config.recurrent.width
        self.utterances = bilstm(self.width, width)
        self.turns = bilstm(2 * width, width)

    @property
    def vector_width(self) -> int:
        """Both directions of an LSTM's state."""
        return 2 * self.config.recurrent.width

    def vectors(self, replies: States) -> torch.Tensor:
        """(replies, 2 width); a reply is one utterance."""
        whole = Parts(replies.mask.long())
        return whole.read(self.utterances, replies.values).last()[:, 0]

    def queries(self, context: States, persona: States | None) -> torch.Tensor:
        """(contexts, 2 width); where there is no persona, the context alone."""
        spoken, mask = self._utterances(context)  # (contexts, turns, 2 width)
        vector = Parts(mask.long()).read(self.turns, spoken).last()[:, 0]
        if persona is None:
            return vector
        sentences, known = self._utterances(persona)
        average = (vector + masked_mean(sentences, known)) / 2
        return torch.where(known.any(dim=1, keepdim=True), average, vector)

    def _utterances(self, text: States) -> tuple[torch.Tensor, torch.Tensor]:
        """A vector a part and which parts there are: (rows, parts, 2 width), (rows, parts) bool."""
        parts = Parts(text.words.parts)
        return parts.read(self.utterances, text.values).last(), parts.mask
