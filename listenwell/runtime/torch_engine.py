"""The `Runtime` on transformers and torch: any causal model that Hugging Face's layout can hold.

For likelihoods, a row is a prompt and then reply after reply: each sees the prompt and itself. So a prompt is
read once however many replies there are, no reply is padded, and several prompts keep a GPU busy.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from listenwell.errors import MissingExtraError
from listenwell.runtime.base import Runtime, TopTokens, probe_layer, top_tokens_of
from listenwell.runtime.names import ADDED_TOKENS, SOFT_PROMPT
from listenwell.runtime.quiet import quiet_transformers
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.torch_models import (
    AddedTokens,
    attention_masks,
    capped,
    embedding_scale,
    load_causal,
    logit_cap,
)

ROW_TOKENS, CPU_TOKENS, GPU_TOKENS = 2048, 2048, 32_768
"""Tokens of the replies in a row, and tokens in a pass."""
LOGIT_ROWS = 8192
"""Places whose words are predicted at once: each takes the whole vocabulary."""
FILLED, PROMPT = -2, -1
"""Segments that are no reply."""
Request = tuple[Sequence[int], Sequence[Sequence[int]]]
"""A prompt, and the replies that go on from it."""


@dataclass(frozen=True)
class TorchState:
    """What was read so far."""

    cache: Any
    logits: torch.Tensor  # (rows, vocabulary)
    known: torch.Tensor  # (rows, tokens so far): 0 where a shorter row was filled up
    hidden_states: torch.Tensor | None = field(default=None, kw_only=True)
    """(rows, width): the last token's states after `probe_layer` layers, where the model gives them"""


class TorchRuntime(Runtime):
    """A model folder, run in float32 on the CPU."""

    soft_prompt: tuple[int, ...] = ()

    def __init__(self, model: Any, vocabulary: Vocabulary) -> None:  # noqa: ANN401
        self._model = model.eval()
        self.vocabulary = vocabulary
        self.context_length = int(model.config.max_position_embeddings)

    @classmethod
    def from_folder(cls, folder: Path, adapter: Path | None = None) -> "TorchRuntime":
        """Load config.json, model.safetensors and tokenizer.json; pickled weights are refused.

        A LoRA adapter is merged; tokens that it adds to the vocabulary become rows of the embeddings.
        """
        model = load_causal(folder)
        if adapter is not None:
            model = _merged(model, adapter)
            _add_tokens(model, adapter, len(Vocabulary.from_folder(folder)))
        runtime = cls(model, Vocabulary.from_folder(adapter or folder))
        runtime.soft_prompt = _add_soft_prompt(model, adapter or folder)
        return runtime

    @property
    def model(self) -> Any:  # noqa: ANN401
        """The transformers model."""
        return self._model

    def use_gpu(self) -> None:
        """Move the model to a GPU where there is one."""
        if torch.cuda.is_available():
            torch.set_float32_matmul_precision("high")
            self._model = self._model.cuda()

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
        """Each row's last token after `probe_layer` layers: float32, (rows, width)."""
        if state.hidden_states is None:
            raise TypeError("this engine keeps no states of its layers")
        hidden_states: np.ndarray = state.hidden_states.cpu().numpy()
        return hidden_states

    def mean_hidden_states(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> np.ndarray:
        """The mean of the same over all tokens of each reply after the prompt: float32, (replies, width)."""
        means = []
        for reply in replies:
            tokens = torch.tensor([[*prompt, *reply]], device=self._model.device)
            with torch.inference_mode():
                output = self._model.base_model(tokens, use_cache=False, output_hidden_states=True)
            states = output.hidden_states
            hidden_state = states[probe_layer(len(states) - 1)][0, len(prompt) :]
            means.append(hidden_state.float().mean(0).cpu().numpy())
        return np.stack(means) if means else np.zeros((0, int(self._model.config.hidden_size)), np.float32)

    def log_likelihoods(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> np.ndarray:
        """How likely each reply is after the prompt, in nats: (replies,) float32."""
        log_likelihoods: np.ndarray = self.log_likelihoods_of([prompt], replies)[0]
        return log_likelihoods

    def log_likelihoods_of(
        self, prompts: Sequence[Sequence[int]], replies: Sequence[Sequence[int]]
    ) -> np.ndarray:
        """The same after each of several prompts: (prompts, replies)."""
        scores = np.zeros((len(prompts), len(replies)), np.float32)
        for columns in _parts([len(reply) for reply in replies], ROW_TOKENS):
            some = [replies[column] for column in columns]
            each = self.log_likelihoods_each([(prompt, some) for prompt in prompts])
            scores[:, columns] = np.stack(each) if each else scores[:, columns]
        return scores

    def log_likelihoods_each(self, requests: Sequence[Request]) -> list[np.ndarray]:
        """The same where every prompt has replies of its own: (replies,) for each."""
        most = GPU_TOKENS if self._model.device.type == "cuda" else CPU_TOKENS
        scores = [np.zeros(0, np.float32)] * len(requests)
        lengths = [len(prompt) + sum(map(len, replies)) for prompt, replies in requests]
        order = sorted((row for row in range(len(requests)) if requests[row][1]), key=lengths.__getitem__)
        rows: list[int] = []
        for index, row in enumerate(order):
            rows.append(row)
            is_last = index + 1 == len(order)
            if is_last or (len(rows) + 1) * lengths[order[index + 1]] > most:
                values = _log_likelihoods(self._model, [requests[number] for number in rows])
                for number, value in zip(rows, values, strict=True):
                    scores[number] = value
                rows = []
        return scores

    @property
    def batch_size(self) -> int:
        """How many dialogues are best handed to it at once."""
        return 64 if self._model.device.type == "cuda" else 1

    def _forward(self, tokens: list[list[int]], cache: Any, known: torch.Tensor) -> TorchState:  # noqa: ANN401
        # Filled places count for nothing: no token sees them, and positions start after them.
        positions = (known.cumsum(1) - 1).clamp(min=0)[:, -len(tokens[0]) :]
        with torch.inference_mode():
            output = self._model(
                input_ids=torch.tensor(tokens, device=known.device),
                past_key_values=_cache([]) if cache is None else cache,  # one that forgets nothing
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


def _add_tokens(model: Any, adapter: Path, known: int) -> None:  # noqa: ANN401
    """Put the adapter's new tokens behind the known ones, instead of rows that some models do not use."""
    from safetensors.torch import load_file

    if not (adapter / ADDED_TOKENS).is_file():
        return
    rows = load_file(adapter / ADDED_TOKENS)["rows"].float()
    with quiet_transformers(), torch.no_grad():
        model.resize_token_embeddings(known + len(rows), mean_resizing=False)
        model.get_input_embeddings().weight[known:] = rows
        model.get_output_embeddings().weight[known:] = rows


def _add_soft_prompt(model: Any, folder: Path) -> tuple[int, ...]:  # noqa: ANN401
    """Let the model read a soft prompt, if there is one; it cannot be generated: the output layer stays."""
    from safetensors.torch import load_file

    if not (folder / SOFT_PROMPT).is_file():
        return ()
    known, rows = model.get_input_embeddings().weight, load_file(folder / SOFT_PROMPT)["rows"].float()
    scale = embedding_scale(model.config)
    model.set_input_embeddings(AddedTokens(known, rows, scale).requires_grad_(False))
    return tuple(range(len(known), len(known) + len(rows)))


def _merged(model: Any, adapter: Path) -> Any:  # noqa: ANN401
    """The model with a LoRA adapter added into its weights: an ordinary model again."""
    try:
        from peft import PeftModel
    except ModuleNotFoundError:
        raise MissingExtraError("peft", "train", "Loading an adapter") from None
    return PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()


def _log_likelihoods(model: Any, requests: Sequence[Request]) -> list[np.ndarray]:  # noqa: ANN401
    """How likely replies are after their prompts, all in one pass: (replies,) float32 for each prompt."""
    device, on_gpu = model.device, model.device.type == "cuda"
    longest = max(len(prompt) for prompt, _ in requests)
    shape = (len(requests), longest + max(sum(map(len, replies)) for _, replies in requests))
    tokens, positions, segments = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, FILLED)
    targets, before, counts = list[int](), list[int](), list[int]()
    for row, (prompt, replies) in enumerate(requests):
        start, base = longest - len(prompt), row * shape[1]
        tokens[row, start:longest], segments[row, start:longest] = prompt, PROMPT
        positions[row, start:longest] = np.arange(len(prompt))
        here = longest
        for number, reply in enumerate(replies):
            end = here + len(reply)
            tokens[row, here:end], segments[row, here:end] = reply, number
            positions[row, here:end] = len(prompt) + np.arange(len(reply))
            targets += reply
            before += [base + longest - 1, *range(base + here, base + end - 1)][: len(reply)]
            counts.append(len(reply))
            here = end
    moved = torch.from_numpy(segments).to(device)
    # Everybody sees its own segment; replies see the prompt too.
    seen = (moved[:, :, None] == moved[:, None, :]) | (
        (moved == PROMPT)[:, None, :] & (moved >= 0)[:, :, None]
    )
    seen = seen & torch.ones(seen.shape[1:], dtype=torch.bool, device=device).tril()
    indices = torch.from_numpy(positions).to(device)
    with torch.inference_mode():
        with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
            states = model.base_model(
                input_ids=torch.from_numpy(tokens).to(device),
                attention_mask=attention_masks(model.config, seen, indices),
                position_ids=indices,
                use_cache=False,
            ).last_hidden_state
        selected = states.flatten(0, 1)[torch.tensor(before, device=device)]  # (words, width)
        nats = _nats(model, selected, torch.tensor(targets, device=device))
    owners = np.repeat(np.arange(len(counts)), counts)
    sums = -np.bincount(owners, nats.cpu().numpy().astype(np.float64), len(counts)).astype(np.float32)
    return list(np.split(sums, np.cumsum([len(replies) for _, replies in requests])[:-1]))


def _nats(model: Any, states: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
    """How unlikely each target is after its state: (words,)."""
    head, cap = model.get_output_embeddings(), logit_cap(model.config)
    parts = zip(states.split(LOGIT_ROWS), targets.split(LOGIT_ROWS), strict=True)
    return torch.cat(
        [
            torch.nn.functional.cross_entropy(
                capped(head(some.float()).float(), cap), those, reduction="none"
            )
            for some, those in parts
        ]
    )


def _parts(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Numbers of neighbours that together are no longer than `most`; one that is longer alone."""
    part: list[int] = []
    for number, length in enumerate(lengths):
        if part and sum(lengths[member] for member in part) + length > most:
            yield part
            part = []
        part.append(number)
    if part:
        yield part
