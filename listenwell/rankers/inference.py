"""Running a ranker: states and scores in groups of like length, and in parts that fit into memory.

Nothing depends on padding, so the less of it the better.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from listenwell.rankers.base import RankingModel, States, Words
from listenwell.rankers.inputs import Text, distinct_texts, stacked
from listenwell.runtime.text import CPU_TOKENS, GPU_TOKENS, like_lengths

CPU_PLACES, GPU_PLACES = 1_000_000, 24_000_000
"""Pairs of words of a context and a reply that are matched at once."""
PLACE_BYTES = 1500
"""What such a pair takes at most: a GPU with little memory matches fewer at once."""
CPU_ROWS, GPU_ROWS = 8, 512
"""Texts that are read together: a CPU waits for nothing, a GPU would wait for many small calls."""
GROUPS, SMALL = 3, 64
"""Groups that texts are matched in, and how many of them are few for a GPU."""


def placed(arrays: dict[str, np.ndarray], device: torch.device) -> Words:
    """Arrays of `inputs.stacked` on a device, in one copy."""
    whole = np.stack([arrays[name] for name in ("tokens", "types", "parts")])
    return Words(*moved(whole, device).unbind())


def states_of(
    ranker: RankingModel, texts: Sequence[Text], advance: Callable[[int], None] | None = None
) -> States:
    """The backbone's states of contexts, personas or replies, in order; equal texts are encoded once."""
    device = next(ranker.parameters()).device
    on_gpu = device.type == "cuda"
    words = placed(stacked(texts), device)
    different, numbers = distinct_texts(texts)
    values: torch.Tensor | None = None
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
        lengths = [max(1, len(text)) for text in different]
        for batch in like_lengths(lengths, GPU_TOKENS if on_gpu else CPU_TOKENS):
            states = ranker.states(placed(stacked([different[number] for number in batch]), device)).values
            if values is None:
                shape = (len(different), words.tokens.shape[1], states.shape[2])
                values = torch.zeros(shape, device=device, dtype=states.dtype)
            values[torch.tensor(batch, device=device), : states.shape[1]] = states
            if advance:
                advance(len(batch))
        if values is None:
            return States(words, torch.zeros((0, words.tokens.shape[1], ranker.width), device=device))
        if advance:
            advance(len(texts) - len(different))
        if len(different) < len(texts):
            values = values[torch.tensor(numbers, device=device)]
        return States(words, values.float())


def score(
    ranker: RankingModel, contexts: Sequence[Text], personas: Sequence[Text], replies: Sequence[Text]
) -> np.ndarray:
    """Every reply for every context: (contexts, replies) float32."""
    (scores,) = score_pools(ranker, [(contexts, personas, replies)])
    return scores


Pool = tuple[Sequence[Text], Sequence[Text], Sequence[Text]]
"""Contexts, the personas that go with them, and the replies that each of them chooses among."""


def score_pools(ranker: RankingModel, pools: Sequence[Pool]) -> list[np.ndarray]:
    """The same for several pools, whose texts are read together: a small pool keeps no GPU busy."""
    contexts, personas, replies = ([text for pool in pools for text in pool[part]] for part in range(3))
    persona = states_of(ranker, personas) if any(map(len, personas)) else None
    context, reply = states_of(ranker, contexts), states_of(ranker, replies)
    scores, above, left = [], 0, 0
    for own, _, candidates in pools:
        rows, columns = slice(above, above + len(own)), slice(left, left + len(candidates))
        scores.append(match(ranker, context[rows], persona[rows] if persona else None, reply[columns]))
        above, left = rows.stop, columns.stop
    return scores


def match(ranker: RankingModel, context: States, persona: States | None, replies: States) -> np.ndarray:
    """The same for states that are known, in parts that fit into memory."""
    device = context.values.device
    longest = max(context.words.tokens.shape[1], persona.words.tokens.shape[1] if persona else 0)
    word_pairs = longest * replies.words.tokens.shape[1]
    most = max(1, _room(device) // word_pairs)  # pairs of a context and a reply
    across = max(1, min(len(replies), most))
    down = max(1, most // across)
    scores = torch.zeros(len(context), len(replies), device=device)
    with torch.inference_mode():
        for top in range(0, len(context), down):
            rows = slice(top, top + down)
            for left in range(0, len(replies), across):
                columns = slice(left, left + across)
                scores[rows, columns] = ranker.scores(
                    context[rows], persona[rows] if persona else None, replies[columns]
                ).float()
    return np.asarray(scores.cpu().numpy())


def _room(device: torch.device) -> int:
    """How many pairs of words fit."""
    if device.type != "cuda":
        return CPU_PLACES
    free, _ = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return max(1, min(GPU_PLACES, int(free) // PLACE_BYTES))


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
    some = states[chosen]
    columns = some.mask.any(dim=0).nonzero()
    return some[:, : int(columns[-1]) + 1 if len(columns) else 1]
