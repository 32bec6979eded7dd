import math

import torch
from torch.nn import functional

from listenwell.rankers.config import DamSettings
from tests.rankers import checks


def module(attentive, query, keys):
    """An attentive module on one text, (words, width)."""
    weights = (query @ keys.T / math.sqrt(checks.WIDTH)).softmax(dim=1)
    seen = attentive.norms[0](query + weights @ keys)
    return attentive.norms[1](seen + attentive.outer(functional.relu(attentive.inner(seen))))


def features(ranker, x, y):
    """The images of two texts without padding, and what the convolutions make of them."""
    images = []
    for depth in range(3):
        if depth:
            deeper = ranker.deeper[depth - 1]
            x, y = module(deeper, x, x), module(deeper, y, y)
        images.append(x @ y.T)
        images.append(module(ranker.to_reply[depth], x, y) @ module(ranker.to_text[depth], y, x).T)
    maps = torch.stack(images)[None] / math.sqrt(checks.WIDTH)
    for convolution in ranker.convolutions:
        maps = functional.max_pool2d(functional.elu(convolution(maps)), 3, ceil_mode=True)
    return torch.cat((maps[0].amax(dim=(1, 2)), maps[0].mean(dim=(1, 2))))


@torch.no_grad()
def test_scores_are_the_papers():
    ranker = checks.make("dam")
    found = checks.scores(ranker)
    for row, (context, persona) in enumerate(zip(checks.CONTEXTS, checks.PERSONAS, strict=True)):
        for column, reply in enumerate(checks.REPLIES):
            turns, sentences, spoken = checks.pair(ranker, context, persona, reply)
            expected = ranker.context_head(features(ranker, torch.cat(turns), spoken))
            if sentences:
                expected = expected + ranker.persona_head(features(ranker, torch.cat(sentences), spoken))
            checks.near(found[row, column], expected[0])


def test_it_matches_phrases_and_not_words_alone():
    ranker = checks.make("dam")
    turned = [[part[::-1] for part in row] for row in checks.REPLIES]
    assert checks.change_counts(ranker, {"replies": turned})


def test_without_layers_it_has_the_states_alone():
    ranker = checks.make("dam", dam=DamSettings(0, (4, 3)))
    assert len(ranker.deeper) == 0 and ranker.convolutions[0].in_channels == 2
    checks.padding_moves_nothing(ranker)
