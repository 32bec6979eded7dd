"""How likely the same replies are after each of many prompts, all in a few passes.

A row is a prompt and then reply after reply, one after the other: each sees the prompt and itself. So a
prompt is read once however many replies there are, no reply is padded, and several prompts keep a GPU busy.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

ROW_TOKENS, CPU_TOKENS, GPU_TOKENS = 2048, 2048, 32_768
"""Tokens of the replies in a row, and tokens in a pass."""
LOGIT_ROWS = 8192
"""Places whose words are predicted at once: each takes the whole vocabulary."""


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
    found = np.zeros((len(prompts), len(replies)), np.float32)
    order = np.argsort([len(prompt) for prompt in prompts], kind="stable")  # like lengths together
    most = GPU_TOKENS if model.device.type == "cuda" else CPU_TOKENS
    for columns in _parts([len(reply) for reply in replies], ROW_TOKENS):
        some = [replies[column] for column in columns]
        width = sum(map(len, some)) + max(map(len, prompts), default=0)
        down = max(1, most // max(1, width))
        for top in range(0, len(prompts), down):
            rows = order[top : top + down]
            found[np.ix_(rows, np.array(columns))] = _pass(model, [prompts[row] for row in rows], some)
    return found


def _pass(model: Any, prompts: Sequence[Sequence[int]], replies: Sequence[Sequence[int]]) -> np.ndarray:  # noqa: ANN401
    """The same in one pass."""
    device, on_gpu = model.device, model.device.type == "cuda"
    longest = max(map(len, prompts))
    words = np.array([token for reply in replies for token in reply], np.int64)
    owners = np.repeat(np.arange(len(replies)), [len(reply) for reply in replies])
    inside = np.concatenate([np.arange(len(reply)) for reply in replies])
    before = np.where(inside == 0, longest - 1, longest + np.arange(len(words)) - 1)
    tokens = np.zeros((len(prompts), longest + len(words)), np.int64)
    places = np.zeros_like(tokens)
    segments = np.full_like(tokens, -2)  # −2: filled up, −1: the prompt, then each reply's number
    tokens[:, longest:], segments[:, longest:] = words, owners
    for row, prompt in enumerate(prompts):
        tokens[row, longest - len(prompt) : longest] = prompt
        segments[row, longest - len(prompt) : longest] = -1
        places[row, longest - len(prompt) : longest] = np.arange(len(prompt))
        places[row, longest:] = len(prompt) + inside
    moved = torch.from_numpy(segments).to(device)
    # Everybody sees its own segment; replies see the prompt too.
    seen = (moved[:, :, None] == moved[:, None, :]) | ((moved == -1)[:, None, :] & (moved >= 0)[:, :, None])
    seen = seen & torch.ones(seen.shape[1:], dtype=torch.bool, device=device).tril()
    with torch.inference_mode():
        with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
            states = model.base_model(
                input_ids=torch.from_numpy(tokens).to(device),
                attention_mask=seen[:, None],
                position_ids=torch.from_numpy(places).to(device),
                use_cache=False,
            ).last_hidden_state
        asked = states[:, torch.from_numpy(before).to(device)].flatten(0, 1)  # (prompts · words, width)
        targets = torch.from_numpy(words).to(device).repeat(len(prompts))
        head, parts = model.get_output_embeddings(), (asked.split(LOGIT_ROWS), targets.split(LOGIT_ROWS))
        nats = torch.cat(
            [
                torch.nn.functional.cross_entropy(head(some.float()).float(), those, reduction="none")
                for some, those in zip(*parts, strict=True)
            ]
        )
        found = torch.zeros(len(prompts), len(replies), device=device)
        found.index_add_(1, torch.from_numpy(owners).to(device), nats.view(len(prompts), -1))
    return -np.asarray(found.cpu().numpy())


def _parts(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Numbers of neighbours that together are no longer than `most`; one that is longer alone."""
    part: list[int] = []
    for number, length in enumerate(lengths):
        if part and sum(lengths[one] for one in part) + length > most:
            yield part
            part = []
        part.append(number)
    if part:
        yield part
