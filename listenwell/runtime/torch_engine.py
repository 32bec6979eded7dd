"""The `Runtime` on transformers and torch: any causal model that Hugging Face's layout can hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.errors import MissingExtraError, WeightsError
from listenwell.runtime.quiet import quiet_transformers
from listenwell.runtime.text import Vocabulary

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class _State:
    cache: Any
    logits: "np.ndarray"  # (rows, vocabulary)


class TorchRuntime:
    """A model folder, run in float32 on the CPU."""

    def __init__(self, model: Any, vocabulary: Vocabulary) -> None:  # noqa: ANN401
        self._model = model.eval()
        self.vocabulary = vocabulary
        self.context_length = int(model.config.max_position_embeddings)

    @classmethod
    def from_folder(cls, folder: Path, adapter: Path | None = None) -> "TorchRuntime":
        """Load config.json, model.safetensors and tokenizer.json; pickled weights are refused.

        Args:
            folder: the model.
            adapter: a folder with a LoRA adapter, merged into the model's weights.
        """
        import torch
        from safetensors import SafetensorError
        from transformers import AutoModelForCausalLM

        try:
            with quiet_transformers():
                model = AutoModelForCausalLM.from_pretrained(
                    folder, use_safetensors=True, local_files_only=True, dtype=torch.float32
                )
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise WeightsError(
                f"{folder} holds no causal language model that can be read: {error}.",
                "Name the folder of one saved with safetensors.",
            ) from error
        if adapter is not None:
            model = _merged(model, adapter)
        return cls(model, Vocabulary.from_folder(adapter or folder))

    def use_gpu(self) -> None:
        """Move the model to a GPU where there is one; `log_likelihoods` runs there."""
        import torch

        if torch.cuda.is_available():
            self._model = self._model.cuda()

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; what looks like a special token in it stays text."""
        return self.vocabulary.encode(text)

    def prefill(self, tokens: Sequence[int], rows: int = 1) -> _State:
        """Read a prompt once, for `rows` replies that go on from it."""
        state = self._forward([list(tokens)], None)
        if rows == 1:
            return state
        state.cache.batch_repeat_interleave(rows)
        return _State(state.cache, state.logits.repeat(rows, axis=0))

    def step(self, state: _State, tokens: Sequence[int]) -> _State:
        """Read one more token in every row."""
        return self._forward([[token] for token in tokens], state.cache)

    def logits(self, state: _State) -> "np.ndarray":
        """Scores of the next token: float32, (rows, vocabulary)."""
        return state.logits

    def negative_log_likelihood(self, tokens: Sequence[int], first: int) -> float:
        """How unlikely the tokens from place `first` on are after those before them, in nats."""
        import torch

        with torch.inference_mode():
            everything = torch.tensor([list(tokens)])
            logits = self._model(input_ids=everything, logits_to_keep=len(tokens) - first + 1).logits[0, :-1]
            return float(torch.nn.functional.cross_entropy(logits, everything[0, first:], reduction="sum"))

    def log_likelihoods(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> "np.ndarray":
        """How likely each reply is after the prompt, in nats: (replies,) float32; the prompt is read once.

        Args:
            prompt: tokens that all replies go on from.
            replies: tokens of each, its end mark included.
        """
        import numpy as np
        import torch

        longest = max(map(len, replies))
        rows = np.zeros((len(replies), longest), np.int64)
        known = np.zeros((len(replies), longest), np.float32)
        for row, reply in enumerate(replies):
            rows[row, : len(reply)], known[row, : len(reply)] = reply, 1
        device = self._model.device
        tokens, mask = torch.from_numpy(rows).to(device), torch.from_numpy(known).to(device)
        with torch.inference_mode():
            start = self._model(
                input_ids=torch.tensor([list(prompt)], device=device), use_cache=True, logits_to_keep=1
            )
            found = start.logits[0, -1].float().log_softmax(dim=-1)[tokens[:, 0]]
            if longest > 1:
                start.past_key_values.batch_repeat_interleave(len(replies))
                # Padding stands after the words, where a causal model does not see it.
                logits = self._model(input_ids=tokens[:, :-1], past_key_values=start.past_key_values).logits
                later = torch.nn.functional.cross_entropy(
                    logits.float().transpose(1, 2), tokens[:, 1:], reduction="none"
                )
                found = found - (later * mask[:, 1:]).sum(dim=1)
            likelihoods: np.ndarray = found.float().cpu().numpy()
        return likelihoods

    def _forward(self, tokens: list[list[int]], cache: Any) -> _State:  # noqa: ANN401
        import torch

        with torch.inference_mode():
            output = self._model(
                input_ids=torch.tensor(tokens), past_key_values=cache, use_cache=True, logits_to_keep=1
            )
        return _State(output.past_key_values, output.logits[:, -1].numpy())


def _merged(model: Any, adapter: Path) -> Any:  # noqa: ANN401
    """The model with a LoRA adapter added into its weights: an ordinary model again."""
    try:
        from peft import PeftModel
    except ModuleNotFoundError:
        raise MissingExtraError("peft", "train", "Loading an adapter") from None
    return PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
