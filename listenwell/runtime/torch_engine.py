"""The `Runtime` on transformers and torch: any causal model that Hugging Face's layout can hold."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from listenwell.errors import MissingExtraError, WeightsError
from listenwell.runtime.base import TopTokens, probe_layer, top_tokens_of
from listenwell.runtime.names import ADDED_TOKENS, SOFT_PROMPT
from listenwell.runtime.quiet import quiet_transformers
from listenwell.runtime.text import Vocabulary


@dataclass(frozen=True)
class TorchState:
    """What was read so far."""

    cache: Any
    logits: torch.Tensor  # (rows, vocabulary)
    known: torch.Tensor  # (rows, tokens so far): 0 where a shorter row was filled up
    hidden_states: torch.Tensor | None = field(default=None, kw_only=True)
    """(rows, width): the last token's states after `middle_layer` layers, where the model gives them"""


class TorchRuntime:
    """A model folder, run in float32 on the CPU."""

    soft_prompt: tuple[int, ...] = ()

    def __init__(self, model: Any, vocabulary: Vocabulary) -> None:  # noqa: ANN401
        self._model = model.eval()
        self.vocabulary = vocabulary
        self.context_length = int(model.config.max_position_embeddings)

    @classmethod
    def from_folder(cls, folder: Path, adapter: Path | None = None) -> "TorchRuntime":
        """Load config.json, model.safetensors and tokenizer.json; pickled weights are refused.

        Args:
            folder: the model.
            adapter: a folder with a LoRA adapter, merged into the model's weights; tokens that it adds to the
                vocabulary become rows of the embeddings.
        """
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
            _add_tokens(model, adapter)
        runtime = cls(model, Vocabulary.from_folder(adapter or folder))
        runtime.soft_prompt = _add_soft_prompt(model, adapter or folder)
        return runtime

    def use_gpu(self) -> None:
        """Move the model to a GPU where there is one."""
        if torch.cuda.is_available():
            torch.set_float32_matmul_precision("high")
            self._model = self._model.cuda()

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; what looks like a special token in it stays text."""
        return self.vocabulary.encode(text)

    def prefill(self, tokens: Sequence[int]) -> TorchState:
        """Read a prompt: a state of one row."""
        return self.prefill_many([tokens])

    def prefill_many(self, prompts: Sequence[Sequence[int]]) -> TorchState:
        """Read several prompts at once, a row each; shorter ones are filled up on the left."""
        longest = max(map(len, prompts))
        rows = [[0] * (longest - len(tokens)) + list(tokens) for tokens in prompts]
        known = [[0] * (longest - len(tokens)) + [1] * len(tokens) for tokens in prompts]
        return self._forward(rows, None, torch.tensor(known, device=self._model.device))

    def join(self, states: Sequence[TorchState]) -> TorchState:
        """The rows of several states as one; they may have read different numbers of tokens."""
        longest = max(state.known.shape[1] for state in states)

        def filled(tensor: torch.Tensor, dimension: int) -> torch.Tensor:
            """Zeros before the first token, so that all rows end together."""
            short = longest - tensor.shape[dimension]
            return torch.nn.functional.pad(tensor, (*(0, 0) * (tensor.dim() - 1 - dimension), short, 0))

        layers = [
            tuple(torch.cat([filled(pair[side], 2) for pair in pairs]) for side in (0, 1))
            for pairs in zip(*(_layers(state.cache) for state in states), strict=True)
        ]
        known = torch.cat([filled(state.known, 1) for state in states])
        hidden_states = [state.hidden_states for state in states if state.hidden_states is not None]
        return TorchState(
            _cache(layers),
            torch.cat([state.logits for state in states]),
            known,
            hidden_states=torch.cat(hidden_states) if len(hidden_states) == len(states) else None,
        )

    def pick(self, state: TorchState, rows: Sequence[int]) -> TorchState:
        """These rows, repeated, reordered or left out; the given state stays as it is."""
        indices = torch.tensor(list(rows), device=self._model.device)
        layers = [(keys[indices], values[indices]) for keys, values in _layers(state.cache)]
        hidden_states = state.hidden_states[indices] if state.hidden_states is not None else None
        return TorchState(
            _cache(layers), state.logits[indices], state.known[indices], hidden_states=hidden_states
        )

    def step(self, state: TorchState, tokens: Sequence[Sequence[int]]) -> TorchState:
        """Read more tokens in every row, as many in each; the given state cannot be used again."""
        more = torch.ones(len(tokens), len(tokens[0]), dtype=torch.long, device=self._model.device)
        return self._forward([list(row) for row in tokens], state.cache, torch.cat([state.known, more], 1))

    def branch(self, state: TorchState, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> TorchState:
        """What `step` gives after `pick`: a GPU has the memory, and likes many rows."""
        return self.step(self.pick(state, rows), tokens)

    def logits(self, state: TorchState) -> np.ndarray:
        """Scores of the next token: float32, (rows, vocabulary)."""
        scores: np.ndarray = state.logits.cpu().numpy()
        return scores

    def likeliest(self, state: TorchState, count: int) -> TopTokens:
        """The next tokens with the highest scores; found on the GPU where the model is there."""
        if state.logits.device.type == "cpu":
            return top_tokens_of(self.logits(state), count)
        scores, tokens = state.logits.topk(min(count, state.logits.shape[1]))
        tensors = (tokens, scores, state.logits.logsumexp(dim=1))
        return TopTokens(*(tensor.cpu().numpy() for tensor in tensors))

    def hidden_states(self, state: TorchState) -> np.ndarray:
        """Each row's last token after `middle_layer` layers: float32, (rows, width)."""
        if state.hidden_states is None:
            raise TypeError("this engine keeps no states of its layers")
        hidden_states: np.ndarray = state.hidden_states.cpu().numpy()
        return hidden_states

    def mean_hidden_states(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> np.ndarray:
        """The mean of the same over all tokens of each reply after the prompt: float32, (replies, width)."""
        from listenwell.runtime.torch_choices import mean_hidden_states

        return mean_hidden_states(self._model, prompt, replies)

    def negative_log_likelihood(self, tokens: Sequence[int], first: int) -> float:
        """How unlikely the tokens from place `first` on are after those before them, in nats."""
        with torch.inference_mode():
            everything = torch.tensor([list(tokens)])
            logits = self._model(input_ids=everything, logits_to_keep=len(tokens) - first + 1).logits[0, :-1]
            return float(torch.nn.functional.cross_entropy(logits, everything[0, first:], reduction="sum"))

    def log_likelihoods(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> np.ndarray:
        """How likely each reply is after the prompt, in nats: (replies,) float32; the prompt is read once.

        Args:
            prompt: tokens that all replies go on from.
            replies: tokens of each, its end mark included.
        """
        log_likelihoods: np.ndarray = self.log_likelihoods_of([prompt], replies)[0]
        return log_likelihoods

    def log_likelihoods_of(
        self, prompts: Sequence[Sequence[int]], replies: Sequence[Sequence[int]]
    ) -> np.ndarray:
        """The same after each of several prompts: (prompts, replies)."""
        from listenwell.runtime.torch_choices import log_likelihoods_of

        return log_likelihoods_of(self._model, prompts, replies)

    def log_likelihoods_each(
        self, requests: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]]
    ) -> list[np.ndarray]:
        """The same where every prompt has replies of its own: (replies,) for each."""
        from listenwell.runtime.torch_choices import log_likelihoods_each

        return log_likelihoods_each(self._model, requests)

    @property
    def batch_size(self) -> int:
        """How many dialogues it likes to be asked about at once."""
        return 64 if self._model.device.type == "cuda" else 1

    def _forward(self, tokens: list[list[int]], cache: Any, known: torch.Tensor) -> TorchState:  # noqa: ANN401
        # Filled places count for nothing: no token sees them, and positions start after them.
        positions = (known.cumsum(1) - 1).clamp(min=0)[:, -len(tokens[0]) :]
        with torch.inference_mode():
            output = self._model(
                input_ids=torch.tensor(tokens, device=known.device),
                past_key_values=cache,
                attention_mask=known,
                position_ids=positions,
                use_cache=True,
                logits_to_keep=1,
                output_hidden_states=True,
            )
        hidden_states = output.hidden_states[probe_layer(len(output.hidden_states) - 1)][:, -1]
        scores = output.logits[:, -1].float()
        return TorchState(output.past_key_values, scores, known, hidden_states=hidden_states.float())


def _layers(cache: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:  # noqa: ANN401
    """Keys and values of each layer: (rows, heads, tokens, width)."""
    return ((layer.keys, layer.values) for layer in cache.layers)


def _cache(layers: Iterable[tuple[torch.Tensor, ...]]) -> Any:  # noqa: ANN401
    """transformers' cache with these keys and values."""
    from transformers import DynamicCache

    cache = DynamicCache()
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)
    return cache


def _add_tokens(model: Any, adapter: Path) -> None:  # noqa: ANN401
    """Put the adapter's new tokens behind those that the model has."""
    from safetensors.torch import load_file

    if not (adapter / ADDED_TOKENS).is_file():
        return
    rows = load_file(adapter / ADDED_TOKENS)["rows"].float()
    known = model.config.vocab_size
    with quiet_transformers(), torch.no_grad():
        model.resize_token_embeddings(known + len(rows), mean_resizing=False)
        model.get_input_embeddings().weight[known:] = rows
        model.get_output_embeddings().weight[known:] = rows


def _add_soft_prompt(model: Any, folder: Path) -> tuple[int, ...]:  # noqa: ANN401
    """Let the model read a voice, if there is one; it cannot say it: the output layer stays as it is."""
    from safetensors.torch import load_file

    from listenwell.runtime.added_tokens import AddedTokens

    if not (folder / SOFT_PROMPT).is_file():
        return ()
    known, rows = model.get_input_embeddings().weight, load_file(folder / SOFT_PROMPT)["rows"].float()
    model.set_input_embeddings(AddedTokens(known, rows).requires_grad_(False))
    return tuple(range(len(known), len(known) + len(rows)))


def _merged(model: Any, adapter: Path) -> Any:  # noqa: ANN401
    """The model with a LoRA adapter added into its weights: an ordinary model again."""
    try:
        from peft import PeftModel
    except ModuleNotFoundError:
        raise MissingExtraError("peft", "train", "Loading an adapter") from None
    return PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
