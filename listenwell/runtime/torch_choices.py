"""How likely the same replies are after each of many prompts, all in a few passes.

A row is a prompt and then reply after reply, one after the other: each sees the prompt and itself. So a
prompt is read once however many replies there are, no reply is padded, and several prompts keep a GPU busy.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from listenwell.runtime.base import probe_layer

ROW_TOKENS, CPU_TOKENS, GPU_TOKENS = 2048, 2048, 32_768
"""Tokens of the replies in a row, and tokens in a pass."""
LOGIT_ROWS = 8192
"""Places whose words are predicted at once: each takes the whole vocabulary."""
FILLED, PROMPT = -2, -1
"""Segments that are no reply."""
Request = tuple[Sequence[int], Sequence[Sequence[int]]]
"""A prompt, and the replies that go on from it."""


def log_likelihoods_of(
    model: Any,  # noqa: ANN401
    prompts: Sequence[Sequence[int]],
    replies: Sequence[Sequence[int]],
) -> np.ndarray:
    """Of every reply after every prompt, in nats: (prompts, replies) float32.

    Args:
        model: a causal model of transformers, on its device.
        prompts: tokens.
        replies: tokens of each, its end mark included.
    """
    scores = np.zeros((len(prompts), len(replies)), np.float32)
    for columns in _parts([len(reply) for reply in replies], ROW_TOKENS):
        some = [replies[column] for column in columns]
        each = log_likelihoods_each(model, [(prompt, some) for prompt in prompts])
        scores[:, columns] = np.stack(each) if each else scores[:, columns]
    return scores


def log_likelihoods_each(model: Any, requests: Sequence[Request]) -> list[np.ndarray]:  # noqa: ANN401
    """The same where every prompt has replies of its own: (replies,) float32 for each."""
    most = GPU_TOKENS if model.device.type == "cuda" else CPU_TOKENS
    scores = [np.zeros(0, np.float32)] * len(requests)
    lengths = [len(prompt) + sum(map(len, replies)) for prompt, replies in requests]
    order = sorted((row for row in range(len(requests)) if requests[row][1]), key=lambda row: lengths[row])
    rows: list[int] = []
    for index, row in enumerate(order):
        rows.append(row)
        last = index + 1 == len(order)
        if last or (len(rows) + 1) * lengths[order[index + 1]] > most:
            for number, values in zip(rows, _pass(model, [requests[each] for each in rows]), strict=True):
                scores[number] = values
            rows = []
    return scores


def mean_hidden_states(model: Any, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> np.ndarray:  # noqa: ANN401
    """What the model makes of each reply's tokens after `middle_layer` layers, on average.

    Returns:
        (replies, width) float32
    """
    means = []
    for reply in replies:
        tokens = torch.tensor([[*prompt, *reply]], device=model.device)
        with torch.inference_mode():
            states = model.base_model(tokens, use_cache=False, output_hidden_states=True).hidden_states
        hidden_state = states[probe_layer(len(states) - 1)][0, len(prompt) :]
        means.append(hidden_state.float().mean(0).cpu().numpy())
    return np.stack(means) if means else np.zeros((0, int(model.config.hidden_size)), np.float32)


def _pass(model: Any, requests: Sequence[Request]) -> list[np.ndarray]:  # noqa: ANN401
    """The same in one pass."""
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
    with torch.inference_mode():
        with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
            states = model.base_model(
                input_ids=torch.from_numpy(tokens).to(device),
                attention_mask=seen[:, None],
                position_ids=torch.from_numpy(positions).to(device),
                use_cache=False,
            ).last_hidden_state
        asked_for = states.flatten(0, 1)[torch.tensor(before, device=device)]  # (words, width)
        nats = _nats(model.get_output_embeddings(), asked_for, torch.tensor(targets, device=device))
    owners = np.repeat(np.arange(len(counts)), counts)
    sums = -np.bincount(owners, nats.cpu().numpy().astype(np.float64), len(counts)).astype(np.float32)
    return list(np.split(sums, np.cumsum([len(replies) for _, replies in requests])[:-1]))


def _nats(head: Any, states: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
    """How unlikely each target is after its state: (words,)."""
    parts = zip(states.split(LOGIT_ROWS), targets.split(LOGIT_ROWS), strict=True)
    return torch.cat(
        [
            torch.nn.functional.cross_entropy(head(some.float()).float(), those, reduction="none")
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
