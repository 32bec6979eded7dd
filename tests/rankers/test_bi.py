import math

import pytest
import torch

from listenwell.rankers.bi import FIRST_SCALE
from listenwell.rankers.config import BiSettings
from listenwell.rankers.model import WordBackbone
from tests.rankers import checks

# Words 1 to 4 are (1, 0), (0, 1), (2, 0), (0, 4).
BY_HAND = torch.tensor([[9, 9], [1, 0], [0, 1], [2, 0], [0, 4.0]])


def test_products_of_means_by_hand():
    ranker = checks.make("bi", WordBackbone(BY_HAND))
    # Context mean((1, 0), (0, 1), (0, 1)) = (1/3, 2/3), persona mean((2, 0), (0, 4)) = (1, 2).
    contexts, personas = [[[1], [2, 2]], [[3]]], [[[3, 4]], []]
    found = checks.scores(ranker, contexts, personas, [[[1]], [[2, 4]]])
    # Asked: the mean of both (2/3, 4/3); without a persona (2, 0). Replies (1, 0) and (0, 2.5).
    checks.near(found, torch.tensor([[2 / 3, 10 / 3], [2.0, 0.0]]))


def test_cosines_by_hand():
    ranker = checks.make("bi", WordBackbone(BY_HAND), bi=BiSettings(cosine=True))
    found = checks.scores(ranker, [[[1, 1, 2]], [[3]]], [[], [[4]]], [[[1]], [[2, 4]]])
    # (2, 1) / √5; mean of (2, 0) and (0, 4) is (1, 2), its direction (1, 2) / √5.
    expected = FIRST_SCALE / math.sqrt(5) * torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    checks.near(found, expected)
    with torch.no_grad():
        ranker.scale.fill_(math.log(3))
    checks.near(
        checks.scores(ranker, [[[1, 1, 2]], [[3]]], [[], [[4]]], [[[1]], [[2, 4]]]), expected * 3 / 20
    )


@torch.no_grad()
@pytest.mark.parametrize("backbone", checks.BACKBONES)
def test_vectors_of_cosines_have_the_length_one(backbone):
    ranker = checks.make("bi", checks.BACKBONES[backbone](), bi=BiSettings(cosine=True))
    checks.near(ranker.vectors(ranker.states(checks.texts(checks.REPLIES))).norm(dim=1), torch.ones(4))
