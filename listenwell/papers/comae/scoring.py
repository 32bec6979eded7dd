"""How likely given replies are, and how well their factors are predicted: in training and evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from listenwell.metrics import rank_of_truth
from listenwell.papers.comae.config import SLOT_COUNT, SLOTS
from listenwell.papers.comae.inputs import NOTHING, ComaeBatch, TrainingExample, collate
from listenwell.papers.comae.model import ComaeModel, Words, token_losses
from listenwell.training.batching import by_length

FACTORS = ("gold", "predicted", "none")
"""Which factors a reply's tokens carry: its own, the likeliest ones one after the other, or none."""


@dataclass(frozen=True)
class Scores:
    """Scores of each example, in their order."""

    nll: dict[str, np.ndarray]
    """By the factors on the reply: (examples,) nats."""
    ranks: dict[str, np.ndarray]
    """The true choice's rank in each slot, 1 the best: (examples, SLOT_COUNT); 0 where there is none. By what
    stands before a factor in a hierarchy: "gold", the reply's own factors, or "predicted", the likeliest."""


def score(
    model: ComaeModel,
    examples: Sequence[TrainingExample],
    factors: Sequence[str] = FACTORS,
    tokens: int | None = None,
) -> Scores:
    """Score replies in batches of like length; "gold" needs replies whose factors are known."""
    tokens = tokens or (16_384 if model.device.type == "cuda" else 4_096)
    nll = {name: np.zeros(len(examples)) for name in factors}
    ranks = {name: np.zeros((len(examples), SLOT_COUNT), np.int64) for name in ("gold", "predicted")}
    with torch.no_grad():
        for numbers in by_length(np.array([len(example) for example in examples]), tokens):
            batch = collate(examples, [[number] for number in numbers], len(examples[numbers[-1]]))
            scores = _score_batch(model, batch, factors)
            for name in factors:
                nll[name][numbers] = scores.nll[name]
            for name, own in scores.ranks.items():
                ranks[name][numbers] = own
    return Scores(nll, ranks)


def _score_batch(model: ComaeModel, batch: ComaeBatch, factors: Sequence[str]) -> Scores:
    words = Words.of(batch, model.device)
    nothing = torch.full_like(words.factors, NOTHING)
    nll, context = dict[str, np.ndarray](), None
    for name, plans in (("gold", words.factors), ("none", nothing)):
        # What stands after a context does not change its last state: any pass gives it.
        if name in factors or (name == "none" and context is None):
            context, nll[name] = _pass(model, words, plans)
    predicted = model.decide(context, nothing)
    if "predicted" in factors:
        _, nll["predicted"] = _pass(model, words, predicted)
    before = (("gold", words.factors), ("predicted", predicted))
    return Scores(nll, {name: _ranks(model, context, plans, batch.factors) for name, plans in before})


def _pass(model: ComaeModel, words: Words, plans: torch.Tensor) -> tuple[torch.Tensor, np.ndarray]:
    """The contexts' last states, and each example's negative log-likelihood: (examples,) float64."""
    context, states = model.states(words, plans)
    losses = token_losses(states, model.output_weights(), words.labels)
    owners = words.owners.flatten()[words.sources] - 1
    summed = torch.zeros(len(plans), dtype=torch.float64, device=losses.device)
    sums: np.ndarray = summed.index_add_(0, owners, losses.double()).cpu().numpy()
    return context, sums


def _ranks(model: ComaeModel, context: torch.Tensor, before: torch.Tensor, truth: np.ndarray) -> np.ndarray:
    """The true choices' ranks, 0 where the truth is not known: (examples, SLOT_COUNT)."""
    ranks = np.zeros_like(truth)
    for name in model.config.factors:
        scores = model.predict(name, context, before).cpu().numpy()
        for column, slot in enumerate(SLOTS[name]):
            known = truth[:, slot] != NOTHING
            if known.any():
                ranks[known, slot] = rank_of_truth(scores[known, column], truth[known, slot])
    return ranks
