"""Running a ranker: states of texts in batches of like length, and scores in parts that fit into memory."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from listenwell.annotators.inference import CPU_TOKENS, GPU_TOKENS, like_lengths
from listenwell.rankers.base import Ranker, States, Words
from listenwell.rankers.inputs import Text, stacked

CPU_PLACES, GPU_PLACES = 1_000_000, 2_000_000
"""Pairs of words of a context and a reply that are matched at once; a few hundred bytes each."""


def words_of(texts: Sequence[Text], device: torch.device) -> Words:
    """Texts as a ranker's tensors."""
    arrays = {name: torch.from_numpy(array).to(device) for name, array in stacked(texts).items()}
    return Words(**arrays)


def states_of(ranker: Ranker, texts: Sequence[Text], advance: Callable[[int], None] | None = None) -> States:
    """What a ranker's body makes of texts, in the order given; equal texts are read once.

    Args:
        ranker: in eval mode, wherever its weights are.
        texts: contexts, personas or replies.
        advance: is told how many texts were done, batch by batch.
    """
    device = next(ranker.parameters()).device
    on_gpu = device.type == "cuda"
    words = words_of(texts, device)
    number_of: dict[bytes, int] = {}
    numbers = [
        number_of.setdefault(text.tokens.tobytes() + text.types.tobytes(), len(number_of)) for text in texts
    ]
    first = {number: place for place, number in reversed(list(enumerate(numbers)))}
    different = [texts[first[number]] for number in range(len(first))]
    values: torch.Tensor | None = None
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
        lengths = [max(1, len(text)) for text in different]
        for batch in like_lengths(lengths, GPU_TOKENS if on_gpu else CPU_TOKENS):
            found = ranker.states(words_of([different[number] for number in batch], device)).values
            if values is None:
                shape = (len(different), words.tokens.shape[1], found.shape[2])
                values = torch.zeros(shape, device=device, dtype=found.dtype)
            values[torch.tensor(batch, device=device), : found.shape[1]] = found
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
    ranker: Ranker, contexts: Sequence[Text], personas: Sequence[Text], replies: Sequence[Text]
) -> np.ndarray:
    """Every reply for every context: (contexts, replies) float32."""
    persona = states_of(ranker, personas) if any(map(len, personas)) else None
    return match(ranker, states_of(ranker, contexts), persona, states_of(ranker, replies))


def reply_vectors(
    ranker: Ranker, replies: Sequence[Text], advance: Callable[[int], None] | None = None
) -> np.ndarray:
    """(replies, width) float32; their inner products with `context_vectors` are first scores."""
    with torch.inference_mode():
        found = ranker.vectors(states_of(ranker, replies, advance))
    return np.asarray(found.float().cpu().numpy())


def context_vectors(ranker: Ranker, contexts: Sequence[Text], personas: Sequence[Text]) -> np.ndarray:
    """(contexts, width) float32"""
    with torch.inference_mode():
        persona = states_of(ranker, personas) if any(map(len, personas)) else None
        found = ranker.asked(states_of(ranker, contexts), persona)
    return np.asarray(found.float().cpu().numpy())


def match(ranker: Ranker, context: States, persona: States | None, replies: States) -> np.ndarray:
    """The same for states that are known, in parts that fit into memory."""
    device = context.values.device
    on_gpu = device.type == "cuda"
    longest = max(context.words.tokens.shape[1], persona.words.tokens.shape[1] if persona else 0)
    places = longest * replies.words.tokens.shape[1]
    most = max(1, (GPU_PLACES if on_gpu else CPU_PLACES) // places)  # pairs of a context and a reply
    across = max(1, min(len(replies), most))
    down = max(1, most // across)
    found = np.zeros((len(context), len(replies)), np.float32)
    with torch.inference_mode():
        for top in range(0, len(context), down):
            rows = slice(top, top + down)
            for left in range(0, len(replies), across):
                columns = slice(left, left + across)
                scores = ranker.scores(context[rows], persona[rows] if persona else None, replies[columns])
                found[rows, columns] = scores.float().cpu().numpy()
    return found
