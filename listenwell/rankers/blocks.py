"""Matching in blocks of like length: nothing depends on padding, so the less of it the better."""

import torch

from listenwell.rankers.base import Ranker, States


def match_in_blocks(
    ranker: Ranker, context: States, persona: States | None, replies: States, groups: int = 3
) -> torch.Tensor:
    """The same scores as `ranker.match`: (contexts, replies).

    Contexts and replies are sorted by length and divided into groups, each cut to its own longest text; with
    texts of all lengths that is a quarter of the work.
    """
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
    """Some rows, up to the last place where any of them has a word."""
    some = states.take(chosen)
    places = some.mask.any(dim=0).nonzero()
    return some.cut(int(places[-1]) + 1 if len(places) else 1)
