import math

import pytest
import torch

from listenwell.rankers import RANKERS
from listenwell.rankers.bodies import WordBody
from listenwell.rankers.memnet import MemNet
from tests.rankers import checks

BODIES = {"words": checks.word_body, "bert": checks.bert_body}


@pytest.fixture(params=BODIES)
def ranker(request):
    return checks.make(MemNet, BODIES[request.param](), model="memnet")


def test_padding_moves_nothing(ranker):
    checks.padding_moves_nothing(ranker)


def test_neighbours_move_nothing(ranker):
    checks.neighbours_move_nothing(ranker)


def test_an_empty_persona_is_none(ranker):
    checks.an_empty_persona_is_none(ranker)


def test_every_weight_learns():
    checks.every_weight_learns(checks.make(MemNet, model="memnet"))


def test_it_can_learn():
    checks.it_can_learn(checks.make(MemNet, model="memnet"))


def test_a_lookup_by_hand():
    # Words 1 to 4 are (1, 0), (0, 1), (2, 0), (0, 4).
    ranker = MemNet(
        checks.RankerConfig(model="memnet"),
        WordBody(torch.tensor([[9, 9], [1, 0], [0, 1], [2, 0], [0, 4.0]])),
    )
    # q = mean((1, 0), (0, 1)); m = mean((1, 0), (2, 0)) and (0, 4), so q · m = 0.75 and 2.
    first = math.exp(0.75) / (math.exp(0.75) + math.exp(2))
    asked = (0.5 + 1.5 * first, 0.5 + 4 * (1 - first))
    found = checks.scores(ranker, [[[1], [2]]], [[[1, 3], [4]]], [[[3]], [[4, 2]]])
    checks.near(found, torch.tensor([[2 * asked[0], 2.5 * asked[1]]]))


@torch.no_grad()
def test_scores_are_products_of_its_vectors():
    ranker = checks.make(MemNet, model="memnet")
    context, persona, replies = (
        ranker.states(checks.texts(rows)) for rows in (checks.CONTEXTS, checks.PERSONAS, checks.REPLIES)
    )
    assert ranker.gives_vectors and ranker.vectors(replies).shape == (4, checks.WIDTH)
    checks.near(ranker.asked(context, persona) @ ranker.vectors(replies).T, checks.scores(ranker))


def test_sentences_are_looked_up_one_by_one():
    ranker = checks.make(MemNet, model="memnet")
    joined = [[[word for part in row for word in part]] if row else [] for row in checks.PERSONAS]
    assert checks.change_counts(ranker, {"personas": joined})


def test_the_registry_knows_it():
    assert RANKERS.load("memnet") is MemNet
