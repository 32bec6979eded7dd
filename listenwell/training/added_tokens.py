"""What the embeddings of new tokens begin with, in a model whose own stay as they are."""

from collections.abc import Sequence
from typing import Any

import torch

from listenwell.errors import WeightsError
from listenwell.runtime.text import Vocabulary


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
