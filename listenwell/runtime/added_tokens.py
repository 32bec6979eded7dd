"""An embedding table that grows without being copied: for tokens that a model was not trained with."""

import torch


class AddedTokens(torch.nn.Module):  # type: ignore[misc]
    """An embedding layer with more rows than it was trained with; only the new ones are trained."""

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
