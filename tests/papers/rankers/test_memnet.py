import math

import torch

from listenwell.rankers.model import WordBackbone
from tests.rankers import checks


def test_a_lookup_by_hand():
    # Words 1 to 4 are (1, 0), (0, 1), (2, 0), (0, 4).
    backbone = WordBackbone(torch.tensor([[9, 9], [1, 0], [0, 1], [2, 0], [0, 4.0]]))
    ranker = checks.make("memnet", backbone)
    # q = mean((1, 0), (0, 1)); m = mean((1, 0), (2, 0)) and (0, 4), so q · m = 0.75 and 2.
    first = math.exp(0.75) / (math.exp(0.75) + math.exp(2))
    asked = (0.5 + 1.5 * first, 0.5 + 4 * (1 - first))
    found = checks.scores(ranker, [[[1], [2]]], [[[1, 3], [4]]], [[[3]], [[4, 2]]])
    checks.near(found, torch.tensor([[2 * asked[0], 2.5 * asked[1]]]))


def test_sentences_are_looked_up_one_by_one():
    ranker = checks.make("memnet")
    joined = [[[word for part in row for word in part]] if row else [] for row in checks.PERSONAS]
    assert checks.change_counts(ranker, {"personas": joined})
