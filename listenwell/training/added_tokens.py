"""New tokens for a model whose own embeddings stay as they are: only their rows are trained."""

from collections.abc import Sequence
from typing import Any

import torch

from listenwell.errors import WeightsError
from listenwell.runtime.text import Vocabulary


class AddedTokens(torch.nn.Module):  # type: ignore[misc]
    """An embedding layer with more rows than it was trained with.

    Args:
        known: (vocabulary, width), never trained.
        rows: (new tokens, width), which are.
    """

    def __init__(self, known: torch.Tensor, rows: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("known", known.detach(), persistent=False)
        self.rows = torch.nn.Parameter(rows.detach().clone())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(…) token numbers to (…, width)."""
        first = len(self.known)
        is_new = tokens >= first
        old = torch.nn.functional.embedding(tokens.clamp(max=first - 1), self.known)
        new = torch.nn.functional.embedding((tokens - first).clamp(min=0), self.rows)
        return torch.where(is_new[..., None], new, old)


def first_rows(model: Any, vocabulary: Vocabulary, words: Sequence[str]) -> torch.Tensor:  # noqa: ANN401
    """Rows to begin with: each is the mean of the embeddings of words that say what the token stands for.

    Args:
        model: a causal model.
        vocabulary: its own, before the tokens are added.
        words: one text a token.
    """
    known = model.get_input_embeddings().weight.detach()
    if len(known) != len(vocabulary):
        raise WeightsError(
            f"The model has {len(known)} embeddings for a vocabulary of {len(vocabulary)} tokens.",
            "Use a base model without unused rows, such as SmolLM2, or cut them off.",
        )
    return torch.stack([known[torch.tensor(vocabulary.encode(text))].mean(dim=0) for text in words])
