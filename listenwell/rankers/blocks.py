"""Reading and matching in groups of like length: nothing depends on padding, so the less of it the better."""

import numpy as np
import torch

from listenwell.rankers.base import RankingModel, States, Words

CPU_ROWS, GPU_ROWS = 8, 512
"""Texts that are read together: a CPU waits for nothing, a GPU would wait for many small calls."""
GROUPS, SMALL = 3, 64
"""Groups that texts are matched in, and how many of them are few for a GPU."""


def states_in_groups(ranker: RankingModel, words: Words, there: np.ndarray | None = None) -> States:
    """The same as `ranker.states`, read in groups that are each cut to their longest text.

    `there` is the mask of `words`, where it is known already: then a GPU need not be waited for.
    """
    size = GPU_ROWS if words.tokens.is_cuda else CPU_ROWS
    if len(words) <= size:
        return ranker.states(words)
    there = words.mask.cpu().numpy() if there is None else there
    order = np.argsort(there.sum(axis=1), kind="stable")
    device = words.tokens.device
    length, padded = words.tokens.shape[1], []
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        longest = int(np.flatnonzero(there[chosen].any(axis=0)).max(initial=0)) + 1
        values = ranker.states(words[moved(chosen, device)][:, :longest]).values
        padded.append(torch.nn.functional.pad(values, (0, 0, 0, length - longest)))
    return States(words, torch.cat(padded)[moved(np.argsort(order), device)])


def moved(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """An array on a device; a GPU goes on with its work meanwhile."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def match_in_blocks(
    ranker: RankingModel, context: States, persona: States | None, replies: States, groups: int | None = None
) -> torch.Tensor:
    """The same scores as `ranker.match`: (contexts, replies).

    Contexts and replies are sorted by length and divided into groups, each cut to its own longest text; with
    texts of all lengths that is a quarter of the work. On a GPU a small batch stays whole: many small calls
    would take longer than the work they save.
    """
    if groups is None:
        groups = 1 if context.values.is_cuda and len(context) <= SMALL else GROUPS
    down, across = _groups(context, groups), _groups(replies, groups)
    if len(down) == len(across) == 1:
        return ranker.match(context, persona, replies)
    columns = [_cut(replies, chosen) for chosen in across]
    rows = []
    for chosen in down:
        some = _cut(context, chosen)
        theirs = _cut(persona, chosen) if persona is not None else None
        rows.append(torch.cat([ranker.match(some, theirs, column) for column in columns], dim=1))
    scores = torch.cat(rows)
    return scores[torch.cat(down).argsort()][:, torch.cat(across).argsort()]


def _groups(states: States, count: int) -> list[torch.Tensor]:
    """Numbers of rows in groups of like length; small batches stay whole."""
    order = states.mask.sum(dim=1).argsort(stable=True)
    return list(order.tensor_split(max(1, min(count, len(order) // 4))))


def _cut(states: States, chosen: torch.Tensor) -> States:
    """Some rows, up to the last position where any of them has a word; one at least."""
    some = states.take(chosen)
    columns = some.mask.any(dim=0).nonzero()
    return some.cut(int(columns[-1]) + 1 if len(columns) else 1)
