"""Batches of preference pairs, both replies of a pair in the same row, and the losses on them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from listenwell.training.preference_pairs import OTHER
from listenwell.training.task_configs import PreferenceRecipe
from listenwell.training.tokens import Encoded, TokenBatch, collate


@dataclass(frozen=True)
class PairExample:
    """A chosen and a rejected reply, each after the same context and its plan."""

    chosen: Encoded
    rejected: Encoded
    source: str
    """Where the rejected one comes from."""
    references: tuple[float, float] = (0.0, 0.0)
    """Log-likelihoods of the two at the start of the training, in nats."""

    weight = 1

    @property
    def tokens(self) -> np.ndarray:
        """Both, one after the other: (length,) int32."""
        return np.concatenate((self.chosen.tokens, self.rejected.tokens))

    def __len__(self) -> int:
        return len(self.chosen) + len(self.rejected)


@dataclass(frozen=True)
class PairBatch(TokenBatch):
    """Rows of tokens that hold pairs; neither reply of a pair sees the other."""

    owners: np.ndarray  # (targets,) int64: 2 k for pair k's chosen reply, 2 k + 1 for its rejected one
    counts: np.ndarray  # (pairs, 2) float32: how many targets each reply has
    references: np.ndarray  # (pairs, 2) float32: log-likelihoods at the start
    others: np.ndarray  # (pairs,) float32: 1 where the rejected reply was meant for somebody else
    numbers: np.ndarray  # (pairs,) int64: which of the examples they are

    @property
    def weight(self) -> int:
        """How many pairs."""
        return len(self.numbers)


def collate_pairs(
    examples: Sequence[PairExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> PairBatch:
    """Rows of pair numbers as one batch; rows of padding fill up to `height`."""
    numbers = [index for row in rows for index in row]
    pairs = [examples[index] for index in numbers]
    sequences = [sequence for pair in pairs for sequence in (pair.chosen, pair.rejected)]
    indices = iter(range(len(sequences)))
    # A pair is two sequences side by side: as many sequences as twice the row's pairs.
    packed = collate(sequences, [[next(indices) for _ in range(2 * len(row))] for row in rows], width, height)
    counts = np.array([sequence.weight for sequence in sequences], np.int64)
    return PairBatch(
        **vars(packed),
        owners=np.repeat(np.arange(len(sequences)), counts),
        counts=counts.reshape(-1, 2).astype(np.float32),
        references=np.array([pair.references for pair in pairs], np.float32).reshape(-1, 2),
        others=np.array([pair.source == OTHER for pair in pairs], np.float32),
        numbers=np.array(numbers, np.int64),
    )


def reply_sums(values: torch.Tensor, owners: torch.Tensor, pairs: int) -> torch.Tensor:
    """Sums over each reply's tokens.

    Args:
        values: (targets,).
        owners: (targets,) 2 k for the tokens of pair k's chosen reply, 2 k + 1 for its rejected one's.
        pairs: how many there are.

    Returns:
        (pairs, 2): of the chosen and of the rejected replies.
    """
    return values.new_zeros(2 * pairs).index_add(0, owners, values).view(pairs, 2)


def margins(
    nats: torch.Tensor, references: torch.Tensor, counts: torch.Tensor, recipe: PreferenceRecipe
) -> torch.Tensor:
    """How much more the chosen replies gained than the rejected ones: differences of the implicit reward
    β log π(y|x)/π_ref(y|x) (DPO, Rafailov et al. 2023, §4); of a token's mean reward, if normalized.

    Args:
        nats: (pairs, 2) log-likelihoods now.
        references: (pairs, 2) the same at the start.
        counts: (pairs, 2) tokens.
        recipe: beta and normalized.

    Returns:
        (pairs,)
    """
    gained = nats - references
    if recipe.normalized:
        gained = gained / counts
    return recipe.beta * (gained[:, 0] - gained[:, 1])


def pair_losses(gains: torch.Tensor, recipe: PreferenceRecipe) -> torch.Tensor:
    """−log σ(margin − γ) of each pair: DPO's Eq. 7, where γ is 0; γ is SimPO's (Meng et al. 2024)."""
    return -torch.nn.functional.logsigmoid(gains - recipe.margin)


def unlikelihoods(losses: torch.Tensor) -> torch.Tensor:
    """−log(1 − p) of tokens whose losses −log p are given (unlikelihood, Welleck et al. 2020, §5)."""
    # A token that is certain would cost infinitely much.
    return -torch.log((-torch.expm1(-losses)).clamp(min=1e-6))
