"""What a pair of replies costs: the losses of preference tuning, on plain tensors."""

import torch

from listenwell.training.task_configs import PreferenceRecipe


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
