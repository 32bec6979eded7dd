"""transformers' causal models, and what families add that their callers must know of."""

from pathlib import Path
from typing import Any

import torch

from listenwell.errors import WeightsError
from listenwell.runtime.families import FAMILIES
from listenwell.runtime.quiet import quiet_transformers


def load_causal(folder: Path, **settings: Any) -> Any:  # noqa: ANN401
    """transformers' causal language model in a folder, in float32; pickled weights are refused."""
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    try:
        with quiet_transformers():
            model = AutoModelForCausalLM.from_pretrained(
                folder, use_safetensors=True, local_files_only=True, dtype=torch.float32, **settings
            )
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise WeightsError(
            f"{folder} holds no causal language model that can be read: {error}.",
            "Name the folder of one saved with safetensors.",
        ) from error
    if "text_config" in model.config.to_dict():
        raise WeightsError(
            f"{folder} holds a model that reads images too, which only onnxruntime runs here.",
            "Use the engine onnx, a GGUF file of its text part, or a model of texts alone.",
        )
    return model


def attention_masks(config: Any, seen: torch.Tensor, positions: torch.Tensor) -> Any:  # noqa: ANN401
    """Who sees whom (rows, tokens, tokens) as a model's layers want it; `positions` are (rows, tokens).

    Where some layers have a window, they get a mask of their own.
    """

    def form(mask: torch.Tensor) -> torch.Tensor:
        if config._attn_implementation == "sdpa":
            return mask[:, None]
        return torch.where(mask, 0.0, torch.finfo(torch.float32).min)[:, None]

    settings = config.to_dict()
    if "sliding_attention" not in (settings.get("layer_types") or ()):
        return form(seen)
    is_near = positions[:, :, None] - positions[:, None, :] < settings["sliding_window"]
    return {"full_attention": form(seen), "sliding_attention": form(seen & is_near)}


def capped(logits: torch.Tensor, cap: float | None) -> torch.Tensor:
    """Logits within a bound (Gemma 2, §2), where the model's config has one."""
    return logits if cap is None else cap * torch.tanh(logits / cap)


def logit_cap(config: Any) -> float | None:  # noqa: ANN401
    """The bound of a model's logits, if it has one."""
    cap: float | None = config.to_dict().get("final_logit_softcapping")
    return cap


def embedding_scale(config: Any) -> float:  # noqa: ANN401
    """What a model multiplies its embeddings by."""
    family = FAMILIES.get(config.model_type)
    return float(config.hidden_size) ** 0.5 if family and family.scaled_embedding else 1.0


class AddedTokens(torch.nn.Module):  # type: ignore[misc]
    """An embedding layer with more rows than it was trained with; only the new ones are trained."""

    def __init__(self, known: torch.Tensor, rows: torch.Tensor, scale: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("known", known.detach(), persistent=False)
        self.rows = torch.nn.Parameter(rows.detach().clone())
        self._scale = scale

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(…) token numbers to (…, width)."""
        first = len(self.known)
        is_new = tokens >= first
        old = torch.nn.functional.embedding(tokens.clamp(max=first - 1), self.known)
        new = torch.nn.functional.embedding((tokens - first).clamp(min=0), self.rows)
        embedded = torch.where(is_new[..., None], new, old)
        return embedded if self._scale == 1 else embedded * self._scale
