"""MemNet (Zhang et al. 2018, after Sukhbaatar et al. 2015): the context looks up sentences of the persona."""

import torch

from listenwell.papers.rankers.parts import Parts
from listenwell.rankers.base import RankingModel, States, masked_mean, masked_softmax


class MemNet(RankingModel):
    """q⁺ = q + Σ_i softmax_i(q · m_i) m_i, score = dot(q⁺, reply) (PEC §5.4's BERT+MemNet).

    q is the context's vector and m_i the i-th persona sentence's, means over states as in the bi-encoder; the
    sum with q is the residual connection. It has no weights beside its backbone's.
    """

    gives_vectors = True

    def kept(self, replies: States) -> States:
        """The mean of a reply's states."""
        return replies.pooled()

    def queries(self, context: States, persona: States | None) -> torch.Tensor:
        """q⁺: (contexts, width)."""
        query = masked_mean(context.values, context.mask)
        if persona is None:
            return query
        sentences = Parts(persona.words.parts)
        memory = sentences.means(persona.values)  # (contexts, sentences, width)
        weights = masked_softmax(torch.einsum("cd,csd->cs", query, memory), sentences.mask)
        return query + torch.einsum("cs,csd->cd", weights, memory)
